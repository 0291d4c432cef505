// What an instruction set is to the kernels: a tag (isa_avx2.h: struct Avx2) that holds what truly differs between
// CPUs, its registers and a handful of primitives of a few lines. Everything above (Vec16 in vec.h, the kernels in
// *-inl.h) is written once.
//
// A tag provides
//   F, I           a register of kLanes floats / int32; F has + - * /
//   kRowsF32       rows of x in a register tile of gemm_f32; kRowsS8 likewise
//   kPanels        panels of weights in those tiles
//   kStreams       4: few rows of gemm_s8 go through up to four panels at once, far from each other; 1: through one
//   W, widen, narrow, kFma   what fma() computes on: F itself where the CPU fuses, doubles where it does not
//   max, min       a > b ? a : b and a < b ? a : b, exactly: with NaN, the second operand (what maxps does)
//   Weights, Quad, dot4      four products of int8 weights per lane, added to an int32, exact
//   kOffset        what is added to the bytes of x: 127 where the multiplication wants them unsigned, else 0
//   Step<M>        instead of these, where M rows go better another way: several rows or more k at a time
//                  (ByFours in gemm_s8-inl.h says what a step is)
//
// Every function here is inlined: no code without a tag in its name may leave an object built with special flags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#define DRAGOMAN_INLINE [[gnu::always_inline]] inline
#define DRAGOMAN_INLINE_LAMBDA __attribute__((always_inline))  // after a lambda's parameters
