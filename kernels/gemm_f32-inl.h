// y = x W + bias in floats. Each output adds its k products in order with fma, then its bias, whatever the tile: a
// row's bits depend neither on the rows beside it nor on how panels are shared out (C7). The bias comes last because an
// output layer's may be -100: in front it cost three quarters of the precision (largest logit error against
// PyTorch 1.7e-4).
#pragma once

#include "kernels/kernels.h"
#include "kernels/vec.h"

namespace dragoman {

// y (M, 16 * P) = x (M, k) W + bias, with M * P accumulators of 16 columns. A function of its own, so that a profile
// and bench/inner_loops.py find it by name.
template <class Isa, size_t M, size_t P>
[[gnu::noinline]] void tile_f32(const float* x, const PanelsF32& w, Ahead ahead, float* y, size_t ldy) {
  using Wide = Wide16<Isa>;
  Wide acc[M][P];
  for (size_t r = 0; r < M; ++r) {
    for (size_t p = 0; p < P; ++p) acc[r][p] = Wide(0.0f);
  }
  for (size_t k = 0; k < w.k; ++k) {
    for (size_t p = 0; p < P; ++p) {
      const float* line = w.w + (p * w.k + k) * kPanel;
      ahead.template ask<M, P>(line);
      const Wide column(load<Isa>(line));
      for (size_t r = 0; r < M; ++r) fma_into(acc[r][p], Wide(x[r * w.k + k]), column);
    }
  }
  for (size_t r = 0; r < M; ++r) {
    for (size_t p = 0; p < P; ++p) store(y + r * ldy + 16 * p, acc[r][p].narrow() + load<Isa>(w.bias + 16 * p));
  }
}

// The tile for a row count known at run time, 1 <= m <= M.
template <class Isa, size_t M, size_t P>
void tile_rows_f32(const float* x, size_t m, const PanelsF32& w, Ahead ahead, float* y, size_t ldy) {
  if (m == M) {
    tile_f32<Isa, M, P>(x, w, ahead, y, ldy);
  } else if constexpr (M > 1) {
    tile_rows_f32<Isa, M - 1, P>(x, m, w, ahead, y, ldy);
  }
}

// All rows, P panels at a time from `panel` on; returns the first panel that is left. Panels outside, rows inside: the
// weights come from memory once.
template <class Isa, size_t M, size_t P>
size_t sweep_f32(const float* x, size_t m, const PanelsF32& w, size_t panel, float* y, size_t ldy) {
  const RowTiles tiles(m, M, 1);
  const size_t bytes = P * kPanel * w.k * sizeof(float), step = Ahead::step_of(tiles.count);
  for (; panel + P <= w.panels; panel += P) {
    const PanelsF32 some = slice(w, panel, panel + P);
    Ahead ahead(some.w, bytes, step);
    for (size_t tile = 0, row = 0; row < m; ++tile) {
      const size_t rows = tiles.rows(tile, m - row);
      tile_rows_f32<Isa, M, P>(x + row * w.k, rows, some, ahead, y + row * ldy + panel * kPanel, ldy);
      ahead.next_tile(bytes);
      row += rows;
    }
  }
  return panel;
}

// With few rows several panels advance together, because one row's accumulators would wait for their own latency. Not
// where registers are few (kRowsF32 < 4, 32-bit NEON): there g++ 12 kept a wider tile's accumulators in memory, 58
// instructions for 32 products against 14 for 16.
template <class Isa>
void gemm_f32(const float* x, size_t m, const PanelsF32& w, float* y, size_t ldy) {
  size_t panel = 0;
  if constexpr (Isa::kPanels > 1) {
    panel = sweep_f32<Isa, Isa::kRowsF32, Isa::kPanels>(x, m, w, panel, y, ldy);
  } else if constexpr (Isa::kRowsF32 >= 4) {
    if (m == 1) panel = sweep_f32<Isa, 1, 4>(x, m, w, panel, y, ldy);
    if (m == 2) panel = sweep_f32<Isa, 2, 2>(x, m, w, panel, y, ldy);
  }
  sweep_f32<Isa, Isa::kRowsF32, 1>(x, m, w, panel, y, ldy);
}

}  // namespace dragoman
