#include "runtime/search.h"

#include <doctest/doctest.h>

#include <vector>

namespace dragoman {
namespace {

// The same by brute force: the shortest cycle that fills the last four periods.
size_t cycle_at_end(const std::vector<int32_t>& ids) {
  for (size_t period = 1; period <= 8; ++period) {
    if (ids.size() < 4 * period) return 0;
    bool cycle = true;
    for (size_t i = ids.size() - 3 * period; i < ids.size(); ++i) cycle = cycle && ids[i] == ids[i - period];
    if (cycle) return period;
  }
  return 0;
}

}  // namespace

TEST_CASE("search: loops are what brute force says they are") {
  uint32_t state = 1;
  for (int round = 0; round < 300; ++round) {
    LoopDetector loops;
    std::vector<int32_t> ids;
    for (int i = 0; i < 120; ++i) {
      state = state * 1664525 + 1013904223;
      const uint32_t period = 1 + (state >> 28) % 9;
      const bool repeat = (state >> 20) % 16 != 0 && ids.size() >= period && round % 3;
      ids.push_back(repeat ? ids[ids.size() - 1 - round % 9 % ids.size()] : static_cast<int32_t>((state >> 16) % 3));
      REQUIRE(loops.push(ids) == cycle_at_end(ids));
    }
  }
}

TEST_CASE("search: the length cap") {
  CHECK(length_cap(5, 1000, 512) == 20);
  CHECK(length_cap(400, 1000, 512) == 512);
  CHECK(length_cap(400, 100, 512) == 100);
}

}  // namespace dragoman
