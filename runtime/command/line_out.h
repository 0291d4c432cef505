// Parts of translations become lines of output: one line of input, one line of output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/command/json_out.h"
#include "runtime/command/text_out.h"
#include "runtime/translator.h"

namespace dragoman::command {

struct LineStyle {
  bool json = false, scores = false;
  bool ids = false;  // ids are what was asked for, not text
};

// What the lines of a run had, for the summary.
struct LineCounts {
  static constexpr size_t kFlags = 8;
  uint64_t lines = 0, flagged = 0, tokens = 0;
  uint64_t by_flag[kFlags] = {};
};

// Memory is constant for a line of any number of parts: what was asked for (text, or ids) streams. JSON shows both;
// the other one is kept in `keep` and is null where it does not fit.
class LineWriter {
 public:
  LineWriter(TextOut& out, LineStyle style, std::span<char> keep) : out_(out), style_(style), keep_(keep) {}

  void part(const Output& part);
  void bad_line() { bad_ = true; }  // the current line's input was no list of ids
  const LineCounts& counts() const { return counts_; }

 private:
  void put_text(std::string_view text);
  void put_ids(std::span<const int32_t> ids);
  void keep_ids(std::span<const int32_t> ids);
  void end_line();
  void end_json();
  void put_status();
  double mean_score() const { return score_ / static_cast<double>(target_ids_); }

  TextOut& out_;
  LineStyle style_;
  Keep keep_;
  LineCounts counts_;

  // The current line.
  bool started_ = false, has_text_ = false, has_ids_ = false, bad_ = false;
  uint32_t flags_ = 0;
  uint64_t source_ids_ = 0, target_ids_ = 0;
  double score_ = 0, seconds_ = 0;
};

// "3 of 1000 lines: 2 unknown characters, 1 length cap", or nothing; `see_json` adds how to see which.
void say_summary(const LineCounts& counts, bool see_json);

}  // namespace dragoman::command
