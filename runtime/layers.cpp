#include "runtime/layers.h"

#include <algorithm>
#include <cstring>

namespace dragoman {

LayerBuffers::LayerBuffers(Carver& carve, const Architecture& a, size_t row_count, size_t ffn, size_t longest,
                           size_t threads) {
  const uint64_t d = a.d_model, rows = row_count;  // 64 bits: products are counted before they are refused
  x = carve.array<float>(rows * d);
  normed = carve.array<float>(a.norm == NormPosition::kPre ? rows * d : 0);
  y = carve.array<float>(rows * d);
  qkv = hidden = carve.array<float>(rows * std::max(4 * d, uint64_t{ffn}));
  mix = qkv ? qkv + rows * 3 * d : nullptr;
  q = carve.array<int8_t>(a.weights == Weights::kInt8 ? rows * std::max<uint64_t>(d, ffn) : 0);
  quant = carve.array<RowQuant>(rows);
  score_stride = kQueries * round_up(longest, kBlock);
  scores = carve.array<float>(threads * score_stride);
}

Operand operand(const Context& c, const float* x, size_t rows, size_t k, LayerBuffers& b) {
  return make_operand(c, x, rows, k, b, 0, [](size_t, size_t, size_t) {});
}

void affine_panels(const Context& c, const Linear& w, size_t begin, size_t end, const Operand& x, float* y,
                   size_t ldy) {
  if (x.q) {
    c.kernels->gemm_s8(x.q, x.quant, x.rows, slice(w.s8, begin, end), y, ldy);
  } else {
    c.kernels->gemm_f32(x.x, x.rows, slice(w.f32, begin, end), y, ldy);
  }
}

void affine(const Context& c, const Linear& w, const Operand& x, float* y) {
  const size_t n = w.outputs();
  c.pool->run(
      w.panels(), uint64_t{x.rows} * n * w.inputs(),
      [&](size_t, size_t begin, size_t end) { affine_panels(c, w, begin, end, x, y + begin * kPanel, n); },
      kPanelsAtOnce);
}

namespace {

void norm_rows(const Context& c, const Norm& w, const float* x, size_t begin, size_t end, float* y) {
  const size_t d = c.model->arch.d_model;
  c.kernels->layer_norm(x + begin * d, w.gamma, w.beta, c.model->arch.layer_norm_epsilon, end - begin, d,
                        y + begin * d);
}

void add_rows(const Context& c, const LayerBuffers& b, size_t begin, size_t end) {
  const size_t d = c.model->arch.d_model;
  c.kernels->add(b.x + begin * d, b.y + begin * d, (end - begin) * d);
}

}  // namespace

Operand norm(const Context& c, const Norm& w, const float* x, size_t rows, float* y, LayerBuffers& b) {
  const size_t d = c.model->arch.d_model;
  return make_operand(c, y, rows, d, b, kCostOfNorm * rows * d,
                      [&](size_t, size_t begin, size_t end) { norm_rows(c, w, x, begin, end, y); });
}

void add(const Context& c, size_t rows, LayerBuffers& b) {
  c.pool->run(rows, kCostOfAdding * rows * c.model->arch.d_model,
              [&](size_t, size_t begin, size_t end) { add_rows(c, b, begin, end); });
}

Operand add_norm(const Context& c, const Norm& w, size_t rows, LayerBuffers& b) {
  const size_t d = c.model->arch.d_model;
  return make_operand(c, b.x, rows, d, b, (kCostOfAdding + kCostOfNorm) * rows * d,
                      [&](size_t, size_t begin, size_t end) {
                        add_rows(c, b, begin, end);
                        norm_rows(c, w, b.x, begin, end, b.x);
                      });
}

Operand final_norm(const Context& c, ArchitectureFlags flag, const Norm& w, const Operand& x, LayerBuffers& b) {
  if (c.model->has(flag)) return norm(c, w, b.x, x.rows, b.x, b);
  return c.model->arch.norm == NormPosition::kPost ? x : operand(c, b.x, x.rows, c.model->arch.d_model, b);
}

namespace {

void activate(const Context& c, float* x, size_t n) {
  switch (c.model->arch.activation) {
    case Activation::kRelu:
      return c.kernels->relu(x, n);
    case Activation::kSilu:
      return c.kernels->silu(x, n);
    case Activation::kGelu:
      return c.kernels->gelu(x, n);
    case Activation::kGeluTanh:
      return c.kernels->gelu_tanh(x, n);
  }
}

}  // namespace

void feed_forward(const Context& c, const Linear& in, const Linear& out, const Operand& x, LayerBuffers& b) {
  const size_t f = in.outputs(), rows = x.rows;
  affine(c, in, x, b.hidden);
  const Operand hidden =
      make_operand(c, b.hidden, rows, f, b, kCostOfAdding * rows * f,
                   [&](size_t, size_t begin, size_t end) { activate(c, b.hidden + begin * f, (end - begin) * f); });
  affine(c, out, hidden, b.y);
}

void embed(const Context& c, const Linear& table, int32_t id, const float* position, float* x) {
  const float scale = c.model->arch.embedding_scale;
  if (c.model->arch.weights == Weights::kInt8) {
    c.kernels->embed_s8(table.s8, static_cast<size_t>(id), scale, position, x);
  } else {
    c.kernels->embed_f32(table.f32, static_cast<size_t>(id), scale, position, x);
  }
}

namespace {

// The part of it that lies in one block. K is transposed by squares of 16, which stay in the nearest cache.
void store_in_block(float* block, size_t lane, const KeyValueRows& rows, size_t heads, size_t d_head) {
  const size_t d = heads * d_head;
  for (size_t i = 0; i < d; i += kBlock) {
    for (size_t r = 0; r < rows.count; ++r) {
      const float* k = rows.k + r * rows.ld + i;
      float* to = block + i * kBlock + lane + r;
      for (size_t j = 0; j < kBlock; ++j) to[j * kBlock] = k[j];
    }
  }
  float* values = block + d * kBlock + lane * d_head;
  for (size_t r = 0; r < rows.count; ++r) {
    for (size_t h = 0; h < heads; ++h) {
      std::memcpy(values + (h * kBlock + r) * d_head, rows.v + r * rows.ld + h * d_head, d_head * sizeof(float));
    }
  }
}

}  // namespace

void store_key_values(float* const* blocks, size_t offset, size_t position, KeyValueRows rows, size_t heads,
                      size_t d_head) {
  while (rows.count > 0) {
    const size_t lane = position % kBlock, here = std::min(kBlock - lane, rows.count);
    store_in_block(blocks[position / kBlock] + offset, lane, {rows.k, rows.v, rows.ld, here}, heads, d_head);
    position += here;
    rows = {rows.k + here * rows.ld, rows.v + here * rows.ld, rows.ld, rows.count - here};
  }
}

}  // namespace dragoman
