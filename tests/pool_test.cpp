#include "runtime/pool.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace dragoman {

TEST_CASE("pool: every item is done once, whatever the thread count") {
  for (const size_t threads : {1u, 2u, 3u, 8u}) {
    Pool pool;
    REQUIRE(pool.start(threads));
    for (const size_t n : {0u, 1u, 2u, 7u, 64u, 1000u}) {
      for (int round = 0; round < 50; ++round) {
        std::vector<std::atomic<int>> done(n);
        pool.run(n, Pool::kWorthSharing, [&](size_t thread, size_t begin, size_t end) {
          CHECK(thread < threads);
          for (size_t i = begin; i < end; ++i) ++done[i];
        });
        for (const auto& count : done) REQUIRE(count == 1);
      }
    }
    pool.stop();
  }
}

TEST_CASE("pool: pieces are multiples of the grain but for the last, and none is all of the work") {
  for (const size_t threads : {2u, 3u}) {
    Pool pool;
    REQUIRE(pool.start(threads));
    for (const size_t n : {1u, 3u, 4u, 5u, 64u, 999u}) {
      for (const size_t work : {Pool::kWorthSharing, 100 * Pool::kWorthSharing}) {
        std::atomic<size_t> sum = 0, uneven = 0, longest = 0;
        pool.run(
            n, work,
            [&](size_t, size_t begin, size_t end) {
              sum += end - begin;
              if (begin % 4 != 0 || (end % 4 != 0 && end != n)) ++uneven;
              for (size_t seen = longest; seen < end - begin && !longest.compare_exchange_weak(seen, end - begin);) {
              }
            },
            /*grain=*/4);
        CHECK(sum == n);
        CHECK(uneven == 0);
        if (n >= 64) CHECK(longest <= n / 2 + 4);
      }
    }
    pool.stop();
  }
}

TEST_CASE("pool: workers that fell asleep wake up") {
  Pool pool;
  REQUIRE(pool.start(3));
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<size_t> sum = 0;
    pool.run(100, Pool::kWorthSharing, [&](size_t, size_t begin, size_t end) { sum += end - begin; });
    CHECK(sum == 100);
  }
  pool.stop();
}

TEST_CASE("pool: too many threads are refused with a sentence") {
  Pool pool;
  CHECK(!pool.start(Pool::kMaxThreads + 1));
}

}  // namespace dragoman
