// libFuzzer: a .dgm file from anywhere. The checksums are mended, so that the fuzzer reaches what lies behind them.
#include <cstddef>
#include <cstdint>

#include "tests/hostile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dragoman::test;
  AlignedBytes file(std::as_bytes(std::span(data, size)));
  exercise(file.span(), "Good morning.");
  mend_checksums(file.span());
  exercise(file.span(), "Good morning, \xff 123.");
  return 0;
}
