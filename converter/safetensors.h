// Reader of .safetensors: u64 header length, JSON header {name: {dtype, shape, data_offsets}}, raw data.
// The header is hostile: after parse() every tensor's bytes lie inside the file, tensors do not overlap and leave no
// holes, and shape x dtype = bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "converter/file.h"
#include "runtime/result.h"

namespace dragoman {

struct TensorInfo {
  std::string dtype;            // "F32", "BF16", ...
  std::vector<uint64_t> shape;  // outermost first
  uint64_t elements = 0;
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
};

class SafeTensors {
 public:
  static Result<SafeTensors> open(const std::string& path);
  // The bytes must outlive the result. `name` is used in messages.
  static Result<SafeTensors> parse(std::span<const std::byte> file, const char* name);

  const std::map<std::string, TensorInfo>& tensors() const { return tensors_; }
  std::span<const std::byte> file() const { return file_; }

  // F32, F16 and BF16 as floats, exactly. Other types are refused by name.
  Result<std::vector<float>> floats(const std::string& name) const;
  // The same of some elements, in row-major order.
  Result<std::vector<float>> floats(const std::string& name, uint64_t first, uint64_t count) const;

 private:
  SourceFile mapping_;
  std::span<const std::byte> file_;
  std::map<std::string, TensorInfo> tensors_;
};

float half_to_float(uint16_t half);      // IEEE binary16
float bfloat_to_float(uint16_t bfloat);  // the upper half of a float

}  // namespace dragoman
