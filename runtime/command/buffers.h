// The command's own memory beside the translator's, in the same arena: constant, whatever the input.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "runtime/arena.h"
#include "runtime/translator.h"

namespace dragoman::command {

struct Buffers {
  std::span<char> in;      // input: holds more than one window of a line that goes on
  std::span<char> out;     // output waiting to be written
  std::span<char> keep;    // what JSON shows at the end of a line
  std::span<int32_t> ids;  // of a line of ids; one more than a part takes shows that the line goes on

  Buffers(Carver& carve, const Plan& plan)
      : in(span<char>(carve, std::max<size_t>(64 * 1024, 4 * plan.window_bytes))),
        out(span<char>(carve, 64 * 1024)),
        keep(span<char>(carve, 64 * 1024)),
        ids(span<int32_t>(carve, plan.limits.source + 1)) {}

 private:
  template <class T>
  static std::span<T> span(Carver& carve, size_t count) {
    return {carve.array<T>(count), count};
  }
};

inline size_t buffer_bytes(const Plan& plan) {
  Carver count;
  Buffers measured(count, plan);
  return count.bytes();
}

}  // namespace dragoman::command
