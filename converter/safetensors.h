// Reader of .safetensors: u64 header length, JSON header {name: {dtype, shape, data_offsets}}, raw data.
#pragma once

#include <cstddef>
#include <span>

#include "converter/tensor.h"
#include "runtime/result.h"

namespace dragoman {

// The header is hostile: afterwards every tensor's bytes lie inside the file, tensors do not overlap and leave no
// holes, and shape x dtype = bytes. The bytes must outlive the result. `name` is used in messages.
Result<TensorMap> parse_safetensors(std::span<const std::byte> file, const char* name);

}  // namespace dragoman
