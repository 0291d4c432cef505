// Seeded numbers for one product, and its weights many times over.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/gemm_shapes.h"
#include "kernels/kernels.h"
#include "runtime/arena.h"

namespace dragoman::bench {

inline constexpr float kRowScale = 0.02f;  // of every int8 row; its zero is 0

// Weights lie as rows (n, k), one for each output column. Only the vectors of its kind of numbers are filled.
struct GemmData {
  size_t m, k, n;
  bool s8;
  std::vector<float> x_f32, w_f32;   // in [-1, 1]
  std::vector<int8_t> x_s8, w_s8;    // in [-127, 127]; neighbours in w keep the rule of PanelsS8
  std::vector<float> w_scale, bias;  // by column
  std::vector<int32_t> w_sum;        // by column

  GemmData(const GemmShape& shape, bool int8);
  void set_rows(size_t rows);  // a new x (rows, k)
  size_t weight_bytes() const { return s8 ? w_s8.size() : w_f32.size() * sizeof(float); }
  double multiply_adds() const { return static_cast<double>(m) * static_cast<double>(k * n); }
};

// Copies of a matrix, one after the other, each at a multiple of 64 bytes.
class Copies {
 public:
  Copies(size_t bytes, size_t count);
  std::byte* at(size_t copy) { return static_cast<std::byte*>(memory_.data()) + copy * stride_; }
  size_t count() const { return count_; }
  void repeat_first();  // all the others become equal to the first

 private:
  size_t bytes_, stride_, count_;
  ArenaMemory memory_;
};

// Past this, all of it comes from DRAM: twice as much would only take twice the memory.
inline constexpr size_t kMostBytes = size_t{128} << 20;
// The bytes of weights the product walks through: those of a decoder step, up to kMostBytes, in whole matrices.
size_t copies_of(const GemmShape& shape, bool s8);

// Our kernel on this data. x, panels and y are laid out as in the runtime.
class OurGemm {
 public:
  OurGemm(const Kernels& kernels, const GemmData& data, size_t copies);
  void run(size_t copy);
  const std::vector<float>& result() const { return y_; }

 private:
  const Kernels& kernels_;
  const GemmData& data_;
  Copies weights_;
  std::vector<int8_t> x_;
  std::vector<RowQuant> rows_;
  std::vector<float> y_;
};

}  // namespace dragoman::bench
