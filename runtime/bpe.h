// Byte-pair encoding of a normalised text, with SentencePiece's order of merges, in O(n log n).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/id_writer.h"
#include "runtime/trie.h"

namespace dragoman {

struct BpeTables {
  Trie pieces, symbols;
  const uint32_t* ranks = nullptr;
  std::span<const uint32_t> unused;  // numbers of unused pieces, ascending
  uint32_t longest_piece = 0;
  uint32_t longest_symbol = 0;
};

// Working memory for texts of up to `size` bytes; all of it is written before it is read.
struct BpeBuffers {
  uint64_t* agenda;  // 2 * size: a merge takes one pair from it and adds at most two
  uint16_t* starts;  // size: length of the symbol that starts at this byte
  uint16_t* ends;    // size: length of the symbol that ends at this byte
  uint16_t* splits;  // unused.size(): where an unused piece was last put together
};

void bpe_encode(const BpeTables& tables, const char* text, size_t size, const BpeBuffers& buffers, IdWriter& ids);

}  // namespace dragoman
