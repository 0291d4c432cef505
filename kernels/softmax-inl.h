// softmax and log_sum_exp. Subtracting the maximum keeps exp() in range and cancels in the quotient.
#pragma once

#include "kernels/exp-inl.h"

namespace dragoman {

// The largest of x, at least -FLT_MAX; NaN is passed over.
template <class Isa>
DRAGOMAN_INLINE Vec16<Isa> row_max(const float* x, size_t n) {
  using V = Vec16<Isa>;
  V top(-FLT_MAX);
  for_each<Isa>(x, n, -FLT_MAX, [&](V v) DRAGOMAN_INLINE_LAMBDA { top = max(v, top); });
  return V(fold16_max(top));
}

// x[i] <- exp(x[i] - max x); returns their sum. The filled lanes are -infinity, so they add 0 even if max x is
// -FLT_MAX.
template <class Isa>
DRAGOMAN_INLINE float exp_row(float* x, size_t n) {
  using V = Vec16<Isa>;
  const V shift = row_max<Isa>(x, n);
  V sum(0.0f);
  transform<Isa>(x, x, n, -kInfinity, [&](V v) DRAGOMAN_INLINE_LAMBDA {
    const V e = exp(v - shift);
    sum = sum + e;
    return e;
  });
  return fold16_add(sum);
}

// x[r] <- exp(x[r] - max x[r]) / sum, for each row r of x (rows, cols).
template <class Isa>
void softmax(float* x, size_t rows, size_t cols) {
  using V = Vec16<Isa>;
  for (; rows > 0; --rows, x += cols) {
    const V total(exp_row<Isa>(x, cols));
    transform<Isa>(x, x, cols, 0.0f, [&](V v) DRAGOMAN_INLINE_LAMBDA { return v / total; });
  }
}

// max x + log(sum(exp(x - max x))).
template <class Isa>
float log_sum_exp(const float* x, size_t n) {
  using V = Vec16<Isa>;
  const V shift = row_max<Isa>(x, n);
  V sum(0.0f);
  for_each<Isa>(x, n, -kInfinity, [&](V v) DRAGOMAN_INLINE_LAMBDA { sum = sum + exp(v - shift); });
  float lanes[16];
  store(lanes, shift);
  return lanes[0] + log1<Isa>(fold16_add(sum));
}

}  // namespace dragoman
