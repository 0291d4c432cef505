// Greedy search's two guards: how long a target may get, and whether it has begun to repeat itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dragoman {

// min(2n + 10, the longest target, the position table), for a source of n ids with eos.
inline size_t length_cap(size_t source_ids, size_t longest_target, size_t positions) {
  return std::min({2 * source_ids + 10, longest_target, positions});
}

// Sees a cycle of up to 8 ids that comes four times in a row, in constant time per id.
class LoopDetector {
 public:
  static constexpr size_t kLongest = 8, kTimes = 4;

  void reset() { *this = {}; }

  // ids: all so far, the new one last. Returns the length of the shortest cycle seen, 0 for none.
  size_t push(std::span<const int32_t> ids) {
    const size_t n = ids.size();
    for (size_t period = 1; period <= kLongest; ++period) {
      uint32_t& run = run_[period - 1];  // how many ids in a row equal the one a period before
      run = n > period && ids[n - 1] == ids[n - 1 - period] ? run + 1 : 0;
    }
    for (size_t period = 1; period <= kLongest; ++period) {
      if (run_[period - 1] >= (kTimes - 1) * period) return period;
    }
    return 0;
  }

 private:
  uint32_t run_[kLongest] = {};
};

}  // namespace dragoman
