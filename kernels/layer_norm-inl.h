// LayerNorm (Ba et al. 2016): two passes, because E[x^2] - E[x]^2 cancels.
#pragma once

#include "kernels/vec.h"

namespace dragoman {

// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, row by row.
template <class Isa>
void layer_norm(const float* x, const float* gamma, const float* beta, float epsilon, size_t rows, size_t cols,
                float* y) {
  using V = Vec16<Isa>;
  const float count = static_cast<float>(cols);
  for (; rows > 0; --rows, x += cols, y += cols) {
    V sum(0.0f);
    for_each<Isa>(x, cols, 0.0f, [&](V v) DRAGOMAN_INLINE_LAMBDA { sum = sum + v; });
    const float average = fold16_add(sum) / count;

    const V mean(average);
    V squares(0.0f);
    for_each<Isa>(x, cols, average, [&](V v) DRAGOMAN_INLINE_LAMBDA {  // the filled lanes add 0
      const V d = v - mean;
      squares = fma(d, d, squares);
    });
    const float variance = fold16_add(squares) / count;

    const V inverse(1.0f / sqrt1<Isa>(variance + epsilon));
    const auto norm = [&](V v, V g, V b) DRAGOMAN_INLINE_LAMBDA { return fma((v - mean) * inverse, g, b); };
    size_t i = 0;
    for (; i + 16 <= cols; i += 16) {
      store(y + i, norm(load<Isa>(x + i), load<Isa>(gamma + i), load<Isa>(beta + i)));
    }
    if (const size_t left = cols - i; left > 0) {
      const auto part = [&](const float* p) DRAGOMAN_INLINE_LAMBDA { return load_part<Isa>(p + i, left, 0.0f); };
      store_part(y + i, left, norm(part(x), part(gamma), part(beta)));
    }
  }
}

}  // namespace dragoman
