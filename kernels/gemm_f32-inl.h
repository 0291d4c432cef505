// y = x W + bias in floats. Each output adds its k products in order with fma, then its bias, whatever the tile: a
// row's bits depend neither on the rows beside it nor on how panels are shared out (C7). The bias comes last because an
// output layer's may be -100: in front it cost three quarters of the precision (largest logit error against
// PyTorch 1.7e-4).
#pragma once

#include "kernels/kernels.h"
#include "kernels/vec.h"

namespace dragoman {

// y (M, 16 * P) = x (M, k) W + bias of P panels, the first of w and those `apart` from each other after it. A function
// of its own, so that a profile and bench/inner_loops.py find it by name.
template <class Isa, size_t M, size_t P, class Fetch>
[[gnu::noinline]] void tile_f32(const float* x, const PanelsF32& w, size_t apart, Fetch fetch, float* y, size_t ldy) {
  using Wide = Wide16<Isa>;
  Wide acc[M][P];
  for (size_t r = 0; r < M; ++r) {
    for (size_t p = 0; p < P; ++p) acc[r][p] = Wide(0.0f);
  }
  for (size_t k = 0; k < w.k; ++k) {
    for (size_t p = 0; p < P; ++p) {
      const float* line = w.w + (p * apart * w.k + k) * kPanel;
      fetch.ask(line);
      const Wide column(load<Isa>(line));
      for (size_t r = 0; r < M; ++r) fma_into(acc[r][p], Wide(x[r * w.k + k]), column);
    }
  }
  for (size_t r = 0; r < M; ++r) {
    for (size_t p = 0; p < P; ++p) {
      const size_t column = p * apart * kPanel;
      store(y + r * ldy + column, acc[r][p].narrow() + load<Isa>(w.bias + column));
    }
  }
}

// The tile for a row count known at run time, 1 <= m <= M.
template <class Isa, size_t M, size_t P, class Fetch>
void tile_rows_f32(const float* x, size_t m, const PanelsF32& w, size_t apart, Fetch fetch, float* y, size_t ldy) {
  if (m == M) {
    tile_f32<Isa, M, P>(x, w, apart, fetch, y, ldy);
  } else if constexpr (M > 1) {
    tile_rows_f32<Isa, M - 1, P>(x, m, w, apart, fetch, y, ldy);
  }
}

// m <= M rows, which fit in one tile, from panel `panel` on; returns the first panel that is left. P streams through
// memory at once, far from each other, as in gemm_s8-inl.h.
template <class Isa, size_t M, size_t P>
size_t streams_f32(const float* x, size_t m, const PanelsF32& w, size_t panel, float* y, size_t ldy) {
  const size_t apart = (w.panels - panel) / P;
  for (const size_t end = panel + apart; panel < end; ++panel) {
    tile_rows_f32<Isa, M, P>(x, m, slice(w, panel, panel + 1), apart, Along<P>(), y + panel * kPanel, ldy);
  }
  return panel + apart * (P - 1);
}

// All rows, P panels at a time from `panel` on; returns the first panel that is left. Panels outside, rows inside: the
// weights come from memory once.
template <class Isa, size_t P>
size_t sweep_f32(const float* x, size_t m, const PanelsF32& w, size_t panel, float* y, size_t ldy) {
  const RowTiles tiles(m, Isa::kRowsF32, 1);
  const size_t bytes = P * kPanel * w.k * sizeof(float);
  for (; panel + P <= w.panels; panel += P) {
    const PanelsF32 some = slice(w, panel, panel + P);
    Ahead ahead(some.w, bytes, tiles.count);
    for (size_t tile = 0, row = 0; row < m; ++tile) {
      const size_t rows = tiles.rows(tile, m - row);
      tile_rows_f32<Isa, Isa::kRowsF32, P>(x + row * w.k, rows, some, 1, ahead, y + row * ldy + panel * kPanel, ldy);
      ahead.next_tile(bytes);
      row += rows;
    }
  }
  return panel;
}

// As many panels at once as registers hold sums for; of one row they would wait for their own latency. Not where
// registers are few (kRowsF32 < 4, 32-bit NEON): there g++ 12 kept a wider tile's accumulators in memory, 58
// instructions for 32 products against 14 for 16.
template <class Isa>
void gemm_f32(const float* x, size_t m, const PanelsF32& w, float* y, size_t ldy) {
  constexpr size_t M = Isa::kRowsF32, kSums = M * Isa::kPanels;
  size_t panel = 0;
  if (m <= M) {
    if constexpr (M >= 4) {
      if (m <= kSums / 4) panel = streams_f32<Isa, kSums / 4, 4>(x, m, w, panel, y, ldy);
    }
    if constexpr (M >= 4 && kSums / 4 < M) {
      if (m <= kSums / 2) panel = streams_f32<Isa, kSums / 2, 2>(x, m, w, panel, y, ldy);
    }
    streams_f32<Isa, M, 1>(x, m, w, panel, y, ldy);
  } else {
    if constexpr (Isa::kPanels > 1) panel = sweep_f32<Isa, Isa::kPanels>(x, m, w, panel, y, ldy);
    sweep_f32<Isa, 1>(x, m, w, panel, y, ldy);
  }
}

}  // namespace dragoman
