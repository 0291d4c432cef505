// Reader of a HuggingFace MarianMT folder: config.json, generation_config.json, the weights (converter/weight_files.h),
// source.spm, target.spm and vocab.json (and target_vocab.json where the vocabularies are separate). Where there is no
// vocab.json, tokenizer.json stands for it.
#pragma once

#include <string>

#include "converter/checkpoint.h"
#include "converter/marian_config.h"
#include "runtime/result.h"

namespace dragoman {

// What it does not understand it refuses by name: a setting, a tensor that is missing, misshapen or left over.
Result<Checkpoint> read_marian(const std::string& folder);

// The two halves of it. Weights: everything but the tokenizers and arch.unk.
Result<Checkpoint> read_marian_weights(const std::string& folder, const MarianConfig& config);
// Compiles the tokenizers into the checkpoint; sets arch.unk and kSharedTokenizer.
Status read_marian_tokenizers(const std::string& folder, Checkpoint& checkpoint);

}  // namespace dragoman
