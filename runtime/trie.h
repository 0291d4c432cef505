// Lookups in a double-array trie (tokenizer_format.h). check() makes every later lookup memory-safe for any bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/tokenizer_format.h"

namespace dragoman {

class Trie {
 public:
  Trie() = default;
  Trie(const TrieUnit* units, size_t count) : units_(units), count_(count) {}
  bool empty() const { return count_ == 0; }

  // True if all links stay inside and all values, marks masked away, are below `values`.
  bool check(uint32_t values, uint32_t mask) const {
    if (count_ % kTrieBlock != 0 || count_ > kMaxTrieUnits) return false;
    uint32_t bad = 0;
    for (size_t i = 0; i < count_; ++i) {  // no early exit: the compiler can vectorise it
      const TrieUnit unit = units_[i];
      bad |= uint32_t((unit.link >> 9) >= count_);
      bad |= uint32_t(unit.value != kNoValue) & uint32_t((unit.value & mask) >= values);
    }
    return bad == 0;
  }

  const TrieUnit* root() const { return units_; }

  // The child of `node` by `byte`, or null.
  const TrieUnit* child(const TrieUnit* node, uint8_t byte) const {
    const TrieUnit* next = units_ + ((node->link >> 9) ^ byte);
    return (next->link & 0x1FF) == (kTrieUsed | byte) ? next : nullptr;
  }

  // The value of exactly [text, text + size), or kNoValue.
  uint32_t find(const char* text, size_t size) const {
    const TrieUnit* node = units_;
    for (size_t i = 0; i < size; ++i) {
      node = child(node, uint8_t(text[i]));
      if (node == nullptr) return kNoValue;
    }
    return node->value;
  }

  struct Match {
    size_t size = 0;  // 0: none
    uint32_t value = kNoValue;
  };

  // The longest key that starts `text`, of at most `size` bytes.
  Match longest_prefix(const char* text, size_t size) const {
    Match match;
    const TrieUnit* node = units_;
    for (size_t i = 0; i < size; ++i) {
      node = child(node, uint8_t(text[i]));
      if (node == nullptr) break;
      if (node->value != kNoValue) match = {i + 1, node->value};
    }
    return match;
  }

 private:
  const TrieUnit* units_ = nullptr;
  size_t count_ = 0;
};

// The length a UTF-8 lead byte announces, as SentencePiece counts it (a stray trail byte is one character).
inline size_t utf8_length(char lead) {
  return "\1\1\1\1\1\1\1\1\1\1\1\1\2\2\3\4"[uint8_t(lead) >> 4];
}

// Bytes of the well-formed character at `text` (size > 0), or 0 if there is none.
inline size_t utf8_valid(const char* text, size_t size) {
  const auto at = [text](size_t i) { return uint32_t(uint8_t(text[i])); };
  const auto trail = [&](size_t i) { return (at(i) & 0xC0) == 0x80; };
  if (at(0) < 0x80) return 1;
  if (size >= 2 && (at(0) & 0xE0) == 0xC0) return at(0) >= 0xC2 && trail(1) ? 2 : 0;
  if (size >= 3 && (at(0) & 0xF0) == 0xE0) {
    const uint32_t code = (at(0) & 0x0F) << 12 | (at(1) & 0x3F) << 6 | (at(2) & 0x3F);
    return trail(1) && trail(2) && code >= 0x800 && (code < 0xD800 || code >= 0xE000) ? 3 : 0;
  }
  if (size >= 4 && (at(0) & 0xF8) == 0xF0) {
    const uint32_t code = (at(0) & 0x07) << 18 | (at(1) & 0x3F) << 12 | (at(2) & 0x3F) << 6 | (at(3) & 0x3F);
    return trail(1) && trail(2) && trail(3) && code >= 0x10000 && code <= 0x10FFFF ? 4 : 0;
  }
  return 0;
}

inline constexpr char kSpaceSymbol[] = "\xE2\x96\x81";  // U+2581
inline constexpr size_t kSpaceSymbolBytes = 3;

}  // namespace dragoman
