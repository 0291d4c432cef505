// The line on a terminal that says how fast it goes, at most ten times a second; nothing where there is no terminal.
#pragma once

#include <cstdint>

#include "runtime/clock.h"

namespace dragoman::command {

class Progress {
 public:
  explicit Progress(bool wanted);
  void update(double now, uint64_t lines, uint64_t tokens);  // cheap when it is not time yet
  void clear();                                              // before something else is written to the terminal
  void finish(uint64_t lines, uint64_t tokens);              // the last figures stay

 private:
  void show(double now, uint64_t lines, uint64_t tokens, const char* end);

  bool on_;
  bool visible_ = false;
  double start_, shown_;
};

}  // namespace dragoman::command
