// A checkpoint as the sections of a .dgm file: fused matrices, packed into panels, as floats or int8.
#pragma once

#include <string>
#include <vector>

#include "converter/calibration.h"
#include "converter/checkpoint.h"
#include "converter/writer.h"
#include "quant/quantize.h"

namespace dragoman {

// A line of the table at the end of a conversion.
struct TensorReport {
  std::string name;
  size_t n = 0, k = 0;      // outputs and inputs; k = 1 for a vector
  size_t bytes_before = 0;  // as floats
  size_t bytes_after = 0;   // with scales, sums and padding
  bool quantized = false;
  QuantError error;  // zero unless quantized
};

struct PackedModel {
  Architecture arch{};
  std::vector<SectionData> sections;  // "architecture", the tokenizers, then the tensors in the order of their use
  std::vector<TensorReport> tensors;
};

// calibration: of this checkpoint, or empty: then weights are rounded to the nearest.
PackedModel pack_model(const Checkpoint& checkpoint, Weights weights, const Calibration& calibration,
                       const Progress& progress);

}  // namespace dragoman
