// fma through doubles (kernels/fma_double-inl.h) against std::fma, bit for bit, in the float environment of the
// kernels.
#include <cmath>

#include "kernels/isa_portable.h"
#include "kernels/vec.h"
#include "tests/every_table.h"
#include "tests/random.h"

namespace dragoman {
namespace {

float from_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Counts lanes where the vector fma and std::fma differ, over `rounds` sixteens from draw(random, a, b, c).
template <class Draw>
size_t count_mismatches(size_t rounds, uint64_t seed, Draw draw) {
  using V = Vec16<Portable>;
  const FloatEnv env;
  Random random(seed);
  size_t mismatches = 0;
  for (size_t round = 0; round < bounded(rounds); ++round) {
    float a[16], b[16], c[16], got[16], want[16];
    for (size_t i = 0; i < 16; ++i) {
      draw(random, a[i], b[i], c[i]);
      want[i] = std::fma(a[i], b[i], c[i]);
    }
    store(got, fma(V(load<Portable>(a)), V(load<Portable>(b)), V(load<Portable>(c))));
    if (first_difference(got, want) < 16) ++mismatches;
  }
  return mismatches;
}

TEST_CASE("fma of any bit patterns: NaN, infinities, subnormals, overflow") {
  CHECK(count_mismatches(250'000, 1, [](Random& r, float& a, float& b, float& c) {
          a = from_bits(static_cast<uint32_t>(r.bits()));
          b = from_bits(static_cast<uint32_t>(r.bits()));
          c = from_bits(static_cast<uint32_t>(r.bits()));
        }) == 0);
}

TEST_CASE("fma of ordinary numbers, with and without cancellation") {
  CHECK(count_mismatches(250'000, 2, [](Random& r, float& a, float& b, float& c) {
          a = r.uniform(-4, 4);
          b = r.uniform(-4, 4);
          c = r.below(2) != 0 ? r.uniform(-16, 16) : -a * b * r.uniform(0.99f, 1.01f);
        }) == 0);
}

// c has 24 bits; a * b is half an ulp of c, plus or minus next to nothing: p = 2^s (1 + 2^-12)(1 - 2^-12) and the like.
// s = p + c then rounds to the half-way pattern although the exact sum is not half-way.
TEST_CASE("fma where the double sum is half-way between two floats") {
  const auto draw = [](Random& r, float& a, float& b, float& c) {
    const int exponent = static_cast<int>(r.below(60)) - 30;
    const int low = 12 + static_cast<int>(r.below(12));
    c = std::ldexp(1.0f + static_cast<float>(r.below(1 << 23)) * 0x1p-23f, exponent);
    a = 1.0f + std::ldexp(1.0f, -low);
    b = std::ldexp(1.0f + (r.below(4) - 1.5f > 0 ? -1.0f : 1.0f) * std::ldexp(1.0f, -low), exponent - 24);
    if (r.below(4) == 0) b = std::ldexp(1.0f, exponent - 24);  // (1 + small) * half an ulp
    if (r.below(8) == 0) a = 1.0f;                             // exactly half-way: ties to even
    if (r.below(2) != 0) a = -a;
    if (r.below(2) != 0) c = -c;
  };
  CHECK(count_mismatches(250'000, 3, draw) == 0);
}

TEST_CASE("fma where the double sum is half-way by a tiny addend") {
  // a * b has 25 significant bits (odd 13-bit times odd 12-bit factors), c lies far below.
  const auto draw = [](Random& r, float& a, float& b, float& c) {
    a = static_cast<float>(4096 + 2 * r.below(2048) + 1);
    b = static_cast<float>(4096 + 2 * r.below(2048) + 1);
    c = std::ldexp(r.uniform(-1, 1), -static_cast<int>(r.below(80)));
    if (r.below(2) != 0) a = -a;
  };
  CHECK(count_mismatches(250'000, 4, draw) == 0);
}

TEST_CASE("fma around the smallest normal number and the largest") {
  const auto draw = [](Random& r, float& a, float& b, float& c) {
    const bool tiny = r.below(2) != 0;
    const int exponent = tiny ? -127 : 127;
    a = std::ldexp(1.0f + static_cast<float>(r.below(1 << 12)) * 0x1p-12f, exponent / 2);
    b = std::ldexp(2.0f - static_cast<float>(r.below(1 << 12)) * 0x1p-23f, exponent - exponent / 2 - 1);
    c = std::ldexp(1.0f + static_cast<float>(r.below(4)) * 0x1p-23f, tiny ? -126 - static_cast<int>(r.below(3)) : 104);
    if (r.below(2) != 0) a = -a;
    if (r.below(4) == 0) c = -c;
  };
  CHECK(count_mismatches(250'000, 5, draw) == 0);
}

}  // namespace
}  // namespace dragoman
