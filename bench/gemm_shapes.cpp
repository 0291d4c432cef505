#include "bench/gemm_shapes.h"

#include <algorithm>

#include "bench/synthetic_model.h"

namespace dragoman::bench {
namespace {

// Rows are sentences in a step of the decoder, or source ids in the encoder. Only a decoder predicts pieces, and 32
// sentences side by side are many.
const std::vector<size_t> kRows = {1, 4, 8, 32, 128, 512}, kOutputRows = {1, 4, 8, 32};

}  // namespace

std::vector<GemmShape> gemm_shapes() {
  std::vector<GemmShape> all;
  for (const Shape& model : shapes()) {
    const size_t d = model.d_model, ffn = model.ffn;
    const size_t weights = model.decoder_layers * (6 * d * d + 2 * d * ffn) + d * kPieces;
    const auto add = [&](const char* part, size_t k, size_t n, const std::vector<size_t>& rows) {
      const auto same = [&](const GemmShape& s) { return s.k == k && s.n == n; };
      if (std::any_of(all.begin(), all.end(), same)) return;
      all.push_back({std::string(model.name) + "-" + part, k, n, weights, rows, model.name});
    };
    add("qkv", d, 3 * d, kRows);
    add("out", d, d, kRows);
    add("ffn-in", d, ffn, kRows);
    add("ffn-out", ffn, d, kRows);
    add("output", d, kPieces, kOutputRows);
  }
  return all;
}

}  // namespace dragoman::bench
