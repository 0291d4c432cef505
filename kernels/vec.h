// Vec16: sixteen floats on every instruction set (one AVX-512 register, two of AVX2, four of NEON or SSE), and the
// loops that feed it. Reductions keep sixteen partial results and fold them in one fixed tree, so all tables give the
// same bits (C6). Comparisons are ordered: a NaN is never less or greater.
#pragma once

#include <cfloat>
#include <limits>

#include "kernels/fma_double-inl.h"
#include "kernels/isa.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace dragoman {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class Isa>
struct Vec16 {
  static constexpr size_t kRegs = 16 / Isa::kLanes;
  typename Isa::F reg[kRegs];

  DRAGOMAN_INLINE Vec16() {}
  DRAGOMAN_INLINE explicit Vec16(float x) {
    for (auto& r : reg) r = Isa::set(x);
  }

  DRAGOMAN_INLINE friend Vec16 operator+(const Vec16& a, const Vec16& b) {
    return each([&](size_t i) DRAGOMAN_INLINE_LAMBDA { return a.reg[i] + b.reg[i]; });
  }
  DRAGOMAN_INLINE friend Vec16 operator-(const Vec16& a, const Vec16& b) {
    return each([&](size_t i) DRAGOMAN_INLINE_LAMBDA { return a.reg[i] - b.reg[i]; });
  }
  DRAGOMAN_INLINE friend Vec16 operator*(const Vec16& a, const Vec16& b) {
    return each([&](size_t i) DRAGOMAN_INLINE_LAMBDA { return a.reg[i] * b.reg[i]; });
  }
  DRAGOMAN_INLINE friend Vec16 operator/(const Vec16& a, const Vec16& b) {
    return each([&](size_t i) DRAGOMAN_INLINE_LAMBDA { return a.reg[i] / b.reg[i]; });
  }
  DRAGOMAN_INLINE friend Vec16 max(const Vec16& a, const Vec16& b) {  // a > b ? a : b
    return each([&](size_t i) DRAGOMAN_INLINE_LAMBDA { return Isa::max(a.reg[i], b.reg[i]); });
  }
  DRAGOMAN_INLINE friend Vec16 min(const Vec16& a, const Vec16& b) {  // a < b ? a : b
    return each([&](size_t i) DRAGOMAN_INLINE_LAMBDA { return Isa::min(a.reg[i], b.reg[i]); });
  }
  DRAGOMAN_INLINE friend Vec16 select_less(const Vec16& a, const Vec16& b, const Vec16& yes, const Vec16& no) {
    return each([&](size_t i)
                    DRAGOMAN_INLINE_LAMBDA { return Isa::select_less(a.reg[i], b.reg[i], yes.reg[i], no.reg[i]); });
  }
  DRAGOMAN_INLINE friend Vec16 pow2(const Vec16& t) {  // 2^n from t = n + 1.5 * 2^23
    return each([&](size_t i) DRAGOMAN_INLINE_LAMBDA { return Isa::pow2(t.reg[i]); });
  }

  template <class Op>
  DRAGOMAN_INLINE static Vec16 each(Op op) {
    Vec16 r;
    for (size_t i = 0; i < kRegs; ++i) r.reg[i] = op(i);
    return r;
  }
};

// Sixteen floats in the form that fma() takes. Chains of fma stay in it, so that emulation converts each weight once.
template <class Isa>
struct Wide16 {
  static constexpr size_t kRegs = 16 / Isa::kLanes;
  typename Isa::W reg[kRegs];

  DRAGOMAN_INLINE Wide16() {}
  DRAGOMAN_INLINE explicit Wide16(float x) {
    for (auto& r : reg) r = Isa::set_wide(x);
  }
  DRAGOMAN_INLINE explicit Wide16(const Vec16<Isa>& v) {
    for (size_t i = 0; i < kRegs; ++i) reg[i] = Isa::widen(v.reg[i]);
  }
  DRAGOMAN_INLINE Vec16<Isa> narrow() const {
    return Vec16<Isa>::each([&](size_t i) DRAGOMAN_INLINE_LAMBDA { return Isa::narrow(reg[i]); });
  }
};

