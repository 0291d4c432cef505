// A 64-bit checksum for sections of a model file and for hashes of logits. Every step is a bijection of the state, so a
// change confined to one 8-byte word always changes the result. It guards against damage, not against forgery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dragoman {

inline constexpr uint64_t kChecksumSeed = 0x6472'6167'6f6d'616eULL;  // "dragoman"

inline uint64_t checksum_word(uint64_t state, uint64_t word) {
  state = (state ^ word) * 0x9e37'79b9'7f4a'7c15ULL;
  return state ^ (state >> 32);
}

// The last 1..7 bytes are zero-extended.
inline uint64_t checksum_words(const void* data, size_t bytes, uint64_t state) {
  const char* p = static_cast<const char*>(data);
  uint64_t word;
  size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    std::memcpy(&word, p + i, 8);
    state = checksum_word(state, word);
  }
  if (i < bytes) {
    word = 0;
    std::memcpy(&word, p + i, bytes - i);
    state = checksum_word(state, word);
  }
  return state;
}

// The length goes in last, so trailing zeros count.
inline uint64_t checksum(const void* data, size_t bytes, uint64_t state = kChecksumSeed) {
  return checksum_word(checksum_words(data, bytes, state), bytes);
}

}  // namespace dragoman
