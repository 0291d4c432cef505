// libFuzzer: a .safetensors file from anywhere, and every tensor of what could be read.
#include <cstddef>
#include <cstdint>

#include "converter/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dragoman;
  const Result<TensorMap> tensors = parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz.safetensors");
  if (!tensors) return 0;
  for (const auto& [name, tensor] : *tensors) {
    const auto values = to_floats(name, tensor);
    if (values && values->size() * 2 > size) __builtin_trap();  // no element without its bytes
  }
  return 0;
}
