// Models made in memory: the shapes real users run, with seeded weights. Nothing to download, nothing secret, and the
// same bytes on every machine.
//
// eos has an output bias of -infinity: every sentence runs to the length cap, so token counts are known beforehand.
#pragma once

#include <string>
#include <vector>

#include "bench/memory_file.h"
#include "runtime/format.h"
#include "runtime/result.h"

namespace dragoman::bench {

struct Shape {
  const char* name;
  const char* what;  // for a person
  uint32_t encoder_layers, decoder_layers, d_model, ffn, heads;
};

// tiny, base-memory, base, big.
const std::vector<Shape>& shapes();
const Shape* find_shape(const std::string& name);

inline constexpr uint32_t kPieces = 32000;
inline constexpr uint32_t kPositions = 1024;

// A whole .dgm file. Weights are rounded to the nearest: speed does not depend on how.
Result<MemoryFile> synthetic_model(const Shape& shape, Weights weights);

}  // namespace dragoman::bench
