// Sentences to calibrate with: what the inputs of every product look like is found by running the reference on them,
// and input-aware rounding (quant/quantize.h) wants to know it.
#pragma once

#include <vector>

#include "converter/reference.h"

namespace dragoman {

std::vector<SentencePair> calibration_sentences(const Checkpoint& checkpoint);

}  // namespace dragoman
