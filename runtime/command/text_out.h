// Standard output through one fixed buffer and write(2), and sentences on standard error. No stdio: a FILE allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dragoman::command {

// `value` in digits, at the end of `room`.
std::string_view decimal(int64_t value, std::span<char, 24> room);

// The first failed write is remembered; what is put after it is dropped.
class TextOut {
 public:
  TextOut(int fd, std::span<char> buffer) : fd_(fd), buffer_(buffer) {}

  void put(char c);
  void put(std::string_view text);
  void put_integer(int64_t value);
  void put_fixed(double value, int decimals);  // locale-free; NaN and what is beyond 10^15 print as 0
  void put_repeated(char c, size_t count);
  __attribute__((format(printf, 2, 3))) void format(const char* format, ...);  // up to 1000 bytes; not for sentences

  bool flush();   // false: a write failed, now or before
  bool finish();  // flush and close: some file systems report a full disk only here
  bool failed() const { return error_ != 0; }
  bool pending() const { return used_ > 0; }
  int error() const { return error_; }  // errno of the failed write

 private:
  int fd_;
  std::span<char> buffer_;
  size_t used_ = 0;
  int error_ = 0;
};

// Small programs' output: 4 KB.
TextOut& standard_output();

// One line on standard error, "dragoman: ..." and a newline, in one write. Longer than 1000 bytes is cut.
__attribute__((format(printf, 1, 2))) void say(const char* format, ...);
// Bytes on standard error as they are.
void write_error(std::string_view text);

// Ends a command's output: flushes, and says what failed unless the reader just went away. `code` or kRuntimeError.
int finish_output(TextOut& out, int code);

}  // namespace dragoman::command
