// Plain C++ on the compiler's generic vectors: four lanes fit every 128-bit SIMD unit, and scalar code where there is
// none. g++ 12 and clang 14 make cvtps2pd, maxps, pmullw and the like of it on baseline x86-64.
#pragma once

#include "kernels/isa.h"

namespace dragoman {

struct Portable {
  static constexpr const char* kName = "portable";
  static constexpr size_t kLanes = 4;
  static constexpr size_t kPanels = 1;
  static constexpr size_t kStreams = 1;
  static constexpr size_t kRowsF32 = 4;
  static constexpr size_t kRowsS8 = 2;

  using F = float __attribute__((vector_size(16)));
  using I = int32_t __attribute__((vector_size(16)));
  using U = uint32_t __attribute__((vector_size(16)));
  using S = int16_t __attribute__((vector_size(16)));

  DRAGOMAN_INLINE static F load(const float* p) {
    F v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  DRAGOMAN_INLINE static void store(float* p, F v) { std::memcpy(p, &v, sizeof v); }
  DRAGOMAN_INLINE static F set(float x) { return F{x, x, x, x}; }
  DRAGOMAN_INLINE static F max(F a, F b) { return a > b ? a : b; }
  DRAGOMAN_INLINE static F min(F a, F b) { return a < b ? a : b; }
  DRAGOMAN_INLINE static F select_less(F a, F b, F yes, F no) { return a < b ? yes : no; }
  DRAGOMAN_INLINE static F to_float(I v) { return __builtin_convertvector(v, F); }

  // 2^n from t = n + 1.5 * 2^23, whose low bits are n.
  DRAGOMAN_INLINE static F pow2(F t) { return __builtin_bit_cast(F, (__builtin_bit_cast(U, t) << 23) + 0x3f800000u); }

  static constexpr int32_t kOffset = 0;
  // Sixteen whole numbers in [-127, 127], kOffset added, to bytes.
  DRAGOMAN_INLINE static void store_s8(int8_t* q, const F (&v)[4]) {
    for (size_t r = 0; r < 4; ++r) {
      const I whole = __builtin_convertvector(v[r], I);
      for (size_t i = 0; i < 4; ++i) q[4 * r + i] = static_cast<int8_t>(whole[i]);
    }
  }

#if defined(__FP_FAST_FMAF)
  static constexpr bool kFma = true;
  using W = F;
  DRAGOMAN_INLINE static W widen(F v) {
    return v;
  }
  DRAGOMAN_INLINE static F narrow(W v) {
    return v;
  }
  DRAGOMAN_INLINE static W set_wide(float x) {
    return set(x);
  }
  DRAGOMAN_INLINE static W fma(W a, W b, W c) {
    W r;
    for (size_t i = 0; i < 4; ++i) r[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return r;
  }
#else
  static constexpr bool kFma = false;  // fma_double-inl.h
  using D = double __attribute__((vector_size(16)));
  using D4 = double __attribute__((vector_size(32)));  // never an argument: its ABI depends on the flags
  struct W {
    D half[2];
  };
  DRAGOMAN_INLINE static W widen(F v) {
    const D4 d = __builtin_convertvector(v, D4);
    return {{__builtin_shufflevector(d, d, 0, 1), __builtin_shufflevector(d, d, 2, 3)}};
  }
  DRAGOMAN_INLINE static F narrow(const W& w) {
    return __builtin_convertvector(__builtin_shufflevector(w.half[0], w.half[1], 0, 1, 2, 3), F);
  }
  DRAGOMAN_INLINE static W set_wide(float x) {
    const double d = x;
    return {{D{d, d}, D{d, d}}};
  }
#endif

  // The even and the odd bytes of each int32, as int16: two products and their sum stay below 2^15 (2 * 127 * 127).
  struct Weights {
    S even, odd;
  };
  using Quad = Weights;
  DRAGOMAN_INLINE static Weights weights(const int8_t* p) {
    S v;
    std::memcpy(&v, p, sizeof v);
    return {(v << 8) >> 8, v >> 8};
  }
  DRAGOMAN_INLINE static Quad quad(const int8_t* p) {
    int32_t x;
    std::memcpy(&x, p, sizeof x);
    const I four = {x, x, x, x};
    const S v = __builtin_bit_cast(S, four);
    return {(v << 8) >> 8, v >> 8};
  }
  DRAGOMAN_INLINE static I start(const int32_t* sum, int32_t zero) {
    U sums;  // unsigned: a hostile file's sums may wrap, as they do in a vector instruction
    std::memcpy(&sums, sum, sizeof sums);
    return __builtin_bit_cast(I, sums * static_cast<uint32_t>(zero));
  }
  DRAGOMAN_INLINE static I dot4(I acc, Quad x, Weights w) {
    const S pairs = x.even * w.even + x.odd * w.odd;
    const I two = __builtin_bit_cast(I, pairs);
    return acc + ((two << 16) >> 16) + (two >> 16);
  }
};

}  // namespace dragoman
