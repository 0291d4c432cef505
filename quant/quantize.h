// How weights become int8: symmetric, one scale per output channel, [-127, 127], and no two neighbours (k even and k +
// 1) beyond kPairLimit together (kernels/kernels.h says why): the step is larger by a quarter than without that.
// Rounded to the nearest, half to even; or, where it is known what the inputs look like, so that the products change
// least.
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

// What the inputs x of a product look like: sums of x x^T over many of them. Only blocks of kBlock inputs along the
// diagonal are kept: a feed-forward layer of 4,096 inputs would need 67 MB otherwise.
class InputMoments {
 public:
  static constexpr size_t kBlock = 1024;
  explicit InputMoments(size_t k);
  void add(const double* x, size_t rows = 1);  // (rows, k)
  size_t inputs() const { return k_; }
  // (width, width) for the inputs [first, first + width), width = min(kBlock, k - first); the lower triangle is 0.
  const float* block(size_t first) const { return sums_.data() + first * kBlock; }

 private:
  size_t k_;
  std::vector<float> sums_;
};

// The error of each weight is made up for by the weights of the row that are still to be rounded, along the inverse of
// the moments (Frantar et al. 2023, "GPTQ"), the most important inputs first. damping: what is added to the moments'
// diagonal, in parts of its mean. Much of it keeps every weight close to what it was, little of it keeps the product.
class InputAwareRounding {
 public:
  InputAwareRounding(const InputMoments& moments, double damping);
  ~InputAwareRounding();
  QuantizedRows quantize(std::span<const float> w, size_t n) const;  // (n, inputs)

 private:
  struct Block;
  size_t inputs_;
  std::vector<Block> blocks_;
};
QuantizedRows quantize_weights(std::span<const float> w, size_t n, size_t k, const InputMoments& moments,
                               double damping);

// The error of a matrix that comes some rows at a time.
class QuantErrorSum {
 public:
  void add(std::span<const float> w, const QuantizedRows& quantized, size_t n, size_t k);
  QuantError error() const;

 private:
  double squares_ = 0, signal_ = 0, max_abs_ = 0;
  size_t count_ = 0;
};
QuantError quant_error(std::span<const float> w, const QuantizedRows& quantized, size_t n, size_t k);

}  // namespace dragoman
