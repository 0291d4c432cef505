// Hashes of what every kernel makes of fixed inputs, one line per table and kernel: two machines compute the same bits
// if their lines, names of tables aside, are the same (C6). tests/emulate compares them.
#include <cstdio>

#include "quant/pack.h"
#include "runtime/checksum.h"
#include "tests/every_table.h"
#include "tests/random.h"

namespace dragoman {
namespace {

// A NaN's sign and payload are the CPU's own: all count as one.
uint64_t hash(std::vector<float> y) {
  for (float& v : y) {
    uint32_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000) bits = 0x7fc00000;
    std::memcpy(&v, &bits, sizeof bits);
  }
  return checksum(y.data(), y.size() * sizeof(float));
}

template <class Run>
void print_hashes(const char* name, Run run) {
  uint64_t first = 0;
  for_every_table([&](const Kernels& kernels) {
    const uint64_t here = hash(run(kernels));
    if (&kernels == available_kernels().front()) first = here;
    CHECK(here == first);
    std::printf("hash %-10s %-16s %016llx\n", kernels.name, name, static_cast<unsigned long long>(here));
  });
}

constexpr size_t kRows = 7, kDepth = 208, kWidth = 80;  // odd numbers of rows and panels: every kind of tile

using Draw = std::vector<float> (*)(size_t n, uint64_t seed);
std::vector<float> ordinary(size_t n, uint64_t seed) {
  return random_floats(n, -4, 4, seed);
}
std::vector<float> hostile(size_t n, uint64_t seed) {
  return hostile_floats(n, 100, seed);
}

std::vector<float> gemm_f32(const Kernels& kernels, Draw draw) {
  const auto x = draw(kRows * kDepth, 1), w = random_floats(kWidth * kDepth, -1, 1, 2), bias = draw(kWidth, 3);
  const auto packed = pack_f32(w, kWidth, kDepth);
  std::vector<float> y;
  for (size_t m = 1; m <= kRows; ++m) {
    std::vector<float> part(m * kWidth);
    kernels.gemm_f32(x.data(), m, {packed.data(), bias.data(), kDepth, kWidth / kPanel}, part.data(), kWidth);
    y.insert(y.end(), part.begin(), part.end());
  }
  return y;
}

// quantize_rows, then gemm_s8 on what it made.
std::vector<float> gemm_s8(const Kernels& kernels, Draw draw) {
  const auto x = draw(kRows * kDepth, 4), scale = draw(kWidth, 5), bias = draw(kWidth, 6);
  const auto w = random_weights(kWidth * kDepth, 7);
  const auto packed = pack_s8(w, kWidth, kDepth);
  std::vector<int32_t> sum(kWidth);
  for (size_t i = 0; i < w.size(); ++i) sum[i / kDepth] += w[i];
  std::vector<int8_t> q(kRows * kDepth);
  std::vector<RowQuant> rows(kRows);
  kernels.quantize_rows(x.data(), kRows, kDepth, q.data(), rows.data());
  std::vector<float> y;
  for (const int8_t byte : q) y.push_back(static_cast<float>(static_cast<int8_t>(byte - kernels.offset)));
  for (const RowQuant& row : rows) y.insert(y.end(), {row.scale, static_cast<float>(row.zero)});
  for (size_t m = 1; m <= kRows; ++m) {
    std::vector<float> part(m * kWidth);
    kernels.gemm_s8(q.data(), rows.data(), m,
                    {packed.data(), scale.data(), sum.data(), bias.data(), kDepth, kWidth / kPanel}, part.data(),
                    kWidth);
    y.insert(y.end(), part.begin(), part.end());
  }
  return y;
}

std::vector<float> attention(const Kernels& kernels, Draw draw) {
  constexpr size_t kHeads = 2, kHead = 40, kPositions = 83, kBlocks = (kPositions + kBlock - 1) / kBlock;
  const auto q = draw(3 * kHeads * kHead, 8);
  auto memory = draw(kBlocks * 2 * kBlock * kHeads * kHead, 9);
  float* blocks[kBlocks];
  for (size_t b = 0; b < kBlocks; ++b) blocks[b] = memory.data() + b * 2 * kBlock * kHeads * kHead;
  std::vector<float> scores(kQueries * kBlocks * kBlock), y(q.size());
  kernels.attention(q.data(), kHeads * kHead, 3, {blocks, 0, kPositions}, kHeads, kHead, scores.data(), y.data());
  return y;
}

std::vector<float> rows(const Kernels& kernels, Draw draw) {
  const auto x = draw(3 * 1001, 10), gamma = draw(1001, 11), beta = draw(1001, 12);
  std::vector<float> y(x.size()), softmax = x;
  kernels.layer_norm(x.data(), gamma.data(), beta.data(), 1e-5f, 3, 1001, y.data());
  kernels.softmax(softmax.data(), 3, 1001);
  y.insert(y.end(), softmax.begin(), softmax.end());
  ArgMax best;
  kernels.argmax(x.data(), x.size(), 0, best);
  y.insert(y.end(), {static_cast<float>(best.index), best.value, kernels.log_sum_exp(x.data(), x.size())});
  return y;
}

std::vector<float> activations(const Kernels& kernels, Draw draw) {
  std::vector<float> all;
  for (const auto kernel : {kernels.relu, kernels.silu, kernels.gelu, kernels.gelu_tanh}) {
    auto y = draw(20'011, 13);
    kernel(y.data(), y.size());
    all.insert(all.end(), y.begin(), y.end());
  }
  return all;
}

TEST_CASE("hashes of fixed inputs") {
  const struct {
    const char* name;
    std::vector<float> (*run)(const Kernels&, Draw);
  } kinds[] = {{"gemm_f32", gemm_f32},
               {"gemm_s8", gemm_s8},
               {"attention", attention},
               {"rows", rows},
               {"activations", activations}};
  for (const auto& kind : kinds) {
    print_hashes(kind.name, [&](const Kernels& kernels) { return kind.run(kernels, ordinary); });
    const std::string odd = std::string(kind.name) + "-odd";
    print_hashes(odd.c_str(), [&](const Kernels& kernels) { return kind.run(kernels, hostile); });
  }
}

}  // namespace
}  // namespace dragoman
