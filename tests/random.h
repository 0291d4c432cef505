// Seeded random numbers, the same on every machine and standard library.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/kernels.h"

namespace dragoman {

// A 64-bit counter stirred by two multiplications (the finalizer of MurmurHash3).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}

  uint64_t bits() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53u;
    return x ^ (x >> 33);
  }
  uint64_t below(uint64_t n) { return bits() % n; }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  float uniform(float low, float high) { return static_cast<float>(low + unit() * (double(high) - low)); }

 private:
  uint64_t state_;
};

inline std::vector<float> random_floats(size_t n, float low, float high, uint64_t seed) {
  Random random(seed);
  std::vector<float> x(n);
  for (float& v : x) v = random.uniform(low, high);
  return x;
}

inline std::vector<int8_t> random_int8(size_t n, uint64_t seed) {  // [-127, 127]
  Random random(seed);
  std::vector<int8_t> x(n);
  for (int8_t& v : x) v = static_cast<int8_t>(static_cast<int>(random.below(255)) - 127);
  return x;
}

// As a file has them: neighbours do not add up to more than kPairLimit (kernels/kernels.h).
inline std::vector<int8_t> random_weights(size_t n, uint64_t seed) {
  std::vector<int8_t> w = random_int8(n, seed);
  for (size_t i = 1; i < n; i += 2) {
    const int low = -kPairLimit - w[i - 1], high = kPairLimit - w[i - 1];
    w[i] = static_cast<int8_t>(std::clamp<int>(w[i], low, high));
  }
  return w;
}

// Ordinary numbers with one in `rarity` replaced by NaN, infinities, subnormals, zeros of both signs, extremes.
inline std::vector<float> hostile_floats(size_t n, size_t rarity, uint64_t seed) {
  const float odd[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity(),
                       1e-40f,
                       -FLT_TRUE_MIN,
                       FLT_MIN,
                       -FLT_MIN,
                       0.0f,
                       -0.0f,
                       FLT_MAX,
                       -FLT_MAX,
                       -87.0f,
                       88.5f,
                       1e-30f,
                       0.5f,
                       -2.5f};
  Random random(seed);
  std::vector<float> x(n);
  for (float& v : x) v = random.below(rarity) == 0 ? odd[random.below(std::size(odd))] : random.uniform(-8, 8);
  return x;
}

}  // namespace dragoman
