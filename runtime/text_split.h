// Where to cut a text that is too long for the model.
#pragma once

#include <cstddef>
#include <string_view>

namespace dragoman {

// The length of the best first part of `text` that is at most `limit` bytes (1 <= limit <= text.size()): after the end
// of a sentence if there is one in the last three quarters, else after a clause, else after a space in the last half,
// else between two characters. Always at least one character; spaces after the cut belong to the first part where they
// fit.
size_t best_cut(std::string_view text, size_t limit);

}  // namespace dragoman
