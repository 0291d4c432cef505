// Sums and activations, element by element, in place.
#pragma once

#include "kernels/exp-inl.h"

namespace dragoman {

template <class Isa>
void add(float* x, const float* y, size_t n) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) store(x + i, load<Isa>(x + i) + load<Isa>(y + i));
  if (i < n) store_part(x + i, n - i, load_part<Isa>(x + i, n - i, 0.0f) + load_part<Isa>(y + i, n - i, 0.0f));
}

// NaN becomes 0.
template <class Isa>
void relu(float* x, size_t n) {
  using V = Vec16<Isa>;
  transform<Isa>(x, x, n, 0.0f, [](V v) DRAGOMAN_INLINE_LAMBDA { return max(v, V(0.0f)); });
}

// x * sigmoid(u), through e = exp(-|u|) in [0, 1], which never overflows: x / (1 + e), or x e / (1 + e) if u < 0.
template <class Isa>
DRAGOMAN_INLINE Vec16<Isa> gate(const Vec16<Isa>& x, const Vec16<Isa>& u) {
  using V = Vec16<Isa>;
  const V zero(0.0f);
  const V e = exp(min(u, zero - u));
  return select_less(u, zero, x * e, x) / (V(1.0f) + e);
}

template <class Isa>
void silu(float* x, size_t n) {
  using V = Vec16<Isa>;
  transform<Isa>(x, x, n, 0.0f, [](V v) DRAGOMAN_INLINE_LAMBDA { return gate(v, v); });
}

// x Phi(x), with Phi(-a) = (1 - erf(a / sqrt 2)) / 2 = exp(-a^2 / 2) t Q(t), t = 1 / (1 + 0.4 a), a = |x|.
// Q of degree 5 is a minimax fit of a Phi(-a) on [0, 6.6]: 1e-8 before rounding.
template <class Isa>
DRAGOMAN_INLINE Vec16<Isa> gelu16(const Vec16<Isa>& x) {
  using V = Vec16<Isa>;
  const V zero(0.0f), one(1.0f);
  const V a = max(x, zero - x);
  const V t = one / fma(V(0.4f), a, one);
  V q = fma(V(0.05695351586f), t, V(-0.2567295432f));
  q = fma(q, t, V(0.3425874114f));
  q = fma(q, t, V(0.01118392777f));
  q = fma(q, t, V(0.1893913150f));
  q = fma(q, t, V(0.1566135734f));
  const V below = exp(V(-0.5f) * a * a) * (q * t);  // Phi(-|x|)
  return x * select_less(x, zero, below, one - below);
}

template <class Isa>
void gelu(float* x, size_t n) {
  using V = Vec16<Isa>;
  transform<Isa>(x, x, n, 0.0f, [](V v) DRAGOMAN_INLINE_LAMBDA { return gelu16(v); });
}

// x (1 + tanh u) / 2 = x sigmoid(2 u), with u = sqrt(2 / pi) (x + 0.044715 x^3).
template <class Isa>
void gelu_tanh(float* x, size_t n) {
  using V = Vec16<Isa>;
  transform<Isa>(x, x, n, 0.0f, [](V v) DRAGOMAN_INLINE_LAMBDA {
    const V cubic = fma(V(0.044715f) * v * v, v, v);
    return gate(v, V(1.59576912f) * cubic);  // 2 sqrt(2 / pi)
  });
}

}  // namespace dragoman
