// Lookups in a double-array trie (tokenizer_format.h). check() makes every later lookup memory-safe for any bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/tokenizer_format.h"
#include "runtime/utf8.h"

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

inline constexpr char kSpaceSymbol[] = "\xE2\x96\x81";  // U+2581
inline constexpr size_t kSpaceSymbolBytes = 3;

}  // namespace dragoman
