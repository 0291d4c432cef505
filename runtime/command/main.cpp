// The `dragoman` command. docs and `dragoman --help` say what it does; each command has its own file.
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <span>

#include "runtime/command/commands.h"
#include "runtime/command/help.h"
#include "runtime/command/options.h"
#include "runtime/command/text_out.h"
#include "runtime/format.h"

namespace dragoman::command {
namespace {

struct Entry {
  const char* name;
  Command command;
  int (*run)(const Settings& settings);
};

constexpr Entry kCommands[] = {{"translate", kTranslate, run_translate},
                               {"tokenize", kTokenize, run_tokenize},
                               {"inspect", kInspect, run_inspect},
                               {"verify", kVerify, run_verify},
                               {"cpu", kCpu, run_cpu}};

bool is_any(const char* word, const char* a, const char* b, const char* c) {
  return std::strcmp(word, a) == 0 || std::strcmp(word, b) == 0 || std::strcmp(word, c) == 0;
}

int print(const char* text) {
  standard_output().put(text);
  return finish_output(standard_output(), kOk);
}

int print_version() {
  standard_output().format("dragoman %s (reads .dgm format %u)\n", DRAGOMAN_VERSION, kFormatVersion);
  return finish_output(standard_output(), kOk);
}

int run(const Entry& entry, std::span<char*> arguments) {
  const Result<Settings> settings = parse_options(entry.command, arguments);
  if (!settings) {
    say("%s: %s", entry.name, settings.error().text);
    return kUsageError;
  }
  return settings->help ? print(help_text(entry.name)) : entry.run(*settings);
}

int unknown(const char* word) {
  if (word[0] == '-') {
    say("there is no option '%s' before a command: `dragoman --help` lists the commands", word);
  } else {
    say("'%s' is not a command: to translate a text, write `dragoman translate \"...\"`; `dragoman --help` lists all",
        word);
  }
  return kUsageError;
}

const Entry* find_command(const char* word) {
  for (const Entry& entry : kCommands) {
    if (std::strcmp(entry.name, word) == 0) return &entry;
  }
  return nullptr;
}

int help(std::span<char*> arguments) {
  if (arguments.empty() || is_any(arguments[0], "help", "version", "--help")) return print(help_text(""));
  return find_command(arguments[0]) ? print(help_text(arguments[0])) : unknown(arguments[0]);
}

int main(std::span<char*> arguments) {
  if (arguments.empty()) {
    write_error(help_text(""));
    return kUsageError;
  }
  const char* word = arguments[0];
  if (const Entry* entry = find_command(word)) return run(*entry, arguments.subspan(1));
  if (is_any(word, "--version", "version", "-V")) return print_version();
  if (is_any(word, "--help", "help", "-h")) return help(arguments.subspan(1));
  return unknown(word);
}

// The model is mapped: a file that was cut short, or a disk that fails, shows as a signal at the first touch of a page.
void end_by_bus_error(int, siginfo_t* info, void*) {
  if (info->si_code != BUS_ADRERR) return;  // something else; SA_RESETHAND: the next time it ends the process
  write_error("dragoman: the model file became shorter or unreadable while in use; --preload reads it into memory\n");
  _exit(kRuntimeError);
}

void arrange_signals() {
  signal(SIGPIPE, SIG_IGN);  // a reader that went away is a failed write, and ends the command quietly
  signal(SIGXFSZ, SIG_IGN);  // so is a limit on the size of files, with a sentence
  struct sigaction on_bus_error = {};
  on_bus_error.sa_sigaction = end_by_bus_error;
  on_bus_error.sa_flags = SA_SIGINFO | static_cast<int>(SA_RESETHAND);
  sigaction(SIGBUS, &on_bus_error, nullptr);
}

}  // namespace
}  // namespace dragoman::command

int main(int argc, char** argv) {
  dragoman::command::arrange_signals();
  const size_t count = argc > 0 ? static_cast<size_t>(argc) : 0;
  return dragoman::command::main(std::span<char*>(argv, count).subspan(count > 0));
}
