// NEON with the int8 matrix product (optional since ARMv8.2, required in 8.6): Neoverse V1 and N2, Cortex-A510, A715.
#pragma once

#include <type_traits>

#include "kernels/isa_neondot.h"

namespace dragoman {

struct NeonI8mm : NeonDot {
  static constexpr const char* kName = "neoni8mm";
  static constexpr size_t kRowsS8 = 4;

  // SMMLA multiplies two rows by two columns, eight k deep: 32 exact products. Its columns are two groups of the packed
  // layout zipped by fours; zipping serves all rows of a tile.
  struct Pairs {
    static constexpr size_t kRows = 2, kDepth = 8;
    struct Sum {
      int32x4_t low, high;  // columns 0 and 1, 2 and 3: (row 0, row 0, row 1, row 1)
    };
    struct Weights {
      int8x16_t low, high;
    };
    using X = int8x16_t;
    DRAGOMAN_INLINE static Sum begin(I) { return {vdupq_n_s32(0), vdupq_n_s32(0)}; }
    DRAGOMAN_INLINE static Weights weights(const int8_t* p) {
      const int32x4_t a = read<int32x4_t>(p), b = read<int32x4_t>(p + 64);
      return {vreinterpretq_s8_s32(vzip1q_s32(a, b)), vreinterpretq_s8_s32(vzip2q_s32(a, b))};
    }
    DRAGOMAN_INLINE static X x(const int8_t* p, size_t ldx) {
      return vcombine_s8(read<int8x8_t>(p), read<int8x8_t>(p + ldx));
    }
    DRAGOMAN_INLINE static void dot(Sum& sum, X x, const Weights& w) {
      sum.low = vmmlaq_s32(sum.low, x, w.low);
      sum.high = vmmlaq_s32(sum.high, x, w.high);
    }
    DRAGOMAN_INLINE static I end(const Sum& sum, size_t row, I start) {
      const int64x2_t low = vreinterpretq_s64_s32(sum.low), high = vreinterpretq_s64_s32(sum.high);
      return vaddq_s32(start, vreinterpretq_s32_s64(row == 0 ? vzip1q_s64(low, high) : vzip2q_s64(low, high)));
    }
  };
  template <size_t M>
  using Step = std::conditional_t<M % 2 == 0, Pairs, Dot>;
};

}  // namespace dragoman
