#include "quant/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/kernels.h"
#include "quant/parallel.h"

namespace dragoman {

// How the error of one weight is shared out over those that come later, for one block of inputs.
struct InputAwareRounding::Block {
  size_t first, width;
  std::vector<size_t> order;  // of the inputs, the most important first
  std::vector<float> u;       // (width, width) upper triangular, in that order: U^T U = inverse of the moments

  Block(const InputMoments& moments, size_t from, double damping);
  void round(std::span<const float> row, float scale, int8_t* q) const;
};

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
  in_parallel(n, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const auto from = w.subspan(r * k, k);
      const float step = step_of(from);
      if (step < 0x1p-107f) continue;
      rows.scale[r] = step;
      int8_t* q = rows.q.data() + r * k;
      round(from, rows.scale[r], q);
      rows.sum[r] = std::accumulate(q, q + k, 0);
    }
  });
  return rows;
}

// Eight partial sums let the compiler use vectors.
double dot(const double* x, const double* y, size_t n) {
  double sums[8] = {}, rest = 0;
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (size_t j = 0; j < 8; ++j) sums[j] += x[i + j] * y[i + j];
  for (; i < n; ++i) rest += x[i] * y[i];
  for (const double sum : sums) rest += sum;
  return rest;
}

// H = R R^T with R upper triangular, from the last row up; then U = R^-1. All in place, in doubles. No eigenvalue of H
// is below `least`, so no pivot is, but for rounding.
void invert_factor(std::vector<double>& h, size_t n, double least) {
  for (size_t j = n; j-- > 0;) {
    double* column_j = &h[j * n];
    const double* later = column_j + j + 1;
    const size_t count = n - j - 1;
    column_j[j] = std::sqrt(std::max(column_j[j] - dot(later, later, count), least));
    for (size_t i = 0; i < j; ++i) {
      double* row = &h[i * n];
      row[j] = (row[j] - dot(row + j + 1, later, count)) / column_j[j];
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

}  // namespace

InputAwareRounding::Block::Block(const InputMoments& moments, size_t from, double damping)
    : first(from), width(std::min(InputMoments::kBlock, moments.inputs() - from)), order(width), u(width * width) {
  const size_t n = width;
  const float* sums = moments.block(first);
  std::iota(order.begin(), order.end(), 0);
  double trace = 0;
  for (size_t i = 0; i < n; ++i) trace += sums[i * n + i];
  if (!(trace > 0 && trace <= std::numeric_limits<float>::max())) {  // nothing seen, or NaN: each to the nearest
    for (size_t i = 0; i < n; ++i) u[i * n + i] = 1;
    return;
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sums[a * n + a] > sums[b * n + b]; });
  const double added = damping * trace / static_cast<double>(n);
  std::vector<double> h(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i; j < n; ++j) {
      const auto [low, high] = std::minmax(order[i], order[j]);
      h[i * n + j] = sums[low * n + high] + (i == j ? added : 0);
    }
  }
  invert_factor(h, n, added);
  std::copy(h.begin(), h.end(), u.begin());
}

void InputAwareRounding::Block::round(std::span<const float> row, float scale, int8_t* q) const {
  std::vector<float> w(width);
  for (size_t i = 0; i < width; ++i) w[i] = row[first + order[i]];
  for (size_t i = 0; i < width; ++i) {
    const size_t at = first + order[i];
    const int8_t rounded = to_int8(static_cast<double>(w[i]) / scale, (at ^ 1) < row.size() ? q[at ^ 1] : int8_t{0});
    q[at] = rounded;
    const float* shares = &u[i * width];
    const float error = (w[i] - scale * static_cast<float>(rounded)) / shares[i];
    for (size_t j = i + 1; j < width; ++j) w[j] -= error * shares[j];
  }
}

InputAwareRounding::InputAwareRounding(const InputMoments& moments, double damping) : inputs_(moments.inputs()) {
  for (size_t first = 0; first < inputs_; first += InputMoments::kBlock) blocks_.emplace_back(moments, first, damping);
}

InputAwareRounding::~InputAwareRounding() = default;

QuantizedRows InputAwareRounding::quantize(std::span<const float> w, size_t n) const {
  return quantize_rows(w, n, inputs_, [&](std::span<const float> row, float scale, int8_t* q) {
    for (const Block& block : blocks_) block.round(row, scale, q);
  });
}

QuantizedRows quantize_weights(std::span<const float> w, size_t n, size_t k) {
  return quantize_rows(w, n, k, [](std::span<const float> from, float scale, int8_t* q) {
    for (size_t i = 0; i < from.size(); ++i)  // divided by the scale as stored
      q[i] = to_int8(static_cast<double>(from[i]) / scale, i % 2 ? q[i - 1] : int8_t{0});
  });
}

QuantizedRows quantize_weights(std::span<const float> w, size_t n, [[maybe_unused]] size_t k,
                               const InputMoments& moments, double damping) {
  return InputAwareRounding(moments, damping).quantize(w, n);
}

InputMoments::InputMoments(size_t k) : k_(k), sums_(k * std::min(k, kBlock)) {}

void InputMoments::add(const double* x, size_t rows) {
  for (size_t first = 0; first < k_; first += kBlock) {
    const size_t n = std::min(kBlock, k_ - first);
    float* sums = sums_.data() + first * kBlock;
    std::vector<float> part(rows * n);
    for (size_t r = 0; r < rows; ++r) std::copy_n(x + r * k_ + first, n, part.begin() + static_cast<ptrdiff_t>(r * n));
    const auto add_rows_of_sums = [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        for (const float* row = part.data(); row < part.data() + rows * n; row += n) {
          if (row[i] == 0) continue;  // half of what leaves a ReLU
          for (size_t j = i; j < n; ++j) sums[i * n + j] += row[i] * row[j];
        }
      }
    };
    rows == 1 ? add_rows_of_sums(0, n) : in_parallel(n, add_rows_of_sums);
  }
}

void QuantErrorSum::add(std::span<const float> w, const QuantizedRows& quantized, size_t n, size_t k) {
  for (size_t i = 0; i < n * k; ++i) {
    const double d = w[i] - static_cast<double>(quantized.scale[i / k]) * quantized.q[i];
    max_abs_ = std::max(max_abs_, std::abs(d));
    squares_ += d * d;
    signal_ += static_cast<double>(w[i]) * w[i];
  }
  count_ += n * k;
}

QuantError QuantErrorSum::error() const {
  QuantError error;
  error.max_abs = max_abs_;
  if (count_ > 0) error.rms = std::sqrt(squares_ / static_cast<double>(count_));
  if (signal_ > 0) error.relative = std::sqrt(squares_ / signal_);
  return error;
}

QuantError quant_error(std::span<const float> w, const QuantizedRows& quantized, size_t n, size_t k) {
  QuantErrorSum sum;
  sum.add(w, quantized, n, k);
  return sum.error();
}

}  // namespace dragoman
