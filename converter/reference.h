// The Transformer of Vaswani et al. (2017) in double precision and plain loops, on the original weights. It shares no
// code with the kernels, the packing or the runtime: it is what they are measured against, written to be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "converter/checkpoint.h"

namespace dragoman {

struct DoubleMatrix {
  size_t rows = 0, cols = 0;
  std::vector<double> values;

  DoubleMatrix() = default;
  DoubleMatrix(size_t r, size_t c) : rows(r), cols(c), values(r * c) {}
  double* row(size_t r) { return values.data() + r * cols; }
  const double* row(size_t r) const { return values.data() + r * cols; }
};

struct ReferenceRun {
  DoubleMatrix memory;       // (source ids, d_model): the encoder's output
  DoubleMatrix logits;       // (steps, target_vocabulary), with the output bias
  std::vector<int32_t> ids;  // the best id of each step; the lowest wins a tie
};

// Called with every product's weights and input, before it is computed.
using SeeProduct = std::function<void(const LinearWeights&, const DoubleMatrix& x)>;

class Reference {
 public:
  // The checkpoint must outlive this.
  explicit Reference(const Checkpoint& checkpoint, SeeProduct see = {}) : model_(checkpoint), see_(std::move(see)) {}

  // Greedy search: stops after eos or max_steps ids. source: ids with eos, at most `positions` of them.
  ReferenceRun greedy(std::span<const int32_t> source, size_t max_steps) const;

  // The decoder is fed `target` whatever it would have chosen: one row of logits for each of its ids.
  ReferenceRun follow(std::span<const int32_t> source, std::span<const int32_t> target) const;

 private:
  ReferenceRun run(std::span<const int32_t> source, size_t max_steps, std::span<const int32_t> forced) const;
  const Checkpoint& model_;
  SeeProduct see_;
};

}  // namespace dragoman
