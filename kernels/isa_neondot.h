// NEON with the dot product instructions (optional since ARMv8.2): Raspberry Pi 5, RK3588, Cortex-A55, A76.
#pragma once

#include "kernels/isa_neon.h"

namespace dragoman {

struct NeonDot : Neon {
  static constexpr const char* kName = "neondot";
  static constexpr size_t kRowsS8 = 4;  // 16 accumulators, 8 of weights, 4 of x: 28 of 32 registers

  // SDOT adds four products to each lane, exactly; its x is a lane of a register, so eight k are one load.
  struct Dot {
    static constexpr size_t kRows = 1, kDepth = 8;
    using Sum = I;
    using Weights = TwoGroups;
    using X = int8x8_t;
    DRAGOMAN_INLINE static Sum begin(I start) { return start; }
    DRAGOMAN_INLINE static Weights weights(const int8_t* p) { return two_groups(p); }
    DRAGOMAN_INLINE static X x(const int8_t* p, size_t) { return read<int8x8_t>(p); }
    DRAGOMAN_INLINE static void dot(Sum& sum, X x, const Weights& w) {
      sum = vdotq_lane_s32(sum, w.group[0], x, 0);
      sum = vdotq_lane_s32(sum, w.group[1], x, 1);
    }
    DRAGOMAN_INLINE static I end(Sum sum, size_t, I) { return sum; }
  };
  template <size_t M>
  using Step = Dot;
};

}  // namespace dragoman
