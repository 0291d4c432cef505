// Which tables this machine runs. Built with baseline flags, like everything outside isa_*.cpp.
#include <cstring>

#include "kernels/kernels.h"

namespace dragoman {

extern const Kernels kAvx2, kPortable;  // one per isa_*.cpp; CMake says which are there

namespace {

struct Choices {
  KernelChoice all[8];
  const Kernels* available[8];
  size_t all_count = 0;
  size_t available_count = 0;

  void add(bool runs, const Kernels& kernels, const char* name, const char* needs) {
    all[all_count++] = {runs ? &kernels : nullptr, name, needs};
    if (runs) available[available_count++] = &kernels;
  }

  // __builtin_cpu_supports asks the CPU and, through XGETBV, the operating system.
  Choices() {
#if defined(DRAGOMAN_HAVE_AVX2)
    add(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"), kAvx2, "avx2", "AVX2 and FMA");
#endif
    add(true, kPortable, "portable", "any CPU");
  }
};

// Filled on the first call, by one thread.
const Choices& choices() {
  static const Choices instance;
  return instance;
}

}  // namespace

std::span<const KernelChoice> all_kernels() {
  return {choices().all, choices().all_count};
}

std::span<const Kernels* const> available_kernels() {
  return {choices().available, choices().available_count};
}

const Kernels* find_kernels(const char* name) {
  for (const Kernels* k : available_kernels()) {
    if (std::strcmp(k->name, name) == 0) return k;
  }
  return nullptr;
}

}  // namespace dragoman
