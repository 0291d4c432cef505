// gemm_f32, gemm_s8 and quantize_rows against the double oracle, on every table; the same bits on all of them; and a
// row's bits whatever shares the call (C7).
#include <algorithm>
#include <cmath>

#include <tuple>

#include "kernels/reference.h"
#include "quant/pack.h"
#include "tests/every_table.h"
#include "tests/random.h"

namespace dragoman {
namespace {

constexpr double kHalfUlp = 0x1p-24;  // relative error of one rounding

struct CaseF32 {
  size_t m, n, k;
  std::vector<float> x, w, bias, packed;

  CaseF32(size_t m_, size_t n_, size_t k_, std::vector<float> x_)
      : m(m_),
        n(n_),
        k(k_),
        x(std::move(x_)),
        w(random_floats(n * k, -1, 1, n + k)),
        bias(random_floats(n, -2, 2, n)),
        packed(pack_f32(w, n, k)) {}
  PanelsF32 panels() const { return {packed.data(), bias.data(), k, n / kPanel}; }
  std::vector<float> run(const Kernels& kernels) const {
    std::vector<float> y(m * n, 777);
    kernels.gemm_f32(x.data(), m, panels(), y.data(), n);
    return y;
  }
};

struct CaseS8 {
  size_t m, n, k;
  std::vector<int8_t> x, w, packed;
  std::vector<float> w_scale, bias;
  std::vector<RowQuant> rows;
  std::vector<int32_t> sum;

