// Which tables this machine runs. Built with baseline flags, like everything outside isa_*.cpp.
#include <pthread.h>

#include <cstring>

#include "kernels/kernels.h"

#if defined(__linux__) && (defined(__aarch64__) || defined(__arm__))
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace dragoman {

// One per isa_*.cpp; CMake says which are there.
extern const Kernels kAvx512Vnni, kAvx512, kAvx2, kSse41;
extern const Kernels kNeonI8mm, kNeonDot, kNeon, kNeon32;
extern const Kernels kPortable;

namespace {

struct Choices {
  KernelChoice all[8] = {};
  const Kernels* available[8] = {};
  size_t all_count = 0;
  size_t available_count = 0;

  void add(bool runs, const Kernels& kernels, const char* name, const char* needs) {
    all[all_count++] = {runs ? &kernels : nullptr, name, needs};
    if (runs) available[available_count++] = &kernels;
  }

  // Best first. __builtin_cpu_supports asks the CPU and, through XGETBV, the operating system: libgcc 12 reports AVX
  // and AVX2 only where XCR0 has bits 1 and 2, every AVX-512 set only where it has bits 5 to 7 as well (read in its
  // disassembly, and tried: tests/emulate/x86.sh boots a kernel that leaves them off).
  void fill() {
#if defined(DRAGOMAN_HAVE_AVX512) || defined(DRAGOMAN_HAVE_AVX512VNNI)
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
#if defined(DRAGOMAN_HAVE_AVX512VNNI)
    add(avx512 && __builtin_cpu_supports("avx512vnni"), kAvx512Vnni, "avx512vnni", "AVX-512 F, BW, DQ, VL and VNNI");
#endif
#if defined(DRAGOMAN_HAVE_AVX512)
    add(avx512, kAvx512, "avx512", "AVX-512 F, BW, DQ and VL");
#endif
#if defined(DRAGOMAN_HAVE_AVX2)
    add(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"), kAvx2, "avx2", "AVX2 and FMA");
#endif
#if defined(DRAGOMAN_HAVE_SSE41)
    add(__builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1"), kSse41, "sse41", "SSE4.1");
#endif
#if defined(DRAGOMAN_HAVE_NEONI8MM) || defined(DRAGOMAN_HAVE_NEONDOT) || defined(DRAGOMAN_HAVE_NEON)
    const unsigned long bits = getauxval(AT_HWCAP);  // what the kernel found, and lets programs use
    [[maybe_unused]] const bool neon = bits & HWCAP_ASIMD, dot = neon && (bits & HWCAP_ASIMDDP);
#endif
#if defined(DRAGOMAN_HAVE_NEONI8MM)
    add(dot && (getauxval(AT_HWCAP2) & HWCAP2_I8MM), kNeonI8mm, "neoni8mm",
        "NEON, dot product and int8 matrix product");
#endif
#if defined(DRAGOMAN_HAVE_NEONDOT)
    add(dot, kNeonDot, "neondot", "NEON and dot product");
#endif
#if defined(DRAGOMAN_HAVE_NEON)
    add(neon, kNeon, "neon", "NEON");
#endif
#if defined(DRAGOMAN_HAVE_NEON32)
    const unsigned long bits = getauxval(AT_HWCAP);
    add((bits & HWCAP_NEON) && (bits & HWCAP_VFPv4), kNeon32, "neon32", "NEON and VFPv4");
#endif
    add(true, kPortable, "portable", "any CPU");
  }
};

// Filled on the first call, by one thread. Not a static with a constructor: its guard is a function of libstdc++, the
// only one there would be, and a C program links this library with libc alone.
const Choices& choices() {
  static constinit Choices instance;
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { instance.fill(); });
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
