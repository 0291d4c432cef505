// A checkpoint as the sections of a .dgm file: fused matrices, packed into panels, as floats or int8.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "converter/checkpoint.h"
#include "converter/reference.h"
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

// "architecture" and the tokenizers: they go in front of the tensors.
std::vector<SectionData> front_sections(const Checkpoint& checkpoint, Weights weights);

// The tensors in the order of their use, one layer in memory at a time. calibration: sentences that go through the
// reference on the way, so that rounding knows its inputs; none: weights are rounded to the nearest.
Result<std::vector<TensorReport>> pack_tensors(const Checkpoint& checkpoint, Weights weights,
                                               std::span<const SentencePair> calibration, SectionSink& to,
                                               const Progress& progress);

}  // namespace dragoman
