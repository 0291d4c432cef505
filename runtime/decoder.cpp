#include "runtime/decoder.h"

#include <algorithm>

namespace dragoman {

KvPool::KvPool(Carver& carve, const Architecture& a, size_t blocks)
    : free_count(blocks), block_count(blocks), least_free(blocks) {
  memory = carve.array<float>(blocks * block_floats(a));
  free = carve.array<float*>(blocks);
  if (free) {
    for (size_t i = 0; i < blocks; ++i) free[i] = memory + (blocks - 1 - i) * block_floats(a);
  }
}

void KvPool::take(size_t count, float** to) {
  for (size_t i = 0; i < count; ++i) to[i] = free[--free_count];
  least_free = std::min(least_free, free_count);
}

void KvPool::give_back(size_t count, float** from) {
  for (size_t i = count; i > 0; --i) free[free_count++] = from[i - 1];
}

DecoderBuffers::DecoderBuffers(Carver& carve, const Architecture& a, size_t slots, size_t longest, size_t threads)
    : layer(carve, a, slots, a.decoder_ffn, longest, threads) {
  const uint64_t vocabulary = round_up(a.target_vocabulary, kPanel);
  // Four rows are as fast as many (Isa::kRowsS8); a piece of 64 KB stays in a core's own cache.
  logit_rows = std::min<size_t>(slots, 4);
  logit_floats = std::max<uint64_t>(std::min<uint64_t>(slots * vocabulary, 16384), slots * kPanel);
  logits = carve.array<float>(std::max(logit_rows * vocabulary, uint64_t{threads} * logit_floats));
  best = carve.array<ArgMax>(uint64_t{threads} * slots);
  log_probability = carve.array<float>(slots);
  active = carve.array<Slot*>(slots);
}

namespace {

// b.mix = softmax(Q K^T / sqrt(d_head)) V of every row, over the K/V its slot holds for this layer.
template <class F>
Operand attend(const Context& c, const float* q, size_t ldq, size_t rows, LayerBuffers& b, const F& key_values) {
  const size_t d = c.model->arch.d_model, heads = c.model->arch.decoder_heads;
  const auto attend_rows = [&](size_t thread, size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      c.kernels->attention(q + row * ldq, ldq, 1, key_values(row), heads, d / heads, b.scores + thread * b.score_stride,
                           b.mix + row * d);
    }
  };
  return make_operand(c, b.mix, rows, d, b, 64 * rows * d, attend_rows);
}

// b.y = attention of each row of x over its own prefix, this position included.
void self_attention(const Context& c, const DecoderLayer& w, size_t index, const Operand& x, DecoderBuffers& b) {
  const Architecture& a = c.model->arch;
  const size_t d = a.d_model, heads = a.decoder_heads, offset = KvPool::layer_offset(a, index);
  LayerBuffers& l = b.layer;
  affine(c, w.qkv, x, l.qkv);
  const Operand mix = attend(c, l.qkv, 3 * d, x.rows, l, [&](size_t row) {
    const Slot& slot = *b.active[row];
    const float* k = l.qkv + row * 3 * d + d;
    store_key_values(slot.self_blocks, offset, slot.length, {k, k + d, 3 * d, 1}, heads, d / heads);
    return KeyValues{slot.self_blocks, offset, slot.length + 1};
  });
  affine(c, w.out, mix, l.y);
}

// b.y = attention of each row of x over the memory of its source.
void cross_attention(const Context& c, const DecoderLayer& w, size_t index, const Operand& x, DecoderBuffers& b) {
  const Architecture& a = c.model->arch;
  const size_t d = a.d_model, offset = KvPool::layer_offset(a, index);
  LayerBuffers& l = b.layer;
  affine(c, w.cross_q, x, l.qkv);
  const Operand mix = attend(c, l.qkv, d, x.rows, l, [&](size_t row) {
    return KeyValues{b.active[row]->memory_blocks, offset, b.active[row]->memory_length};
  });
  affine(c, w.cross_out, mix, l.y);
}

// x <- LayerNorm(x + SelfAttention(x)), x <- LayerNorm(x + CrossAttention(x)), x <- LayerNorm(x + FFN(x))
Operand post_norm_layer(const Context& c, const DecoderLayer& w, size_t index, Operand x, DecoderBuffers& b) {
  self_attention(c, w, index, x, b);
  x = add_norm(c, w.self_norm, x.rows, b.layer);

  cross_attention(c, w, index, x, b);
  x = add_norm(c, w.cross_norm, x.rows, b.layer);

  feed_forward(c, w.ffn_in, w.ffn_out, x, b.layer);
  return add_norm(c, w.ffn_norm, x.rows, b.layer);
}

// x <- x + SelfAttention(LayerNorm(x)), and so on. Nothing multiplies x itself: it is not quantised again.
Operand pre_norm_layer(const Context& c, const DecoderLayer& w, size_t index, Operand x, DecoderBuffers& b) {
  LayerBuffers& l = b.layer;
  self_attention(c, w, index, norm(c, w.self_norm, x.x, x.rows, l.normed, l), b);
  add(c, x.rows, l);

  cross_attention(c, w, index, norm(c, w.cross_norm, x.x, x.rows, l.normed, l), b);
  add(c, x.rows, l);

  feed_forward(c, w.ffn_in, w.ffn_out, norm(c, w.ffn_norm, x.x, x.rows, l.normed, l), l);
  add(c, x.rows, l);
  return x;
}

}  // namespace

