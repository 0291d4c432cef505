// NEON of 64-bit ARM (ARMv8.0, the baseline): Raspberry Pi 3 and 4, Cortex-A53, A72.
#pragma once

#include "kernels/neon_ops.h"

namespace dragoman {

struct Neon : NeonOps {
  static constexpr const char* kName = "neon";
  static constexpr size_t kRowsF32 = 6;  // 24 accumulators, 4 of weights, 1 of x: 29 of 32 registers
  static constexpr size_t kRowsS8 = 2;   // 16 accumulators, 8 of weights, 2 of x, 2 of products: 28

  using F = float32x4_t;
  using W = F;
  template <size_t M>
  using Step = Widening;
};

}  // namespace dragoman
