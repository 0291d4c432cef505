// The target languages of a multilingual model, for people: names in, sentences out.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/model.h"
#include "runtime/result.h"

namespace dragoman {

// The id that stands before a text: for Options::target_language. `name` is "deu" or ">>deu<<". Where the model does
// not have it, the sentence lists those it has, the ones spelt most like it first.
Result<int32_t> find_language(const Model& model, std::string_view name);

// "deu, fra, ita and 3 more" into `room`: up to `most` languages, those that begin most like `near` first.
std::string_view list_languages(const Model& model, std::string_view near, size_t most, std::span<char> room);

}  // namespace dragoman
