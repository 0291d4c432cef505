#include "runtime/text_split.h"

#include <algorithm>

namespace dragoman {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view e) { return text.ends_with(e); });
}

// CJK full stop, exclamation mark, question mark, half-width full stop, Devanagari danda: no space follows them.
bool after_wide_sentence(std::string_view before) {
  return ends_with_any(before, {"\u3002", "\uff01", "\uff1f", "\uff61", "\u0964"});
}
bool after_wide_clause(std::string_view before) {
  return ends_with_any(before, {"\u3001", "\uff0c", "\uff1b", "\uff1a"});
}

// How good a cut at `at` is: 3 after a sentence, 2 after a clause, 1 after a space, 0 anywhere else.
int quality(std::string_view text, size_t at) {
  std::string_view before = beginning_of(text, at);
  if (after_wide_sentence(before)) return 3;
  if (after_wide_clause(before)) return 2;
  if (!is_space(before.back())) return 0;
  while (!before.empty() && is_space(before.back())) before.remove_suffix(1);
  if (before.empty()) return 1;
  // Closing quotes and brackets may stand between the full stop and the space.
  while (!before.empty() && ends_with_any(before, {"\"", "'", ")", "]", "\u201d", "\u2019", "\u00bb"})) {
    before.remove_suffix(1);
    while (!before.empty() && is_continuation(before.back())) before.remove_suffix(1);
  }
  if (ends_with_any(before, {".", "!", "?", "\u2026", "\u061f", "\u06d4"})) return 3;
  if (ends_with_any(before, {",", ";", ":", "\u060c", "\u061b"})) return 2;
  return 1;
}

}  // namespace

std::string_view whole_characters(std::string_view text) {
  size_t begin = text.size();  // of the last character
  while (begin > 0 && text.size() - begin < 3 && is_continuation(text[begin - 1])) --begin;
  if (begin < 2) return text;
  const unsigned char lead = static_cast<unsigned char>(text[begin - 1]);
  const size_t announced = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return text.size() - (begin - 1) < announced ? beginning_of(text, begin - 1) : text;
}

size_t best_cut(std::string_view text, size_t limit) {
  size_t best[4] = {};  // the last cut of each quality
  for (size_t at = limit; at > 0 && !best[3]; --at) {
    if (at < text.size() && (is_continuation(text[at]) || is_space(text[at]))) continue;
    const int q = quality(text, at);
    if (!best[q]) best[q] = at;
    if (at < limit / 4) break;
  }
  if (best[3] > limit / 4) return best[3];
  if (best[2] > limit / 2) return best[2];
  if (best[1] > limit / 2) return best[1];
  if (best[0]) return best[0];
  // Nothing but spaces, or a single character longer than the limit.
  while (limit < text.size() && is_continuation(text[limit])) ++limit;
  return limit;
}

}  // namespace dragoman
