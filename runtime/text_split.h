// Where to cut a text that is too long for the model.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace dragoman {

// At most `bytes` of the text. Not substr(): its check of the position, unless optimised away, wants libstdc++.
inline std::string_view beginning_of(std::string_view text, size_t bytes) {
  return {text.data(), std::min(bytes, text.size())};
}

// The length of the best first part of `text` that is at most `limit` bytes (1 <= limit <= text.size()): after the end
// of a sentence if there is one in the last three quarters, else after a clause, else after a space in the last half,
// else between two characters. Always at least one character; spaces after the cut belong to the first part where they
// fit.
size_t best_cut(std::string_view text, size_t limit);

// The text without a last character whose end is missing (but never empty when the text is not).
std::string_view whole_characters(std::string_view text);

// The length of a well-cut beginning of `text` that fits(beginning) accepts, or of all of it when `whole` says that it
// need not be cut and it fits. Each try is at most three quarters of the one before; the last, a character or two, is
// returned whether it fits or not.
template <class Fits>
size_t cut_to_fit(std::string_view text, bool whole, const Fits& fits) {
  if (!whole) text = whole_characters(text);
  for (size_t limit = text.size();; whole = false) {
    const size_t cut = whole ? limit : best_cut(text, limit);
    if (fits(beginning_of(text, cut)) || limit <= 4) return cut;
    limit = std::min(limit, cut) * 3 / 4;
  }
}

}  // namespace dragoman
