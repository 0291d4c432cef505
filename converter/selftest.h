// The converter proves its own work. Fixed sentences go through the runtime, with the portable kernels, on the very
// bytes that will be written: what comes out is stored for `dragoman verify`. Then the double-precision reference runs
// the same sentences on the original weights, and the difference is measured.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>
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

// What the runtime made of one line.
struct Recording {
  std::string_view text;  // empty: the line was ids
  std::vector<int32_t> source, target;
  std::vector<float> logits;  // (target ids, target_vocabulary)
  uint64_t hash = 0;
};

// image: a complete file, but for the self-test.
Result<std::vector<Recording>> record_selftest(std::span<const std::byte> image, const Progress& progress);
// "selftest", as format.h says.
std::vector<std::byte> selftest_section(std::span<const Recording> recordings);
// Does not judge.
Result<SelfTestFigures> compare_with_reference(std::span<const Recording> recordings, const Checkpoint& checkpoint,
                                               const Progress& progress);

}  // namespace dragoman