// acc <- fma(a, b, acc), rounded once.
template <class Isa>
DRAGOMAN_INLINE void fma_into(Wide16<Isa>& acc, const Wide16<Isa>& a, const Wide16<Isa>& b) {
  if constexpr (Isa::kFma) {
    for (size_t i = 0; i < Wide16<Isa>::kRegs; ++i) acc.reg[i] = Isa::fma(a.reg[i], b.reg[i], acc.reg[i]);
  } else {
    fma_double<Isa>(a.reg, b.reg, acc.reg);
  }
}

// The emulation is a hundred instructions. Inlined at every use it made exp 1.7 times as fast, the portable object
// twice as large, and a sanitized build of it take minutes.
template <class Isa>
[[gnu::noinline]] void fma_apart(const Vec16<Isa>& a, const Vec16<Isa>& b, const Vec16<Isa>& c, Vec16<Isa>& out) {
  Wide16<Isa> acc(c);
  fma_into(acc, Wide16<Isa>(a), Wide16<Isa>(b));
  out = acc.narrow();
}

template <class Isa>
DRAGOMAN_INLINE Vec16<Isa> fma(const Vec16<Isa>& a, const Vec16<Isa>& b, const Vec16<Isa>& c) {
  Vec16<Isa> r;
  if constexpr (Isa::kFma) {
    for (size_t i = 0; i < Vec16<Isa>::kRegs; ++i) r.reg[i] = Isa::fma(a.reg[i], b.reg[i], c.reg[i]);
  } else {
    fma_apart(a, b, c, r);
  }
  return r;
}

template <class Isa>
DRAGOMAN_INLINE Vec16<Isa> load(const float* p) {
  return Vec16<Isa>::each([&](size_t i) DRAGOMAN_INLINE_LAMBDA { return Isa::load(p + i * Isa::kLanes); });
}
template <class Isa>
DRAGOMAN_INLINE void store(float* p, const Vec16<Isa>& v) {
  for (size_t i = 0; i < Vec16<Isa>::kRegs; ++i) Isa::store(p + i * Isa::kLanes, v.reg[i]);
}

// The first n < 16 floats of p; the other lanes hold `fill`. Nothing past p[n - 1] is read or written.
template <class Isa>
DRAGOMAN_INLINE Vec16<Isa> load_part(const float* p, size_t n, float fill) {
  float lanes[16];
  for (size_t i = 0; i < 16; ++i) lanes[i] = fill;
  std::memcpy(lanes, p, n * sizeof(float));
  return load<Isa>(lanes);
}
template <class Isa>
DRAGOMAN_INLINE void store_part(float* p, size_t n, const Vec16<Isa>& v) {
  float lanes[16];
  store(lanes, v);
  std::memcpy(p, lanes, n * sizeof(float));
}

// use(v) for each sixteen of x (n); the lanes past n of the last one hold `fill`.
template <class Isa, class Use>
DRAGOMAN_INLINE void for_each(const float* x, size_t n, float fill, Use use) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) use(load<Isa>(x + i));
  if (i < n) use(load_part<Isa>(x + i, n - i, fill));
}

// y[i] <- map(x[i], i) by sixteens; y may be x.
template <class Isa, class Map>
DRAGOMAN_INLINE void transform(const float* x, float* y, size_t n, float fill, Map map) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, map(load<Isa>(x + i)));
  if (i < n) store_part(y + i, n - i, map(load_part<Isa>(x + i, n - i, fill)));
}

