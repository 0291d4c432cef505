// Small loops that reach a limit of the machine and do nothing else. One set per instruction set, compiled with its
// flags from limit_loops.cpp: callers ask find_kernels() first whether this CPU runs it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dragoman::bench {

struct LimitLoops {
  const char* isa;
  // Each returns the multiply-adds it did, on registers alone; steps > 0. s8 is the table's own instruction mix.
  uint64_t (*s8)(uint64_t steps);
  uint64_t (*s8_as_s16)(uint64_t steps);  // AVX2: on weights and rows widened to int16 before; null elsewhere
  uint64_t (*f32)(uint64_t steps);
  void (*read)(const float* data, size_t count);  // loads all of it with the widest loads; count: a multiple of 128
  void (*read_asking)(const float* data, size_t count);  // the same, asking for it ahead
};

// nullptr where there is no such table in this build.
const LimitLoops* find_limit_loops(const char* isa);

}  // namespace dragoman::bench
