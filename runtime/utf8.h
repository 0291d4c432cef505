// The few facts about UTF-8 that the tokenizer and the command need.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dragoman {

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

}  // namespace dragoman
