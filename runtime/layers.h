// The sublayers of the paper, on rows of activations. Every function says its shapes: T rows (tokens of all sentences
// end to end, or one per slot), D = d_model, F = the feed-forward width.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"
#include "runtime/arena.h"
#include "runtime/model.h"
#include "runtime/pool.h"

namespace dragoman {

// Threads share a product by as many panels: no table's tile is wider (Isa::kPanels, kStreams).
inline constexpr size_t kPanelsAtOnce = 4;

// K/V blocks that hold this many positions.
constexpr size_t blocks_for(size_t positions) {
  return (positions + kBlock - 1) / kBlock;
}

// What every sublayer needs to know.
struct Context {
  const Model* model = nullptr;
  const Kernels* kernels = nullptr;
  Pool* pool = nullptr;
};

// Buffers of one pass over up to `rows` rows, used by encoder and decoder alike.
struct LayerBuffers {
  float* x;         // (T, D)   the residual stream
  float* normed;    // (T, D)   LayerNorm(x), pre-norm models only
  float* qkv;       // (T, 3D)  projections
  float* mix;       // (T, D)   attention output
  float* y;         // (T, D)   sublayer output
  float* hidden;    // (T, F)   in the bytes of qkv and mix: attention is over when it begins
  int8_t* q;        // (T, max(D, F))  rows as int8
  RowQuant* quant;  // (T)
  float* scores;    // (threads, kQueries, longest)  attention scratch

  LayerBuffers() = default;
  LayerBuffers(Carver& carve, const Architecture& a, size_t rows, size_t ffn, size_t longest, size_t threads);
  size_t score_stride = 0;
};

// Rows ready for a product: quantised once when the weights are int8, however many matrices they meet.
struct Operand {
  const float* x = nullptr;
  const int8_t* q = nullptr;
  const RowQuant* quant = nullptr;
  size_t rows = 0;

  Operand part(size_t first, size_t count, size_t k) const {
    return {x + first * k, q ? q + first * k : nullptr, quant ? quant + first : nullptr, count};
  }
};

// Rough costs, in multiply-adds of a product, of what is done to a number between two products. They only decide
// whether a pass is worth sharing.
inline constexpr size_t kCostOfQuantizing = 24, kCostOfNorm = 20, kCostOfAdding = 10, kCostOfEmbedding = 100;

// x (T, k) as an operand, after f(thread, begin, end) has made its rows [begin, end): both in one pass, shared out over
// the threads. `work` is the cost of f. Between two products everything goes row by row in such a pass: with each step
// a pass of its own, half of them too short to share, two threads took 1.14 to 1.19 times as long (base int8, 32
// sentences, Zen 3).
template <class F>
Operand make_operand(const Context& c, const float* x, size_t rows, size_t k, LayerBuffers& b, uint64_t work,
                     const F& f) {
  const bool int8 = c.model->arch.weights == Weights::kInt8;
  if (int8) work += kCostOfQuantizing * rows * k;
  c.pool->run(rows, work, [&](size_t thread, size_t begin, size_t end) {
    f(thread, begin, end);
    if (int8) c.kernels->quantize_rows(x + begin * k, end - begin, k, b.q + begin * k, b.quant + begin);
  });
  if (!int8) return {x, nullptr, nullptr, rows};
  return {x, b.q, b.quant, rows};
}

// x (T, k) as it is.
Operand operand(const Context& c, const float* x, size_t rows, size_t k, LayerBuffers& b);

// y (T, 16 * panels; row stride ldy) = x W + b for the panels [begin, end).
void affine_panels(const Context& c, const Linear& w, size_t begin, size_t end, const Operand& x, float* y, size_t ldy);

// y (T, outputs) = x W + b, shared out over the threads.
void affine(const Context& c, const Linear& w, const Operand& x, float* y);

// y = LayerNorm(x), both (T, D), in place when y == x.
Operand norm(const Context& c, const Norm& w, const float* x, size_t rows, float* y, LayerBuffers& b);

// b.x <- b.x + b.y
void add(const Context& c, size_t rows, LayerBuffers& b);

// b.x <- LayerNorm(b.x + b.y)
Operand add_norm(const Context& c, const Norm& w, size_t rows, LayerBuffers& b);

// What leaves the last layer: LayerNorm(x) in place if the model has one there; x has to be b.x.
Operand final_norm(const Context& c, ArchitectureFlags flag, const Norm& w, const Operand& x, LayerBuffers& b);

// b.y = W2 activation(W1 x + b1) + b2.
void feed_forward(const Context& c, const Linear& in, const Linear& out, const Operand& x, LayerBuffers& b);

// x (D) = embedding of id times sqrt(D) (or what the model says) plus position.
void embed(const Context& c, const Linear& table, int32_t id, const float* position, float* x);

// K and V of rows that follow each other (k and v are ld apart from row to row) into the lanes from `position` on of
// their blocks, each at `offset`: K as [D][16], V as [heads][16][d_head].
struct KeyValueRows {
  const float *k, *v;
  size_t ld, count;
};
void store_key_values(float* const* blocks, size_t offset, size_t position, KeyValueRows rows, size_t heads,
                      size_t d_head);

}  // namespace dragoman
