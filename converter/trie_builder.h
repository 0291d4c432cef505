// Builds the double-array tries of the tokenizer section.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/tokenizer_format.h"

namespace dragoman {

// Keys are not empty, have no NUL bytes and are all different; values are below kNoValue. Empty if there are no keys,
// or if the trie would have more than kMaxTrieUnits units.
std::vector<TrieUnit> build_trie(std::vector<std::pair<std::string, uint32_t>> keys);

}  // namespace dragoman
