// NEON of 32-bit ARM (ARMv7-A with VFPv4: Raspberry Pi 2, Cortex-A7, A15; and 64-bit CPUs in 32-bit mode). Compiled
// with -march=armv7-a -mfpu=neon-vfpv4.
#pragma once

#include "kernels/neon_ops.h"

namespace dragoman {

struct Neon32 : NeonOps {
  static constexpr const char* kName = "neon32";
  static constexpr size_t kRowsF32 = 2;  // 8 accumulators, 4 of weights, 1 of x: 13 of 16 registers
  static constexpr size_t kRowsS8 = 1;   // 8 accumulators, 2 of weights, 2 of x, 2 of products: 14

  // g++ makes scalar code of + - * on float32x4_t, because this NEON always flushes subnormals. We do too
  // (float_env.h): hence intrinsics. It has no division, only estimates: that one is meant to go lane by lane.
  struct F {
    float32x4_t v;
    F() = default;
    DRAGOMAN_INLINE F(float32x4_t x) : v(x) {}
    DRAGOMAN_INLINE operator float32x4_t() const { return v; }
    DRAGOMAN_INLINE friend F operator+(F a, F b) { return vaddq_f32(a.v, b.v); }
    DRAGOMAN_INLINE friend F operator-(F a, F b) { return vsubq_f32(a.v, b.v); }
    DRAGOMAN_INLINE friend F operator*(F a, F b) { return vmulq_f32(a.v, b.v); }
    DRAGOMAN_INLINE friend F operator/(F a, F b) { return a.v / b.v; }
  };
  using W = F;
  template <size_t M>
  using Step = Widening;
};

}  // namespace dragoman
