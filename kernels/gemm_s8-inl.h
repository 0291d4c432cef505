// y = (x W) * scales + bias with int8 operands: int32 sums are exact, so the order of k is free and all tables agree.
#pragma once

#include "kernels/kernels.h"
#include "kernels/vec.h"

namespace dragoman {

// How a tile multiplies, unless the tag says otherwise: one row by four k at a time, in a register of kLanes columns.
// A step takes kDepth k of kRows rows. `start` is what the zero of a row adds to its sums; begin() or end() puts it in.
// x() reads the rows, ldx apart; end() is one row's sums.
template <class Isa>
struct ByFours {
  static constexpr size_t kRows = 1, kDepth = 4;
  using Sum = typename Isa::I;
  using Weights = typename Isa::Weights;
  using X = typename Isa::Quad;
  DRAGOMAN_INLINE static Sum begin(Sum start) { return start; }
  DRAGOMAN_INLINE static Weights weights(const int8_t* p) { return Isa::weights(p); }
  DRAGOMAN_INLINE static X x(const int8_t* p, size_t /*ldx*/) { return Isa::quad(p); }
  DRAGOMAN_INLINE static void dot(Sum& sum, const X& x, const Weights& w) { sum = Isa::dot4(sum, x, w); }
  DRAGOMAN_INLINE static Sum end(const Sum& sum, size_t /*row*/, Sum /*start*/) { return sum; }
};

template <class Isa, size_t M>
struct StepOf {
  using type = ByFours<Isa>;
};
template <class Isa, size_t M>
requires requires {
  typename Isa::template Step<M>;
}
struct StepOf<Isa, M> {
  using type = typename Isa::template Step<M>;
};

// y (M, 16 * P) of P panels, the first of w and those `apart` from each other after it: fma(float(sum), row scale *
// column scale, bias). A function of its own, so that a profile and bench/inner_loops.py find it by name.
template <class Isa, size_t M, size_t P, class Fetch>
[[gnu::noinline]] void tile_s8(const int8_t* x, const RowQuant* quant, const PanelsS8& w, size_t apart, Fetch fetch,
                               float* y, size_t ldy) {
  using V = Vec16<Isa>;
  using Step = typename StepOf<Isa, M>::type;
  constexpr size_t kLanes = Isa::kLanes, kRegs = V::kRegs, kGroups = M / Step::kRows;
  constexpr size_t kUnroll = kGroups == 1 ? 2 : 1;  // k is a multiple of 16, a step takes 4 or 8
  const auto start = [&](size_t r, size_t i) DRAGOMAN_INLINE_LAMBDA {
    return Isa::start(w.sum + i / kRegs * apart * kPanel + i % kRegs * kLanes, quant[r].zero - Isa::kOffset);
  };
  if constexpr (M == 1) {  // a line of each for every panel: too few for the hardware to foresee
    for (size_t p = 0; p < P; ++p) {
      const size_t column = p * apart * kPanel;
      __builtin_prefetch(w.scale + column);
      __builtin_prefetch(w.bias + column);
      __builtin_prefetch(w.sum + column + kPanel);  // the next tile's
    }
  }
  typename Step::Sum acc[kGroups][P * kRegs];
  for (size_t g = 0; g < kGroups; ++g) {
    for (size_t i = 0; i < P * kRegs; ++i) acc[g][i] = Step::begin(start(g * Step::kRows, i));
  }
  const auto step = [&](size_t k) DRAGOMAN_INLINE_LAMBDA {
    for (size_t p = 0; p < P; ++p) {
      for (size_t i = 0; i < Step::kDepth; i += 4) fetch.ask(w.w + (p * apart * w.k + k + i) * kPanel);
    }
    const auto weights = [&](size_t i) DRAGOMAN_INLINE_LAMBDA {
      return Step::weights(w.w + (i / kRegs * apart * w.k + k) * kPanel + i % kRegs * kLanes * 4);
    };
    if constexpr (kGroups == 1) {  // weights that serve once are read in their turn: 3 % on AVX2, no spills on neon32
      const typename Step::X row = Step::x(x + k, w.k);
      for (size_t i = 0; i < P * kRegs; ++i) Step::dot(acc[0][i], row, weights(i));
    } else {  // the other way round it costs AVX2 3 %
      typename Step::Weights all[P * kRegs];
      for (size_t i = 0; i < P * kRegs; ++i) all[i] = weights(i);
      for (size_t g = 0; g < kGroups; ++g) {
        const typename Step::X rows = Step::x(x + g * Step::kRows * w.k + k, w.k);
        for (size_t i = 0; i < P * kRegs; ++i) Step::dot(acc[g][i], rows, all[i]);
      }
    }
  };
  for (size_t k = 0; k < w.k; k += kUnroll * Step::kDepth) {
#pragma GCC unroll 4
    for (size_t u = 0; u < kUnroll; ++u) step(k + u * Step::kDepth);
  }
  for (size_t r = 0; r < M; ++r) {
    for (size_t p = 0; p < P; ++p) {
      const V sum = V::each([&](size_t i) DRAGOMAN_INLINE_LAMBDA {
        const size_t at = p * kRegs + i;
        return Isa::to_float(Step::end(acc[r / Step::kRows][at], r % Step::kRows, start(r, at)));
      });
      const size_t column = p * apart * kPanel;
      const V scale = V(quant[r].scale) * load<Isa>(w.scale + column);
      store(y + r * ldy + column, fma(sum, scale, load<Isa>(w.bias + column)));
    }
  }
}

// The tile for a row count known at run time, 1 <= m <= M.
template <class Isa, size_t M, size_t P, class Fetch>
void tile_rows_s8(const int8_t* x, const RowQuant* quant, size_t m, const PanelsS8& w, size_t apart, Fetch fetch,
                  float* y, size_t ldy) {
  if (m == M) {
    tile_s8<Isa, M, P>(x, quant, w, apart, fetch, y, ldy);
  } else if constexpr (M > 1) {
    tile_rows_s8<Isa, M - 1, P>(x, quant, m, w, apart, fetch, y, ldy);
  }
}

// m <= M rows, which fit in one tile, from panel `panel` on; returns the first panel that is left. P streams through
// memory at once, far from each other: one row on Zen 3 with weights from DRAM has 18 GB/s from one stream, 23 from
// four that are neighbours, 28 from four far apart; from L3 (16 MB) 34 and 45.
template <class Isa, size_t M, size_t P>
size_t streams_s8(const int8_t* x, const RowQuant* quant, size_t m, const PanelsS8& w, size_t panel, float* y,
                  size_t ldy) {
  const size_t apart = (w.panels - panel) / P;
  for (const size_t end = panel + apart; panel < end; ++panel) {
    tile_rows_s8<Isa, M, P>(x, quant, m, slice(w, panel, panel + 1), apart, Along<P>(), y + panel * kPanel, ldy);
  }
  return panel + apart * (P - 1);
}

// All rows, P panels at a time from `panel` on; returns the first panel that is left. Panels outside, rows inside: the
// weights come from memory once.
template <class Isa, size_t P>
size_t sweep_s8(const int8_t* x, const RowQuant* quant, size_t m, const PanelsS8& w, size_t panel, float* y,
                size_t ldy) {
  constexpr size_t M = Isa::kRowsS8;
  const RowTiles tiles(m, M, StepOf<Isa, M>::type::kRows);
  const size_t bytes = P * kPanel * w.k;
  for (; panel + P <= w.panels; panel += P) {
    const PanelsS8 some = slice(w, panel, panel + P);
    Ahead ahead(some.w, bytes, tiles.count);
    for (size_t tile = 0, row = 0; row < m; ++tile) {
      const size_t rows = tiles.rows(tile, m - row);
      tile_rows_s8<Isa, M, P>(x + row * w.k, quant + row, rows, some, 1, ahead, y + row * ldy + panel * kPanel, ldy);
      ahead.next_tile(bytes);
      row += rows;
    }
  }
  return panel;
}

template <class Isa>
void gemm_s8(const int8_t* x, const RowQuant* quant, size_t m, const PanelsS8& w, float* y, size_t ldy) {
  constexpr size_t M = Isa::kRowsS8, kSums = M * Isa::kPanels;
  size_t panel = 0;
  if (m <= M) {
    if constexpr (Isa::kStreams >= 4) {
      if (m <= kSums / 4) panel = streams_s8<Isa, kSums / 4, 4>(x, quant, m, w, panel, y, ldy);
    }
    if constexpr (Isa::kStreams >= 4 && kSums / 4 < M) {
      if (m <= kSums / 2) panel = streams_s8<Isa, kSums / 2, 2>(x, quant, m, w, panel, y, ldy);
    }
    streams_s8<Isa, M, 1>(x, quant, m, w, panel, y, ldy);
  } else {
    if constexpr (Isa::kPanels > 1) panel = sweep_s8<Isa, Isa::kPanels>(x, quant, m, w, panel, y, ldy);
    sweep_s8<Isa, 1>(x, quant, m, w, panel, y, ldy);
  }
}

// q = round(x / scale) - zero, half to even, for each row over its range [lo, hi] with 0 in it.
template <class Isa>
void quantize_rows(const float* x, size_t m, size_t k, int8_t* q, RowQuant* quant) {
  using V = Vec16<Isa>;
  const V magic(12582912.0f);  // 1.5 * 2^23: adding and taking it back rounds to an integer
  for (size_t row = 0; row < m; ++row, x += k, q += k) {
    V top(0.0f), bottom(0.0f);
    for_each<Isa>(x, k, 0.0f, [&](V v) DRAGOMAN_INLINE_LAMBDA {  // NaN leaves both as they are
      top = max(v, top);
      bottom = max(V(0.0f) - v, bottom);
    });
    const float hi = fold16_max(top), lo = -fold16_max(bottom), range = hi - lo;
    if (range < 0x1p-100f) {
      quant[row] = {};
      std::memset(q, Isa::kOffset, k);
      continue;
    }
    const V inverse(254.0f / range);
    const auto steps = [&](V v) DRAGOMAN_INLINE_LAMBDA {
      return (min(max(v * inverse, V(-254.0f)), V(254.0f)) + magic) - magic;  // NaN to -254
    };
    const auto in_range = [&](V t) DRAGOMAN_INLINE_LAMBDA { return min(max(t, V(-127.0f)), V(127.0f)); };
    const float middle = fold16_max(in_range(steps(V(0.5f * (hi + lo)))));  // sixteen times the same
    quant[row] = {range / 254.0f, static_cast<int32_t>(middle)};
    const auto round = [&](V v, int8_t* to)
                           DRAGOMAN_INLINE_LAMBDA { Isa::store_s8(to, in_range(steps(v) - V(middle)).reg); };
    size_t i = 0;
    for (; i + 16 <= k; i += 16) round(load<Isa>(x + i), q + i);
    if (i < k) {
      int8_t last[16];
      round(load_part<Isa>(x + i, k - i, 0.0f), last);
      std::memcpy(q + i, last, k - i);
    }
  }
}

}  // namespace dragoman
