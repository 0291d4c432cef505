// The table of one instruction set: every kernel, instantiated on its tag.
#pragma once

#include "kernels/argmax-inl.h"
#include "kernels/attention-inl.h"
#include "kernels/elementwise-inl.h"
#include "kernels/embed-inl.h"
#include "kernels/gemm_f32-inl.h"
#include "kernels/gemm_s8-inl.h"
#include "kernels/kernels.h"
#include "kernels/layer_norm-inl.h"
#include "kernels/softmax-inl.h"

namespace dragoman {

template <class Isa>
consteval Kernels table() {
  return {
      .name = Isa::kName,
      .offset = Isa::kOffset,
      .gemm_f32 = gemm_f32<Isa>,
      .gemm_s8 = gemm_s8<Isa>,
      .quantize_rows = quantize_rows<Isa>,
      .embed_f32 = embed_f32<Isa>,
      .embed_s8 = embed_s8<Isa>,
      .attention = attention<Isa>,
      .softmax = softmax<Isa>,
      .layer_norm = layer_norm<Isa>,
      .add = add<Isa>,
      .relu = relu<Isa>,
      .silu = silu<Isa>,
      .gelu = gelu<Isa>,
      .gelu_tanh = gelu_tanh<Isa>,
      .argmax = argmax<Isa>,
      .log_sum_exp = log_sum_exp<Isa>,
  };
}

}  // namespace dragoman
