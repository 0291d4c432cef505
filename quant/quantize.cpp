#include "quant/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/kernels.h"

namespace dragoman {

namespace {

// Half to even, in the default rounding mode; NaN becomes the least that is allowed. `neighbour` is the other weight of
// the pair, or 0 while it is not rounded yet.
int8_t to_int8(double t, int8_t neighbour) {
  const double low = std::max(-127, -kPairLimit - neighbour), high = std::min(127, kPairLimit - neighbour);
  return static_cast<int8_t>(std::nearbyint(t > low ? std::min(t, high) : low));
}

// The smallest step with which no weight is beyond 127 of them, and no pair beyond kPairLimit.
float step_of(std::span<const float> row) {
  float largest = 0, largest_pair = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    largest = std::max(largest, std::abs(row[i]));
    if (i % 2) largest_pair = std::max(largest_pair, std::abs(row[i - 1] + row[i]));
  }
  return std::max(largest / 127.0f, largest_pair / static_cast<float>(kPairLimit));
}

// round(row, scale, q) for every row that is not all zeros; zeros get scale 0, like an activation row.
template <class Round>
QuantizedRows quantize_rows(std::span<const float> w, size_t n, size_t k, const Round& round) {
  QuantizedRows rows{std::vector<int8_t>(n * k), std::vector<float>(n), std::vector<int32_t>(n)};
  for (size_t r = 0; r < n; ++r) {
    const auto from = w.subspan(r * k, k);
    const float step = step_of(from);
    if (step < 0x1p-107f) continue;

    rows.scale[r] = step;
    int8_t* q = rows.q.data() + r * k;
    round(from, rows.scale[r], q);
    rows.sum[r] = std::accumulate(q, q + k, 0);
  }
  return rows;
}

// How the error of one weight is shared out over those that come later, for one block of inputs.
struct Compensation {
  size_t first, width;
  std::vector<size_t> order;  // of the inputs, the most important first
  std::vector<float> u;       // (width, width) upper triangular, in that order: U^T U = inverse of the moments
};

// H = R R^T with R upper triangular, from the last row up; then U = R^-1. All in place, in doubles. No eigenvalue of H
// is below `least`, so no pivot is, but for rounding.
void invert_factor(std::vector<double>& h, size_t n, double least) {
  for (size_t j = n; j-- > 0;) {
    double* column_j = &h[j * n];
    for (size_t l = j + 1; l < n; ++l) column_j[j] -= column_j[l] * column_j[l];
    column_j[j] = std::sqrt(std::max(column_j[j], least));
    for (size_t i = 0; i < j; ++i) {
      double* row = &h[i * n];
      double sum = row[j];
      for (size_t l = j + 1; l < n; ++l) sum -= row[l] * column_j[l];
      row[j] = sum / column_j[j];
    }
  }
  // R U = 1, row by row from the last: U_ii = 1 / R_ii, U_ij = -(sum of R_il U_lj over i < l <= j) / R_ii.
  std::vector<double> row(n);
  for (size_t i = n; i-- > 0;) {
    std::fill(row.begin(), row.end(), 0.0);
    for (size_t l = i + 1; l < n; ++l) {
      const double r = h[i * n + l];
      for (size_t j = l; j < n; ++j) row[j] -= r * h[l * n + j];
    }
    const double diagonal = h[i * n + i];
    h[i * n + i] = 1 / diagonal;
    for (size_t j = i + 1; j < n; ++j) h[i * n + j] = row[j] / diagonal;
  }
}

Compensation compensation(const InputMoments& moments, size_t first, double damping) {
  const size_t n = std::min(InputMoments::kBlock, moments.inputs() - first);
  const float* sums = moments.block(first);
  Compensation c{first, n, std::vector<size_t>(n), std::vector<float>(n * n)};
  std::iota(c.order.begin(), c.order.end(), 0);
  double trace = 0;
  for (size_t i = 0; i < n; ++i) trace += sums[i * n + i];
  if (!(trace > 0 && trace <= std::numeric_limits<float>::max())) {  // nothing seen, or NaN: each to the nearest
    for (size_t i = 0; i < n; ++i) c.u[i * n + i] = 1;
    return c;
  }
  std::stable_sort(c.order.begin(), c.order.end(),
                   [&](size_t a, size_t b) { return sums[a * n + a] > sums[b * n + b]; });
  const double added = damping * trace / static_cast<double>(n);
  std::vector<double> h(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i; j < n; ++j) {
      const auto [low, high] = std::minmax(c.order[i], c.order[j]);
      h[i * n + j] = sums[low * n + high] + (i == j ? added : 0);
    }
  }
  invert_factor(h, n, added);
  std::copy(h.begin(), h.end(), c.u.begin());
  return c;
}

