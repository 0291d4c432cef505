// The command line: `--name value`, `--name=value`, `-m value`, `--` ends the options, words may stand anywhere.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/result.h"
#include "runtime/translator.h"

namespace dragoman::command {

// Bits: an option says which commands know it.
enum Command : unsigned { kTranslate = 1, kTokenize = 2, kInspect = 4, kVerify = 8, kCpu = 16 };

struct Settings {
  const char* model = nullptr;
  const char* isa = nullptr;
  const char* target_language = nullptr;
  uint32_t threads = 0, batch = 0, max_length = 0, max_source = 0;  // 0: not given
  bool cut_loops = false, json = false, scores = false, ids = false, preload = false, progress = false, quiet = false;
  bool pieces = false, decode = false, target = false;
  bool all_isas = false, licence = false, help = false;
  std::span<char* const> words;  // what is not an option: TEXT or FILE

  Limits limits(uint32_t default_batch) const {
    return {.slots = batch ? batch : default_batch, .source = max_source, .target = max_length, .threads = threads};
  }
};

// `arguments` are those after the command's name; they are reordered so that the words come first.
Result<Settings> parse_options(Command command, std::span<char*> arguments);

}  // namespace dragoman::command
