// oneDNN's matrix product, as the yardstick for ours: primitive made once, weights in the layout it likes best.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/gemm_data.h"

namespace dragoman::bench {

// oneDNN has several ways to a product, and none is the quickest everywhere. On AVX2 version 2.6 has generated kernels
// for convolutions alone: one of 1 x 1 over a row of m pixels is the same product, and x and y keep their layout.
struct OneDnnForm {
  enum class Primitive { kMatmul, kMatmulTransposed, kInnerProduct, kConvolution };
  enum class Input { kF32, kU8, kS8 };
  Primitive primitive;
  Input input;
  std::string name() const;
};

std::vector<OneDnnForm> onednn_forms(bool s8);
std::string onednn_version();

// y (m, n) = x (m, k) W + bias, on one thread. int8: one scale for each column, float y; unsigned x is ours plus 127,
// which the bias takes back.
class OneDnnGemm {
 public:
  // Null where oneDNN has no such primitive on this machine.
  static std::unique_ptr<OneDnnGemm> create(const OneDnnForm& form, const GemmData& data, size_t copies);
  ~OneDnnGemm();
  void run(size_t copy);
  const float* result() const;  // (m, n)

 private:
  struct State;
  explicit OneDnnGemm(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace dragoman::bench
