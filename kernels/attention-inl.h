// Scaled dot-product attention (Vaswani et al. 2017, 3.2.1) over K and V in blocks of 16 positions:
//   out = softmax(q K^T / sqrt(d_head)) V
// K lies with 16 positions side by side, so a score needs no horizontal sum; each score adds d_head products in order,
// each output adds its positions in order. Rows and heads are independent (C7).
#pragma once

#include "kernels/kernels.h"
#include "kernels/softmax-inl.h"

namespace dragoman {

// scores[16 b ..] = q . K * scale for B blocks from block b of one head; k_offset leads from a block to its K there.
// B blocks advance together, because one chain of fma would wait for its own latency.
template <class Isa, size_t B>
DRAGOMAN_INLINE void score_blocks(const float* q, float* const* blocks, size_t k_offset, size_t d_head, float scale,
                                  float* scores) {
  using Wide = Wide16<Isa>;
  Wide acc[B];
  for (size_t b = 0; b < B; ++b) acc[b] = Wide(0.0f);
  for (size_t d = 0; d < d_head; ++d) {
    const Wide qd(q[d]);
    for (size_t b = 0; b < B; ++b) fma_into(acc[b], qd, Wide(load<Isa>(blocks[b] + k_offset + d * kBlock)));
  }
  for (size_t b = 0; b < B; ++b) store(scores + b * kBlock, acc[b].narrow() * Vec16<Isa>(scale));
}

// out (16 * C columns, or `columns` < 16 if C is 1) = sum over t of p[t] V[t], divided by total.
template <class Isa, size_t C>
DRAGOMAN_INLINE void mix_columns(const float* p, const KeyValues& kv, size_t v_offset, size_t d_head, float total,
                                 float* out, size_t columns = 16) {
  using Wide = Wide16<Isa>;
  Wide acc[C];
  for (size_t c = 0; c < C; ++c) acc[c] = Wide(0.0f);
  for (size_t t = 0; t < kv.positions; ++t) {
    const float* v = kv.blocks[t / kBlock] + v_offset + t % kBlock * d_head;
    const Wide weight(p[t]);
    for (size_t c = 0; c < C; ++c) {
      fma_into(acc[c], weight, Wide(columns < 16 ? load_part<Isa>(v, columns, 0.0f) : load<Isa>(v + 16 * c)));
    }
  }
  for (size_t c = 0; c < C; ++c) {
    const Vec16<Isa> y = acc[c].narrow() / Vec16<Isa>(total);
    if (columns < 16) {
      store_part(out, columns, y);
    } else {
      store(out + 16 * c, y);
    }
  }
}

template <class Isa>
DRAGOMAN_INLINE void attend_head(const float* q, const KeyValues& kv, size_t head, size_t heads, size_t d_head,
                                 float scale, float* scores, float* out) {
  const size_t k_offset = kv.offset + head * d_head * kBlock;
  const size_t v_offset = kv.offset + (heads + head) * d_head * kBlock;
  const size_t count = (kv.positions + kBlock - 1) / kBlock;
  size_t b = 0;
  for (; b + 4 <= count; b += 4) {
    score_blocks<Isa, 4>(q, kv.blocks + b, k_offset, d_head, scale, scores + b * kBlock);
  }
  for (; b < count; ++b) score_blocks<Isa, 1>(q, kv.blocks + b, k_offset, d_head, scale, scores + b * kBlock);

  const float total = exp_row<Isa>(scores, kv.positions);  // lanes past `positions` are never looked at again
  size_t c = 0;
  for (; c + 64 <= d_head; c += 64) mix_columns<Isa, 4>(scores, kv, v_offset + c, d_head, total, out + c);
  for (; c + 32 <= d_head; c += 32) mix_columns<Isa, 2>(scores, kv, v_offset + c, d_head, total, out + c);
  for (; c + 16 <= d_head; c += 16) mix_columns<Isa, 1>(scores, kv, v_offset + c, d_head, total, out + c);
  if (c < d_head) mix_columns<Isa, 1>(scores, kv, v_offset + c, d_head, total, out + c, d_head - c);
}

template <class Isa>
void attention(const float* q, size_t ldq, size_t rows, const KeyValues& kv, size_t heads, size_t d_head, float* scores,
               float* out) {
  const float scale = 1.0f / sqrt1<Isa>(static_cast<float>(d_head));
  for (; rows > 0; --rows, q += ldq, out += heads * d_head) {
    for (size_t h = 0; h < heads; ++h) {
      attend_head<Isa>(q + h * d_head, kv, h, heads, d_head, scale, scores, out + h * d_head);
    }
  }
}

}  // namespace dragoman
