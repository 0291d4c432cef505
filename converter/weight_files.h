// The weights of a HuggingFace folder, in whichever files they are: model.safetensors, several .safetensors with an
// index, pytorch_model.bin, or several of those with an index: the first that is there, in this order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/file.h"
#include "converter/tensor.h"
#include "runtime/result.h"

namespace dragoman {

class WeightFiles {
 public:
  static Result<WeightFiles> open(const std::string& folder);

  const TensorMap& tensors() const { return tensors_; }
  // Some elements of one tensor, in row-major order. The file stays mapped, but takes no memory afterwards.
  Result<std::vector<float>> floats(const std::string& name, uint64_t first, uint64_t count) const;

  // For messages: the file, or the index where there are several.
  const char* name() const { return name_.c_str(); }
  const char* name_of(const std::string& tensor) const;  // the very file
  // For the provenance: the names; the sum of the sizes; a checksum over all files in the order of their names.
  std::string names() const;
  uint64_t bytes() const;
  uint64_t checksum() const;

 private:
  struct Part {
    std::string name;
    SourceFile file;
  };
  using Parser = Result<TensorMap> (*)(std::span<const std::byte> file, const char* name, const Seen& seen);

  const Part* part_of(const TensorView& tensor) const;
  Status add(const std::string& folder, const std::string& name, Parser parse);
  Status add_indexed(const std::string& folder, const std::string& index, Parser parse);

  std::string name_;
  std::vector<Part> parts_;
  TensorMap tensors_;
};

}  // namespace dragoman
