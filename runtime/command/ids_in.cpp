#include "runtime/command/ids_in.h"

#include <algorithm>

#include "runtime/command/text_out.h"

namespace dragoman::command {
namespace {

constexpr std::string_view kSpaces = " \t";

// The whole words of a line that goes on: its last word may be cut.
std::string_view whole_words(const Line& line) {
  if (line.complete) return line.bytes;
  const size_t last = line.bytes.find_last_of(kSpaces);
  return line.bytes.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

}  // namespace

std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kSpaces));
  text.remove_prefix(word.size());
  return word;
}

bool IdReader::is_id(std::string_view word, int32_t& id) const {
  uint64_t value = 0;
  for (const char c : word) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<uint64_t>(c - '0');
    if (value >= vocabulary_) return false;
  }
  id = static_cast<int32_t>(value);
  return true;
}

void IdReader::report(std::string_view word) {
  char shown[33];  // printable ASCII: the word may hold anything
  size_t length = 0;
  for (; length < word.size() && length < sizeof shown - 1; ++length) {
    shown[length] = word[length] > ' ' && word[length] <= '~' ? word[length] : '?';
  }
  shown[length] = 0;
  say("line %llu: '%s%s' is not an id of this model (0 to %u): %s", static_cast<unsigned long long>(lines_.number()),
      shown, length < word.size() ? "..." : "", vocabulary_ - 1,
      started_ ? "the rest of the line is skipped" : "its output line stays empty");
  bad_ = true;
  ++bad_lines_;
}

bool IdReader::check(std::string_view words) {
  int32_t id;
  for (std::string_view word = next_word(words); !word.empty(); word = next_word(words)) {
    if (is_id(word, id)) continue;
    report(word);
    return false;
  }
  return true;
}

bool IdReader::peek(std::span<const int32_t>& ids, bool& complete) {
  Line line;
  complete_ = false;
  if (!lines_.peek(SIZE_MAX, line)) return false;
  std::string_view words = whole_words(line);
  if (!bad_ && words.empty() && !line.complete) report(line.bytes);  // one word that fills the buffer
  if (!bad_ && checked_ < words.size() && check(words.substr(checked_))) checked_ = words.size();
  shown_ = 0;
  if (bad_) {  // the rest of the line is dropped; its end is shown, so that a line comes out for it
    lines_.take(line.bytes.size());
    words = {};
    if (!line.complete) return false;
  }
  int32_t id = 0;
  while (shown_ < ids_.size()) {
    const std::string_view word = next_word(words);
    if (word.empty()) break;
    if (is_id(word, id)) ids_[shown_++] = id;
  }
  const bool all = next_word(words).empty();
  if (shown_ == 0 && !line.complete) {  // spaces only
    take(0);
    return false;
  }
  complete_ = complete = line.complete && all;
  ids = ids_.first(shown_);
  return true;
}

void IdReader::take(size_t count) {
  if (complete_ && count == shown_) {
    lines_.next();
    checked_ = 0;
    bad_ = started_ = false;
    return;
  }
  Line line;
  if (!lines_.peek(SIZE_MAX, line)) return;
  std::string_view rest = line.bytes;
  for (; count > 0; --count, started_ = true) next_word(rest);
  rest.remove_prefix(std::min(rest.find_first_not_of(kSpaces), rest.size()));
  const size_t taken = line.bytes.size() - rest.size();
  lines_.take(taken);
  checked_ -= std::min(checked_, taken);
}

}  // namespace dragoman::command
