// Our products beside oneDNN's, shape by shape, in one table.
#pragma once

#include <functional>
#include <regex>
#include <string>
#include <vector>

#include "bench/bound.h"
#include "bench/gemm_shapes.h"
#include "bench/limits.h"

namespace dragoman::bench {

// One product: an instruction set, a shape, a number of rows. Times are CPU seconds of one call, medians.
struct GemmRow {
  const Kernels* kernels = nullptr;
  bool s8 = true;
  GemmShape shape;
  size_t m = 0;

  size_t working_set = 0;  // bytes of weights that are read in turn
  double ours = 0;
  double onednn = 0;  // of its quickest form; 0: not there
  std::string form;   // which one that was
  double error = 0;   // its largest difference to ours, by the largest |y|
  Bound bound{};      // the least time this machine needs

  std::string name() const;  // "gemm_s8/avx2/tiny-qkv/k:256/n:768/m:1"
  size_t matrix_bytes() const { return shape.k * shape.n * (s8 ? 1 : sizeof(float)); }
  double multiply_adds() const { return static_cast<double>(m) * static_cast<double>(shape.k * shape.n); }
  double ratio() const { return onednn > 0 ? onednn / ours : 0; }  // above 1: ours is faster
};

// Every row whose name matches, not measured yet. hot: the working set is the matrix itself.
std::vector<GemmRow> gemm_rows(const std::vector<const Kernels*>& tables, const std::regex& filter, bool hot);

// The longer of reading the weights once and multiplying.
Bound gemm_bound(const GemmRow& row, const MachineLimits& limits);

// Fills in times; ours and oneDNN's forms take turns, `repeat` times.
void measure_gemms(std::vector<GemmRow>& rows, size_t repeat, const std::function<void(const char*)>& progress);

struct GemmSummary {
  size_t compared = 0, slower = 0;  // rows with a oneDNN time; those where it is shorter than ours
  double mean = 0;                  // geometric, of ours / oneDNN
};
GemmSummary summarize(const std::vector<GemmRow>& rows, const std::function<bool(const GemmRow&)>& of);

std::string gemm_text(const std::vector<GemmRow>& rows, const std::vector<MachineLimits>& limits, bool markdown);
std::string gemm_json(const std::vector<GemmRow>& rows, const std::vector<MachineLimits>& limits);

// "" where this program was built without oneDNN.
std::string onednn_version();

}  // namespace dragoman::bench
