// softmax, layer_norm, the activations, embedding, argmax, log_sum_exp: against the double oracle on every table, and
// the same bits on all of them. The matrix kernels have gemm_test and attention_test.
#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/exp-inl.h"
#include "kernels/isa_portable.h"
#include "kernels/reference.h"
#include "quant/pack.h"
#include "tests/every_table.h"
#include "tests/random.h"

namespace dragoman {
namespace {

constexpr size_t kSizes[] = {1, 2, 7, 8, 15, 16, 17, 31, 63, 64, 65, 1000};

TEST_CASE("the tables: best first, portable last, found by name") {
  const auto all = all_kernels();
  REQUIRE(!all.empty());
  CHECK(std::string(all.back().name) == "portable");
  CHECK(available_kernels().back() == all.back().kernels);
  for (const KernelChoice& choice : all) {
    CHECK(find_kernels(choice.name) == choice.kernels);
    if (choice.kernels != nullptr) CHECK(std::string(choice.kernels->name) == choice.name);
  }
  CHECK(find_kernels("abacus") == nullptr);
}

// Sixteen at a time through the portable template; check_same_bits ties the other tables to it.
TEST_CASE("exp is within 2 ulp on [-87, 88], 0 below, bounded above") {
  const FloatEnv env;
  using V = Vec16<Portable>;
  double worst = 0;
  float x[16], y[16];
  const size_t steps = bounded(400'000);
  for (size_t step = 0; step < steps; ++step) {
    for (size_t i = 0; i < 16; ++i) {
      x[i] = static_cast<float>(-87 + 175.0 * (double(step) * 16 + double(i)) / (double(steps) * 16 - 1));
    }
    store(y, exp(load<Portable>(x)));
    for (size_t i = 0; i < 16; ++i) {
      const double want = std::exp(double(x[i]));
      const double ulp = std::ldexp(1.0, std::ilogb(want) - 23);
      worst = worse(worst, std::abs(y[i] - want) / ulp);
    }
  }
  MESSAGE("exp: at most " << worst << " ulp");
  CHECK(worst <= 2);

  const auto exp1 = [](float v) {
    float lanes[16];
    store(lanes, exp(V(v)));
    return lanes[0];
  };
  CHECK(exp1(0) == 1);
  CHECK(exp1(-87.1f) == 0);
  CHECK(exp1(-FLT_MAX) == 0);
  CHECK(exp1(-kInfinity) == 0);
  CHECK(exp1(88.5f) == exp1(88.0f));
  CHECK(exp1(kInfinity) == exp1(88.0f));
  CHECK(std::isnan(exp1(std::nanf(""))));
}

TEST_CASE("log is within 1 ulp from 2^-126 to FLT_MAX") {
  const FloatEnv env;
  Random random(4);
  for (size_t i = 0; i < bounded(100'000); ++i) {
    const float x = std::ldexp(random.uniform(1, 2), static_cast<int>(random.below(253)) - 126);
    const double want = std::log(double(x));
    if (!(std::abs(log1<Portable>(x) - want) <= 0x1p-23 * std::abs(want) + 1e-12)) FAIL(x);
  }
  CHECK(log1<Portable>(1) == 0);
  CHECK(log1<Portable>(0) == -kInfinity);
}

TEST_CASE("softmax agrees with the reference") {
  for_every_table([](const Kernels& kernels) {
    for (size_t cols : kSizes) {
      CAPTURE(cols);
      const auto x = random_floats(3 * cols, -30, 30, cols);
      auto y = x;
      kernels.softmax(y.data(), 3, cols);
      double worst = 0;
      for (size_t r = 0; r < 3; ++r) {
        const std::vector<double> row(x.begin() + r * cols, x.begin() + (r + 1) * cols);
        const auto want = reference::softmax(row);
        const double top = *std::max_element(row.begin(), row.end());
        for (size_t i = 0; i < cols; ++i) {
          // x - max rounds once, and exp turns that into a relative error; exp itself 2 ulp, the sum and quotient 4.
          const double bound = (0x1p-24 * (top - row[i]) + 6 * 0x1p-23) * want[i] + 1e-37;
          worst = worse(worst, std::abs(y[r * cols + i] - want[i]) / bound);
        }
      }
      CHECK(worst <= 1);
    }
  });
}

TEST_CASE("softmax of equal values, of one huge value, of -FLT_MAX") {
  for_every_table([](const Kernels& kernels) {
    for (float level : {0.0f, -1e30f, FLT_MAX, -FLT_MAX}) {
      std::vector<float> x(5, level);
      kernels.softmax(x.data(), 1, 5);
      CHECK(std::count(x.begin(), x.end(), 0.2f) == 5);
    }
  });
}

TEST_CASE("log_sum_exp agrees with the reference; -infinity counts as nothing") {
  for_every_table([](const Kernels& kernels) {
    for (size_t n : kSizes) {
      CAPTURE(n);
      auto x = random_floats(n, -20, 20, n);
      x.push_back(-kInfinity);
      const double want = reference::log_sum_exp(x);
      // The sum errs by n / 16 + 4 roundings, the exponents by 40 * 2^-24 each; then one rounding of the result.
      CHECK(std::abs(kernels.log_sum_exp(x.data(), x.size()) - want) <= 0x1p-24 * (std::abs(want) + 10));
    }
    const float none[] = {-kInfinity, -kInfinity, -kInfinity};
    CHECK(kernels.log_sum_exp(none, 3) == -kInfinity);
  });
}

TEST_CASE("layer_norm agrees with the reference, in place too") {
  for_every_table([](const Kernels& kernels) {
    double worst = 0;
    for (size_t cols = 1; cols <= 1000; cols += cols < 70 ? 1 : 31) {
      const auto x = random_floats(2 * cols, -3, 5, cols);
      const auto gamma = random_floats(cols, -2, 2, 1), beta = random_floats(cols, -2, 2, 2);
      std::vector<float> y(2 * cols);
      kernels.layer_norm(x.data(), gamma.data(), beta.data(), 1e-5f, 2, cols, y.data());
      auto in_place = x;
      kernels.layer_norm(in_place.data(), gamma.data(), beta.data(), 1e-5f, 2, cols, in_place.data());
      CHECK(first_difference(y, in_place) == y.size());
      for (size_t r = 0; r < 2; ++r) {
        const auto want = reference::layer_norm(std::span(x).subspan(r * cols, cols), gamma, beta, 1e-5);
        for (size_t i = 0; i < cols; ++i) worst = worse(worst, std::abs(y[r * cols + i] - want[i]));
      }
    }
    // Mean and deviation err by a few roundings (2^-24 of 5, and fewer than n / 16 + 5 in a chain), |gamma| <= 2.
    CHECK(worst <= 4e-6);
  });
}

struct Activation {
  const char* name;
  void (*Kernels::*kernel)(float*, size_t);
  double (*want)(double);
};
constexpr Activation kActivations[] = {{"relu", &Kernels::relu, reference::relu},
                                       {"silu", &Kernels::silu, reference::silu},
                                       {"gelu", &Kernels::gelu, reference::gelu},
                                       {"gelu_tanh", &Kernels::gelu_tanh, reference::gelu_tanh}};

TEST_CASE("the activations agree with the reference") {
  for_every_table([](const Kernels& kernels) {
    for (const Activation& f : kActivations) {
      CAPTURE(std::string(f.name));
      std::vector<float> x = random_floats(bounded(200'000), -12, 12, 5);
      for (float edge : {0.0f, -100.0f, 100.0f, -FLT_MAX, 1e19f, FLT_MIN}) x.push_back(edge);
      auto y = x;
      (kernels.*f.kernel)(y.data(), y.size());
      double worst = 0;  // beyond two roundings of the result
      for (size_t i = 0; i < x.size(); ++i) {
        const double want = f.want(x[i]);
        worst = worse(worst, std::abs(y[i] - want) - 0x1p-23 * std::abs(want));
      }
      CHECK(worst <= 5e-7);  // the contract for gelu is 1e-6
    }
  });
}

TEST_CASE("the activations and add take any length and touch nothing past it") {
  for_every_table([](const Kernels& kernels) {
    const auto x = random_floats(1000, -5, 5, 6), y = random_floats(1000, -5, 5, 7);
    for (size_t n : kSizes) {
      CAPTURE(n);
      for (const Activation& f : kActivations) {
        auto whole = x, part = x;
        (kernels.*f.kernel)(whole.data(), 1000);
        (kernels.*f.kernel)(part.data(), n);
        CHECK(first_difference(std::span(part).first(n), whole) == n);
        CHECK(std::equal(part.begin() + n, part.end(), x.begin() + n));
      }
      auto sum = x;
      kernels.add(sum.data(), y.data(), n);
      for (size_t i = 0; i < n; ++i) sum[i] -= x[i] + y[i];
      CHECK(std::count(sum.begin(), sum.begin() + n, 0.0f) == std::ptrdiff_t(n));
      CHECK(std::equal(sum.begin() + n, sum.end(), x.begin() + n));
    }
  });
}

TEST_CASE("argmax: lowest index of the largest value; NaN and -infinity never win") {
  for_every_table([](const Kernels& kernels) {
    for (size_t n : {1, 7, 15, 16, 17, 31, 64, 65, 1000, 1023, 1024, 1025, 5000}) {
      CAPTURE(n);
      for (uint64_t seed = 0; seed < 20; ++seed) {
        auto x = seed % 2 == 0 ? random_floats(n, -1, 1, seed) : hostile_floats(n, 3, seed);
        for (float& v : x) v = seed % 4 == 2 ? std::round(v * 4) : v;  // many ties
        const size_t want = reference::argmax(x);
        for (const size_t step : {n, n / 2 + 1, size_t{16}}) {  // in one go and in pieces
          ArgMax got;
          for (size_t i = 0; i < n; i += step) kernels.argmax(x.data() + i, std::min(step, n - i), i, got);
          CHECK(got.index == (want == n ? ArgMax::kNone : want));
          CHECK(got.value == (want == n ? -kInfinity : x[want]));
        }
      }
    }
    const float none[] = {std::nanf(""), -kInfinity, std::nanf("")},
                lowest[] = {std::nanf(""), -FLT_MAX, std::nanf("")};
    ArgMax best;
    kernels.argmax(none, 3, 0, best);
    kernels.argmax(none, 0, 3, best);
    CHECK(best.index == ArgMax::kNone);
    kernels.argmax(lowest, 3, 3, best);
    CHECK(best.index == 4);
    kernels.argmax(lowest, 3, 6, best);
    CHECK(best.index == 4);
  });
}

TEST_CASE("embedding rows come back from their panels") {
  for_every_table([](const Kernels& kernels) {
    for (size_t k : {16, 32, 48, 1008}) {
      const size_t n = 48;
      const auto w = random_floats(n * k, -1, 1, 1), position = random_floats(k, -1, 1, 2);
      const auto scale = random_floats(n, 0.001f, 0.01f, 3);
      const auto q = random_int8(n * k, 4);
      const auto packed = pack_f32(w, n, k);
      const auto packed_q = pack_s8(q, n, k);
      const PanelsF32 table{packed.data(), nullptr, k, n / kPanel};
      const PanelsS8 table_q{packed_q.data(), scale.data(), nullptr, nullptr, k, n / kPanel};
      for (size_t id : {0, 15, 16, 47}) {
        std::vector<float> x(k), y(k);
        kernels.embed_f32(table, id, 22.5f, position.data(), x.data());
        kernels.embed_s8(table_q, id, 22.5f, position.data(), y.data());
        double worst = 0;
        for (size_t i = 0; i < k; ++i) {
          const double want = 22.5 * w[id * k + i] + position[i];
          const double want_q = 22.5 * scale[id] * q[id * k + i] + position[i];
          worst = worse(worse(worst, std::abs(x[i] - want)), std::abs(y[i] - want_q));
        }
        CHECK(worst <= 2 * 0x1p-24 * 32);  // two roundings of numbers below 32
      }
    }
  });
}

TEST_CASE("every kernel of this file gives the same bits on every table") {
  for (size_t n : kSizes) {
    for (size_t rarity : {5, 40, 1'000'000}) {
      CAPTURE(n);
      CAPTURE(rarity);
      const auto x = hostile_floats(2 * n, rarity, n), y = hostile_floats(2 * n, rarity, n + 1);
      check_same_bits([&](const Kernels& kernels) {
        auto z = x;
        kernels.softmax(z.data(), 2, n);
        return z;
      });
      check_same_bits([&](const Kernels& kernels) {
        auto z = x;
        kernels.layer_norm(x.data(), y.data(), x.data(), 1e-5f, 2, n, z.data());
        return z;
      });
      check_same_bits([&](const Kernels& kernels) {
        auto z = x;
        kernels.add(z.data(), y.data(), z.size());
        return z;
      });
      check_same_bits([&](const Kernels& kernels) {
        ArgMax best;
        kernels.argmax(x.data(), x.size(), 0, best);
        return std::vector<float>{float(best.index), best.value, kernels.log_sum_exp(x.data(), x.size())};
      });
      for (const Activation& f : kActivations) {
        CAPTURE(std::string(f.name));
        check_same_bits([&](const Kernels& kernels) {
          auto z = x;
          (kernels.*f.kernel)(z.data(), z.size());
          return z;
        });
      }
    }
  }
}

TEST_CASE("embeddings give the same bits on every table") {
  const size_t k = 48, n = 32;
  const auto w = hostile_floats(n * k, 20, 1), position = hostile_floats(k, 20, 2), scale = hostile_floats(n, 4, 3);
  const auto q = random_int8(n * k, 4);
  for (size_t id = 0; id < n; ++id) {
    check_same_bits([&](const Kernels& kernels) {
      std::vector<float> both(2 * k);
      kernels.embed_f32({w.data(), nullptr, k, n / kPanel}, id, 22.6f, position.data(), both.data());
      kernels.embed_s8({q.data(), scale.data(), nullptr, nullptr, k, n / kPanel}, id, 22.6f, position.data(), &both[k]);
      return both;
    });
  }
}

}  // namespace
}  // namespace dragoman
