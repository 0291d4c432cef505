// oneDNN's matrix product, as the yardstick for ours: primitive made once, weights in the layout it likes best.
#pragma once

#include <cstddef>
#include <memory>

namespace dragoman::bench {

// y (m, n) = x (m, k) W (k, n) + bias, on one thread. int8: signed x and W, one scale per column, float y.
// Below AVX-512 VNNI its int8 kernels add pairs of products with saturation, so its sums may be wrong where ours are
// exact.
class OneDnnGemm {
 public:
  enum class Numbers { kF32, kS8 };
  OneDnnGemm(Numbers numbers, size_t m, size_t k, size_t n);
  ~OneDnnGemm();
  void run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dragoman::bench
