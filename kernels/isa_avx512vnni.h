// AVX-512 with VNNI: Ice Lake, Zen 4 and later. vpdpbusd multiplies u8 by s8 and adds four products to an int32
// without saturating (its cousin vpdpbusds does saturate). x is signed, so it goes in as x + 128, and 128 times the
// column's stored sum is taken back at the start: exact.
#pragma once

#include "kernels/isa_avx512.h"

namespace dragoman {

struct Avx512Vnni : Avx512 {
  static constexpr const char* kName = "avx512vnni";
  static constexpr size_t kRowsS8 = 6;  // 24 accumulators, 4 of weights, 1 of x, 1 constant; dpbusd's latency is 5

  using Weights = __m512i;
  using Quad = __m512i;
  DRAGOMAN_INLINE static Weights weights(const int8_t* p) { return _mm512_loadu_si512(p); }
  DRAGOMAN_INLINE static Quad quad(const int8_t* p) {  // x + 128 in each byte
    return _mm512_xor_si512(broadcast(p), _mm512_set1_epi8(-128));
  }
  DRAGOMAN_INLINE static I start(const int32_t* sum, int32_t zero) { return Avx512::start(sum, zero - 128); }
  DRAGOMAN_INLINE static I dot4(I acc, Quad x, Weights w) {
    return __builtin_bit_cast(I, _mm512_dpbusd_epi32(__builtin_bit_cast(__m512i, acc), x, w));
  }
};

}  // namespace dragoman
