// Tensors of other people's files, left where they lie in the mapped file: a container's reader says where and of which
// type they are, floats come one tensor at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"

namespace dragoman {

// What a reader returns has been checked: every element lies in `data`, and there are no more of them than `data` has
// room for.
struct TensorView {
  std::string dtype;              // as safetensors names them: "F32", "BF16", "I64", ...
  std::vector<uint64_t> shape;    // outermost first
  std::vector<uint64_t> strides;  // in elements; empty: row-major without gaps
  uint64_t elements = 0;
  std::span<const std::byte> data;
};

using TensorMap = std::map<std::string, TensorView>;

inline constexpr size_t kMaxRank = 8;

uint64_t dtype_bytes(std::string_view dtype);                // of one element; 0 for a type nobody here knows
bool count_elements(TensorView& tensor);                     // from the shape; false where the number does not fit
std::string shape_text(const std::vector<uint64_t>& shape);  // "(400, 64)"

// F32, F16 and BF16 as floats, exactly. Other types are refused by name.
Result<std::vector<float>> to_floats(const std::string& name, const TensorView& tensor);
// The same of some elements, in row-major order.
Result<std::vector<float>> to_floats(const std::string& name, const TensorView& tensor, uint64_t first, uint64_t count);

float half_to_float(uint16_t half);      // IEEE binary16
float bfloat_to_float(uint16_t bfloat);  // the upper half of a float

}  // namespace dragoman
