// The whole conversion: read, pack, prove, write.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/pack_model.h"
#include "converter/selftest.h"
#include "converter/writer.h"
#include "runtime/format.h"
#include "runtime/result.h"

namespace dragoman {

struct ConvertOptions {
  Weights weights = Weights::kInt8;
  bool calibrate = true;    // int8: round so that products change least, else each weight to the nearest
  std::string licence;      // text; empty: what the source folder says, if it does
  std::string attribution;  // added to the licence
  Progress progress;
};

struct ConvertReport {
  Architecture arch{};
  std::vector<TensorReport> tensors;
  SelfTestFigures selftest;
  std::string provenance, licence;
  uint64_t source_bytes = 0;  // of the weight files
  uint64_t file_bytes = 0;
};

// Writes the model at `source` to the file `out`. On an error `out` is as it was before.
Result<ConvertReport> convert(const std::string& source, const std::string& out, const ConvertOptions& options);

// What the folder itself says about its licence: the text of LICENSE, or `license:` at the head of README.md.
// Empty where it says nothing.
std::string licence_of_folder(const std::string& folder);

}  // namespace dragoman
