// The kernels: every loop that needs SIMD, as one table of function pointers per instruction set.
//
// Contract of all kernels
// - Matrices are row-major floats. Widths that a weight matrix touches (k, and 16 * panels) are multiples of 16.
// - No alignment is asked of activations; weight panels are 64-byte aligned in the file.
// - Inputs and outputs do not overlap unless the comment says "in place".
// - All tables give the same bits for the same input (C6): an operation is fused only where the source says fma,
//   reductions over features run on 16 virtual lanes and fold in one fixed tree, k-loops are sequential per output.
// - The caller has set the float environment of float_env.h (round to nearest, subnormals flushed).
// - Any input, NaN and infinity included, is memory-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace dragoman {

inline constexpr size_t kPanel = 16;   // output columns in a panel of weights
inline constexpr size_t kBlock = 16;   // positions in a block of the K/V cache
inline constexpr size_t kQueries = 4;  // rows or heads that attention works on together

constexpr size_t round_up(size_t n, size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// W (k, 16 * panels) packed as [panels][k][16], with a bias per output column.
struct PanelsF32 {
  const float* w = nullptr;
  const float* bias = nullptr;
  size_t k = 0;
  size_t panels = 0;
};

// W (k, 16 * panels) packed as [panels][k/4][16][4] in [-127, 127]; per column a scale, a bias, and the sum of its
// weights (for the zero of a row, and to take back Kernels::offset). |w[k] + w[k + 1]| <= 129 for every even k: then
// x86's vpmaddubsw, which adds two products u8 x s8 in 16 bits, is exact (254 * 129 < 2^15). A file that breaks this is
// memory-safe, and `verify` refuses it.
struct PanelsS8 {
  const int8_t* w = nullptr;
  const float* scale = nullptr;
  const int32_t* sum = nullptr;
  const float* bias = nullptr;
  size_t k = 0;
  size_t panels = 0;
};

inline constexpr int kPairLimit = 129;

// How a row of activations became int8: x = scale * (q + zero), with q and zero in [-127, 127]. In memory a byte is
// q + Kernels::offset.
struct RowQuant {
  float scale = 0;
  int32_t zero = 0;
};

// The same matrix, panels [begin, end) only: how threads share one product. Always inlined: clang -O1 left a copy in
// every isa_*.o, compiled for that instruction set, for the linker to pick from.
[[gnu::always_inline]] inline PanelsF32 slice(const PanelsF32& p, size_t begin, size_t end) {
  return {p.w + begin * kPanel * p.k, p.bias + begin * kPanel, p.k, end - begin};
}
[[gnu::always_inline]] inline PanelsS8 slice(const PanelsS8& p, size_t begin, size_t end) {
  return {p.w + begin * kPanel * p.k,
          p.scale + begin * kPanel,
          p.sum + begin * kPanel,
          p.bias + begin * kPanel,
          p.k,
          end - begin};
}

// K and V of one layer for one sentence, in blocks of 16 positions. Block b starts at blocks[b] + offset and holds
// K as [heads * d_head][16], then V as [heads][16][d_head]. Lanes past `positions` may hold anything.
struct KeyValues {
  float* const* blocks = nullptr;
  size_t offset = 0;
  size_t positions = 0;
};

struct ArgMax {
  static constexpr size_t kNone = SIZE_MAX;  // every value was NaN or -infinity
  size_t index = kNone;
  float value = -std::numeric_limits<float>::infinity();
};

struct Kernels {
  const char* name;
  int32_t offset;  // what quantize_rows adds to each byte, for gemm_s8 of the same table: 127 or 0

  // y (m, 16 * panels; row stride ldy) = x (m, k) W + bias. m >= 1, here and in gemm_s8.
  void (*gemm_f32)(const float* x, size_t m, const PanelsF32& w, float* y, size_t ldy);
  // y = ((x + zero) W) * scale of the row * scale of the column + bias: the int32 sum is exact, with zero times the
  // column's sum in it, and then comes fma(float(sum), sx * sw, bias). x as quantize_rows of this table makes it.
  void (*gemm_s8)(const int8_t* x, const RowQuant* rows, size_t m, const PanelsS8& w, float* y, size_t ldy);
  // Each row of x (m, k) over its own range [lo, hi], 0 included: scale = (hi - lo) / 254, zero the middle, rounding
  // half to even. 0 stays 0 exactly, and a row after a ReLU has twice the steps it would have around 0. A row whose
  // range is below 2^-100 becomes zeros with scale 0. NaN becomes q = -127.
  void (*quantize_rows)(const float* x, size_t m, size_t k, int8_t* q, RowQuant* rows);

  // x (cols) = embedding row `id`, gathered from its panels, times scale, plus position (cols).
  void (*embed_f32)(const PanelsF32& table, size_t id, float scale, const float* position, float* x);
  void (*embed_s8)(const PanelsS8& table, size_t id, float scale, const float* position, float* x);

  // out (rows, heads * d_head) = softmax(q K^T / sqrt(d_head)) V, head by head; row stride of q is ldq, that of out
  // is heads * d_head. `scores` is scratch of kQueries * round_up(positions, 16) floats. positions >= 1.
  void (*attention)(const float* q, size_t ldq, size_t rows, const KeyValues& kv, size_t heads, size_t d_head,
                    float* scores, float* out);
  void (*softmax)(float* x, size_t rows, size_t cols);  // in place

  // y (rows, cols) = (x - mean) / sqrt(variance + epsilon) * gamma + beta. May run in place (y == x).
  void (*layer_norm)(const float* x, const float* gamma, const float* beta, float epsilon, size_t rows, size_t cols,
                     float* y);
  void (*add)(float* x, const float* y, size_t n);  // x += y
  void (*relu)(float* x, size_t n);                 // in place, like the next three
  void (*silu)(float* x, size_t n);
  void (*gelu)(float* x, size_t n);       // x * Phi(x), through erf
  void (*gelu_tanh)(float* x, size_t n);  // the tanh form

  // best <- the larger of best and x[i], whose index is first + i; the one that came first wins a tie; NaN and
  // -infinity never win. Start with {}, and with the lowest indices.
  void (*argmax)(const float* x, size_t n, size_t first, ArgMax& best);
  // log(sum(exp(x))) over finite x; -infinity counts as nothing.
  float (*log_sum_exp)(const float* x, size_t n);
};

// What this build knows about one instruction set on this machine.
struct KernelChoice {
  const Kernels* kernels;  // nullptr where the CPU or the operating system lacks it
  const char* name;
  const char* needs;  // for a person: "AVX2 and FMA"
};

// Every table compiled in, best first; the last one ("portable") always runs.
std::span<const KernelChoice> all_kernels();
// The tables this machine runs, best first.
std::span<const Kernels* const> available_kernels();
// By name, nullptr when this machine cannot run it or there is no such table.
const Kernels* find_kernels(const char* name);

}  // namespace dragoman
