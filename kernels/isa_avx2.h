// AVX2 with FMA: laptops and servers since 2013. Compiled with -mavx2 -mfma.
#pragma once

#include <immintrin.h>

#include <xsimd/xsimd.hpp>

#include "kernels/isa.h"

namespace dragoman {

struct Avx2 {
  static constexpr const char* kName = "avx2";
  static constexpr size_t kLanes = 8;
  static constexpr size_t kPanels = 1;
  static constexpr size_t kStreams = 4;  // 8 accumulators: 6 panels are 8 % faster from DRAM and 5 % slower from L3
  static constexpr size_t kRowsF32 = 6;  // 12 accumulators, 2 of weights, 1 of x: 15 of 16 registers
  static constexpr size_t kRowsS8 = 4;   // 8 accumulators, 2 of weights, 1 of x, the constant 1, and dot4's own

  using arch = xsimd::fma3<xsimd::avx2>;
  using F = xsimd::batch<float, arch>;
  // Not __m256i, which is four int64: g++ 12 copied every accumulator to and fro between the two types.
  using I = int32_t __attribute__((vector_size(32)));

  DRAGOMAN_INLINE static F load(const float* p) { return F::load_unaligned(p); }
  DRAGOMAN_INLINE static void store(float* p, F v) { v.store_unaligned(p); }
  DRAGOMAN_INLINE static F set(float x) { return F(x); }
  DRAGOMAN_INLINE static F max(F a, F b) { return _mm256_max_ps(a, b); }
  DRAGOMAN_INLINE static F min(F a, F b) { return _mm256_min_ps(a, b); }
  DRAGOMAN_INLINE static F select_less(F a, F b, F yes, F no) { return xsimd::select(a < b, yes, no); }
  DRAGOMAN_INLINE static F to_float(I v) { return _mm256_cvtepi32_ps(__builtin_bit_cast(__m256i, v)); }
  DRAGOMAN_INLINE static F pow2(F t) {
    const __m256i bits = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32(0x3f800000)));
  }
  DRAGOMAN_INLINE static void store_s8(int8_t* q, const F (&v)[2]) {
    const __m256i halves = _mm256_packs_epi32(_mm256_cvttps_epi32(v[0]), _mm256_cvttps_epi32(v[1]));
    const __m256i words = _mm256_permute4x64_epi64(halves, 0xd8);  // packs works in 128-bit lanes: 0 2 1 3
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q), _mm_add_epi8(bytes, _mm_set1_epi8(kOffset)));
  }

  static constexpr bool kFma = true;
  using W = F;
  DRAGOMAN_INLINE static W widen(F v) { return v; }
  DRAGOMAN_INLINE static F narrow(W v) { return v; }
  DRAGOMAN_INLINE static W set_wide(float x) { return set(x); }
  DRAGOMAN_INLINE static W fma(W a, W b, W c) { return _mm256_fmadd_ps(a, b, c); }

  // maddubs wants one unsigned operand, hence x + 127. Two products stay below 2^15, because two neighbouring weights
  // do not add up to more than 129 (PanelsS8): its saturation never happens.
  static constexpr int32_t kOffset = 127;
  using Weights = __m256i;
  using Quad = __m256i;
  DRAGOMAN_INLINE static Weights weights(const int8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  DRAGOMAN_INLINE static Quad quad(const int8_t* p) {
    int32_t x;
    std::memcpy(&x, p, sizeof x);
    return _mm256_set1_epi32(x);
  }
  DRAGOMAN_INLINE static I start(const int32_t* sum, int32_t zero) {
    const __m256i sums = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sum));
    return __builtin_bit_cast(I, _mm256_mullo_epi32(sums, _mm256_set1_epi32(zero)));
  }
  DRAGOMAN_INLINE static I dot4(I acc, Quad x, Weights w) {
    const __m256i pairs = _mm256_maddubs_epi16(x, w);
    const __m256i four = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    return __builtin_bit_cast(I, _mm256_add_epi32(__builtin_bit_cast(__m256i, acc), four));
  }
};

}  // namespace dragoman
