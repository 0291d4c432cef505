// attention against the double oracle, on every table; the same bits on all of them; rows independent (C7).
#include <algorithm>
#include <cmath>

#include "kernels/reference.h"
#include "tests/every_table.h"
#include "tests/random.h"

namespace dragoman {
namespace {

// K and V (positions, heads * d_head), and the same in blocks: in any order in memory, `offset` floats into each block,
// with NaN wherever nothing may look.
struct Case {
  size_t positions, heads, d_head, rows, ldq;
  std::vector<float> q, k, v;
  std::vector<std::vector<float>> memory;
  std::vector<float*> blocks;
  static constexpr size_t kOffset = 5;

  Case(size_t positions_, size_t heads_, size_t d_head_, size_t rows_, std::vector<float> (*draw)(size_t, uint64_t))
      : positions(positions_),
        heads(heads_),
        d_head(d_head_),
        rows(rows_),
        ldq(heads * d_head + 3),
        q(draw(rows * ldq, 1)),
        k(draw(positions * heads * d_head, 2)),
        v(draw(positions * heads * d_head, 3)),
        memory((positions + kBlock - 1) / kBlock) {
    const size_t width = heads * d_head;
    for (auto& block : memory) block.assign(kOffset + 2 * width * kBlock, std::nanf(""));
    std::rotate(memory.begin(), memory.begin() + memory.size() / 2, memory.end());
    for (auto& block : memory) blocks.push_back(block.data());
    for (size_t t = 0; t < positions; ++t) {
      float* block = blocks[t / kBlock] + kOffset;
      for (size_t i = 0; i < width; ++i) {
        block[i * kBlock + t % kBlock] = k[t * width + i];
        const size_t head = i / d_head;
        block[width * kBlock + (head * kBlock + t % kBlock) * d_head + i % d_head] = v[t * width + i];
      }
    }
  }

  std::vector<float> run(const Kernels& kernels, size_t first, size_t count) const {
    std::vector<float> scores(kQueries * round_up(positions, kBlock)), out(count * heads * d_head, 777);
    const KeyValues kv{blocks.data(), kOffset, positions};
    kernels.attention(q.data() + first * ldq, ldq, count, kv, heads, d_head, scores.data(), out.data());
    return out;
  }
  std::vector<float> run(const Kernels& kernels) const { return run(kernels, 0, rows); }
};

std::vector<float> ordinary(size_t n, uint64_t seed) {
  return random_floats(n, -1.5f, 1.5f, seed);
}
std::vector<float> hostile(size_t n, uint64_t seed) {
  return hostile_floats(n, 300, seed);
}

constexpr size_t kPositions[] = {1, 7, 8, 15, 16, 17, 31, 63, 64, 65, 200};
constexpr size_t kHeadSizes[] = {8, 16, 24, 32, 40, 64, 72, 128};

// A score adds d_head products below 2.25, so it errs by less than d_head * 2^-24 * (d_head * 2.25) / sqrt(d_head) in
// the worst case, 8e-5 for 64; errors of random sign gave 2.8e-7 at most. The weights p sum to 1 and V is below 1.5.
TEST_CASE("attention agrees with the reference") {
  for (size_t positions : kPositions) {
    for (size_t d_head : kHeadSizes) {
      const Case c(positions, 3, d_head, 2, ordinary);
      const size_t width = 3 * d_head;
      std::vector<double> want;
      for (size_t r = 0; r < c.rows; ++r) {
        const auto row = reference::attention(std::span(c.q).subspan(r * c.ldq, width), c.k, c.v, positions, 3, d_head);
        want.insert(want.end(), row.begin(), row.end());
      }
      for_every_table([&](const Kernels& kernels) {
        const auto out = c.run(kernels);
        double worst = 0;
        for (size_t i = 0; i < out.size(); ++i) worst = worse(worst, std::abs(out[i] - want[i]));
        CAPTURE(positions);
        CAPTURE(d_head);
        CHECK(worst <= 1e-6);
      });
    }
  }
}

TEST_CASE("attention gives the same bits on every table") {
  for (size_t positions : kPositions) {
    for (size_t d_head : kHeadSizes) {
      CAPTURE(positions);
      CAPTURE(d_head);
      const Case plain(positions, 2, d_head, 2, ordinary);
      check_same_bits([&](const Kernels& kernels) { return plain.run(kernels); });
      const Case odd(positions, 2, d_head, 2, hostile);
      check_same_bits([&](const Kernels& kernels) { return odd.run(kernels); });
    }
  }
}

TEST_CASE("attention: a query row alone has the bits it has among others") {
  for_every_table([](const Kernels& kernels) {
    const Case c(65, 4, 24, 9, ordinary);
    const auto whole = c.run(kernels);
    const size_t width = c.heads * c.d_head;
    for (size_t r = 0; r < c.rows; ++r) {
      const auto alone = c.run(kernels, r, 1);
      CHECK(first_difference(alone, std::span(whole).subspan(r * width, width)) == width);
    }
  });
}

// Scores far below -FLT_MAX / 2 must not be mistaken for the empty lanes of the last block.
TEST_CASE("attention: one position gives V itself, however low its score") {
  for_every_table([](const Kernels& kernels) {
    for (float level : {0.0f, 1e18f, -1e18f, 3e18f}) {
      Case c(1, 1, 16, 1, ordinary);
      std::fill(c.q.begin(), c.q.end(), level);
      for (size_t i = 0; i < 16; ++i) c.blocks[0][Case::kOffset + i * kBlock] = -1e18f;
      CHECK(first_difference(c.run(kernels), c.v) == 16);
    }
  });
}

}  // namespace
}  // namespace dragoman
