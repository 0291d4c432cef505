// The largest of n values: the lowest index wins a tie, NaN and -infinity never win.
#pragma once

#include "kernels/kernels.h"
#include "kernels/vec.h"

namespace dragoman {

// The maximum chunk by chunk on 16 lanes; the index is looked up once, in the first chunk that holds it.
template <class Isa>
void argmax(const float* x, size_t n, size_t first, ArgMax& best) {
  using V = Vec16<Isa>;
  constexpr size_t kChunk = 1024;
  size_t at = ArgMax::kNone;
  for (size_t i = 0; i < n; i += kChunk) {
    V top(-kInfinity);
    for_each<Isa>(x + i, n - i < kChunk ? n - i : kChunk, -kInfinity,
                  [&](V v) DRAGOMAN_INLINE_LAMBDA { top = max(v, top); });
    const float here = fold16_max(top);
    if (here > best.value) {
      best.value = here;
      at = i;
    }
  }
  if (at == ArgMax::kNone) return;
  while (!(x[at] == best.value)) ++at;
  best = {first + at, x[at]};
}

}  // namespace dragoman
