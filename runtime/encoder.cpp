#include "runtime/encoder.h"

#include <algorithm>

namespace dragoman {

EncoderBuffers::EncoderBuffers(Carver& carve, const Architecture& a, size_t rows, size_t sentence_count, size_t longest,
                               size_t threads)
    : layer(carve, a, rows, a.encoder_ffn, longest, threads), max_rows(rows) {
  const size_t block_count = rows / kBlock + sentence_count;  // each sentence may leave one block partly empty
  const size_t block_floats = 2 * kBlock * a.d_model;
  kv = carve.array<float>(uint64_t{block_count} * block_floats);
  blocks = carve.array<float*>(block_count);
  sentences = carve.array<EncoderSentence>(sentence_count);
}

namespace {

// f(sentence, first row, last row + 1) for the part of every sentence that lies in rows [begin, end).
template <class F>
void for_each_sentence(const EncoderBuffers& b, size_t count, size_t begin, size_t end, const F& f) {
  for (size_t s = 0; s < count; ++s) {
    const EncoderSentence& sentence = b.sentences[s];
    const size_t from = std::max(begin, sentence.begin);
    const size_t to = std::min(end, sentence.begin + sentence.ids.size());
    if (from < to) f(sentence, from, to);
  }
}

// b.layer.y = Wo softmax(Q K^T / sqrt(d_head)) V + bo, sentence by sentence, where Q, K, V project x (T, D).
void self_attention(const Context& c, const EncoderLayer& w, const Operand& x, size_t count, EncoderBuffers& b) {
  const size_t d = c.model->arch.d_model, heads = c.model->arch.encoder_heads, rows = x.rows;
  LayerBuffers& l = b.layer;
  affine(c, w.qkv, x, l.qkv);
  c.pool->run(rows, 4 * rows * d, [&](size_t, size_t begin, size_t end) {
    for_each_sentence(b, count, begin, end, [&](const EncoderSentence& s, size_t from, size_t to) {
      const float* k = l.qkv + from * 3 * d + d;
      store_key_values(b.blocks + s.first_block, 0, from - s.begin, {k, k + d, 3 * d, to - from}, heads, d / heads);
    });
  });
  const auto attend = [&](size_t thread, size_t begin, size_t end) {
    for_each_sentence(b, count, begin, end, [&](const EncoderSentence& s, size_t from, size_t to) {
      const KeyValues kv{b.blocks + s.first_block, 0, s.ids.size()};
      c.kernels->attention(l.qkv + from * 3 * d, 3 * d, to - from, kv, heads, d / heads,
                           l.scores + thread * l.score_stride, l.mix + from * d);
    });
  };
  affine(c, w.out, make_operand(c, l.mix, rows, d, l, uint64_t{2} * rows * rows * d / count, attend), l.y);
}

// x <- LayerNorm(x + Attention(x));  x <- LayerNorm(x + FFN(x))     (Vaswani et al. 2017, 3.1)
Operand post_norm_layer(const Context& c, const EncoderLayer& w, Operand x, size_t count, EncoderBuffers& b) {
  self_attention(c, w, x, count, b);
  x = add_norm(c, w.self_norm, x.rows, b.layer);

  feed_forward(c, w.ffn_in, w.ffn_out, x, b.layer);
  return add_norm(c, w.ffn_norm, x.rows, b.layer);
}

// x <- x + Attention(LayerNorm(x));  x <- x + FFN(LayerNorm(x)). Nothing multiplies x itself: it is not quantised
// again.
Operand pre_norm_layer(const Context& c, const EncoderLayer& w, Operand x, size_t count, EncoderBuffers& b) {
  LayerBuffers& l = b.layer;
  self_attention(c, w, norm(c, w.self_norm, x.x, x.rows, l.normed, l), count, b);
  add(c, x.rows, l);

  feed_forward(c, w.ffn_in, w.ffn_out, norm(c, w.ffn_norm, x.x, x.rows, l.normed, l), l);
  add(c, x.rows, l);
  return x;
}

}  // namespace

Operand encode(const Context& c, EncoderBuffers& b, size_t count) {
  const Model& model = *c.model;
  const size_t d = model.arch.d_model;
  const EncoderSentence& last = b.sentences[count - 1];
  const size_t rows = last.begin + last.ids.size();
  // Written anew each time: between two calls these bytes are the decoder's.
  for (size_t i = 0; i < last.first_block + blocks_for(last.ids.size()); ++i) b.blocks[i] = b.kv + i * 2 * kBlock * d;
  LayerBuffers& l = b.layer;
  Operand x = make_operand(c, l.x, rows, d, l, kCostOfEmbedding * rows * d, [&](size_t, size_t begin, size_t end) {
    for_each_sentence(b, count, begin, end, [&](const EncoderSentence& s, size_t from, size_t to) {
      for (size_t row = from; row < to; ++row) {
        const size_t position = row - s.begin;
        embed(c, model.source_embedding, s.ids[position], model.encoder_positions + position * d, l.x + row * d);
      }
    });
  });
  if (model.has(kEncoderEmbeddingNorm)) x = norm(c, model.encoder_embedding_norm, l.x, rows, l.x, l);
  const auto layer = model.arch.norm == NormPosition::kPost ? post_norm_layer : pre_norm_layer;
  for (uint32_t i = 0; i < model.arch.encoder_layers; ++i) x = layer(c, model.encoder[i], x, count, b);
  return final_norm(c, kEncoderFinalNorm, model.encoder_norm, x, l);
}

}  // namespace dragoman
