// The instruction sets. A tag names one, and holds what truly differs between them: its registers and a handful of
// primitives of a few lines. Everything above (Vec16 in vec.h, the kernels in *-inl.h) is written once.
//
// A tag provides
//   F, I           a register of kLanes floats / int32; F has + - * /
//   kRowsF32       rows of x in a register tile of gemm_f32; kRowsS8 likewise
//   W, widen, narrow, kFma   what fma() computes on: F itself where the CPU fuses, doubles where it does not
//   max, min       a > b ? a : b and a < b ? a : b, exactly: with NaN, the second operand (what maxps does)
//   Weights, Quad, dot4      four int8 products per lane, added to an int32, exact
//
// Every function here is inlined: no code without a tag in its name may leave an object built with special flags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#define DRAGOMAN_INLINE [[gnu::always_inline]] inline
#define DRAGOMAN_INLINE_LAMBDA __attribute__((always_inline))  // after a lambda's parameters

namespace dragoman {

// Plain C++ on the compiler's generic vectors: four lanes fit every 128-bit SIMD unit, and scalar code where there is
// none. g++ 12 and clang 14 make cvtps2pd, maxps, pmullw and the like of it on baseline x86-64.
struct Portable {
  static constexpr const char* kName = "portable";
  static constexpr size_t kLanes = 4;
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

  // Sixteen whole numbers in [-127, 127] to int8.
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

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

#include <xsimd/xsimd.hpp>

namespace dragoman {

struct Avx2 {
  static constexpr const char* kName = "avx2";
  static constexpr size_t kLanes = 8;
  static constexpr size_t kRowsF32 = 6;  // 12 accumulators, 2 of weights, 1 of x: 15 of 16 registers
  static constexpr size_t kRowsS8 =
      3;  // 2 to 6 all give 125 to 138 GOPS on Zen3 (m = 32): sign and maddubs are the limit

  using arch = xsimd::fma3<xsimd::avx2>;
  using F = xsimd::batch<float, arch>;
  using I = xsimd::batch<int32_t, arch>;

  DRAGOMAN_INLINE static F load(const float* p) { return F::load_unaligned(p); }
  DRAGOMAN_INLINE static void store(float* p, F v) { v.store_unaligned(p); }
  DRAGOMAN_INLINE static F set(float x) { return F(x); }
  DRAGOMAN_INLINE static F max(F a, F b) { return _mm256_max_ps(a, b); }
  DRAGOMAN_INLINE static F min(F a, F b) { return _mm256_min_ps(a, b); }
  DRAGOMAN_INLINE static F select_less(F a, F b, F yes, F no) { return xsimd::select(a < b, yes, no); }
  DRAGOMAN_INLINE static F to_float(I v) { return _mm256_cvtepi32_ps(v); }
  DRAGOMAN_INLINE static F pow2(F t) {
    const __m256i bits = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32(0x3f800000)));
  }
  DRAGOMAN_INLINE static void store_s8(int8_t* q, const F (&v)[2]) {
    const __m256i halves = _mm256_packs_epi32(_mm256_cvttps_epi32(v[0]), _mm256_cvttps_epi32(v[1]));
    const __m256i words = _mm256_permute4x64_epi64(halves, 0xd8);  // packs works in 128-bit lanes: 0 2 1 3
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q), bytes);
  }

  static constexpr bool kFma = true;
  using W = F;
  DRAGOMAN_INLINE static W widen(F v) { return v; }
  DRAGOMAN_INLINE static F narrow(W v) { return v; }
  DRAGOMAN_INLINE static W set_wide(float x) { return set(x); }
  DRAGOMAN_INLINE static W fma(W a, W b, W c) { return _mm256_fmadd_ps(a, b, c); }

  // maddubs wants one unsigned operand: |w| x sign(x, w). |w| serves all rows. Two products stay below 2^15, so its
  // saturation never happens.
  struct Weights {
    __m256i value, magnitude;
  };
  using Quad = __m256i;
  DRAGOMAN_INLINE static Weights weights(const int8_t* p) {
    const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return {w, _mm256_abs_epi8(w)};
  }
  DRAGOMAN_INLINE static Quad quad(const int8_t* p) {
    int32_t x;
    std::memcpy(&x, p, sizeof x);
    return _mm256_set1_epi32(x);
  }
  DRAGOMAN_INLINE static I start(const int32_t* sum, int32_t zero) {
    return _mm256_mullo_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(sum)), _mm256_set1_epi32(zero));
  }
  DRAGOMAN_INLINE static I dot4(I acc, Quad x, const Weights& w) {
    const __m256i pairs = _mm256_maddubs_epi16(w.magnitude, _mm256_sign_epi8(x, w.value));
    return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

}  // namespace dragoman
#endif
