#include "runtime/command/lines_in.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace dragoman::command {
namespace {

// False: the descriptor would block. A descriptor poll() cannot watch counts as ready: read() then says what is wrong.
bool is_ready(int fd, short events, int timeout) {
  pollfd entry{fd, events, 0};
  const int ready = ::poll(&entry, 1, timeout);
  return ready > 0 || (ready < 0 && errno != EINTR);
}

}  // namespace

void wait_for(int fd, bool to_write) {
  is_ready(fd, to_write ? POLLOUT : POLLIN, -1);
}

bool LineReader::has_newline() {
  if (scanned_ < end_ && buffer_[scanned_] != '\n') {
    const void* found = std::memchr(buffer_.data() + scanned_, '\n', end_ - scanned_);
    scanned_ = found ? static_cast<size_t>(static_cast<const char*>(found) - buffer_.data()) : end_;
  }
  return scanned_ < end_;
}

// One read, if there is room and something to read right now.
void LineReader::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    scanned_ -= begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size() || at_end_ || !is_ready(fd_, POLLIN, 0)) return;
  const ssize_t got = ::read(fd_, buffer_.data() + end_, buffer_.size() - end_);
  if (got > 0) {
    end_ += static_cast<size_t>(got);
  } else if (got == 0 || (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)) {
    if (got < 0) error_ = errno;
    at_end_ = true;
  }
  if (!begun_) drop_byte_order_mark();
}

// Editors write it before UTF-8 text; it is no part of the first line.
void LineReader::drop_byte_order_mark() {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (rest().size() < kMark.size() && kMark.starts_with(rest()) && !at_end_) return;  // the rest of it may come
  if (rest().starts_with(kMark)) begin_ = scanned_ = kMark.size();
  begun_ = true;
}

bool LineReader::peek(size_t enough, Line& line) {
  if (from_words_) {
    if (words_.empty()) return false;
    const std::string_view word(words_.front());
    line = {{word.data() + begin_, word.size() - begin_}, true};
    return true;
  }
  // One more than enough, and one for a '\r' that may precede the newline: then the line certainly is that long.
  if (!has_newline() && (rest().size() < 2 || rest().size() - 2 < enough)) fill();
  if (has_newline()) {
    size_t length = scanned_ - begin_;
    if (length > 0 && buffer_[scanned_ - 1] == '\r') --length;
    line = {rest().substr(0, length), true};
    return true;
  }
  line = {rest(), at_end_};
  if (at_end_) return inside_ || !line.bytes.empty();
  if (!line.bytes.empty() && line.bytes.back() == '\r') line.bytes.remove_suffix(1);
  return line.bytes.size() > enough || rest().size() == buffer_.size();
}

void LineReader::take(size_t bytes) {
  begin_ += bytes;
  if (scanned_ < begin_) scanned_ = begin_;
  inside_ = true;
}

void LineReader::next() {
  if (from_words_) {
    words_ = words_.subspan(1);
    begin_ = 0;
  } else {
    begin_ = scanned_ = has_newline() ? scanned_ + 1 : end_;
  }
  inside_ = false;
  ++number_;
}

void LineReader::wait() {
  if (!from_words_ && !at_end_ && !has_newline()) wait_for(fd_, /*to_write=*/false);
}

bool LineReader::finished() const {
  if (from_words_) return words_.empty();
  return at_end_ && begin_ == end_ && !inside_;
}

}  // namespace dragoman::command
