// JSON as it is written: strings that are always valid UTF-8, names of flags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/command/text_out.h"

namespace dragoman::command {

// Bytes kept for later, up to a fixed size: overflow() says that something did not fit.
class Keep {
 public:
  explicit Keep(std::span<char> buffer) : buffer_(buffer) {}
  void put(std::string_view text);
  void clear() { used_ = 0, overflow_ = false; }
  std::string_view text() const { return {buffer_.data(), used_}; }
  bool overflow() const { return overflow_; }

 private:
  std::span<char> buffer_;
  size_t used_ = 0;
  bool overflow_ = false;
};

// The inside of a JSON string: quotes, backslashes and control characters escaped, a byte that is not UTF-8 as U+FFFD.
// Sink: anything with put(string_view).
template <class Sink>
void put_json_text(Sink& sink, std::string_view text);

// What the bits of Output::flags are called, in the order of the bits: `json` in --json's status, `person` in the
// summary of a run.
struct FlagName {
  const char* json;
  const char* person;
};
std::span<const FlagName> flag_names();

}  // namespace dragoman::command
