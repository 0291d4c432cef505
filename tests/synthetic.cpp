#include "tests/synthetic.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "tests/random.h"

namespace dragoman::test {
namespace {

using Json = nlohmann::json;

const std::string kTiny = DRAGOMAN_TEST_DATA "/tiny/";

// Exact: the values of SyntheticTensor need 8 bits.
uint16_t narrow(float value, bool half) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (!half) return static_cast<uint16_t>(bits >> 16);
  if (value == 0) return static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t exponent = (bits >> 23 & 255) - 127 + 15;
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 1023));
}

// Draws tensors in the order they are asked for.
class Weights128 {
 public:
  Weights128(uint32_t seed, std::map<std::string, SyntheticTensor>& tensors) : random_(seed), tensors_(tensors) {}

  void add(const std::string& name, std::vector<uint64_t> shape, float center = 0) {
    size_t count = 1;
    for (const uint64_t extent : shape) count *= extent;
    SyntheticTensor tensor{std::move(shape), std::vector<float>(count)};
    for (float& value : tensor.values)
      value = center + static_cast<float>(static_cast<int>(random_.below(63)) - 31) / 128;
    tensors_[name] = std::move(tensor);
  }
  void linear(const std::string& name, uint64_t n, uint64_t k) {
    add(name + ".weight", {n, k});
    add(name + ".bias", {n});
  }
  void norm(const std::string& name, uint64_t d) {
    add(name + ".weight", {d}, 1.0f);
    add(name + ".bias", {d});
  }
  void attention(const std::string& name, uint64_t d) {
    for (const char* part : {".q_proj", ".k_proj", ".v_proj", ".out_proj"}) linear(name + part, d, d);
    norm(name + "_layer_norm", d);
  }

 private:
  Random random_;
  std::map<std::string, SyntheticTensor>& tensors_;
};

}  // namespace

SyntheticFolder::SyntheticFolder(const SyntheticModel& model) : dtype(model.dtype) {
  std::string name = (std::filesystem::temp_directory_path() / "dragoman-XXXXXX").string();
  REQUIRE(mkdtemp(name.data()) != nullptr);
  path = name;
  add_vocabularies(model);
  add_config(model);
  add_tensors(model);
}

SyntheticFolder::~SyntheticFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

void SyntheticFolder::add_vocabularies(const SyntheticModel& model) {
  vocabulary = Json::parse(read_bytes(kTiny + "vocab.json"));
  if (model.separate_vocabularies) {
    target_vocabulary = vocabulary;
    for (uint32_t i = 0; i < 3; ++i) target_vocabulary["<more" + std::to_string(i) + ">"] = 400 + i;
  }
  uint32_t next = 400;
  for (uint32_t i = 0; i < model.extra_pieces; ++i) vocabulary["<extra" + std::to_string(i) + ">"] = next++;
  for (const std::string& language : model.languages) vocabulary[">>" + language + "<<"] = next++;
  tokenizer_config = {{"separate_vocabs", model.separate_vocabularies}};
}

void SyntheticFolder::add_config(const SyntheticModel& model) {
  config = {{"architectures", {"MarianMTModel"}},
            {"model_type", "marian"},
            {"d_model", model.d_model},
            {"encoder_layers", model.encoder_layers},
            {"decoder_layers", model.decoder_layers},
            {"encoder_attention_heads", model.encoder_heads},
            {"decoder_attention_heads", model.decoder_heads},
            {"encoder_ffn_dim", model.encoder_ffn},
            {"decoder_ffn_dim", model.decoder_ffn},
            {"activation_function", model.activation},
            {"scale_embedding", model.scale_embedding},
            {"normalize_before", model.pre_norm},
            {"normalize_embedding", model.embedding_norm},
            {"add_final_layer_norm", model.final_norm},
            {"share_encoder_decoder_embeddings", model.shared_embeddings},
            {"tie_word_embeddings", model.tied_output},
            {"static_position_embeddings", !model.stored_positions},
            {"max_position_embeddings", model.positions},
            {"vocab_size", vocabulary.size()},
            {"decoder_vocab_size", model.separate_vocabularies ? target_vocabulary.size() : vocabulary.size()},
            {"pad_token_id", 399},
            {"eos_token_id", 0},
            {"decoder_start_token_id", 399},
            {"num_beams", 4}};
  generation = {{"bad_words_ids", {{399}, {7}}}, {"eos_token_id", 0}, {"pad_token_id", 399}, {"max_length", 64}};
}

