#include "runtime/command/text_out.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "runtime/command/commands.h"
#include "runtime/command/lines_in.h"

namespace dragoman::command {
namespace {

// 0, or errno. A descriptor that somebody else made non-blocking is waited for.
int write_all(int fd, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t wrote = ::write(fd, data, bytes);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      wait_for(fd, /*to_write=*/true);
      continue;
    }
    if (wrote < 0) return errno;
    data += wrote;
    bytes -= static_cast<size_t>(wrote);
  }
  return 0;
}

}  // namespace

std::string_view decimal(int64_t value, std::span<char, 24> room) {
  size_t at = room.size();
  uint64_t rest = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  do {
    room[--at] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  if (value < 0) room[--at] = '-';
  return {room.data() + at, room.size() - at};
}

void TextOut::put(char c) {
  if (used_ == buffer_.size() && !flush()) return;
  buffer_[used_++] = c;
}

void TextOut::put(std::string_view text) {
  while (!text.empty()) {
    if (used_ == buffer_.size() && !flush()) return;
    const size_t room = buffer_.size() - used_;
    const size_t part = text.size() < room ? text.size() : room;
    std::memcpy(buffer_.data() + used_, text.data(), part);
    used_ += part;
    text.remove_prefix(part);
  }
}

void TextOut::put_integer(int64_t value) {
  char digits[24];
  put(decimal(value, digits));
}

void TextOut::put_fixed(double value, int decimals) {
  int64_t unit = 1;
  for (int i = 0; i < decimals; ++i) unit *= 10;
  const double scaled = std::fabs(value) * static_cast<double>(unit);
  const int64_t number = scaled < 1e15 ? static_cast<int64_t>(scaled + 0.5) : 0;  // false for NaN too
  if (value < 0 && number > 0) put('-');
  put_integer(number / unit);
  if (decimals > 0) put('.');
  for (int64_t rest = number % unit, digit = unit / 10; digit > 0; rest %= digit, digit /= 10) {
    put(static_cast<char>('0' + rest / digit));
  }
}

void TextOut::put_repeated(char c, size_t count) {
  for (; count > 0; --count) put(c);
}

void TextOut::format(const char* format, ...) {
  char line[1000];
  va_list args;
  va_start(args, format);
  std::vsnprintf(line, sizeof line, format, args);
  va_end(args);
  put(std::string_view(line));
}

bool TextOut::flush() {
  if (error_ == 0) error_ = write_all(fd_, buffer_.data(), used_);
  used_ = 0;
  return error_ == 0;
}

bool TextOut::finish() {
  flush();
  if (::close(fd_) != 0 && error_ == 0 && errno != EINTR) error_ = errno;
  return error_ == 0;
}

TextOut& standard_output() {
  static char buffer[4096];
  static TextOut out(STDOUT_FILENO, buffer);
  return out;
}

void write_error(std::string_view text) {
  write_all(STDERR_FILENO, text.data(), text.size());
}

void say(const char* format, ...) {
  char line[1024] = "dragoman: ";
  const size_t start = std::strlen(line);
  va_list args;
  va_start(args, format);
  std::vsnprintf(line + start, sizeof line - start - 1, format, args);
  va_end(args);
  size_t length = std::strlen(line);
  line[length++] = '\n';
  write_error({line, length});
}

int finish_output(TextOut& out, int code) {
  if (out.finish()) return code;
  if (out.error() != EPIPE) say("standard output cannot be written (%s)", std::strerror(out.error()));
  return kRuntimeError;
}

}  // namespace dragoman::command