void round_compensated(const Compensation& c, std::span<const float> from, float scale, int8_t* q) {
  std::vector<float> w(c.width);
  for (size_t i = 0; i < c.width; ++i) w[i] = from[c.first + c.order[i]];
  for (size_t i = 0; i < c.width; ++i) {
    const size_t at = c.first + c.order[i];
    const int8_t rounded = to_int8(static_cast<double>(w[i]) / scale, (at ^ 1) < from.size() ? q[at ^ 1] : int8_t{0});
    q[at] = rounded;
    const float* u = &c.u[i * c.width];
    const float error = (w[i] - scale * static_cast<float>(rounded)) / u[i];
    for (size_t j = i + 1; j < c.width; ++j) w[j] -= error * u[j];
  }
}

}  // namespace

QuantizedRows quantize_weights(std::span<const float> w, size_t n, size_t k) {
  return quantize_rows(w, n, k, [](std::span<const float> from, float scale, int8_t* q) {
    for (size_t i = 0; i < from.size(); ++i)  // divided by the scale as stored
      q[i] = to_int8(static_cast<double>(from[i]) / scale, i % 2 ? q[i - 1] : int8_t{0});
  });
}

QuantizedRows quantize_weights(std::span<const float> w, size_t n, size_t k, const InputMoments& moments,
                               double damping) {
  std::vector<Compensation> blocks;
  for (size_t first = 0; first < k; first += InputMoments::kBlock)
    blocks.push_back(compensation(moments, first, damping));
  return quantize_rows(w, n, k, [&](std::span<const float> from, float scale, int8_t* q) {
    for (const Compensation& block : blocks) round_compensated(block, from, scale, q);
  });
}

InputMoments::InputMoments(size_t k) : k_(k), sums_(k * std::min(k, kBlock)) {}

void InputMoments::add(const double* x) {
  for (size_t first = 0; first < k_; first += kBlock) {
    const size_t n = std::min(kBlock, k_ - first);
    float* sums = sums_.data() + first * kBlock;
    std::vector<float> row(x + first, x + first + n);
    for (size_t i = 0; i < n; ++i) {
      if (row[i] == 0) continue;  // half of what leaves a ReLU
      for (size_t j = i; j < n; ++j) sums[i * n + j] += row[i] * row[j];
    }
  }
}

void InputMoments::add(const InputMoments& other) {
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += other.sums_[i];
}

QuantError quant_error(std::span<const float> w, const QuantizedRows& quantized, size_t n, size_t k) {
  QuantError error;
  double squares = 0, signal = 0;
  for (size_t i = 0; i < n * k; ++i) {
    const double d = w[i] - static_cast<double>(quantized.scale[i / k]) * quantized.q[i];
    error.max_abs = std::max(error.max_abs, std::abs(d));
    squares += d * d;
    signal += static_cast<double>(w[i]) * w[i];
  }
  if (n * k > 0) error.rms = std::sqrt(squares / static_cast<double>(n * k));
  if (signal > 0) error.relative = std::sqrt(squares / signal);
  return error;
}

}  // namespace dragoman
