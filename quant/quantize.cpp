#include "quant/quantize.h"

#include <algorithm>
#include <cmath>

namespace dragoman {

namespace {

// Half to even, in the default rounding mode; NaN becomes -127.
int8_t to_int8(double t) {
  return static_cast<int8_t>(std::nearbyint(t > -127.0 ? std::min(t, 127.0) : -127.0));
}

}  // namespace

QuantizedRows quantize_weights(std::span<const float> w, size_t n, size_t k) {
  QuantizedRows rows{std::vector<int8_t>(n * k), std::vector<float>(n), std::vector<int32_t>(n)};
  for (size_t r = 0; r < n; ++r) {
    const auto from = w.subspan(r * k, k);
    float largest = 0;
    for (float v : from) largest = std::max(largest, std::abs(v));
    if (largest < 0x1p-100f) continue;  // zeros, scale 0: like an activation row

    const float scale = largest / 127.0f;
    for (size_t i = 0; i < k; ++i) {
      const int8_t q = to_int8(static_cast<double>(from[i]) / scale);  // by the scale as stored
      rows.q[r * k + i] = q;
      rows.sum[r] += q;
    }
    rows.scale[r] = scale;
  }
  return rows;
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