void SyntheticFolder::add_tensors(const SyntheticModel& model) {
  const uint64_t d = model.d_model, source = config["vocab_size"], target = config["decoder_vocab_size"];
  Weights128 weights(model.seed, tensors);
  weights.add("model.decoder.embed_tokens.weight", {target, d});
  const SyntheticTensor shared = tensors["model.decoder.embed_tokens.weight"];
  if (model.shared_embeddings && !model.tied_copies) tensors.erase("model.decoder.embed_tokens.weight");
  if (model.shared_embeddings) tensors["model.shared.weight"] = shared;
  if (model.shared_embeddings && model.tied_copies) tensors["model.encoder.embed_tokens.weight"] = shared;
  if (!model.shared_embeddings) weights.add("model.encoder.embed_tokens.weight", {source, d});
  if (!model.tied_output) weights.add("lm_head.weight", {target, d});
  if (model.tied_output && model.tied_copies) tensors["lm_head.weight"] = shared;
  weights.add("final_logits_bias", {1, target});
  for (const std::string side : {"encoder", "decoder"}) {
    if (model.stored_positions) weights.add("model." + side + ".embed_positions.weight", {model.positions, d});
    if (model.embedding_norm) weights.norm("model." + side + ".layernorm_embedding", d);
    if (model.final_norm) weights.norm("model." + side + ".layer_norm", d);
    const bool encoder = side == "encoder";
    const uint64_t ffn = encoder ? model.encoder_ffn : model.decoder_ffn;
    for (uint32_t i = 0; i < (encoder ? model.encoder_layers : model.decoder_layers); ++i) {
      const std::string layer = "model." + side + ".layers." + std::to_string(i);
      weights.attention(layer + ".self_attn", d);
      if (!encoder) weights.attention(layer + ".encoder_attn", d);
      weights.linear(layer + ".fc1", ffn, d);
      weights.linear(layer + ".fc2", d, ffn);
      weights.norm(layer + ".final_layer_norm", d);
    }
  }
}

void SyntheticFolder::write() const {
  write_file("config.json", config.dump(1));
  write_file("generation_config.json", generation.dump(1));
  write_file("tokenizer_config.json", tokenizer_config.dump(1));
  write_file("vocab.json", vocabulary.dump(1));
  if (!target_vocabulary.is_null()) write_file("target_vocab.json", target_vocabulary.dump(1));
  write_file("source.spm", read_bytes(kTiny + "source.spm"));
  write_file("target.spm", read_bytes(kTiny + "target.spm"));
  write_file("model.safetensors", safetensors_bytes(tensors, dtype));
}

void SyntheticFolder::write_file(const std::string& name, const std::string& content) const {
  std::ofstream out(file(name), std::ios::binary);
  out << content;
  REQUIRE(out.flush().good());
}

void SyntheticFolder::remove_file(const std::string& name) const {
  std::filesystem::remove(file(name));
}

std::string safetensors_bytes(const std::map<std::string, SyntheticTensor>& tensors, const std::string& dtype) {
  Json header = Json::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const size_t begin = data.size();
    for (const float value : tensor.values) {
      char bytes[4];
      std::memcpy(bytes, &value, 4);
      const uint16_t narrowed = dtype == "F32" ? uint16_t{0} : narrow(value, dtype == "F16");
      if (dtype != "F32") std::memcpy(bytes, &narrowed, 2);
      data.append(bytes, dtype == "F32" ? 4 : 2);
    }
    header[name] = {{"dtype", dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  std::string file = safetensors_bytes(header.dump(), 0);
  return file + data;
}

std::string safetensors_bytes(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string file(sizeof length, 0);
  std::memcpy(file.data(), &length, sizeof length);
  return file + header + std::string(data_bytes, 0);
}

std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  CAPTURE(path);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<int32_t> best_after(const Checkpoint& model, const SentencePair& sentence) {
  Reference reference(model, {&sentence, 1});
  REQUIRE(run_reference(reference, model));
  std::vector<int32_t> best(sentence.target.size());
  std::vector<double> top(best.size(), -std::numeric_limits<double>::infinity());
  REQUIRE(for_each_logits(model, reference.hidden(), [&](size_t first, const DoubleMatrix& logits) {
    for (size_t r = 0; r < logits.rows; ++r) {
      for (size_t i = 0; i < logits.cols; ++i) {
        if (logits.row(r)[i] <= top[r]) continue;
        top[r] = logits.row(r)[i];
        best[r] = static_cast<int32_t>(first + i);
      }
    }
  }));
  return best;
}

}  // namespace dragoman::test