// The fixed tree: lane i with lane i + 8, then + 4, + 2, + 1; whole registers first.
template <class Isa, class OpF, class Op>
DRAGOMAN_INLINE float fold16(Vec16<Isa> v, OpF registers, Op op) {
  for (size_t half = Vec16<Isa>::kRegs / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) v.reg[i] = registers(v.reg[i], v.reg[i + half]);
  }
  float lanes[Isa::kLanes];
  Isa::store(lanes, v.reg[0]);
  for (size_t half = Isa::kLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] = op(lanes[i], lanes[i + half]);
  }
  return lanes[0];
}
template <class Isa>
DRAGOMAN_INLINE float fold16_add(const Vec16<Isa>& v) {
  const auto add = [](auto a, auto b) DRAGOMAN_INLINE_LAMBDA { return a + b; };
  return fold16(v, add, add);
}
template <class Isa>
DRAGOMAN_INLINE float fold16_max(const Vec16<Isa>& v) {
  return fold16(
      v, [](auto a, auto b) DRAGOMAN_INLINE_LAMBDA { return Isa::max(a, b); },
      [](float a, float b) DRAGOMAN_INLINE_LAMBDA { return a > b ? a : b; });
}

// m rows as tiles of at most `most`, as even as can be (7 are 4 + 3, not 6 + 1) in steps of `unit`; only the last may
// be odd. Made once for a product: dividing for every tile took 4 % of it.
struct RowTiles {
  size_t count, unit, least, larger;  // `larger` tiles have one unit more than `least`

  DRAGOMAN_INLINE RowTiles(size_t m, size_t most, size_t unit_)
      : count((m + most - 1) / most),
        unit(unit_),
        least((m + unit - 1) / unit / count),
        larger((m + unit - 1) / unit % count) {}
  DRAGOMAN_INLINE size_t rows(size_t tile, size_t left) const {
    const size_t n = (least + (tile < larger)) * unit;
    return n < left ? n : left;
  }
};

// Weights to ask for while others are multiplied: across pages of 4 KB no CPU does that by itself. Where memory is the
// limit they are asked into the second cache: the first takes only so many at a time (12 GB/s from DRAM on Zen 4, where
// 25 are there). Where arithmetic is, the first is better: with base float32 and 32 rows 15 %.

// By one of several tiles of rows: its share of the panels that come next.
struct Ahead {  // two registers, which a larger struct would not be passed in
  const char* next;
  size_t step;  // bytes for each line of weights that a tile goes through

  // For the first of `tiles` tiles, which each go through `bytes` of weights at `w` by lines of 64.
  DRAGOMAN_INLINE Ahead(const void* w, size_t bytes, size_t tiles)
      : next(static_cast<const char*>(w) + bytes), step(64 / tiles) {}
  DRAGOMAN_INLINE void ask(const void* /*line*/) {
#if defined(__x86_64__)
    if (step > 64 / 4) {
      __builtin_prefetch(next, 0, 2);
    } else {
      __builtin_prefetch(next, 0, 3);
    }
#else  // not timed; the branch put neon32's accumulators in memory, 51 instructions for 20
    __builtin_prefetch(next, 0, 3);
#endif
    next += step;
  }
  DRAGOMAN_INLINE void next_tile(size_t bytes) {
    next += bytes / 64 * step;
  }
};

// By the only tile of rows, in each of the kPanels panels that it goes through at once: 8 KB in all of them, what
// memory sends while it answers and some more. 4 and 16 KB were slower.
template <size_t kPanels>
struct Along {
  DRAGOMAN_INLINE void ask(const void* line) {
    __builtin_prefetch(static_cast<const char*>(line) + 8192 / kPanels, 0, 2);
  }
};

// IEEE square root of one float, as the instruction: sqrtf() may be a call that sets errno.
template <class Isa>
DRAGOMAN_INLINE float sqrt1(float x) {
#if defined(__SSE2__)
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
#elif defined(__aarch64__)
  __asm__("fsqrt %s0, %s1" : "=w"(x) : "w"(x));
  return x;
#elif defined(__arm__) && defined(__ARM_FP)
  __asm__("vsqrt.f32 %0, %1" : "=t"(x) : "t"(x));
  return x;
#else
  return __builtin_sqrtf(x);
#endif
}

}  // namespace dragoman
