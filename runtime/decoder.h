// The decoder: one step for every active slot, with K and V cached. A slot's self-attention K/V grow by one position a
// step; the K/V of its memory are projected once, when the sentence enters.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/layers.h"

namespace dragoman {

// A block holds 16 positions of all decoder layers: per layer K [D][16], then V [heads][16][d_head].
struct KvPool {
  float* memory = nullptr;
  float** free = nullptr;  // a stack of free blocks
  size_t free_count = 0, block_count = 0, least_free = 0;

  KvPool() = default;
  KvPool(Carver& carve, const Architecture& a, size_t block_count);

  static uint64_t block_floats(const Architecture& a) { return uint64_t{2} * kBlock * a.d_model * a.decoder_layers; }
  static size_t layer_offset(const Architecture& a, size_t layer) { return size_t{2} * kBlock * a.d_model * layer; }
  void take(size_t count, float** to);
  void give_back(size_t count, float** from);
};

// The state of a sentence between two steps.
struct Slot {
  float** memory_blocks = nullptr;  // cross-attention K/V
  float** self_blocks = nullptr;
  size_t memory_length = 0;  // T of the source
  size_t length = 0;         // target ids produced so far
  int32_t last_id = 0;       // decoder_start, then the last id produced
};

struct DecoderBuffers {
  LayerBuffers layer;       // a row per slot
  float* logits;            // some rows of all ids (output_logits), or all rows of some ids (best_ids)
  size_t logit_rows = 0;    // how many rows of all ids
  size_t logit_floats = 0;  // how much each thread has in best_ids
  ArgMax* best;             // (threads, slots): the first row of it is the result
  float* log_probability;   // (slots), where it is asked for
  Slot** active;            // the slots of this step, one per row

  DecoderBuffers() = default;
  DecoderBuffers(Carver& carve, const Architecture& a, size_t slots, size_t longest, size_t threads);
};

// A sentence's rows in the encoder's output, and where they go.
struct MemoryRows {
  const Slot* slot = nullptr;  // slot->memory_length rows
  size_t first_row = 0;
};

// Projects the memory (T, D) of sentences [0, count) to K and V of every layer. `kv` is scratch (T, 2D).
void enter(const Context& c, const Operand& memory, const MemoryRows* sentences, size_t count, float* kv);

// One step of rows [0, count) of b.active, up to the output layer, whose operand it returns.
Operand decode_step(const Context& c, DecoderBuffers& b, size_t count);

// b.logits (rows of x, vocabulary padded to 16) of at most b.logit_rows rows.
void output_logits(const Context& c, DecoderBuffers& b, const Operand& x);

// b.best of every row. No array of all logits is made: a piece of them is looked at while it lies in the cache.
void best_ids(const Context& c, DecoderBuffers& b, const Operand& x);

}  // namespace dragoman
