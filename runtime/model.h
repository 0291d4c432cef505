// A model: views into a .dgm file that lies in memory. Nothing is copied or repacked (C2).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kernels/kernels.h"
#include "runtime/format.h"
#include "runtime/result.h"
#include "runtime/tokenizer.h"

namespace dragoman {

// y = x W + b, in one of two number formats (Architecture::weights says which).
struct Linear {
  PanelsF32 f32;
  PanelsS8 s8;
  size_t inputs() const { return f32.k + s8.k; }
  size_t panels() const { return f32.panels + s8.panels; }
  size_t outputs() const { return panels() * kPanel; }
};

struct Norm {
  const float* gamma = nullptr;
  const float* beta = nullptr;
};

struct EncoderLayer {
  Linear qkv, out;
  Norm self_norm;
  Linear ffn_in, ffn_out;
  Norm ffn_norm;
};

struct DecoderLayer {
  Linear qkv, out;
  Norm self_norm;
  Linear cross_q, cross_kv, cross_out;
  Norm cross_norm;
  Linear ffn_in, ffn_out;
  Norm ffn_norm;
};

struct Model {
  Architecture arch{};
  EncoderLayer encoder[kMaxLayers];
  DecoderLayer decoder[kMaxLayers];
  Norm encoder_embedding_norm, decoder_embedding_norm, encoder_norm, decoder_norm;
  Linear source_embedding, target_embedding, output;
  const float* encoder_positions = nullptr;
  const float* decoder_positions = nullptr;
  Tokenizer source, target;
  std::string_view provenance, licence;  // text sections, empty where absent
  std::span<const std::byte> selftest;   // empty where absent
  std::span<const std::byte> file;       // the whole file
  std::span<const Section> sections;

  bool has(ArchitectureFlags flag) const { return arch.flags & flag; }
};

// Checks a file that lies in memory (C4) and fills `model` with views into it. `name` is used in messages.
// The bytes must be 64-byte aligned, outlive the model and not change.
Status open_model(std::span<const std::byte> file, const char* name, Model& model);

// The tensors too: checksums, no int8 weight is -128, and their stored sums are right.
Status verify_tensors(const Model& model, const char* name);

}  // namespace dragoman
