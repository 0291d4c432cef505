// fma(a, b, c) with one rounding, where the CPU cannot fuse: through doubles, exactly.
//
//   p = a * b      exact: 24 + 24 bits fit in 53
//   s = p + c      rounded to 53 bits
//   float(s)       rounded again, to 24
//
// Two roundings differ from one only if s lies exactly half-way between two floats (its low 29 bits are 1 0...0) and s
// is itself rounded. Then the exact sum lies beside s, on the side of the TwoSum error e; moving s one ulp that way
// (its last bit is 0, so this is round to odd) makes float(s) right. Half-way patterns are rare (2^-29 on random
// numbers), so sixteen lanes are computed without branches and checked once.
//
// Infinity, NaN (of floats: low bits 0) and overflow to infinity take the common path. Where subnormals are flushed,
// as float_env.h does, the conversion flushes what a fused instruction flushes; p and e, above 2^-300, are never
// subnormal doubles. One exception on 32-bit ARM, which flushes by the exact value: c = 2^-126 less a p below 2^-180 is
// 2^-126 here and 0 fused.
#pragma once

#include "kernels/isa.h"

namespace dragoman {

// s[i] <- s[i] moved toward the exact a[i] * b[i] + c[i], in the lanes that are half-way and inexact.
template <class Isa>
[[gnu::noinline, gnu::cold]] void round_to_odd(double* s, const double* a, const double* b, const double* c) {
  for (size_t i = 0; i < 16; ++i) {
    int64_t bits;
    std::memcpy(&bits, &s[i], sizeof bits);
    if ((bits & 0x1fffffff) != 0x10000000) continue;
    const double p = a[i] * b[i];
    const double from_c = s[i] - p;
    const double error = (p - (s[i] - from_c)) + (c[i] - from_c);
    if (error == 0) continue;
    bits += (error > 0) == (s[i] > 0) ? 1 : -1;  // away from zero, or toward it
    std::memcpy(&s[i], &bits, sizeof bits);
  }
}

// acc[i] <- fma(a[i], b[i], acc[i]) on 16 lanes; the doubles hold floats, before and after.
template <class Isa>
DRAGOMAN_INLINE void fma_double(const typename Isa::W (&a)[4], const typename Isa::W (&b)[4],
                                typename Isa::W (&acc)[4]) {
  using D = typename Isa::D;
  using I = typename Isa::I;
  using F2 = float __attribute__((vector_size(8)));
  using L = int64_t __attribute__((vector_size(16)));
  D s[4][2];
  I half_way = {};
  for (size_t i = 0; i < 4; ++i) {
    for (size_t h = 0; h < 2; ++h) s[i][h] = a[i].half[h] * b[i].half[h] + acc[i].half[h];
    // The low words of four doubles side by side: SSE2 compares no 64-bit integers.
    const I low = __builtin_shufflevector(__builtin_bit_cast(I, s[i][0]), __builtin_bit_cast(I, s[i][1]), 0, 2, 4, 6);
    half_way |= (low & 0x1fffffff) == 0x10000000;
  }
  const L any = __builtin_bit_cast(L, half_way);
  if (__builtin_expect((any[0] | any[1]) != 0, 0)) {
    double copy[4][16];  // so that a, b, acc and s may live in registers
    std::memcpy(copy[0], s, sizeof copy[0]);
    std::memcpy(copy[1], a, sizeof copy[1]);
    std::memcpy(copy[2], b, sizeof copy[2]);
    std::memcpy(copy[3], acc, sizeof copy[3]);
    round_to_odd<Isa>(copy[0], copy[1], copy[2], copy[3]);
    std::memcpy(s, copy[0], sizeof copy[0]);
  }
  for (size_t i = 0; i < 4; ++i) {
    for (size_t h = 0; h < 2; ++h) {
      acc[i].half[h] = __builtin_convertvector(__builtin_convertvector(s[i][h], F2), D);
    }
  }
}

}  // namespace dragoman
