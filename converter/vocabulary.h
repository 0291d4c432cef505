// Pieces and their ids, from the JSON files of a MarianMT folder. Text in memory, hostile until parsed.
#pragma once

#include <string_view>

#include "converter/sentencepiece.h"
#include "runtime/result.h"

namespace dragoman {

// vocab.json: {piece: id}. The order of the file is kept: it decides when two pieces share an id.
Result<Vocabulary> parse_vocabulary(std::string_view json, const char* name);

// tokenizer.json, the form of HuggingFace's fast tokenizers, of which exports for other runtimes have one in place of
// vocab.json: model.vocab is a list of [piece, score] whose places are the ids, added_tokens a list of {id, content}.
// Scores, normaliser and unk_id are not used: source.spm and target.spm are the better source, and exports are known
// to leave the normaliser out and to write a fixed unk_id.
Result<Vocabulary> parse_fast_tokenizer(std::string_view json, const char* name);

}  // namespace dragoman
