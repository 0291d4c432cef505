// Sources made of any ids: sentences of a sort, for models of any language.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/checksum.h"
#include "runtime/format.h"

namespace dragoman {

// `count` ids below `vocabulary` without eos: the same for the same model and seed, on every machine.
inline std::vector<int32_t> arbitrary_ids(const Architecture& arch, uint32_t vocabulary, size_t count, uint64_t seed) {
  std::vector<int32_t> ids;
  for (uint64_t state = checksum_word(kChecksumSeed, seed); ids.size() < count;) {
    state = checksum_word(state, ids.size());
    const auto id = static_cast<uint32_t>(state % vocabulary);
    if (id != arch.eos && id != arch.pad) ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

}  // namespace dragoman