void enter(const Context& c, const Operand& memory, const MemoryRows* sentences, size_t count, float* kv) {
  const Architecture& a = c.model->arch;
  const size_t d = a.d_model, heads = a.decoder_heads;
  for (uint32_t i = 0; i < a.decoder_layers; ++i) {
    affine(c, c.model->decoder[i].cross_kv, memory, kv);
    const size_t offset = KvPool::layer_offset(a, i);
    c.pool->run(count, 4 * memory.rows * d, [&](size_t, size_t begin, size_t end) {
      for (size_t s = begin; s < end; ++s) {
        const Slot& slot = *sentences[s].slot;
        const float* k = kv + sentences[s].first_row * 2 * d;
        store_key_values(slot.memory_blocks, offset, 0, {k, k + d, 2 * d, slot.memory_length}, heads, d / heads);
      }
    });
  }
}

Operand decode_step(const Context& c, DecoderBuffers& b, size_t count) {
  const Model& model = *c.model;
  const size_t d = model.arch.d_model;
  LayerBuffers& l = b.layer;
  Operand x = make_operand(c, l.x, count, d, l, kCostOfEmbedding * count * d, [&](size_t, size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const Slot& slot = *b.active[row];
      embed(c, model.target_embedding, slot.last_id, model.decoder_positions + slot.length * d, l.x + row * d);
    }
  });
  if (model.has(kDecoderEmbeddingNorm)) x = norm(c, model.decoder_embedding_norm, l.x, count, l.x, l);
  const auto layer = model.arch.norm == NormPosition::kPost ? post_norm_layer : pre_norm_layer;
  for (uint32_t i = 0; i < model.arch.decoder_layers; ++i) x = layer(c, model.decoder[i], i, x, b);
  return final_norm(c, kDecoderFinalNorm, model.decoder_norm, x, l);
}

void output_logits(const Context& c, DecoderBuffers& b, const Operand& x) {
  affine(c, c.model->output, x, b.logits);
}

void best_ids(const Context& c, DecoderBuffers& b, const Operand& x) {
  const Linear& w = c.model->output;
  const size_t rows = x.rows, threads = c.pool->threads(), vocabulary = c.model->arch.target_vocabulary;
  const size_t step = std::max<size_t>(b.logit_floats / rows / kPanel, 1);  // panels in a piece
  std::fill_n(b.best, threads * rows, ArgMax{});
  const auto best_of = [&](size_t thread, size_t begin, size_t end) {
    float* piece = b.logits + thread * b.logit_floats;
    for (size_t panel = begin; panel < end; panel += step) {
      const size_t last = std::min(panel + step, end), stride = (last - panel) * kPanel, first = panel * kPanel;
      affine_panels(c, w, panel, last, x, piece, stride);
      const size_t ids = std::min(last * kPanel, vocabulary) - first;  // the last panel may be padded
      for (size_t row = 0; row < rows; ++row)
        c.kernels->argmax(piece + row * stride, ids, first, b.best[thread * rows + row]);
    }
  };
  c.pool->run(w.panels(), uint64_t{rows} * w.outputs() * w.inputs(), best_of, kPanelsAtOnce);
  for (size_t i = rows; i < threads * rows; ++i) {
    const ArgMax& other = b.best[i];
    ArgMax& mine = b.best[i % rows];
    if (other.value > mine.value || (other.value == mine.value && other.index < mine.index)) mine = other;
  }
}

}  // namespace dragoman
