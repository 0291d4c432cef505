// The commands of the `dragoman` program. Each returns its exit code.
#pragma once

#include "runtime/command/options.h"

namespace dragoman::command {

enum ExitCode : int {
  kOk = 0,
  kRuntimeError = 1,  // a file, memory, input or output
  kUsageError = 2,    // the command line
  kFailed = 3,        // verify found a difference; lines of input that are not ids
};

int run_translate(const Settings& settings);
int run_tokenize(const Settings& settings);
int run_inspect(const Settings& settings);
int run_verify(const Settings& settings);
int run_cpu(const Settings& settings);

}  // namespace dragoman::command
