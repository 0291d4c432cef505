// A trained encoder-decoder Transformer in plain floats: what every reader of foreign files produces, and what the
// packer and the reference take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/format.h"

namespace dragoman {

// y = x W^T + b. w is (n, k) row-major, one row per output, as torch's Linear stores it.
struct LinearWeights {
  size_t n = 0, k = 0;
  std::vector<float> w;
  std::vector<float> b;  // n; empty for an embedding
};

struct NormWeights {
  std::vector<float> gamma, beta;  // d_model
};

struct AttentionWeights {
  LinearWeights q, k, v, out;
  NormWeights norm;
};

struct FeedForwardWeights {
  LinearWeights in, out;
  NormWeights norm;
};

struct EncoderWeights {
  AttentionWeights self;
  FeedForwardWeights ffn;
};

struct DecoderWeights {
  AttentionWeights self, cross;
  FeedForwardWeights ffn;
};

// Where it came from, for the provenance section.
struct Origin {
  std::string format;   // "HuggingFace MarianMT"
  std::string name;     // the folder's own name
  std::string weights;  // the file's own name; of several the first and the last
  std::string storage;  // "F32"; "F16, F32" where mixed
  uint64_t weight_bytes = 0;
  uint64_t checksum = 0;  // of the weight files, one after the other
};

struct Checkpoint {
  Architecture arch{};  // weights is kF32: the packer decides
  Origin origin;
  LinearWeights source_embedding;  // (source_vocabulary, d_model); empty when kSharedEmbedding
  LinearWeights target_embedding;  // (target_vocabulary, d_model)
  LinearWeights output;            // the same shape; empty when kTiedOutput
  std::vector<float> output_bias;  // target_vocabulary; -infinity for ids that must never be produced
  std::vector<float> encoder_positions, decoder_positions;  // (positions, d_model); the second empty when shared
  NormWeights encoder_embedding_norm, decoder_embedding_norm, encoder_norm, decoder_norm;  // as arch.flags say
  std::vector<EncoderWeights> encoder;
  std::vector<DecoderWeights> decoder;
  std::vector<std::byte> source_tokenizer, target_tokenizer;  // compiled; the second empty when kSharedTokenizer

  bool has(ArchitectureFlags flag) const { return arch.flags & flag; }
  const LinearWeights& embedding_of_source() const {
    return has(kSharedEmbedding) ? target_embedding : source_embedding;
  }
  const LinearWeights& output_layer() const { return has(kTiedOutput) ? target_embedding : output; }
};

}  // namespace dragoman
