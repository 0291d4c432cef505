// SentencePiece's normalisation: rewriting rules, spaces, dummy prefix. Replacements come from tables made by the
// converter; user-defined symbols pass untouched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/trie.h"

namespace dragoman {

class Normalizer {
 public:
  Normalizer() = default;
  // The tries have passed check(); `replacements` need not be checked, since every use is.
  Normalizer(const TokenizerHeader& header, Trie rules, std::span<const uint8_t> replacements, Trie symbols)
      : header_(&header), rules_(rules), symbols_(symbols), replacements_(replacements) {}

  struct Output {
    size_t size = 0;
    bool fits = true;
    bool invalid_utf8 = false;
  };
  Output run(std::string_view text, std::span<char> out) const;

 private:
  struct Step {
    std::string_view text;  // what the next `consumed` bytes become
    size_t consumed = 0;
    bool invalid = false;
  };
  Step step(const char* text, size_t size) const;
  std::string_view replacement(uint32_t offset) const;

  const TokenizerHeader* header_ = nullptr;
  Trie rules_, symbols_;
  std::span<const uint8_t> replacements_;
};

}  // namespace dragoman
