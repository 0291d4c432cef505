// A trained encoder-decoder Transformer in plain floats: what every reader of foreign files produces, and what the
// packer and the reference take. Its large tensors stay where they are until somebody asks for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/format.h"
#include "runtime/result.h"

namespace dragoman {

// y = x W^T + b. w is (n, k) row-major, one row per output, as torch's Linear stores it.
struct LinearWeights {
  size_t n = 0, k = 0;
  std::vector<float> w;
  std::vector<float> b;  // n
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

enum class Table { kSourceEmbedding, kTargetEmbedding, kOutput };

// Layers one at a time, tables some rows at a time: who works through a model holds a small part of it.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual Result<EncoderWeights> encoder_layer(size_t layer) const = 0;
  virtual Result<DecoderWeights> decoder_layer(size_t layer) const = 0;
  virtual Result<std::vector<float>> rows(Table table, size_t first, size_t count) const = 0;  // (count, d_model)
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
  std::shared_ptr<const WeightSource> weights;
  std::vector<float> output_bias;  // target_vocabulary; -infinity for ids that must never be produced
  std::vector<float> encoder_positions, decoder_positions;  // (positions, d_model); the second empty when shared
  NormWeights encoder_embedding_norm, decoder_embedding_norm, encoder_norm, decoder_norm;  // as arch.flags say
  std::vector<std::byte> source_tokenizer, target_tokenizer;  // compiled; the second empty when kSharedTokenizer

  bool has(ArchitectureFlags flag) const { return arch.flags & flag; }
  Table source_table() const { return has(kSharedEmbedding) ? Table::kTargetEmbedding : Table::kSourceEmbedding; }
  Table output_table() const { return has(kTiedOutput) ? Table::kTargetEmbedding : Table::kOutput; }
};

}  // namespace dragoman
