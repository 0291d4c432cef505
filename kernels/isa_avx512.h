// AVX-512 F, BW, DQ and VL: servers since 2017. Compiled with those four flags. F and I are the compiler's own vector
// types, which have + - * /.
#pragma once

#include <immintrin.h>

#include "kernels/isa.h"

namespace dragoman {

struct Avx512 {
  static constexpr const char* kName = "avx512";
  static constexpr size_t kLanes = 16;
  // One register per panel: an fma of latency 4 on two ports asks for 8 accumulators, and four panels beside each other
  // have 4 at one row, 8 at two, 24 at six. With 4 registers of weights and 1 of x these are 29 of 32.
  static constexpr size_t kPanels = 4;
  static constexpr size_t kStreams = 4;
  static constexpr size_t kRowsF32 = 6;
  static constexpr size_t kRowsS8 = 5;  // 20 accumulators, 4 of weights, 1 of x, the constant 1, and dot4's own

  using F = __m512;
  // Not __m512i, which is eight int64: g++ 12 copied every accumulator to and fro between the two types, and to memory
  // as well (VNNI's loop had 74 instructions for 38).
  using I = int32_t __attribute__((vector_size(64)));

  DRAGOMAN_INLINE static F load(const float* p) { return _mm512_loadu_ps(p); }
  DRAGOMAN_INLINE static void store(float* p, F v) { _mm512_storeu_ps(p, v); }
  DRAGOMAN_INLINE static F set(float x) { return _mm512_set1_ps(x); }
  DRAGOMAN_INLINE static F max(F a, F b) { return _mm512_max_ps(a, b); }
  DRAGOMAN_INLINE static F min(F a, F b) { return _mm512_min_ps(a, b); }
  DRAGOMAN_INLINE static F select_less(F a, F b, F yes, F no) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
  }
  DRAGOMAN_INLINE static F to_float(I v) { return _mm512_cvtepi32_ps(__builtin_bit_cast(__m512i, v)); }
  DRAGOMAN_INLINE static F pow2(F t) {
    const __m512i bits = _mm512_slli_epi32(_mm512_castps_si512(t), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(bits, _mm512_set1_epi32(0x3f800000)));
  }
  DRAGOMAN_INLINE static void store_s8(int8_t* q, const F (&v)[1]) {
    const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(v[0]));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q), _mm_add_epi8(bytes, _mm_set1_epi8(kOffset)));
  }

  static constexpr bool kFma = true;
  using W = F;
  DRAGOMAN_INLINE static W widen(F v) { return v; }
  DRAGOMAN_INLINE static F narrow(W v) { return v; }
  DRAGOMAN_INLINE static W set_wide(float x) { return set(x); }
  DRAGOMAN_INLINE static W fma(W a, W b, W c) { return _mm512_fmadd_ps(a, b, c); }

  // As on AVX2: x + 127 times w, which maddubs takes without saturating.
  static constexpr int32_t kOffset = 127;
  using Weights = __m512i;
  using Quad = __m512i;
  DRAGOMAN_INLINE static Weights weights(const int8_t* p) { return _mm512_loadu_si512(p); }
  DRAGOMAN_INLINE static Quad quad(const int8_t* p) {
    int32_t x;
    std::memcpy(&x, p, sizeof x);
    return _mm512_set1_epi32(x);
  }
  DRAGOMAN_INLINE static I start(const int32_t* sum, int32_t zero) {
    return __builtin_bit_cast(I, _mm512_mullo_epi32(_mm512_loadu_si512(sum), _mm512_set1_epi32(zero)));
  }
  DRAGOMAN_INLINE static I dot4(I acc, Quad x, Weights w) {
    const __m512i pairs = _mm512_maddubs_epi16(x, w);
    const __m512i four = _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
    return __builtin_bit_cast(I, _mm512_add_epi32(__builtin_bit_cast(__m512i, acc), four));
  }
};

}  // namespace dragoman
