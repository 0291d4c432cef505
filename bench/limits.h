// What this machine can do at most, measured in the run that is compared with it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/result.h"

namespace dragoman::bench {

// A fork-join team of `threads` does each loop at the same time; figures are of the whole team, the best of several.
struct MachineLimits {
  struct Bandwidth {
    size_t bytes;  // working set of all threads together
    double per_second;
  };
  std::string isa;
  size_t threads = 1;
  std::vector<Bandwidth> read;  // by growing working set
  double s8 = 0;                // multiply-adds per second, exact int8: the better of the next two
  double s8_own = 0;            // the table's own instruction mix
  double s8_as_s16 = 0;         // AVX2 on int16; 0 where there is no such loop
  double f32 = 0;

  // Bytes per second from a working set of this size, between the two sizes that were measured.
  double read_rate(double working_set) const;
  // The better of two measurements, figure by figure: a limit is what the machine can do when it is left alone.
  void improve(const MachineLimits& other);
};

enum class Moment {
  kBest,  // what the machine can do when it is left alone
  kNow,   // what it does now, with whatever else runs on it: the median of several tries
};

Result<MachineLimits> measure_limits(const Kernels& kernels, size_t threads);
Result<MachineLimits> measure_limits(const Kernels& kernels, size_t threads, Moment moment,
                                     std::span<const size_t> working_sets);  // growing

}  // namespace dragoman::bench
