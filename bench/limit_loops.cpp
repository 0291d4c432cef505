// Compiled once per instruction set: DRAGOMAN_LIMIT_HEADER and DRAGOMAN_LIMIT_TAG say which. The loops are made of the
// primitives the kernels use (kernels/isa_*.h), so a new instruction set needs nothing here.
#include "bench/limit_loops.h"

#include <type_traits>

#include DRAGOMAN_LIMIT_HEADER
#include "kernels/gemm_s8-inl.h"

namespace dragoman::bench {
namespace {

#if defined(__x86_64__)
#define DRAGOMAN_ANY_REGISTER "v"
#elif defined(__aarch64__) || defined(__arm__)
#define DRAGOMAN_ANY_REGISTER "w"
#else
#define DRAGOMAN_ANY_REGISTER "m"
#endif

// The compiler may not know what is in `value` after this: else it would compute a product once and add it up by
// multiplication. Costs no instruction.
template <class T>
DRAGOMAN_INLINE void opaque(T& value) {
  if constexpr (requires { value.group; }) {  // two registers as an array, on NEON
    opaque(value.group[0]);
    opaque(value.group[1]);
  } else if constexpr (std::is_class_v<T>) {  // two registers
    auto& [first, second] = value;
    opaque(first);
    opaque(second);
  } else {
    __asm__ volatile("" : "+" DRAGOMAN_ANY_REGISTER(value));
  }
}

// The compiler may not leave out what made `value`. Of a copy: what an asm touches lies in memory, and g++ 12 would
// have it there in the loop before, too.
template <class T>
DRAGOMAN_INLINE void keep(T value) {
  __asm__ volatile("" : : "m"(value));
}

// The register tile of gemm_s8, without its loads.
template <class Isa>
uint64_t s8(uint64_t steps) {
  constexpr size_t kRows = Isa::kRowsS8, kColumns = Isa::kPanels * kPanel / Isa::kLanes;
  using Step = typename StepOf<Isa, kRows>::type;
  constexpr size_t kGroups = kRows / Step::kRows;
  alignas(64) int8_t bytes[256];
  for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<int8_t>(static_cast<int>(i * 37 % 255) - 127);
  const int32_t sums[16] = {};
  typename Step::Sum acc[kGroups][kColumns];
  typename Step::Weights weights[kColumns];
  for (size_t i = 0; i < kColumns; ++i) {
    weights[i] = Step::weights(bytes + i % 4 * 16);
    for (size_t g = 0; g < kGroups; ++g) acc[g][i] = Step::begin(Isa::start(sums, 1));
  }
  typename Step::X x = Step::x(bytes, 16);
  uint64_t left = steps;
  do {  // at least once: else g++ 12 keeps every accumulator twice
#pragma GCC unroll 32
    for (size_t g = 0; g < kGroups; ++g) {
      opaque(x);  // another row
#pragma GCC unroll 32
      for (size_t i = 0; i < kColumns; ++i) Step::dot(acc[g][i], x, weights[i]);
    }
  } while (--left > 0);
  for (size_t g = 0; g < kGroups; ++g) {
    for (size_t i = 0; i < kColumns; ++i) keep(acc[g][i]);
  }
  return steps * kRows * kColumns * Isa::kLanes * Step::kDepth;
}

#if defined(__AVX2__) && !defined(__AVX512F__)
// pmaddwd on int16: 2 instructions for 16 products, where maddubs and its company have 3 for 32. Widening is not
// counted.
uint64_t s8_as_s16(uint64_t steps) {
  constexpr size_t kSums = 8;
  typedef int32_t Sum __attribute__((vector_size(32)));  // of an __m256i, which is four int64, g++ 12 makes copies
  Sum acc[kSums];
  __m256i x = _mm256_set1_epi16(3);
  const __m256i w = _mm256_set1_epi16(5);
  for (size_t i = 0; i < kSums; ++i) acc[i] = Sum{};
  uint64_t left = steps;
  do {  // at least once: else g++ 12 keeps every accumulator twice
    for (size_t i = 0; i < kSums; ++i) {
      opaque(x);
      acc[i] += __builtin_bit_cast(Sum, _mm256_madd_epi16(x, w));
    }
  } while (--left > 0);
  for (size_t i = 0; i < kSums; ++i) keep(acc[i]);
  return steps * kSums * 16;
}
#else
constexpr uint64_t (*s8_as_s16)(uint64_t) = nullptr;
#endif

// The register tile of gemm_f32, without its loads.
template <class Isa>
uint64_t f32(uint64_t steps) {
  using Wide = Wide16<Isa>;
  constexpr size_t kSums = Isa::kRowsF32 * Isa::kPanels;
  Wide acc[kSums], x(0.5f);
  const Wide w(0.25f);
  for (size_t i = 0; i < kSums; ++i) acc[i] = Wide(0.0f);
  uint64_t left = steps;
  do {  // at least once: else g++ 12 keeps every accumulator twice
#pragma GCC unroll 32
    for (size_t i = 0; i < kSums; ++i) {
      if constexpr (!Isa::kFma) opaque(x.reg[0].half[0]);  // the product there is an operation of its own
      fma_into(acc[i], x, w);
    }
  } while (--left > 0);
  for (size_t i = 0; i < kSums; ++i) {
    for (size_t r = 0; r < Wide::kRegs; ++r) keep(acc[i].reg[r]);
  }
  return steps * kSums * 16;
}

// Four streams at once: from DRAM, Zen3 reads a third more that way than in one. kAsking: ahead into the second cache,
// as the kernels do.
template <class Isa, bool kAsking>
void read(const float* data, size_t count) {
  constexpr size_t kStreams = 4, kChunk = 32;  // floats of one stream at a time; count is a multiple of 128
  constexpr size_t kAhead = 8192 / kStreams / sizeof(float);
  const size_t share = count / kStreams;
  for (const float* end = data + share; data < end; data += kChunk) {
#pragma GCC unroll 32
    for (size_t i = 0; kAsking && i < kStreams * kChunk / 16; ++i)
      __builtin_prefetch(data + i % kStreams * share + i / kStreams * 16 + kAhead, 0, 2);
#pragma GCC unroll 32
    for (size_t i = 0; i < kStreams * kChunk / Isa::kLanes; ++i) {
      const typename Isa::F loaded = Isa::load(data + i % kStreams * share + i / kStreams * Isa::kLanes);
      typedef char Reg __attribute__((vector_size(sizeof loaded)));
      Reg reg;
      std::memcpy(&reg, &loaded, sizeof reg);
      __asm__ volatile("" : : DRAGOMAN_ANY_REGISTER(reg));
    }
  }
}

}  // namespace

#define DRAGOMAN_JOIN2(a, b) a##b
#define DRAGOMAN_JOIN(a, b) DRAGOMAN_JOIN2(a, b)
extern const LimitLoops DRAGOMAN_JOIN(kLimit, DRAGOMAN_LIMIT_TAG);
const LimitLoops DRAGOMAN_JOIN(kLimit, DRAGOMAN_LIMIT_TAG) = {
    DRAGOMAN_LIMIT_TAG::kName, s8<DRAGOMAN_LIMIT_TAG>,          s8_as_s16,
    f32<DRAGOMAN_LIMIT_TAG>,   read<DRAGOMAN_LIMIT_TAG, false>, read<DRAGOMAN_LIMIT_TAG, true>};

}  // namespace dragoman::bench
