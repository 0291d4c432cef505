#include "runtime/command/options.h"

#include <cstring>
#include <string_view>

namespace dragoman::command {
namespace {

// Exactly one of the three members is set.
struct Option {
  std::string_view name;
  char letter;  // 0: none
  unsigned commands;
  bool Settings::*flag = nullptr;
  uint32_t Settings::*number = nullptr;
  const char* Settings::*text = nullptr;
};

constexpr unsigned kModel = kTranslate | kTokenize | kInspect | kVerify;
constexpr unsigned kAll = kModel | kCpu;

constexpr Option kOptions[] = {
    {.name = "model", .letter = 'm', .commands = kModel, .text = &Settings::model},
    {.name = "isa", .letter = 0, .commands = kTranslate | kVerify | kCpu, .text = &Settings::isa},
    {.name = "target-language", .letter = 0, .commands = kTranslate, .text = &Settings::target_language},
    {.name = "threads", .letter = 't', .commands = kTranslate | kInspect, .number = &Settings::threads},
    {.name = "batch", .letter = 'b', .commands = kTranslate | kInspect, .number = &Settings::batch},
    {.name = "max-length", .letter = 0, .commands = kTranslate | kInspect, .number = &Settings::max_length},
    {.name = "max-source", .letter = 0, .commands = kTranslate | kInspect, .number = &Settings::max_source},
    {.name = "cut-loops", .letter = 0, .commands = kTranslate, .flag = &Settings::cut_loops},
    {.name = "json", .letter = 0, .commands = kTranslate, .flag = &Settings::json},
    {.name = "scores", .letter = 0, .commands = kTranslate, .flag = &Settings::scores},
    {.name = "ids", .letter = 0, .commands = kTranslate, .flag = &Settings::ids},
    {.name = "preload", .letter = 0, .commands = kModel, .flag = &Settings::preload},
    {.name = "progress", .letter = 0, .commands = kTranslate, .flag = &Settings::progress},
    {.name = "quiet", .letter = 'q', .commands = kTranslate | kTokenize, .flag = &Settings::quiet},
    {.name = "pieces", .letter = 0, .commands = kTokenize, .flag = &Settings::pieces},
    {.name = "decode", .letter = 0, .commands = kTokenize, .flag = &Settings::decode},
    {.name = "target", .letter = 0, .commands = kTokenize, .flag = &Settings::target},
    {.name = "licence", .letter = 0, .commands = kInspect, .flag = &Settings::licence},
    {.name = "all-isas", .letter = 0, .commands = kVerify, .flag = &Settings::all_isas},
    {.name = "help", .letter = 'h', .commands = kAll, .flag = &Settings::help},
};

// `-m`, `--model` or the name before `=`.
const Option* find_option(std::string_view word, unsigned command) {
  for (const Option& option : kOptions) {
    const bool is_long = word.substr(0, 2) == "--" && word.substr(2) == option.name;
    const bool is_short = option.letter && word.size() == 2 && word[0] == '-' && word[1] == option.letter;
    if ((is_long || is_short) && option.commands & command) return &option;
  }
  return nullptr;
}

// 1 to 2^31 in decimal; 0 for anything else.
uint32_t parse_count(const char* text) {
  uint64_t value = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    value = value * 10 + static_cast<uint64_t>(*text - '0');
    if (value > uint64_t{1} << 31) return 0;
  }
  return *text == 0 ? static_cast<uint32_t>(value) : 0;
}

bool is_option(const char* word) {
  return word[0] == '-' && word[1] != 0;
}

// Sets one option; `next` is the argument after it. Says how many arguments were used.
Result<size_t> parse_option(unsigned command, char* word, const char* next, Settings& settings) {
  const char* equals = word[1] == '-' ? std::strchr(word, '=') : nullptr;
  const std::string_view name = equals ? std::string_view(word, static_cast<size_t>(equals - word)) : word;
  const Option* option = find_option(name, command);
  if (!option) {
    return fail("there is no option %.*s here: --help lists them, and -- comes before a text that starts with '-'",
                static_cast<int>(name.size()), name.data());
  }
  if (option->flag) {
    if (equals) return fail("--%s takes no value", option->name.data());
    settings.*option->flag = true;
    return size_t{1};
  }
  const char* value = equals ? equals + 1 : next;
  if (!value || *value == 0) return fail("--%s wants a value after it: see --help", option->name.data());
  if (option->text) {
    settings.*option->text = value;
  } else if ((settings.*option->number = parse_count(value)) == 0) {
    return fail("--%s wants a number from 1 to 2147483648, not '%s'", option->name.data(), value);
  }
  return size_t{equals ? 1u : 2u};
}

}  // namespace

Result<Settings> parse_options(Command command, std::span<char*> arguments) {
  Settings settings;
  size_t words = 0;
  bool options = true;
  for (size_t i = 0; i < arguments.size();) {
    char* word = arguments[i];
    if (options && std::strcmp(word, "--") == 0) {
      options = false;
      ++i;
    } else if (options && is_option(word)) {
      const char* next = i + 1 < arguments.size() ? arguments[i + 1] : nullptr;
      const Result<size_t> used = parse_option(command, word, next, settings);
      if (!used) return used.error();
      i += *used;
    } else {
      arguments[words++] = word;
      ++i;
    }
  }
  settings.words = {arguments.data(), words};
  return settings;
}

}  // namespace dragoman::command
