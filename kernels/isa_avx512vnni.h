// AVX-512 with VNNI: Ice Lake, Zen 4 and later. vpdpbusd multiplies u8 (x + 127) by s8 and adds four products to an
// int32 without saturating (its cousin vpdpbusds does saturate).
#pragma once

#include "kernels/isa_avx512.h"

namespace dragoman {

struct Avx512Vnni : Avx512 {
  static constexpr const char* kName = "avx512vnni";
  static constexpr size_t kRowsS8 = 6;  // 24 accumulators, 4 of weights, 1 of x; dpbusd's latency is 5

  DRAGOMAN_INLINE static I dot4(I acc, Quad x, Weights w) {
    return __builtin_bit_cast(I, _mm512_dpbusd_epi32(__builtin_bit_cast(__m512i, acc), x, w));
  }
};

}  // namespace dragoman
