// libFuzzer: a .dgm file from anywhere. The checksums are mended, so that the fuzzer reaches what lies behind them;
// seven of eight changes are made by a mutator that knows the sections.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/model_mutator.h"
#include "tests/hostile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dragoman::test;
  AlignedBytes file(std::as_bytes(std::span(data, size)));
  constexpr const char* kText = "Good morning, \xff 123.";
  exercise(file.span(), kText);
  mend_checksums(file.span());
  const bool mended = !std::equal(data, data + size, reinterpret_cast<const uint8_t*>(file.span().data()));
  if (mended) exercise(file.span(), kText);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  const size_t changed = seed % 8 ? dragoman::test::ModelMutator(seed / 8).mutate(data, size, max_size) : 0;
  return changed ? changed : LLVMFuzzerMutate(data, size, max_size);
}
