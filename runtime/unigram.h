// The most probable split of a normalised text under a unigram model, bit for bit as SentencePiece finds it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/id_writer.h"
#include "runtime/trie.h"

namespace dragoman {

// The best way to reach a position of the text: 8 bytes per byte of text, and one more.
struct UnigramNode {
  float score;
  uint32_t last;  // the piece that ends here: number << 10 | bytes; 0: not reached
};

struct UnigramTables {
  Trie pieces;
  const float* scores = nullptr;
  uint32_t longest_piece = 0;
  float unk_score = 0;
  float max_score = 0;
};

// `nodes` has room for size + 1. Any text is safe, well-formed or not.
void unigram_encode(const UnigramTables& tables, const char* text, size_t size, UnigramNode* nodes, IdWriter& ids);

}  // namespace dragoman
