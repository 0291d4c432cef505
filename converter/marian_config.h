// config.json and generation_config.json of a HuggingFace MarianMT folder.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/format.h"
#include "runtime/result.h"

namespace dragoman {

struct MarianConfig {
  Architecture arch{};            // all but unk (vocab.json has it) and the flags that depend on tensors and tokenizers
  bool shared_embeddings = true;  // one table for source and target
  bool tied_output = true;        // the output layer is the target's table
  bool static_positions = true;   // sinusoidal: may be computed where the file has no table
  std::vector<uint32_t> never;    // ids that must not be produced: pad and the one-id bad words
};

// Refuses by name whatever would change the translation in a way the runtime does not know. Knowingly ignored: what
// matters in training only (dropout, init_std) or in beam search only (num_beams, length_penalty, early_stopping,
// renormalize_logits), and the length limits (forced_eos_token_id, max_length), for which the runtime has its own rule.
Result<MarianConfig> read_marian_config(const std::string& folder);
// The same from memory; an empty object where there is no generation_config.json.
Result<MarianConfig> parse_marian_config(const nlohmann::json& config, const nlohmann::json& generation);

}  // namespace dragoman
