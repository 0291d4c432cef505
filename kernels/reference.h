// The kernels again, in plain double loops on plain matrices: the oracle of the tests. Nothing here is fast, packed or
// shared with the kernels. W^T (n, k) is row-major, one row per output column.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernels/kernels.h"

namespace dragoman::reference {

using Doubles = std::vector<double>;

// A value, and the sum of the magnitudes that went into it: rounding errors are in proportion to the latter.
struct Sum {
  double value = 0;
  double magnitude = 0;
  void add(double term) {
    value += term;
    magnitude += std::abs(term);
  }
};

// y (m, n) = x (m, k) W + bias.
inline std::vector<Sum> gemm_f32(std::span<const float> x, std::span<const float> w, std::span<const float> bias,
                                 size_t m, size_t n, size_t k) {
  std::vector<Sum> y(m * n);
  for (size_t r = 0; r < m; ++r) {
    for (size_t c = 0; c < n; ++c) {
      Sum& sum = y[r * n + c];
      sum.add(bias[c]);
      for (size_t i = 0; i < k; ++i) sum.add(double(x[r * k + i]) * w[c * k + i]);
    }
  }
  return y;
}

// y (m, n) = ((x + zero[row]) W) * scale[row] * w_scale[column] + bias.
inline std::vector<Sum> gemm_s8(std::span<const int8_t> x, std::span<const RowQuant> rows, std::span<const int8_t> w,
                                std::span<const float> w_scale, std::span<const float> bias, size_t m, size_t n,
                                size_t k) {
  std::vector<Sum> y(m * n);
  for (size_t r = 0; r < m; ++r) {
    for (size_t c = 0; c < n; ++c) {
      int64_t dot = 0;
      for (size_t i = 0; i < k; ++i) dot += (int64_t{x[r * k + i]} + rows[r].zero) * w[c * k + i];
      y[r * n + c].add(double(dot) * rows[r].scale * w_scale[c]);
      y[r * n + c].add(bias[c]);
    }
  }
  return y;
}

inline Doubles softmax(std::span<const double> x) {
  const double top = *std::max_element(x.begin(), x.end());
  Doubles y(x.size());
  double total = 0;
  for (size_t i = 0; i < x.size(); ++i) total += y[i] = std::exp(x[i] - top);
  for (double& v : y) v /= total;
  return y;
}

inline double log_sum_exp(std::span<const float> x) {
  const double top = *std::max_element(x.begin(), x.end());
  double total = 0;
  for (float v : x) total += std::exp(v - top);
  return top + std::log(total);
}

// One query row: out (heads * d_head), with K and V (positions, heads * d_head).
inline Doubles attention(std::span<const float> q, std::span<const float> k, std::span<const float> v, size_t positions,
                         size_t heads, size_t d_head) {
  const size_t width = heads * d_head;
  Doubles out(width);
  for (size_t h = 0; h < heads; ++h) {
    Doubles scores(positions);
    for (size_t t = 0; t < positions; ++t) {
      for (size_t d = h * d_head; d < (h + 1) * d_head; ++d) scores[t] += double(q[d]) * k[t * width + d];
      scores[t] /= std::sqrt(double(d_head));
    }
    const Doubles p = softmax(scores);
    for (size_t t = 0; t < positions; ++t) {
      for (size_t d = h * d_head; d < (h + 1) * d_head; ++d) out[d] += p[t] * v[t * width + d];
    }
  }
  return out;
}

inline Doubles layer_norm(std::span<const float> x, std::span<const float> gamma, std::span<const float> beta,
                          double epsilon) {
  double mean = 0, variance = 0;
  for (float v : x) mean += v / double(x.size());
  for (float v : x) variance += (v - mean) * (v - mean) / double(x.size());
  Doubles y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = (x[i] - mean) / std::sqrt(variance + epsilon) * gamma[i] + beta[i];
  return y;
}

inline double relu(double x) {
  return std::max(x, 0.0);
}
inline double silu(double x) {
  return x / (1 + std::exp(-x));
}
inline double gelu(double x) {
  return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
}
inline double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

// The lowest index of the largest value; x.size() if all are NaN or -infinity.
inline size_t argmax(std::span<const float> x) {
  size_t best = x.size();
  float top = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] > top) {
      top = x[i];
      best = i;
    }
  }
  return best;
}

}  // namespace dragoman::reference
