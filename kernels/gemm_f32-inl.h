// y = x W + bias in floats. Each output adds its k products in order with fma, then its bias, whatever the tile: a
// row's bits depend neither on the rows beside it nor on how panels are shared out (C7). The bias comes last because an
// output layer's may be -100: in front it cost three quarters of the precision (largest logit error against
// PyTorch 1.7e-4).
#pragma once

#include "kernels/kernels.h"
#include "kernels/vec.h"

namespace dragoman {

// y (M, 16 * P) = x (M, k) W + bias, with M * P accumulators of 16 columns.
template <class Isa, size_t M, size_t P>
void tile_f32(const float* x, const PanelsF32& w, float* y, size_t ldy) {
  using Wide = Wide16<Isa>;
  Wide acc[M][P];
  for (size_t r = 0; r < M; ++r) {
    for (size_t p = 0; p < P; ++p) acc[r][p] = Wide(0.0f);
  }
  for (size_t k = 0; k < w.k; ++k) {
    for (size_t p = 0; p < P; ++p) {
      const Wide column(load<Isa>(w.w + (p * w.k + k) * kPanel));
      for (size_t r = 0; r < M; ++r) fma_into(acc[r][p], Wide(x[r * w.k + k]), column);
    }
  }
  for (size_t r = 0; r < M; ++r) {
    for (size_t p = 0; p < P; ++p) store(y + r * ldy + 16 * p, acc[r][p].narrow() + load<Isa>(w.bias + 16 * p));
  }
}

// The tile for a row count known at run time, 1 <= m <= M.
template <class Isa, size_t P, size_t M = Isa::kRowsF32>
void tile_rows_f32(const float* x, size_t m, const PanelsF32& w, float* y, size_t ldy) {
  if (m == M) {
    tile_f32<Isa, M, P>(x, w, y, ldy);
  } else if constexpr (M > 1) {
    tile_rows_f32<Isa, P, M - 1>(x, m, w, y, ldy);
  }
}

// Panels outside, rows inside: the weights come from memory once. With few rows several panels advance together,
// because one row's two accumulators would wait for each other's latency.
template <class Isa>
void gemm_f32(const float* x, size_t m, const PanelsF32& w, float* y, size_t ldy) {
  constexpr size_t kArea = Isa::kRowsF32 < 4 ? 2 : 4;  // accumulators of 16 columns; as many as fit into registers
  size_t panel = 0;
  if (m == 1) {
    for (; panel + kArea <= w.panels; panel += kArea)
      tile_f32<Isa, 1, kArea>(x, slice(w, panel, panel + kArea), y + panel * kPanel, ldy);
  } else if (m == 2) {
    for (; panel + kArea / 2 <= w.panels; panel += kArea / 2)
      tile_f32<Isa, 2, kArea / 2>(x, slice(w, panel, panel + kArea / 2), y + panel * kPanel, ldy);
  }
  for (; panel < w.panels; ++panel) {
    const PanelsF32 one = slice(w, panel, panel + 1);
    size_t tiles = (m + Isa::kRowsF32 - 1) / Isa::kRowsF32;
    for (size_t row = 0; row < m; --tiles) {
      const size_t rows = (m - row + tiles - 1) / tiles;  // even tiles: 7 rows are 4 + 3, not 6 + 1
      tile_rows_f32<Isa, 1>(x + row * w.k, rows, one, y + row * ldy + panel * kPanel, ldy);
      row += rows;
    }
  }
}

}  // namespace dragoman
