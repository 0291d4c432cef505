// Finding what a run needs: the model file and the kernels.
#pragma once

#include "kernels/kernels.h"
#include "runtime/command/options.h"
#include "runtime/model.h"
#include "runtime/result.h"

namespace dragoman::command {

// -m or `word` (may be null), then $DRAGOMAN_MODEL, then the only .dgm beside the executable, then the only one in
// <prefix>/share/dragoman. The path stays valid for the run.
Result<const char*> locate_model(const Settings& settings, const char* word = nullptr);

// --isa, then $DRAGOMAN_ISA, then the best this machine runs. `why` says which of them it was.
struct KernelSelection {
  const Kernels* kernels;
  const char* why;
};
Result<KernelSelection> select_kernels(const Settings& settings);

// Locates, maps and checks; the model lives to the end of the program. Null: the reason was said.
const Model* open_located_model(const Settings& settings);

}  // namespace dragoman::command
