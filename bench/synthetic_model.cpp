#include "bench/synthetic_model.h"

#include <cmath>
#include <limits>

#include "converter/pack_model.h"
#include "converter/sentencepiece.h"

namespace dragoman::bench {
namespace {

constexpr uint32_t kEos = 0, kUnk = 1, kPad = kPieces - 1;

// Weights in the order they are asked for. A 64-bit LCG is random enough for weights and makes 200 million a second.
class Weaver {
 public:
  explicit Weaver(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 42) {}

  std::vector<float> uniform(size_t count, float reach) {
    std::vector<float> values(count);
    for (float& value : values) {
      state_ = state_ * 6364136223846793005u + 1442695040888963407u;
      value = reach * (static_cast<float>(state_ >> 40) * 0x1p-23f - 1.0f);
    }
    return values;
  }

  // Glorot and Bengio 2010: outputs as large as inputs, so that no layer explodes or dies.
  LinearWeights linear(size_t n, size_t k) {
    const float reach = std::sqrt(6.0f / static_cast<float>(n + k));
    return {n, k, uniform(n * k, reach), uniform(n, 0.02f)};
  }
  NormWeights norm(size_t d) { return {std::vector<float>(d, 1.0f), std::vector<float>(d, 0.0f)}; }
  AttentionWeights attention(size_t d) { return {linear(d, d), linear(d, d), linear(d, d), linear(d, d), norm(d)}; }
  FeedForwardWeights ffn(size_t d, size_t f) { return {linear(f, d), linear(d, f), norm(d)}; }

 private:
  uint64_t state_;
};

// Made when they are asked for: floats of the big one would be 0.8 GB.
class WovenWeights : public WeightSource {
 public:
  explicit WovenWeights(const Shape& shape) : shape_(shape) {}

  Result<EncoderWeights> encoder_layer(size_t layer) const override {
    Weaver weaver(100 + layer);
    return EncoderWeights{weaver.attention(shape_.d_model), weaver.ffn(shape_.d_model, shape_.ffn)};
  }
  Result<DecoderWeights> decoder_layer(size_t layer) const override {
    Weaver weaver(200 + layer);
    AttentionWeights self = weaver.attention(shape_.d_model), cross = weaver.attention(shape_.d_model);
    return DecoderWeights{std::move(self), std::move(cross), weaver.ffn(shape_.d_model, shape_.ffn)};
  }
  Result<std::vector<float>> rows(Table, size_t first, size_t count) const override {
    const size_t d = shape_.d_model;
    const float reach = std::sqrt(3.0f / static_cast<float>(d));  // variance 1/d: embedding * sqrt(d) is of unit size
    std::vector<float> table;
    for (size_t row = first; row < first + count; ++row) {
      const std::vector<float> values = Weaver(1000 + row).uniform(d, reach);
      table.insert(table.end(), values.begin(), values.end());
    }
    return table;
  }

 private:
  const Shape& shape_;
};

// sin(pos / 10000^(2i/d)) for i < d/2, then the cosines.
std::vector<float> sinusoids(size_t positions, size_t d) {
  std::vector<float> table(positions * d);
  for (size_t i = 0; i < d / 2; ++i) {
    const double rate = std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(d));
    for (size_t pos = 0; pos < positions; ++pos) {
      table[pos * d + i] = static_cast<float>(std::sin(static_cast<double>(pos) * rate));
      table[pos * d + d / 2 + i] = static_cast<float>(std::cos(static_cast<double>(pos) * rate));
    }
  }
  return table;
}

// A piece of letters for every id: as long as pieces usually are, each different.
std::string piece_text(uint32_t id) {
  std::string text = "\xE2\x96\x81";  // the sign for a space
  for (uint32_t rest = id; rest > 0; rest /= 26) text += static_cast<char>('a' + rest % 26);
  return text + "z";
}

Result<std::vector<std::byte>> tokenizer() {
  SentencePieceModel model;
  model.name = "synthetic";
  for (uint32_t id = 0; id < kPieces; ++id) model.pieces.push_back({piece_text(id), -static_cast<float>(id), {}});
  for (SentencePiece& piece : model.pieces) piece.type = PieceType::kNormal;
  model.pieces[kEos] = {"</s>", 0, PieceType::kControl};
  model.pieces[kUnk] = {"<unk>", 0, PieceType::kUnknown};
  model.pieces[kPad] = {"<pad>", 0, PieceType::kControl};
  model.unk = kUnk;
  return compile_tokenizer(model, nullptr,
                           {static_cast<int32_t>(kUnk), static_cast<int32_t>(kEos), static_cast<int32_t>(kPad)});
}

Architecture architecture(const Shape& shape) {
  Architecture a{};
  a.d_model = shape.d_model;
  a.encoder_layers = shape.encoder_layers;
  a.decoder_layers = shape.decoder_layers;
  a.encoder_heads = a.decoder_heads = shape.heads;
  a.encoder_ffn = a.decoder_ffn = shape.ffn;
  a.source_vocabulary = a.target_vocabulary = kPieces;
  a.positions = kPositions;
  a.activation = Activation::kRelu;
  a.norm = NormPosition::kPost;
  a.flags = kSharedEmbedding | kTiedOutput | kSharedPositions | kSharedTokenizer;
  a.eos = kEos;
  a.unk = kUnk;
  a.pad = a.decoder_start = kPad;
  a.embedding_scale = std::sqrt(static_cast<float>(shape.d_model));
  a.layer_norm_epsilon = 1e-5f;
  return a;
}

Checkpoint checkpoint(const Shape& shape) {
  Checkpoint model;
  model.arch = architecture(shape);
  model.weights = std::make_shared<WovenWeights>(shape);
  model.output_bias = Weaver(1).uniform(kPieces, 0.02f);
  model.output_bias[kEos] = model.output_bias[kPad] = -std::numeric_limits<float>::infinity();
  model.encoder_positions = sinusoids(kPositions, shape.d_model);
  return model;
}

}  // namespace

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {"tiny", "Bergamot's tiny, with a self-attention decoder", 6, 2, 256, 1536, 8},
      {"base-memory", "Bergamot's base-memory", 6, 4, 384, 1536, 8},
      {"base", "Transformer base (Vaswani et al. 2017)", 6, 6, 512, 2048, 8},
      {"big", "Transformer big (Vaswani et al. 2017)", 6, 6, 1024, 4096, 16},
  };
  return all;
}

const Shape* find_shape(const std::string& name) {
  for (const Shape& shape : shapes()) {
    if (name == shape.name) return &shape;
  }
  return nullptr;
}

Result<MemoryFile> synthetic_model(const Shape& shape, Weights weights) {
  Result<std::vector<std::byte>> tables = tokenizer();
  if (!tables) return tables.error();
  Checkpoint model = checkpoint(shape);
  model.source_tokenizer = std::move(*tables);
  std::vector<SectionData> sections = front_sections(model, weights);
  SectionsInMemory tensors;
  const auto packed = pack_tensors(model, weights, {}, tensors, Progress{});
  if (!packed) return packed.error();
  sections.insert(sections.end(), std::make_move_iterator(tensors.sections.begin()),
                  std::make_move_iterator(tensors.sections.end()));
  return MemoryFile::create(assemble(sections).bytes());
}

}  // namespace dragoman::bench
