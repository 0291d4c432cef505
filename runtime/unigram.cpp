#include "runtime/unigram.h"

#include <algorithm>

namespace dragoman {
namespace {

constexpr uint32_t kSizeBits = 10;
static_assert(kMaxPieceBytes < 1u << kSizeBits && kMaxPieces < kUnknownPiece);

uint32_t pack(uint32_t number, size_t size) {
  return number << kSizeBits | uint32_t(size);
}
size_t packed_size(uint32_t last) {
  return last & ((1u << kSizeBits) - 1);
}
uint32_t packed_number(uint32_t last) {
  return last >> kSizeBits;
}

// Viterbi forward. Which of two nearly equal ways wins depends on the types: a piece's score is added and compared in
// double and stored in float, an unknown character's is a float throughout (the library's mixed ternary does this).
void search(const UnigramTables& tables, const char* text, size_t size, UnigramNode* nodes) {
  for (size_t i = 0; i <= size; ++i) nodes[i] = {0.0f, 0};
  const Trie& trie = tables.pieces;
  for (size_t start = 0; start < size;) {
    const float here = nodes[start].score;
    const size_t character = std::min(utf8_length(text[start]), size - start);
    const size_t limit = std::min<size_t>(size - start, tables.longest_piece);
    bool has_character = false;  // a piece of exactly this one character
    const TrieUnit* node = trie.root();
    for (size_t i = 0; i < limit;) {
      node = trie.child(node, uint8_t(text[start + i]));
      if (node == nullptr) break;
      ++i;
      const uint32_t value = node->value;
      if (value == kNoValue) continue;
      const uint32_t number = value & kPieceMask;
      const double score =
          (value & kUserDefinedMark) != 0 ? double(float(i) * tables.max_score) - 0.1 : double(tables.scores[number]);
      const double candidate = score + double(here);
      UnigramNode& target = nodes[start + i];
      if (target.last == 0 || candidate > double(target.score)) target = {float(candidate), pack(number, i)};
      has_character |= i == character;
    }
    if (!has_character) {
      const float candidate = tables.unk_score + here;
      UnigramNode& target = nodes[start + character];
      if (target.last == 0 || candidate > target.score) target = {candidate, pack(kUnknownPiece, character)};
    }
    start += character;
  }
}

}  // namespace

void unigram_encode(const UnigramTables& tables, const char* text, size_t size, UnigramNode* nodes, IdWriter& ids) {
  search(tables, text, size, nodes);
  // Turn the chain around: each piece moves from its end to its start.
  uint32_t piece = nodes[size].last;
  for (size_t end = size; end > 0;) {
    const size_t start = end - packed_size(piece);
    const uint32_t before = nodes[start].last;
    nodes[start].last = piece;
    piece = before;
    end = start;
  }
  for (size_t start = 0; start < size && ids.fits(); start += packed_size(nodes[start].last)) {
    ids.add(packed_size(nodes[start].last), packed_number(nodes[start].last));
  }
}

}  // namespace dragoman
