// A value, or one sentence for a person saying what was wrong and what to do. No allocation, no exceptions.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <utility>

namespace dragoman {

struct Error {
  char text[480] = "";
};

__attribute__((format(printf, 1, 2))) inline Error fail(const char* format, ...) {
  Error error;
  va_list args;
  va_start(args, format);
  std::vsnprintf(error.text, sizeof error.text, format, args);
  va_end(args);
  if (error.text[0] == 0) error.text[0] = '?';
  for (char& c : error.text) {  // names from a file must not steer a terminal
    if (c != 0 && static_cast<unsigned char>(c) < 0x20) c = '?';
  }
  return error;
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)), ok_(true) {}   // NOLINT: implicit on purpose
  Result(const Error& error) : error_(error), ok_(false) {}  // NOLINT
  explicit operator bool() const { return ok_; }
  T& operator*() { return value_; }
  const T& operator*() const { return value_; }
  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }
  const Error& error() const { return error_; }

 private:
  T value_{};
  Error error_;
  bool ok_;
};

// For functions that return nothing but may fail.
struct Done {};
using Status = Result<Done>;

}  // namespace dragoman
