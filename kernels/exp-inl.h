// exp and log, ours: polynomials, because libm differs from board to board.
#pragma once

#include "kernels/vec.h"

namespace dragoman {

// e^x. 0 below -87 (where floats go subnormal), e^88 above 88 (never infinity), NaN for NaN.
//   n = round(x / ln 2), r = x - n ln 2, e^x = 2^n (1 + r + r^2 P(r))
// P of degree 4 is a minimax fit on |r| <= ln(2)/2 (+1%): 3.3e-9 of e^r before rounding.
template <class Isa>
DRAGOMAN_INLINE Vec16<Isa> exp(const Vec16<Isa>& x) {
  using V = Vec16<Isa>;
  const V magic(12582912.0f);      // 1.5 * 2^23: adding it rounds to an integer, which is left in the low bits
  const V top = min(V(88.0f), x);  // in this order NaN passes
  const V t = fma(top, V(1.44269504f), magic);
  const V n = t - magic;
  V r = fma(n, V(-0.693359375f), top);  // ln 2 in two parts; the first has 9 bits, so n * it is exact
  r = fma(n, V(2.12194440e-4f), r);
  V p = fma(V(0.001381331356f), r, V(0.008369416930f));
  p = fma(p, r, V(0.04166845605f));
  p = fma(p, r, V(0.1666651517f));
  p = fma(p, r, V(0.4999999404f));
  p = fma(p, r * r, r);
  const V y = (p + V(1.0f)) * pow2(t);
  return select_less(x, V(-87.0f), V(0.0f), y);
}

// Natural logarithm of a positive, finite, normal x; -infinity for 0. Scalar and in doubles: once per row.
//   x = m 2^e with m in [sqrt(1/2), sqrt(2)),  log m = 2 atanh(z),  z = (m - 1) / (m + 1),  |z| < 0.172
template <class Isa>
DRAGOMAN_INLINE float log1(float x) {
  if (x == 0) return -kInfinity;
  if (!(x <= FLT_MAX)) return x;  // infinity or NaN
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const uint32_t shifted = bits - 0x3f3504f3;  // the bits of sqrt(1/2): the exponent steps there
  const int32_t e = static_cast<int32_t>(shifted) >> 23;
  const uint32_t mantissa = (shifted & 0x7fffff) + 0x3f3504f3;
  float m;
  std::memcpy(&m, &mantissa, sizeof m);
  const double z = (double(m) - 1.0) / (double(m) + 1.0);
  const double z2 = z * z;
  double sum = 0;
  for (int i = 13; i >= 1; i -= 2) sum = sum * z2 + 1.0 / i;  // the tail is below z^15 / 7, 5e-13
  return static_cast<float>(e * 0.69314718055994531 + 2 * z * sum);
}

}  // namespace dragoman
