// libFuzzer: a pytorch_model.bin from anywhere, as it is and with its checksums mended, so that the fuzzer reaches what
// lies behind them. What is no archive is also taken as the data.pkl of one with two storages.
#include <cstddef>
#include <cstdint>
#include <string>

#include "converter/torch.h"
#include "converter/zip.h"
#include "tests/weight_writers.h"

namespace {

using namespace dragoman;

void use(std::span<const std::byte> file) {
  const Result<TensorMap> tensors = parse_torch(file, "fuzz.bin");
  if (!tensors) return;
  for (const auto& [name, tensor] : *tensors) {
    const auto values = to_floats(name, tensor);
    if (values && values->size() * 2 > file.size()) __builtin_trap();  // bounded by the file, whatever the shape says
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  use(bytes);
  std::string file(reinterpret_cast<const char*>(data), size);
  if (starts_like_zip(bytes)) {
    test::mend_crcs(std::as_writable_bytes(std::span(file)));
  } else {
    file = test::torch_archive(
        file, {{"0", "FloatStorage", 6, std::string(24, 1)}, {"1", "HalfStorage", 6, std::string(12, 1)}});
  }
  use(std::as_bytes(std::span(file)));
  return 0;
}
