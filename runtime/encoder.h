// The encoder: ids of many sentences, laid end to end, to their memory. There is no padding, so the padding mask of the
// paper holds by construction (C7).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/layers.h"

namespace dragoman {

// One sentence in the encoder's rows [begin, begin + ids.size()).
struct EncoderSentence {
  std::span<const int32_t> ids;
  size_t begin = 0;
  size_t first_block = 0;  // of K and V
};

struct EncoderBuffers {
  LayerBuffers layer;
  float* kv;                   // blocks of one layer's K and V: 2 * 16 * D floats each
  float** blocks;              // their addresses
  EncoderSentence* sentences;  // up to `slots`
  size_t max_rows = 0;

  EncoderBuffers() = default;
  // `rows` tokens in at most `sentences` sentences.
  EncoderBuffers(Carver& carve, const Architecture& a, size_t rows, size_t sentence_count, size_t longest,
                 size_t threads);
};

// The memory (T, D) of sentences [0, count), in b.layer.x.
Operand encode(const Context& c, EncoderBuffers& b, size_t count);

}  // namespace dragoman
