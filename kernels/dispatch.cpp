// Which tables this machine runs. Built with baseline flags, like everything outside isa_*.cpp.
#include <cstring>

#include "kernels/kernels.h"

namespace dragoman {

extern const Kernels kAvx512Vnni, kAvx512, kAvx2, kSse41, kPortable;  // one per isa_*.cpp; CMake says which are there

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

  // __builtin_cpu_supports asks the CPU and, through XGETBV, the operating system: libgcc 12 reports AVX and AVX2 only
  // where XCR0 has bits 1 and 2, every AVX-512 set only where it has bits 5 to 7 as well (read in its disassembly, and
  // tried: tests/emulate/x86.sh boots a kernel that leaves them off).
  Choices() {
#if defined(DRAGOMAN_HAVE_AVX512)
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    add(avx512 && __builtin_cpu_supports("avx512vnni"), kAvx512Vnni, "avx512vnni", "AVX-512 F, BW, DQ, VL and VNNI");
    add(avx512, kAvx512, "avx512", "AVX-512 F, BW, DQ and VL");
#endif
#if defined(DRAGOMAN_HAVE_AVX2)
    add(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"), kAvx2, "avx2", "AVX2 and FMA");
#endif
#if defined(DRAGOMAN_HAVE_SSE41)
    add(__builtin_cpu_supports("sse4.1"), kSse41, "sse41", "SSE4.1");
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
