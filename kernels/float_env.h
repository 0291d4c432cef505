// The float environment all kernels run in: round to nearest, subnormals flushed to zero, in and out.
// ARMv7's NEON always flushes, so every CPU does (C6). The caller's environment comes back at the end of the scope.
#pragma once

#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#endif

namespace dragoman {

class FloatEnv {
 public:
  FloatEnv() : saved_(read()) { write(kKernels); }
  ~FloatEnv() { write(saved_); }
  FloatEnv(const FloatEnv&) = delete;
  FloatEnv& operator=(const FloatEnv&) = delete;

 private:
#if defined(__x86_64__) || defined(__i386__)
  using Word = uint32_t;
  static constexpr Word kKernels = 0x9fc0;  // MXCSR: FTZ, DAZ, all exceptions masked, nearest
  static Word read() {
    return _mm_getcsr();
  }
  static void write(Word w) {
    _mm_setcsr(w);
  }
#elif defined(__aarch64__)
  using Word = uint64_t;
  static constexpr Word kKernels = Word{1} << 24;  // FPCR.FZ
  static Word read() {
    Word w;
    __asm__ volatile("mrs %0, fpcr" : "=r"(w));
    return w;
  }
  static void write(Word w) {
    __asm__ volatile("msr fpcr, %0" ::"r"(w));
  }
#elif defined(__arm__) && defined(__ARM_FP)
  using Word = uint32_t;
  static constexpr Word kKernels = Word{1} << 24;  // FPSCR.FZ
  static Word read() {
    Word w;
    __asm__ volatile("vmrs %0, fpscr" : "=r"(w));
    return w;
  }
  static void write(Word w) {
    __asm__ volatile("vmsr fpscr, %0" ::"r"(w));
  }
#else
  using Word = uint32_t;  // unknown CPU: the environment it starts with
  static constexpr Word kKernels = 0;
  static Word read() {
    return 0;
  }
  static void write(Word) {}
#endif
  Word saved_;
};

}  // namespace dragoman