  CaseS8(size_t m_, size_t n_, size_t k_)
      : m(m_),
        n(n_),
        k(k_),
        x(random_int8(m * k, m + k)),
        w(random_weights(n * k, n + k)),
        packed(pack_s8(w, n, k)),
        w_scale(random_floats(n, 0.001f, 0.1f, n)),
        bias(random_floats(n, -2, 2, n + 1)),
        sum(n) {
    set_rows(random_floats(m, 0.001f, 0.1f, m));
    for (size_t i = 0; i < n * k; ++i) sum[i / k] += w[i];
  }
  void set_rows(const std::vector<float>& scale) {
    const auto zero = random_int8(m, m + 7);
    rows.resize(m);
    for (size_t r = 0; r < m; ++r) rows[r] = {scale[r], zero[r]};
  }
  PanelsS8 panels() const { return {packed.data(), w_scale.data(), sum.data(), bias.data(), k, n / kPanel}; }
  std::vector<int8_t> bytes(const Kernels& kernels) const {  // x as this table wants it
    std::vector<int8_t> moved(x);
    for (int8_t& byte : moved) byte = static_cast<int8_t>(byte + kernels.offset);
    return moved;
  }
  std::vector<float> run(const Kernels& kernels) const {
    std::vector<float> y(m * n, 777);
    kernels.gemm_s8(bytes(kernels).data(), rows.data(), m, panels(), y.data(), n);
    return y;
  }
};

constexpr size_t kRows[] = {1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 31, 65};
constexpr size_t kDepths[] = {16, 48, 64, 512, 1008};
constexpr size_t kWidths[] = {16, 48, 80, 176};

TEST_CASE("gemm_f32 agrees with the reference") {
  for (size_t m : kRows) {
    for (size_t k : kDepths) {
      const CaseF32 c(m, m == 7 ? 176 : 80, k, random_floats(m * k, -3, 3, m));
      const auto want = reference::gemm_f32(c.x, c.w, c.bias, m, c.n, k);
      for_every_table([&](const Kernels& kernels) {
        const auto y = c.run(kernels);
        double worst = 0;  // in units of the bound: k roundings of partial sums, each below the sum of magnitudes
        for (size_t i = 0; i < y.size(); ++i) {
          worst = worse(worst, std::abs(y[i] - want[i].value) / (double(k) * kHalfUlp * want[i].magnitude));
        }
        CAPTURE(m);
        CAPTURE(k);
        CHECK(worst <= 1);
      });
    }
  }
}

TEST_CASE("gemm_f32 gives the same bits on every table") {
  for (size_t m : kRows) {
    for (size_t n : kWidths) {
      CAPTURE(m);
      CAPTURE(n);
      const CaseF32 ordinary(m, n, 64, random_floats(m * 64, -3, 3, n));
      check_same_bits([&](const Kernels& kernels) { return ordinary.run(kernels); });
      const CaseF32 hostile(m, n, 64, hostile_floats(m * 64, 200, m + n));
      check_same_bits([&](const Kernels& kernels) { return hostile.run(kernels); });
    }
  }
}

// Weights and inputs of few bits make half-way double sums common: the rare path of fma_double-inl.h.
TEST_CASE("gemm_f32 gives the same bits on every table, many sums half-way") {
  CaseF32 c(5, 64, 512, random_floats(5 * 512, -2, 2, 9));
  const auto shorten = [](float& v) { v = std::round(v * 4096) / 4096 + (v > 1 ? 0x1p-22f : 0.0f); };
  std::for_each(c.x.begin(), c.x.end(), shorten);
  std::for_each(c.packed.begin(), c.packed.end(), shorten);
  check_same_bits([&](const Kernels& kernels) { return c.run(kernels); });
}

TEST_CASE("gemm_f32: a row alone, or a slice of the panels, has the bits it has in the whole") {
  for_every_table([](const Kernels& kernels) {
    for (size_t m : kRows) {
      const CaseF32 c(m, 176, 48, random_floats(m * 48, -3, 3, m));
      const auto whole = c.run(kernels);
      std::vector<float> alone(m * c.n), slices(m * c.n);
      for (size_t r = 0; r < m; ++r) {
        kernels.gemm_f32(c.x.data() + r * c.k, 1, c.panels(), alone.data() + r * c.n, c.n);
      }
      for (const auto& [begin, end] : {std::pair{0, 1}, {1, 4}, {4, 11}}) {
        kernels.gemm_f32(c.x.data(), m, slice(c.panels(), begin, end), slices.data() + begin * kPanel, c.n);
      }
      CAPTURE(m);
      CHECK(first_difference(whole, alone) == whole.size());
      CHECK(first_difference(whole, slices) == whole.size());
    }
  });
}

TEST_CASE("gemm_f32 writes its columns only: the row stride may be larger") {
  for_every_table([](const Kernels& kernels) {
    const CaseF32 c(7, 48, 16, random_floats(7 * 16, -3, 3, 3));
    const auto want = c.run(kernels);
    std::vector<float> y(7 * 50, 777);
    kernels.gemm_f32(c.x.data(), 7, c.panels(), y.data(), 50);
    for (size_t r = 0; r < 7; ++r) {
      CHECK(std::equal(want.begin() + r * 48, want.begin() + (r + 1) * 48, y.begin() + r * 50));
      CHECK(y[r * 50 + 48] == 777);
      CHECK(y[r * 50 + 49] == 777);
    }
  });
}

TEST_CASE("gemm_s8 agrees with the reference") {
  for (size_t m : kRows) {
    for (size_t k : kDepths) {
      const CaseS8 c(m, 80, k);
      const auto want = reference::gemm_s8(c.x, c.rows, c.w, c.w_scale, c.bias, m, c.n, k);
      for_every_table([&](const Kernels& kernels) {
        const auto y = c.run(kernels);
        double worst = 0;  // three roundings: float(sum), the product of scales, the fma
        for (size_t i = 0; i < y.size(); ++i) {
          worst = worse(worst, std::abs(y[i] - want[i].value) / (3 * kHalfUlp * want[i].magnitude));
        }
        CAPTURE(m);
        CAPTURE(k);
        CHECK(worst <= 1);
      });
    }
  }
}

// Where a saturating int16 instruction would give itself away: the largest x everywhere, the largest pairs of weights.
TEST_CASE("gemm_s8 is exact at the ends of the range") {
  for_every_table([](const Kernels& kernels) {
    for (const auto& [a, b, pair, zero] : {std::tuple{127, 127, 129, 127},
                                           {127, -127, -129, 0},
                                           {-127, 127, 129, -127},
                                           {-127, -127, -129, 127},
                                           {127, 65, 129, -127},
                                           {127, 127, 0, 0},
                                           {-127, -64, -129, 0}}) {
      CaseS8 c(5, 80, 512);  // four panels together, and one alone
      std::fill(c.x.begin(), c.x.end(), static_cast<int8_t>(a));
      for (size_t i = 0; i < c.packed.size(); ++i) c.packed[i] = static_cast<int8_t>(i % 2 ? pair - b : b);
      std::fill(c.sum.begin(), c.sum.end(), pair * 256);
      std::fill(c.rows.begin(), c.rows.end(), RowQuant{1.0f, zero});
      std::fill(c.w_scale.begin(), c.w_scale.end(), 1.0f);
      std::fill(c.bias.begin(), c.bias.end(), 0.0f);
      const auto y = c.run(kernels);
      CHECK(std::count(y.begin(), y.end(), static_cast<float>((a + zero) * pair * 256)) == std::ptrdiff_t(y.size()));
    }
  });
}

TEST_CASE("gemm_s8 gives the same bits on every table, hostile scales and biases included") {
  for (size_t m : kRows) {
    for (size_t n : kWidths) {
      CAPTURE(m);
      CAPTURE(n);
      CaseS8 c(m, n, 48);
      check_same_bits([&](const Kernels& kernels) { return c.run(kernels); });
      c.set_rows(hostile_floats(m, 3, m));
      c.w_scale = hostile_floats(n, 3, n);
      c.bias = hostile_floats(n, 3, m + n);
      check_same_bits([&](const Kernels& kernels) { return c.run(kernels); });
    }
  }
}

TEST_CASE("gemm_s8: a row alone, or a slice of the panels, has the bits it has in the whole") {
  for_every_table([](const Kernels& kernels) {
    for (size_t m : kRows) {
      const CaseS8 c(m, 176, 48);
      const auto whole = c.run(kernels);
      const auto x = c.bytes(kernels);
      std::vector<float> alone(m * c.n), slices(m * c.n);
      for (size_t r = 0; r < m; ++r) {
        kernels.gemm_s8(x.data() + r * c.k, &c.rows[r], 1, c.panels(), alone.data() + r * c.n, c.n);
      }
      for (const auto& [begin, end] : {std::pair{0, 1}, {1, 4}, {4, 11}}) {
        kernels.gemm_s8(x.data(), c.rows.data(), m, slice(c.panels(), begin, end), slices.data() + begin * kPanel, c.n);
      }
      CAPTURE(m);
      CHECK(first_difference(whole, alone) == whole.size());
      CHECK(first_difference(whole, slices) == whole.size());
    }
  });
}

// Scales, zeros and bytes as floats, for check_same_bits.
std::vector<float> quantize(const Kernels& kernels, const std::vector<float>& x, size_t m) {
  const size_t k = x.size() / m;
  std::vector<int8_t> q(m * k, 99);
  std::vector<RowQuant> rows(m);
  kernels.quantize_rows(x.data(), m, k, q.data(), rows.data());
  std::vector<float> all;
  for (const RowQuant& row : rows) all.push_back(row.scale);
  for (const RowQuant& row : rows) all.push_back(static_cast<float>(row.zero));
  for (const int8_t byte : q) all.push_back(static_cast<float>(static_cast<int8_t>(byte - kernels.offset)));
  return all;
}

TEST_CASE("quantize_rows: the nearest multiple of the scale, over the row's own range") {
  for_every_table([](const Kernels& kernels) {
    for (const auto& [low, high] :
         {std::pair{-5.0f, 7.0f}, {0.0f, 3.0f}, {2.0f, 3.0f}, {-9.0f, -1.0f}, {-1.0f, 1.0f}}) {
      for (size_t k : {16, 32, 48, 64, 1008}) {
        CAPTURE(k);
        const auto x = random_floats(3 * k, low, high, k);
        const auto got = quantize(kernels, x, 3);
        for (size_t r = 0; r < 3; ++r) {
          float top = 0, bottom = 0;
          for (size_t i = 0; i < k; ++i) {
            top = std::max(top, x[r * k + i]);
            bottom = std::min(bottom, x[r * k + i]);
          }
          const float scale = got[r], zero = got[3 + r];
          CHECK(scale == (top - bottom) / 254);
          CHECK(std::abs(zero) <= 127);
          double worst = 0;
          for (size_t i = 0; i < k; ++i) {
            worst = worse(worst, std::abs(double(x[r * k + i]) / scale - zero - got[6 + r * k + i]));
          }
          CHECK(worst <= 0.5 + 254 * 4 * kHalfUlp);  // half a step, and the roundings on the way
        }
      }
    }
  });
}

TEST_CASE("quantize_rows: ties to even, NaN, infinity, tiny rows") {
  for_every_table([](const Kernels& kernels) {
    std::vector<float> x(16, 0.0f);
    x[0] = 127;
    x[1] = 0.5f;
    x[2] = 1.5f;
    x[3] = -2.5f;
    x[4] = -127;
    x[5] = std::nanf("");
    const auto got = quantize(kernels, x, 1);
    const float want[] = {1, 0, 127, 0, 2, -2, -127, -127, 0};
    CHECK(std::equal(std::begin(want), std::end(want), got.begin()));

    const auto tiny = quantize(kernels, std::vector<float>(16, 0x1.fp-101f), 1);
    CHECK(std::count(tiny.begin(), tiny.end(), 0.0f) == 18);
    const auto small = quantize(kernels, std::vector<float>(16, 0x1p-100f), 1);  // 0 to that: zero is 127
    CHECK(std::count(small.begin(), small.end(), 127.0f) == 17);
  });
}

TEST_CASE("quantize_rows gives the same bits on every table") {
  for (size_t k : {16, 48, 1008}) {
    const auto ordinary = random_floats(4 * k, -3, 3, k);
    check_same_bits([&](const Kernels& kernels) { return quantize(kernels, ordinary, 4); });
    const auto hostile = hostile_floats(4 * k, 50, k);
    check_same_bits([&](const Kernels& kernels) { return quantize(kernels, hostile, 4); });
  }
}

}  // namespace
}  // namespace dragoman
