// The converter proves its own work. Fixed sentences go through the runtime, with the portable kernels, on the very
// bytes that will be written: what comes out is stored for `dragoman verify`. Then the double-precision reference runs
// the same sentences on the original weights, and the difference is measured.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "converter/checkpoint.h"
#include "converter/writer.h"
#include "runtime/result.h"

namespace dragoman {

// A float32 file must be this close to the reference.
inline constexpr double kMaxLogitDifference = 1e-3;

struct SelfTestFigures {
  size_t sentences = 0, tokens = 0;  // target ids, eos included
  // Where the reference, having seen the same ids before, picks the same id. A sentence agrees when all its ids do,
  // and then the reference alone would have produced it.
  size_t agreeing_sentences = 0, agreeing_tokens = 0;
  double logit_difference = 0;     // the largest, over all steps and all ids that may be produced
  double squared_differences = 0;  // their squares, summed
  size_t logits = 0;               // how many were compared
  double logit_rms() const { return logits ? std::sqrt(squared_differences / static_cast<double>(logits)) : 0; }
};

struct SelfTest {
  std::vector<std::byte> section;  // "selftest", as format.h says
  SelfTestFigures figures;
};

// image: a complete file, but for the self-test. Does not judge the figures.
Result<SelfTest> run_selftest(std::span<const std::byte> image, const Checkpoint& checkpoint, const Progress& progress);

}  // namespace dragoman
