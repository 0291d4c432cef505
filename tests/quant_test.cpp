// Weights to int8 and into panels.
#include "quant/quantize.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "quant/pack.h"
#include "tests/random.h"

namespace dragoman {
namespace {

TEST_CASE("quantize_weights: nearest, half to even, one scale per row") {
  const std::vector<float> w = {127, 0.5f, 1.5f, -2.5f, /**/ 0, 0, 0, 0, /**/ -2, 1, 0.25f, 2};
  const QuantizedRows rows = quantize_weights(w, 3, 4);
  CHECK(rows.scale == std::vector<float>{1, 0, 2.25f / 129});  // of the last: the pair 0.25 + 2
  CHECK(rows.q == std::vector<int8_t>{127, 0, 2, -2, 0, 0, 0, 0, -115, 57, 14, 115});
  CHECK(rows.sum == std::vector<int32_t>{127, 0, 71});
}

TEST_CASE("quantize_weights: every weight within half a step, -128 never") {
  for (size_t k : {1, 7, 64, 1000}) {
    const auto w = random_floats(17 * k, -0.3f, 0.2f, k);
    const QuantizedRows rows = quantize_weights(w, 17, k);
    for (size_t i = 0; i < w.size(); ++i) {
      const double scale = rows.scale[i / k];
      CHECK(std::abs(w[i] - scale * rows.q[i]) <= 0.5 * scale * (1 + 1e-5));  // 127 * scale may round below max|w|
      CHECK(rows.q[i] >= -127);
      if (i % k % 2) CHECK(std::abs(rows.q[i - 1] + rows.q[i]) <= kPairLimit);
    }
  }
}

// Rows of x whose inputs depend on each other: 16 hidden causes, one input ten times as strong as the others.
std::vector<std::vector<double>> correlated_inputs(size_t rows, size_t k, uint64_t seed) {
  const auto mixing = random_floats(16 * k, -1, 1, seed);
  std::vector<std::vector<double>> inputs;
  for (size_t r = 0; r < rows; ++r) {
    const auto causes = random_floats(16, -1, 1, seed + 1 + r), noise = random_floats(k, -0.05f, 0.05f, seed + 7 * r);
    std::vector<double> x(k);
    for (size_t i = 0; i < k; ++i) {
      for (size_t c = 0; c < 16; ++c) x[i] += double(causes[c]) * mixing[c * k + i];
      x[i] = (x[i] + noise[i]) * (i == 3 ? 10 : 1);
    }
    inputs.push_back(std::move(x));
  }
  return inputs;
}

// Mean squared error of the products x W^T over all inputs.
double product_error(const std::vector<std::vector<double>>& inputs, std::span<const float> w,
                     const QuantizedRows& rows) {
  double squares = 0;
  for (const auto& x : inputs) {
    for (size_t r = 0; r < rows.scale.size(); ++r) {
      double error = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const size_t at = r * x.size() + i;
        error += x[i] * (w[at] - double(rows.scale[r]) * rows.q[at]);
      }
      squares += error * error;
    }
  }
  return squares / static_cast<double>(inputs.size() * rows.scale.size());
}

TEST_CASE("quantize_weights: rounding that knows the inputs changes products less, on inputs it has not seen") {
  for (size_t k : {64, 500, 1100}) {  // the last in two blocks
    const size_t n = 24;
    const auto w = random_floats(n * k, -1, 1, k);
    const auto inputs = correlated_inputs(900, k, k);
    InputMoments moments(k), one_by_one(k);
    std::vector<double> rows;
    for (size_t r = 0; r < 600; ++r) rows.insert(rows.end(), inputs[r].begin(), inputs[r].end());
    moments.add(rows.data(), 600);
    for (size_t r = 0; r < 600; ++r) one_by_one.add(inputs[r].data());
    CHECK(std::equal(moments.block(0), moments.block(0) + std::min(k, InputMoments::kBlock), one_by_one.block(0)));
    const std::vector<std::vector<double>> unseen(inputs.begin() + 600, inputs.end());
    const QuantizedRows nearest = quantize_weights(w, n, k), calibrated = quantize_weights(w, n, k, moments, 0.01);
    const double before = product_error(unseen, w, nearest), after = product_error(unseen, w, calibrated);
    MESSAGE("k " << k << ": squared error of the products " << before << " to the nearest, " << after << " calibrated");
    CHECK(after < 0.25 * before);
    CHECK(calibrated.scale == nearest.scale);
    for (size_t r = 0; r < n; ++r) {
      const auto begin = calibrated.q.begin() + static_cast<ptrdiff_t>(r * k), end = begin + static_cast<ptrdiff_t>(k);
      CHECK(calibrated.sum[r] == std::accumulate(begin, end, 0));
      CHECK(*std::min_element(begin, end) >= -127);
      for (auto pair = begin; pair + 1 < end; pair += 2) CHECK(std::abs(pair[0] + pair[1]) <= kPairLimit);
    }
  }
}

TEST_CASE("quantize_weights: with inputs that tell nothing, calibrated rounding is rounding to the nearest") {
  const size_t n = 5, k = 40;
  auto w = random_floats(n * k, -1, 1, 9);
  std::fill(w.begin() + k, w.begin() + 2 * k, 0.0f);  // a row of zeros
  const InputMoments nothing(k);
  InputMoments independent(k);  // one input at a time
  for (size_t i = 0; i < k; ++i) {
    std::vector<double> x(k);
    x[i] = 0.5;
    independent.add(x.data());
  }
  InputMoments broken = independent;
  const std::vector<double> nan(k, std::nan(""));
  broken.add(nan.data());
  const QuantizedRows nearest = quantize_weights(w, n, k);
  CHECK(quantize_weights(w, n, k, nothing, 0.01).q == nearest.q);
  CHECK(quantize_weights(w, n, k, broken, 0.01).q == nearest.q);
  CHECK(quantize_weights(w, n, k, independent, 0.01).q == nearest.q);
}

TEST_CASE("quant_error: what a uniform step leaves") {
  const size_t n = 64, k = 512;
  const auto w = random_floats(n * k, -1, 1, 3);
  const QuantError error = quant_error(w, quantize_weights(w, n, k), n, k);
  // The error is uniform in half a step: rms step / sqrt(12), and w's is 1 / sqrt(3). The largest of 256 pairs is
  // nearly 2.
  const double step = 1.94 / 129;
  CHECK(error.max_abs <= 0.5 * 2 / 129 * (1 + 1e-5));
  CHECK(std::abs(error.rms - step / std::sqrt(12.0)) <= 0.01 * step);
  CHECK(std::abs(error.relative - step / 2) <= 0.01 * step);

  const std::vector<float> zeros(32, 0.0f);
  const QuantError none = quant_error(zeros, quantize_weights(zeros, 4, 8), 4, 8);
  CHECK(none.max_abs == 0);
  CHECK(none.relative == 0);
}

template <class T, class Index>
void check_packed(const std::vector<T>& packed, const std::vector<T>& rows, size_t n, size_t k, Index index) {
  const size_t depth = (k + 7) / 8 * 8, width = (n + 15) / 16 * 16;
  REQUIRE(packed.size() == width * depth);
  std::vector<bool> seen(packed.size());
  size_t wrong = 0;
  for (size_t c = 0; c < width; ++c) {
    for (size_t i = 0; i < depth; ++i) {
      const size_t at = index(c, i, depth);
      const T want = c < n && i < k ? rows[c * k + i] : T{};
      if (seen[at] || packed[at] != want) ++wrong;
      seen[at] = true;  // each place once: the index is one to one
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("pack: every element in its place, zeros in the padding") {
  for (size_t n : {1, 15, 16, 17, 48}) {
    for (size_t k : {1, 4, 7, 8, 9, 64}) {
      CAPTURE(n);
      CAPTURE(k);
      const auto f = random_floats(n * k, 1, 2, n);
      check_packed(pack_f32(f, n, k), f, n, k, packed_index_f32);
      const auto q = random_int8(n * k, n);
      check_packed(pack_s8(q, n, k), q, n, k, packed_index_s8);
    }
  }
}

TEST_CASE("pack_s8: four consecutive k of a column lie together, sixteen columns side by side") {
  std::vector<int8_t> rows(16 * 8);
  for (size_t c = 0; c < 16; ++c) {
    for (size_t i = 0; i < 8; ++i) rows[c * 8 + i] = static_cast<int8_t>(8 * c + i - 64);
  }
  const auto packed = pack_s8(rows, 16, 8);
  CHECK(std::vector<int8_t>(packed.begin(), packed.begin() + 8) ==
        std::vector<int8_t>{-64, -63, -62, -61, -56, -55, -54, -53});
  CHECK(packed[64] == -60);  // k = 4 of column 0
}

}  // namespace
}  // namespace dragoman
