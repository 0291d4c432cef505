// Compiled once per instruction set: DRAGOMAN_LIMIT_HEADER and DRAGOMAN_LIMIT_TAG say which. The loops are made of the
// primitives the kernels use (kernels/isa_*.h), so a new instruction set needs nothing here.
#include "bench/limit_loops.h"

#include DRAGOMAN_LIMIT_HEADER
#include "kernels/gemm_s8-inl.h"

namespace dragoman::bench {
namespace {

using Isa = DRAGOMAN_LIMIT_TAG;

#if defined(__x86_64__)
#define DRAGOMAN_ANY_REGISTER "v"
#elif defined(__aarch64__) || defined(__arm__)
#define DRAGOMAN_ANY_REGISTER "w"
#else
#define DRAGOMAN_ANY_REGISTER "m"
#endif

// The compiler may not know what is in `value` after this, nor leave out what came before: else it would compute a
// product once and add it up by multiplication. Costs no instruction.
template <class T>
DRAGOMAN_INLINE void opaque(T& value) {
  if constexpr (sizeof(T) <= sizeof(typename Isa::F)) {
    typedef char Reg __attribute__((vector_size(sizeof(T))));
    Reg reg;
    std::memcpy(&reg, &value, sizeof reg);
    __asm__ volatile("" : "+" DRAGOMAN_ANY_REGISTER(reg));
    std::memcpy(static_cast<void*>(&value), &reg, sizeof reg);
  } else {  // a struct of registers
    struct Regs {
      typename Isa::F part[sizeof(T) / sizeof(typename Isa::F)];
    } regs;
    static_assert(sizeof regs == sizeof value);
    std::memcpy(static_cast<void*>(&regs), &value, sizeof regs);
    for (auto& part : regs.part) opaque(part);
    std::memcpy(static_cast<void*>(&value), &regs, sizeof regs);
  }
}

// The register tile of gemm_s8, without its loads.
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
  for (uint64_t step = 0; step < steps; ++step) {
    for (size_t g = 0; g < kGroups; ++g) {
      opaque(x);  // another row
      for (size_t i = 0; i < kColumns; ++i) Step::dot(acc[g][i], x, weights[i]);
    }
  }
  for (auto& row : acc) {
    for (auto& sum : row) opaque(sum);
  }
  return steps * kRows * kColumns * Isa::kLanes * Step::kDepth;
}

#if defined(__AVX2__) && !defined(__AVX512F__)
// pmaddwd on int16: 2 instructions for 16 products, where the sign trick has 4 for 32. Widening is not counted.
uint64_t s8_as_s16(uint64_t steps) {
  constexpr size_t kSums = 12;
  __m256i acc[kSums], w = _mm256_set1_epi16(5), x = _mm256_set1_epi16(3);
  for (auto& sum : acc) sum = _mm256_setzero_si256();
  for (uint64_t step = 0; step < steps; ++step) {
    for (auto& sum : acc) {
      opaque(x);
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, w));
    }
  }
  for (auto& sum : acc) opaque(sum);
  return steps * kSums * 16;
}
#else
constexpr uint64_t (*s8_as_s16)(uint64_t) = nullptr;
#endif

// The register tile of gemm_f32, without its loads.
uint64_t f32(uint64_t steps) {
  using Wide = Wide16<Isa>;
  Wide acc[Isa::kRowsF32][Isa::kPanels], x(0.5f), w(0.25f);
  for (auto& row : acc) {
    for (auto& sum : row) sum = Wide(0.0f);
  }
  for (uint64_t step = 0; step < steps; ++step) {
    for (auto& row : acc) {
      opaque(x.reg[0]);
      for (auto& sum : row) fma_into(sum, x, w);
    }
  }
  for (auto& row : acc) {
    for (auto& sum : row) opaque(sum);
  }
  return steps * Isa::kRowsF32 * Isa::kPanels * 16;
}

void read(const float* data, size_t count) {
  constexpr size_t kLoads = 128 / Isa::kLanes;
  for (const float* end = data + count; data < end; data += 128) {
    for (size_t i = 0; i < kLoads; ++i) {
      auto loaded = Isa::load(data + i * Isa::kLanes);
      opaque(loaded);
    }
  }
}

}  // namespace

#define DRAGOMAN_JOIN2(a, b) a##b
#define DRAGOMAN_JOIN(a, b) DRAGOMAN_JOIN2(a, b)
extern const LimitLoops DRAGOMAN_JOIN(kLimit, DRAGOMAN_LIMIT_TAG);
const LimitLoops DRAGOMAN_JOIN(kLimit, DRAGOMAN_LIMIT_TAG) = {Isa::kName, s8, s8_as_s16, f32, read};

}  // namespace dragoman::bench
