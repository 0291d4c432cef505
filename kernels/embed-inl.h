// Embedding lookup from output panels: a tied embedding is stored once (C2), and its row `id` is a column there.
#pragma once

#include "kernels/kernels.h"
#include "kernels/vec.h"

namespace dragoman {

// x[i] = fma(value(i), scale, position[i]) for i < n.
template <class Isa, class Value>
DRAGOMAN_INLINE void embed(size_t n, float scale, const float* position, float* x, Value value) {
  using V = Vec16<Isa>;
  for (size_t i = 0; i < n; i += 16) {
    const size_t count = n - i < 16 ? n - i : 16;
    float row[16] = {};
    for (size_t j = 0; j < count; ++j) row[j] = value(i + j);
    store_part(x + i, count, fma(load<Isa>(row), V(scale), load_part<Isa>(position + i, count, 0.0f)));
  }
}

template <class Isa>
void embed_f32(const PanelsF32& table, size_t id, float scale, const float* position, float* x) {
  const float* column = table.w + id / kPanel * kPanel * table.k + id % kPanel;
  embed<Isa>(table.k, scale, position, x, [&](size_t i) DRAGOMAN_INLINE_LAMBDA { return column[i * kPanel]; });
}

template <class Isa>
void embed_s8(const PanelsS8& table, size_t id, float scale, const float* position, float* x) {
  const int8_t* column = table.w + id / kPanel * kPanel * table.k + id % kPanel * 4;
  embed<Isa>(table.k, table.scale[id] * scale, position, x,
             [&](size_t i) DRAGOMAN_INLINE_LAMBDA { return static_cast<float>(column[i / 4 * kPanel * 4 + i % 4]); });
}

}  // namespace dragoman
