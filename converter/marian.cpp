#include "converter/marian.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include "converter/file.h"
#include "converter/safetensors.h"
#include "runtime/checksum.h"

namespace dragoman {
namespace {

constexpr const char* kWeights = "model.safetensors";

std::string shape_text(const std::vector<uint64_t>& shape) {
  std::string text = "(";
  for (const uint64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + ")";
}

// Tensors by name and shape. Remembers which were used, and the first thing that was wrong.
class TensorReader {
 public:
  explicit TensorReader(const SafeTensors& file) : file_(file) {}

  bool has(const std::string& name) const { return file_.tensors().contains(name); }

  std::vector<float> read(const std::string& name, const std::vector<uint64_t>& shape) {
    const auto found = file_.tensors().find(name);
    if (found == file_.tensors().end()) {
      refuse(fail("%s has no tensor %s, which config.json asks for", kWeights, name.c_str()));
      return {};
    }
    used_.insert(name);
    if (found->second.shape != shape) {
      refuse(fail("%s: tensor %s has shape %s, but config.json asks for %s", kWeights, name.c_str(),
                  shape_text(found->second.shape).c_str(), shape_text(shape).c_str()));
      return {};
    }
    Result<std::vector<float>> values = file_.floats(name);
    if (!values) {
      refuse(fail("%s: %s", kWeights, values.error().text));
      return {};
    }
    storage_.insert(found->second.dtype);
    const bool finite = std::all_of(values->begin(), values->end(), [](float x) { return std::isfinite(x); });
    // A bias of -infinity is a way to forbid an id.
    const bool bias = name == "final_logits_bias" &&
                      std::all_of(values->begin(), values->end(), [](float x) { return x < INFINITY; });
    if (!finite && !bias)
      refuse(fail("%s: tensor %s has values that are not finite: the file is damaged or training failed", kWeights,
                  name.c_str()));
    return std::move(*values);
  }

  LinearWeights linear(const std::string& name, uint64_t n, uint64_t k) {
    return {n, k, read(name + ".weight", {n, k}), read(name + ".bias", {n})};
  }

  NormWeights norm(const std::string& name, uint64_t d) {
    return {read(name + ".weight", {d}), read(name + ".bias", {d})};
  }

  // One table under any of several names: files keep one, some, or all copies of a tied tensor.
  // `size_key` is the setting that says how many rows it has.
  LinearWeights table(std::initializer_list<const char*> names, uint64_t n, uint64_t k, const char* size_key) {
    LinearWeights table{n, k, {}, {}};
    const char* first = nullptr;
    for (const char* name : names) {
      if (!has(name)) continue;
      check_rows(name, n, k, size_key);
      std::vector<float> values = read(name, {n, k});
      if (!first) {
        first = name;
        table.w = std::move(values);
      } else if (values != table.w) {
        refuse(
            fail("%s: %s and %s differ although config.json ties them (tie_word_embeddings, "
                 "share_encoder_decoder_embeddings)",
                 kWeights, first, name));
      }
    }
    if (!first) read(*names.begin(), {n, k});  // says that it is missing
    return table;
  }

  // The commonest disagreement of all has a sentence of its own.
  void check_rows(const char* name, uint64_t n, uint64_t k, const char* size_key) {
    const std::vector<uint64_t>& shape = file_.tensors().at(name).shape;
    if (shape.size() != 2 || shape[0] == n || shape[1] != k) return;
    const unsigned long long rows = shape[0], wanted = n;
    refuse(
        fail("%s: %s has %llu rows, but config.json says %s is %llu: the model was resized, or the two files are of "
             "different models; if the vocabulary has %llu pieces, set %s to %llu",
             kWeights, name, rows, size_key, wanted, rows, size_key, rows));
  }

  void refuse(const Error& error) {
    if (!error_) error_ = error;
  }
  bool ok() const { return !error_; }

  // After everything has been read: nothing may be left over.
  Status finish() {
    for (const auto& [name, info] : file_.tensors()) {
      if (used_.contains(name)) continue;
      refuse(
          fail("%s has a tensor %s %s that config.json does not account for: the model has a part this converter "
               "does not know",
               kWeights, printable(name).c_str(), shape_text(info.shape).c_str()));
    }
    if (error_) return *error_;
    return Done{};
  }

  std::string storage() const {
    std::string text;
    for (const std::string& dtype : storage_) text += (text.empty() ? "" : ", ") + dtype;
    return text;
  }

 private:
  const SafeTensors& file_;
  std::set<std::string> used_, storage_;
  std::optional<Error> error_;
};

AttentionWeights read_attention(TensorReader& file, const std::string& name, uint64_t d) {
  return {file.linear(name + ".q_proj", d, d), file.linear(name + ".k_proj", d, d), file.linear(name + ".v_proj", d, d),
          file.linear(name + ".out_proj", d, d), file.norm(name + "_layer_norm", d)};
}

FeedForwardWeights read_ffn(TensorReader& file, const std::string& layer, uint64_t d, uint64_t ffn) {
  return {file.linear(layer + ".fc1", ffn, d), file.linear(layer + ".fc2", d, ffn),
          file.norm(layer + ".final_layer_norm", d)};
}

void read_layers(TensorReader& file, Checkpoint& model) {
  const Architecture& arch = model.arch;
  for (uint32_t i = 0; i < arch.encoder_layers; ++i) {
    const std::string layer = "model.encoder.layers." + std::to_string(i);
    model.encoder.push_back({read_attention(file, layer + ".self_attn", arch.d_model),
                             read_ffn(file, layer, arch.d_model, arch.encoder_ffn)});
  }
  for (uint32_t i = 0; i < arch.decoder_layers; ++i) {
    const std::string layer = "model.decoder.layers." + std::to_string(i);
    model.decoder.push_back({read_attention(file, layer + ".self_attn", arch.d_model),
                             read_attention(file, layer + ".encoder_attn", arch.d_model),
                             read_ffn(file, layer, arch.d_model, arch.decoder_ffn)});
  }
  if (model.has(kEncoderEmbeddingNorm))
    model.encoder_embedding_norm = file.norm("model.encoder.layernorm_embedding", arch.d_model);
  if (model.has(kDecoderEmbeddingNorm))
    model.decoder_embedding_norm = file.norm("model.decoder.layernorm_embedding", arch.d_model);
  if (model.has(kEncoderFinalNorm)) model.encoder_norm = file.norm("model.encoder.layer_norm", arch.d_model);
  if (model.has(kDecoderFinalNorm)) model.decoder_norm = file.norm("model.decoder.layer_norm", arch.d_model);
}

void read_embeddings(TensorReader& file, const MarianConfig& config, Checkpoint& model) {
  const uint64_t d = model.arch.d_model, source = model.arch.source_vocabulary, target = model.arch.target_vocabulary;
  constexpr const char *kShared = "model.shared.weight", *kSource = "model.encoder.embed_tokens.weight",
                       *kTarget = "model.decoder.embed_tokens.weight", *kOutput = "lm_head.weight";
  const char* target_key = source == target ? "vocab_size" : "decoder_vocab_size";
  if (config.shared_embeddings && config.tied_output) {
    model.target_embedding = file.table({kShared, kSource, kTarget, kOutput}, target, d, target_key);
  } else if (config.shared_embeddings) {
    model.target_embedding = file.table({kShared, kSource, kTarget}, target, d, target_key);
    model.output = file.table({kOutput}, target, d, target_key);
  } else {
    model.source_embedding = file.table({kSource}, source, d, "vocab_size");
    if (config.tied_output) {
      model.target_embedding = file.table({kTarget, kOutput}, target, d, target_key);
    } else {
      model.target_embedding = file.table({kTarget}, target, d, target_key);
      model.output = file.table({kOutput}, target, d, target_key);
    }
  }
  // HuggingFace too takes a file without this tensor as one with zeros.
  model.output_bias.assign(target, 0.0f);
  if (file.has("final_logits_bias")) model.output_bias = file.read("final_logits_bias", {1, target});
  model.output_bias.resize(target);  // a refused tensor is empty
  for (const uint32_t id : config.never) model.output_bias[id] = -std::numeric_limits<float>::infinity();
}

// HuggingFace's positions: sin(pos / 10000^(2i/d)) for all i < d/2, then the cosines.
std::vector<float> sinusoidal_positions(size_t positions, size_t d) {
  std::vector<float> table(positions * d);
  for (size_t pos = 0; pos < positions; ++pos) {
    for (size_t i = 0; i < d / 2; ++i) {
      const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(d);
      const double angle = static_cast<double>(pos) / std::pow(10000.0, exponent);
      table[pos * d + i] = static_cast<float>(std::sin(angle));
      table[pos * d + d / 2 + i] = static_cast<float>(std::cos(angle));
    }
  }
  return table;
}

void read_positions(TensorReader& file, const MarianConfig& config, Checkpoint& model) {
  if (!file.ok()) return;  // sizes that only the configuration claims are not worth gigabytes
  const uint64_t rows = model.arch.positions, d = model.arch.d_model;
  const auto table = [&](const std::string& name) {
    return !config.static_positions || file.has(name) ? file.read(name, {rows, d}) : sinusoidal_positions(rows, d);
  };
  model.encoder_positions = table("model.encoder.embed_positions.weight");
  model.decoder_positions = table("model.decoder.embed_positions.weight");
  if (model.encoder_positions == model.decoder_positions) {
    model.arch.flags |= kSharedPositions;
    model.decoder_positions.clear();
  }
}

std::string base_name(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

// Says what the folder has instead of model.safetensors.
Status check_folder(const std::string& folder) {
  const char* path = folder.c_str();
  if (!file_exists(folder)) return fail("%s does not exist", path);
  if (!is_directory(folder)) return fail("%s is not a folder: give the folder that holds config.json", path);
  if (!file_exists(folder + "/config.json"))
    return fail("%s has no config.json: it is not a HuggingFace MarianMT folder", path);
  if (file_exists(folder + "/" + kWeights)) return Done{};
  if (file_exists(folder + "/model.safetensors.index.json"))
    return fail(
        "%s holds its weights in several parts (model.safetensors.index.json): save them as one model.safetensors",
        path);
  if (file_exists(folder + "/pytorch_model.bin"))
    return fail(
        "%s has pytorch_model.bin but no model.safetensors: only safetensors can be read; save the model again "
        "with safe_serialization=True",
        path);
  return fail("%s has no model.safetensors", path);
}

}  // namespace

Result<Checkpoint> read_marian_weights(const std::string& folder, const MarianConfig& config) {
  const Result<SafeTensors> file = SafeTensors::open(folder + "/" + kWeights);
  if (!file) return file.error();
  TensorReader reader(*file);
  Checkpoint model;
  model.arch = config.arch;
  read_embeddings(reader, config, model);
  read_positions(reader, config, model);
  read_layers(reader, model);
  if (const Status finished = reader.finish(); !finished) return finished.error();
  model.origin = {
      "HuggingFace MarianMT", printable(base_name(folder)), kWeights,
      reader.storage(),       file->file().size(),          checksum(file->file().data(), file->file().size())};
  return model;
}

Result<Checkpoint> read_marian(const std::string& folder) {
  if (const Status usable = check_folder(folder); !usable) return usable.error();
  const Result<MarianConfig> config = read_marian_config(folder);
  if (!config) return config.error();
  Result<Checkpoint> model = read_marian_weights(folder, *config);
  if (!model) return model;
  if (const Status tokenizers = read_marian_tokenizers(folder, *model); !tokenizers) return tokenizers.error();
  return model;
}

}  // namespace dragoman
