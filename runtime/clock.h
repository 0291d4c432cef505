// Seconds of a clock that only goes forward.
#pragma once

#include <time.h>

namespace dragoman {

inline double seconds_now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace dragoman
