// SSE4.1 with SSSE3: x86 from 2008 on, and today's small Atoms. Compiled with -msse4.1. There is no FMA, so floats go
// the exact way of the portable table (fma_double-inl.h); what is new is int8.
#pragma once

#include <smmintrin.h>

#include "kernels/isa_portable.h"

namespace dragoman {

struct Sse41 : Portable {
  static constexpr const char* kName = "sse41";
  static constexpr size_t kRowsS8 = 4;  // 24 to 31 G products/s on a busy Zen3; 2 rows 21 to 25, 3 rows 22 to 28

  DRAGOMAN_INLINE static F max(F a, F b) { return _mm_max_ps(a, b); }
  DRAGOMAN_INLINE static F min(F a, F b) { return _mm_min_ps(a, b); }
  DRAGOMAN_INLINE static void store_s8(int8_t* q, const F (&v)[4]) {
    const __m128i low = _mm_packs_epi32(_mm_cvttps_epi32(v[0]), _mm_cvttps_epi32(v[1]));
    const __m128i high = _mm_packs_epi32(_mm_cvttps_epi32(v[2]), _mm_cvttps_epi32(v[3]));
    const __m128i bytes = _mm_packs_epi16(low, high);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q), _mm_add_epi8(bytes, _mm_set1_epi8(kOffset)));
  }

  // As on AVX2: x + 127 times w, which maddubs takes without saturating.
  static constexpr int32_t kOffset = 127;
  using Weights = __m128i;
  using Quad = __m128i;
  DRAGOMAN_INLINE static Weights weights(const int8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  DRAGOMAN_INLINE static Quad quad(const int8_t* p) {
    int32_t x;
    std::memcpy(&x, p, sizeof x);
    return _mm_set1_epi32(x);
  }
  DRAGOMAN_INLINE static I start(const int32_t* sum, int32_t zero) {
    const __m128i sums = _mm_loadu_si128(reinterpret_cast<const __m128i*>(sum));
    return __builtin_bit_cast(I, _mm_mullo_epi32(sums, _mm_set1_epi32(zero)));
  }
  DRAGOMAN_INLINE static I dot4(I acc, Quad x, Weights w) {
    const __m128i pairs = _mm_maddubs_epi16(x, w);
    const __m128i four = _mm_madd_epi16(pairs, _mm_set1_epi16(1));
    return __builtin_bit_cast(I, _mm_add_epi32(__builtin_bit_cast(__m128i, acc), four));
  }
};

}  // namespace dragoman
