// How weights become int8: symmetric, one scale per output channel, round half to even, [-127, 127].
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dragoman {

// W^T (n, k), row-major: one row per output channel, as torch's Linear stores it.
struct QuantizedRows {
  std::vector<int8_t> q;     // (n, k)
  std::vector<float> scale;  // n
  std::vector<int32_t> sum;  // n: sum of q over k
};

struct QuantError {
  double max_abs = 0;   // largest |w - scale * q|
  double rms = 0;       // root mean square of the same
  double relative = 0;  // rms divided by the rms of w
};

QuantizedRows quantize_weights(std::span<const float> w, size_t n, size_t k);
QuantError quant_error(std::span<const float> w, const QuantizedRows& quantized, size_t n, size_t k);

}  // namespace dragoman
