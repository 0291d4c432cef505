// Scaled dot-product attention (Vaswani et al. 2017, 3.2.1) over K and V in blocks of 16 positions:
//   out = softmax(q K^T / sqrt(d_head)) V
// K lies with 16 positions side by side, so a score needs no horizontal sum; each score adds d_head products in order,
// each output adds its positions in order. Rows and heads are independent (C7), and several of them advance together,
// because one chain of fma would wait for its own latency.
#pragma once

#include "kernels/kernels.h"
#include "kernels/softmax-inl.h"

namespace dragoman {

// One row at one head.
struct AttentionQuery {
  const float* q;             // d_head
  size_t k_offset, v_offset;  // from the start of a block to this head's K and V
  size_t next_k;              // to the K of the group of heads that follows
  float* scores;              // round_up(positions, 16)
  float* out;                 // d_head
  float total;                // sum of exp(scores)
};

// scores of Q queries at B blocks from block b on. kShared: they are of one head, so K is loaded once for all.
template <class Isa, size_t Q, size_t B, bool kShared>
DRAGOMAN_INLINE void score_blocks(const AttentionQuery* query, float* const* blocks, size_t b, size_t d_head,
                                  float scale) {
  using Wide = Wide16<Isa>;
  Wide acc[Q][B];
  for (size_t j = 0; j < Q; ++j) {
    for (size_t i = 0; i < B; ++i) acc[j][i] = Wide(0.0f);
  }
  for (size_t d = 0; d < d_head; ++d) {
    const auto key = [&](size_t j, size_t i) DRAGOMAN_INLINE_LAMBDA {
      return Wide(load<Isa>(blocks[b + i] + query[j].k_offset + d * kBlock));
    };
    for (size_t j = 0; !kShared && j < Q; ++j) {
      for (size_t i = 0; i < B; ++i) __builtin_prefetch(blocks[b + i] + query[j].v_offset + d * kBlock, 0, 2);
    }
    Wide shared[B];
    for (size_t i = 0; kShared && i < B; ++i) shared[i] = key(0, i);
    for (size_t j = 0; j < Q; ++j) {
      const Wide qd(query[j].q[d]);
      for (size_t i = 0; i < B; ++i) fma_into(acc[j][i], qd, kShared ? shared[i] : key(j, i));
    }
  }
  for (size_t j = 0; j < Q; ++j) {
    for (size_t i = 0; i < B; ++i) store(query[j].scores + (b + i) * kBlock, acc[j][i].narrow() * Vec16<Isa>(scale));
  }
}

// What one row reads of K and V is read once, in pieces of one head: too short for the hardware to foresee. So K asks
// for the V of its heads, and V for the K of the next ones, into the second cache. On Zen 4 it takes a fifth to a
// quarter off the attention of a decoder of base.

// Columns [c, c + 16 C) of out, or `columns` < 16 of them if C is 1: the sum over t of p[t] V[t], divided by total.
template <class Isa, size_t Q, size_t C, bool kNext>
DRAGOMAN_INLINE void mix_columns(const AttentionQuery* query, const KeyValues& kv, size_t c, size_t d_head,
                                 size_t columns = 16) {
  using Wide = Wide16<Isa>;
  Wide acc[Q][C];
  for (size_t j = 0; j < Q; ++j) {
    for (size_t i = 0; i < C; ++i) acc[j][i] = Wide(0.0f);
  }
  for (size_t t = 0; t < kv.positions; ++t) {
    const float* row = kv.blocks[t / kBlock] + t % kBlock * d_head + c;
    for (size_t j = 0; j < Q; ++j) {
      const Wide weight(query[j].scores[t]);
      const float* v = row + query[j].v_offset;
      for (size_t i = 0; kNext && i < C; ++i)
        __builtin_prefetch(v - query[j].v_offset + query[j].next_k + 16 * i, 0, 2);
      for (size_t i = 0; i < C; ++i) {
        fma_into(acc[j][i], weight, Wide(columns < 16 ? load_part<Isa>(v, columns, 0.0f) : load<Isa>(v + 16 * i)));
      }
    }
  }
  for (size_t j = 0; j < Q; ++j) {
    for (size_t i = 0; i < C; ++i) {
      const Vec16<Isa> y = acc[j][i].narrow() / Vec16<Isa>(query[j].total);
      if (columns < 16) {
        store_part(query[j].out + c, columns, y);
      } else {
        store(query[j].out + c + 16 * i, y);
      }
    }
  }
}

// Q queries; at most four accumulators of 16 columns are alive at a time.
template <class Isa, size_t Q, bool kShared>
[[gnu::noinline]] void attend(AttentionQuery* query, const KeyValues& kv, size_t d_head, float scale) {
  const size_t count = (kv.positions + kBlock - 1) / kBlock;
  constexpr size_t kBlocks = Q == 1 ? 4 : Isa::kLanes == 16 ? 2 : 1;
  size_t b = 0;
  for (; b + kBlocks <= count; b += kBlocks) score_blocks<Isa, Q, kBlocks, kShared>(query, kv.blocks, b, d_head, scale);
  for (; b < count; ++b) score_blocks<Isa, Q, 1, kShared>(query, kv.blocks, b, d_head, scale);

  // Lanes past `positions` are never looked at again.
  for (size_t j = 0; j < Q; ++j) query[j].total = exp_row<Isa>(query[j].scores, kv.positions);
  size_t c = 0;
  for (; c + 64 <= d_head; c += 64) {
    for (size_t j = 0; j < Q; ++j) mix_columns<Isa, 1, 4, !kShared>(query + j, kv, c, d_head);
  }
  for (; c + 32 <= d_head; c += 32) {
    constexpr size_t kPair = Q % 2 ? 1 : 2;
    for (size_t j = 0; j < Q; j += kPair) mix_columns<Isa, kPair, 2, !kShared>(query + j, kv, c, d_head);
  }
  for (; c + 16 <= d_head; c += 16) mix_columns<Isa, Q, 1, !kShared>(query, kv, c, d_head);
  if (c < d_head) {
    for (size_t j = 0; j < Q; ++j) mix_columns<Isa, 1, 1, false>(query + j, kv, c, d_head, d_head - c);
  }
}

template <class Isa>
void attention(const float* q, size_t ldq, size_t rows, const KeyValues& kv, size_t heads, size_t d_head, float* scores,
               float* out) {
  const float scale = 1.0f / sqrt1<Isa>(static_cast<float>(d_head));
  const size_t stride = round_up(kv.positions, kBlock);
  // Head by head, so that with many rows all queries of a group are of one head; with one row they are of four.
  const auto query = [&](size_t index, size_t at) DRAGOMAN_INLINE_LAMBDA {
    const size_t head = index / rows, row = index % rows, offset = kv.offset + head * d_head * kBlock;
    return AttentionQuery{q + row * ldq + head * d_head,
                          offset,
                          offset + heads * d_head * kBlock,
                          offset + kQueries * d_head * kBlock,
                          scores + at * stride,
                          out + (row * heads + head) * d_head,
                          0.0f};
  };
  AttentionQuery group[kQueries];
  size_t index = 0;
  for (const size_t all = rows * heads; index < all;) {
    const bool whole = all - index >= kQueries;
    const size_t count = whole ? kQueries : 1;
    for (size_t j = 0; j < count; ++j) group[j] = query(index + j, j);
    if (!whole) {
      attend<Isa, 1, true>(group, kv, d_head, scale);
    } else if (index / rows == (index + kQueries - 1) / rows) {
      attend<Isa, kQueries, true>(group, kv, d_head, scale);
    } else {
      attend<Isa, kQueries, false>(group, kv, d_head, scale);
    }
    index += count;
  }
}

}  // namespace dragoman
