// The products of the models people run: depth, width, and what else is read between two uses of the same weights.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dragoman::bench {

// y (m, n) = x (m, k) W. `weights` counts all that one step of the model's decoder reads: a decoder of one row never
// finds a matrix where it left it if all of them do not fit in the cache.
struct GemmShape {
  std::string what;  // "tiny-qkv"
  size_t k, n;
  size_t weights;
  std::vector<size_t> rows;  // the m it is used with
  std::string model{};       // the first that has it
};

// Of tiny, base-memory, base and big (synthetic_model.h): qkv, out, ffn-in, ffn-out, output. A shape that two models
// share stands once, with the name of the first.
std::vector<GemmShape> gemm_shapes();

}  // namespace dragoman::bench
