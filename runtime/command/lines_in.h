// Lines from a file descriptor through one fixed buffer, or from the command line's words, one word a line.
//
// A line ends at '\n' (a '\r' before it is dropped) or at the end of the input; its bytes may be anything, NUL
// included. A byte order mark that begins the input is dropped. A line longer than the buffer is seen in parts.
// Reading never blocks, except in wait().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dragoman::command {

// Waits until the descriptor can be read or written (or is closed, or has an error).
void wait_for(int fd, bool to_write);

struct Line {
  std::string_view bytes;  // of the current line, what was not taken yet; data() is never null
  bool complete = true;    // the line ends here
};

class LineReader {
 public:
  LineReader(int fd, std::span<char> buffer) : fd_(fd), buffer_(buffer) {}
  explicit LineReader(std::span<char* const> words) : words_(words), from_words_(true) {}

  // Shows the rest of the current line; false when there is none now. A line whose end was not read yet is shown when
  // it has more than `enough` bytes or fills the buffer: what is shown never depends on when the bytes arrived.
  bool peek(size_t enough, Line& line);
  void take(size_t bytes);  // of the line shown last, from its beginning
  void next();              // ends the line shown last: all of it was read

  void wait();                                 // blocks until there is more input, or its end
  bool finished() const;                       // nothing more will come
  uint64_t number() const { return number_; }  // of the current line, from 1
  int error() const { return error_; }         // errno of a failed read, which ends the input

 private:
  bool has_newline();
  void fill();
  void drop_byte_order_mark();
  std::string_view rest() const { return {buffer_.data() + begin_, end_ - begin_}; }

  int fd_ = -1;
  std::span<char> buffer_;  // [begin_, end_) is read and not taken
  size_t begin_ = 0, end_ = 0;
  size_t scanned_ = 0;   // no newline in [begin_, scanned_); one at scanned_ if has_newline()
  bool at_end_ = false;  // of the input
  bool inside_ = false;  // a part of the current line was taken
  bool begun_ = false;   // the input's first bytes were looked at
  std::span<char* const> words_;
  bool from_words_ = false;
  uint64_t number_ = 1;
  int error_ = 0;
};

}  // namespace dragoman::command
