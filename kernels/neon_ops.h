// What the NEON tags share, in 128-bit registers: 64-bit ARM (isa_neon.h) and 32-bit (isa_neon32.h).
#pragma once

#include <arm_neon.h>

#include "kernels/isa.h"

namespace dragoman {

struct NeonOps {
  static constexpr size_t kLanes = 4;
  static constexpr size_t kPanels = 1;
  static constexpr size_t kStreams = 1;
  static constexpr int32_t kOffset = 0;
  using I = int32x4_t;

  // As vld1q, of which g++ 12 for 32-bit ARM believes that it might read anything: it then stores every accumulator in
  // every step of a loop (15 of 39 instructions in the tile of gemm_f32).
  template <class V>
  DRAGOMAN_INLINE static V read(const void* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }

  DRAGOMAN_INLINE static float32x4_t load(const float* p) { return read<float32x4_t>(p); }
  DRAGOMAN_INLINE static void store(float* p, float32x4_t v) { vst1q_f32(p, v); }
  DRAGOMAN_INLINE static float32x4_t set(float x) { return vdupq_n_f32(x); }
  // Not vmaxq: with NaN it returns NaN, and maxps the second operand.
  DRAGOMAN_INLINE static float32x4_t max(float32x4_t a, float32x4_t b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
  DRAGOMAN_INLINE static float32x4_t min(float32x4_t a, float32x4_t b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
  DRAGOMAN_INLINE static float32x4_t select_less(float32x4_t a, float32x4_t b, float32x4_t yes, float32x4_t no) {
    return vbslq_f32(vcltq_f32(a, b), yes, no);
  }
  DRAGOMAN_INLINE static float32x4_t to_float(I v) { return vcvtq_f32_s32(v); }
  DRAGOMAN_INLINE static float32x4_t pow2(float32x4_t t) {
    return vreinterpretq_f32_s32(vaddq_s32(vshlq_n_s32(vreinterpretq_s32_f32(t), 23), vdupq_n_s32(0x3f800000)));
  }
  template <class F>
  DRAGOMAN_INLINE static void store_s8(int8_t* q, const F (&v)[4]) {
    const int16x8_t low = vcombine_s16(vmovn_s32(vcvtq_s32_f32(v[0])), vmovn_s32(vcvtq_s32_f32(v[1])));
    const int16x8_t high = vcombine_s16(vmovn_s32(vcvtq_s32_f32(v[2])), vmovn_s32(vcvtq_s32_f32(v[3])));
    vst1q_s8(q, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
  }

  static constexpr bool kFma = true;
  DRAGOMAN_INLINE static float32x4_t widen(float32x4_t v) { return v; }
  DRAGOMAN_INLINE static float32x4_t narrow(float32x4_t v) { return v; }
  DRAGOMAN_INLINE static float32x4_t set_wide(float x) { return set(x); }
  // As vfmaq, which g++ 12 takes for a call that may look at memory: it then stores every accumulator in every step of
  // a loop (12 of 55 instructions in the tile of gemm_f32).
  DRAGOMAN_INLINE static float32x4_t fma(float32x4_t a, float32x4_t b, float32x4_t c) {
#if defined(__aarch64__)
    __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(c) : "w"(a), "w"(b));
#else
    __asm__("vfma.f32 %q0, %q1, %q2" : "+w"(c) : "w"(a), "w"(b));
#endif
    return c;
  }

  DRAGOMAN_INLINE static I start(const int32_t* sum, int32_t zero) {
    return vmulq_n_s32(read<int32x4_t>(sum), zero);
  }

  // Four columns by eight k: two groups of the packed layout.
  struct TwoGroups {
    int8x16_t group[2];
  };
  DRAGOMAN_INLINE static TwoGroups two_groups(const int8_t* p) {
    return {{read<int8x16_t>(p), read<int8x16_t>(p + 64)}};
  }

  // CPUs without SDOT. k and k + 4 of a column share an int16: two products stay below 2^15 (2 * 127 * 127). Adding the
  // pairs of it to int32 costs a third of the instructions; after each product it would cost half of them.
  struct Widening {
    static constexpr size_t kRows = 1, kDepth = 8;
    struct Sum {
      int32x4_t low, high;  // two columns each, two partial sums a column
    };
    using Weights = TwoGroups;
    struct X {
      int8x16_t group[2];  // four k, four times
    };
    DRAGOMAN_INLINE static Sum begin(I) { return {vdupq_n_s32(0), vdupq_n_s32(0)}; }
    DRAGOMAN_INLINE static Weights weights(const int8_t* p) { return two_groups(p); }
    DRAGOMAN_INLINE static X x(const int8_t* p, size_t) {
      const int32x2_t both = read<int32x2_t>(p);
      return {{vreinterpretq_s8_s32(vdupq_lane_s32(both, 0)), vreinterpretq_s8_s32(vdupq_lane_s32(both, 1))}};
    }
    DRAGOMAN_INLINE static void dot(Sum& sum, const X& x, const Weights& w) {
      int16x8_t low = vmull_s8(vget_low_s8(w.group[0]), vget_low_s8(x.group[0]));
      low = vmlal_s8(low, vget_low_s8(w.group[1]), vget_low_s8(x.group[1]));
#if defined(__aarch64__)  // g++ 12 does not make SMULL2 of vget_high
      int16x8_t high = vmull_high_s8(w.group[0], x.group[0]);
      high = vmlal_high_s8(high, w.group[1], x.group[1]);
#else
      int16x8_t high = vmull_s8(vget_high_s8(w.group[0]), vget_high_s8(x.group[0]));
      high = vmlal_s8(high, vget_high_s8(w.group[1]), vget_high_s8(x.group[1]));
#endif
      sum.low = vpadalq_s16(sum.low, low);
      sum.high = vpadalq_s16(sum.high, high);
    }
    DRAGOMAN_INLINE static I end(const Sum& sum, size_t, I start) {
      const int32x2_t low = vpadd_s32(vget_low_s32(sum.low), vget_high_s32(sum.low));
      const int32x2_t high = vpadd_s32(vget_low_s32(sum.high), vget_high_s32(sum.high));
      return vaddq_s32(start, vcombine_s32(low, high));
    }
  };
};

}  // namespace dragoman
