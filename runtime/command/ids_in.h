// Lines of ids, decimal and separated by spaces: what `translate --ids` and `tokenize --decode` read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/command/lines_in.h"

namespace dragoman::command {

// Splits the first word off `text` (spaces and tabs separate); empty when there is none.
std::string_view next_word(std::string_view& text);

// A line is checked before any of it is shown, as far as the buffer holds it; a word that is no id is reported on
// standard error, and the line then shows no (further) ids.
class IdReader {
 public:
  // `ids`: how many are shown at once. Ids are below `vocabulary`.
  IdReader(LineReader& lines, std::span<int32_t> ids, uint32_t vocabulary)
      : lines_(lines), ids_(ids), vocabulary_(vocabulary) {}

  // Shows the next ids of the current line; false when there are none now. A line that is not complete shows as many
  // as fit, or as many as one buffer of text holds.
  bool peek(std::span<const int32_t>& ids, bool& complete);
  void take(size_t count);           // of the ids shown last; all of a complete line ends it
  bool bad() const { return bad_; }  // of the line shown last: it held a word that is no id
  uint64_t bad_lines() const { return bad_lines_; }

 private:
  bool is_id(std::string_view word, int32_t& id) const;
  bool check(std::string_view words);
  void report(std::string_view word);

  LineReader& lines_;
  std::span<int32_t> ids_;
  uint32_t vocabulary_;
  size_t shown_ = 0;
  bool complete_ = false;
  size_t checked_ = 0;    // bytes of the rest of this line that hold ids only
  bool started_ = false;  // ids of this line were taken
  bool bad_ = false;
  uint64_t bad_lines_ = 0;
};

}  // namespace dragoman::command
