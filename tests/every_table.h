// What the kernel tests share: the tables of this machine, and equality of bits.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <string>

#include "kernels/float_env.h"
#include "kernels/kernels.h"

namespace dragoman {

// How many of `full` random cases to try: an emulated CPU is asked for a part of them (DRAGOMAN_TEST_DIVISOR=16).
inline size_t bounded(size_t full) {
  const char* value = std::getenv("DRAGOMAN_TEST_DIVISOR");
  const size_t divisor = value ? std::strtoul(value, nullptr, 10) : 1;
  return full / (divisor > 0 ? divisor : 1);
}

// test(kernels) for every table this machine runs, in the float environment of translation.
template <class Test>
void for_every_table(Test test) {
  for (const Kernels* kernels : available_kernels()) {
    CAPTURE(std::string(kernels->name));  // doctest prints a char* as an address
    const FloatEnv env;
    test(*kernels);
  }
}

// The larger of two errors, where NaN is the largest: std::max would pass over it.
inline double worse(double worst, double error) {
  return error <= worst ? worst : error == error ? error : std::numeric_limits<double>::infinity();
}

// The first index where a and b differ in a bit, or a.size(). Two NaNs count as equal: which payload and sign an
// operation on two NaNs keeps depends on the order of its operands, which the compiler may swap.
inline size_t first_difference(std::span<const float> a, std::span<const float> b) {
  for (size_t i = 0; i < a.size(); ++i) {
    const bool nan = a[i] != a[i] && b[i] != b[i];
    if (!nan && std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return i;
  }
  return a.size();
}

// C6: run(kernels) returns the same floats, bit for bit, on every table.
template <class Run>
void check_same_bits(Run run) {
  const FloatEnv env;
  const auto first = run(*available_kernels().front());
  for (const Kernels* kernels : available_kernels()) {
    CAPTURE(std::string(kernels->name));  // doctest prints a char* as an address
    const auto other = run(*kernels);
    REQUIRE(other.size() == first.size());
    CHECK(first_difference(first, other) == first.size());
  }
}

}  // namespace dragoman
