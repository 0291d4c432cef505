#include "converter/marian.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include "converter/file.h"
#include "converter/weight_files.h"

namespace dragoman {
namespace {

// Indices, counters and masks that modules keep beside their weights (position_ids): no translation depends on them.
bool is_bookkeeping(const TensorView& tensor) {
  return tensor.dtype == "I64" || tensor.dtype == "I32" || tensor.dtype == "BOOL";
}

// Tensors by name and shape. Remembers which were used, and the first thing that was wrong.
class TensorReader {
 public:
  enum class Mode {
    kCheck,  // looks at names, shapes and types only, and gives nothing
    kRead,
  };
  TensorReader(const WeightFiles& files, Mode mode) : files_(files), mode_(mode) {}

  bool has(const std::string& name) const { return files_.tensors().contains(name); }

  std::vector<float> read(const std::string& name, const std::vector<uint64_t>& shape) {
    uint64_t elements = 1;
    for (const uint64_t extent : shape) elements *= extent;
    const bool known = check(name, shape);
    return known && mode_ == Mode::kRead ? values(name, 0, elements) : std::vector<float>();
  }

  LinearWeights linear(const std::string& name, uint64_t n, uint64_t k) {
    return {n, k, read(name + ".weight", {n, k}), read(name + ".bias", {n})};
  }

  NormWeights norm(const std::string& name, uint64_t d) {
    return {read(name + ".weight", {d}), read(name + ".bias", {d})};
  }

  // One table under any of several names: files keep one, some, or all copies of a tied tensor. Returns the first.
  // `size_key` is the setting that says how many rows it has.
  std::string table(std::initializer_list<const char*> names, uint64_t n, uint64_t k, const char* size_key) {
    std::string first;
    for (const char* name : names) {
      if (!has(name)) continue;
      check_rows(name, n, k, size_key);
      if (!check(name, {n, k})) continue;
      if (first.empty()) {
        first = name;
      } else if (!same(first, name, n, k)) {
        refuse(
            fail("%s: %s and %s differ although config.json ties them (tie_word_embeddings, "
                 "share_encoder_decoder_embeddings)",
                 files_.name_of(name), first.c_str(), name));
      }
    }
    if (first.empty()) check(*names.begin(), {n, k});  // says that it is missing
    return first;
  }

  // Elements of a tensor that was checked.
  std::vector<float> values(const std::string& name, uint64_t first, uint64_t count) {
    Result<std::vector<float>> values = files_.floats(name, first, count);
    if (!values) {
      refuse(fail("%s: %s", files_.name_of(name), values.error().text));
      return {};
    }
    const bool finite = std::all_of(values->begin(), values->end(), [](float x) { return std::isfinite(x); });
    // A bias of -infinity is a way to forbid an id.
    const bool bias = name == "final_logits_bias" &&
                      std::all_of(values->begin(), values->end(), [](float x) { return x < INFINITY; });
    if (!finite && !bias)
      refuse(fail("%s: tensor %s has values that are not finite: the file is damaged or training failed",
                  files_.name_of(name), name.c_str()));
    return std::move(*values);
  }

  // The commonest disagreement of all has a sentence of its own.
  void check_rows(const char* name, uint64_t n, uint64_t k, const char* size_key) {
    const std::vector<uint64_t>& shape = files_.tensors().at(name).shape;
    if (shape.size() != 2 || shape[0] == n || shape[1] != k) return;
    const unsigned long long rows = shape[0], wanted = n;
    refuse(
        fail("%s: %s has %llu rows, but config.json says %s is %llu: the model was resized, or the two files are of "
             "different models; if the vocabulary has %llu pieces, set %s to %llu",
             files_.name_of(name), name, rows, size_key, wanted, rows, size_key, rows));
  }

  void refuse(const Error& error) {
    if (!error_) error_ = error;
  }
  bool ok() const { return !error_; }

  void merge(const TensorReader& other) {
    used_.insert(other.used_.begin(), other.used_.end());
    storage_.insert(other.storage_.begin(), other.storage_.end());
    if (other.error_) refuse(*other.error_);
  }

  Status status() const {
    if (error_) return *error_;
    return Done{};
  }

  // After everything has been read: nothing may be left over.
  Status finish() {
    for (const auto& [name, info] : files_.tensors()) {
      if (used_.contains(name) || is_bookkeeping(info)) continue;
      refuse(
          fail("%s has a tensor %s %s that config.json does not account for: the model has a part this converter "
               "does not know",
               files_.name_of(name), printable(name).c_str(), shape_text(info.shape).c_str()));
    }
    return status();
  }

  std::string storage() const {
    std::string text;
    for (const std::string& dtype : storage_) text += (text.empty() ? "" : ", ") + dtype;
    return text;
  }

 private:
  bool check(const std::string& name, const std::vector<uint64_t>& shape) {
    const auto found = files_.tensors().find(name);
    if (found == files_.tensors().end()) {
      refuse(fail("%s has no tensor %s, which config.json asks for", files_.name(), name.c_str()));
      return false;
    }
    used_.insert(name);
    storage_.insert(found->second.dtype);
    if (const auto readable = files_.floats(name, 0, 0); !readable) {
      refuse(fail("%s: %s", files_.name_of(name), readable.error().text));
      return false;
    }
    if (found->second.shape == shape) return true;
    refuse(fail("%s: tensor %s has shape %s, but config.json asks for %s", files_.name_of(name), name.c_str(),
                shape_text(found->second.shape).c_str(), shape_text(shape).c_str()));
    return false;
  }

  bool same(const std::string& a, const std::string& b, uint64_t n, uint64_t k) {
    constexpr uint64_t kRows = 4096;
    for (uint64_t row = 0; row < n && ok(); row += kRows) {
      const uint64_t count = std::min(kRows, n - row) * k;
      if (values(a, row * k, count) != values(b, row * k, count)) return false;
    }
    return true;
  }

  const WeightFiles& files_;
  Mode mode_;
  std::set<std::string> used_, storage_;
  std::optional<Error> error_;
};

// Names of the tables in the file.
struct TableNames {
  std::string source, target, output;
};

AttentionWeights read_attention(TensorReader& file, const std::string& name, uint64_t d) {
  return {file.linear(name + ".q_proj", d, d), file.linear(name + ".k_proj", d, d), file.linear(name + ".v_proj", d, d),
          file.linear(name + ".out_proj", d, d), file.norm(name + "_layer_norm", d)};
}

FeedForwardWeights read_ffn(TensorReader& file, const std::string& layer, uint64_t d, uint64_t ffn) {
  return {file.linear(layer + ".fc1", ffn, d), file.linear(layer + ".fc2", d, ffn),
          file.norm(layer + ".final_layer_norm", d)};
}

EncoderWeights read_encoder_layer(TensorReader& file, const Architecture& arch, size_t i) {
  const std::string layer = "model.encoder.layers." + std::to_string(i);
  return {read_attention(file, layer + ".self_attn", arch.d_model),
          read_ffn(file, layer, arch.d_model, arch.encoder_ffn)};
}

DecoderWeights read_decoder_layer(TensorReader& file, const Architecture& arch, size_t i) {
  const std::string layer = "model.decoder.layers." + std::to_string(i);
  return {read_attention(file, layer + ".self_attn", arch.d_model),
          read_attention(file, layer + ".encoder_attn", arch.d_model),
          read_ffn(file, layer, arch.d_model, arch.decoder_ffn)};
}

void check_layers(TensorReader& file, const Architecture& arch) {
  for (size_t i = 0; i < arch.encoder_layers && file.ok(); ++i) read_encoder_layer(file, arch, i);
  for (size_t i = 0; i < arch.decoder_layers && file.ok(); ++i) read_decoder_layer(file, arch, i);
}

void read_norms(TensorReader& file, Checkpoint& model) {
  const uint64_t d = model.arch.d_model;
  if (model.has(kEncoderEmbeddingNorm))
    model.encoder_embedding_norm = file.norm("model.encoder.layernorm_embedding", d);
  if (model.has(kDecoderEmbeddingNorm))
    model.decoder_embedding_norm = file.norm("model.decoder.layernorm_embedding", d);
  if (model.has(kEncoderFinalNorm)) model.encoder_norm = file.norm("model.encoder.layer_norm", d);
  if (model.has(kDecoderFinalNorm)) model.decoder_norm = file.norm("model.decoder.layer_norm", d);
}

TableNames find_tables(TensorReader& file, const MarianConfig& config) {
  const uint64_t d = config.arch.d_model, source = config.arch.source_vocabulary,
                 target = config.arch.target_vocabulary;
  constexpr const char *kShared = "model.shared.weight", *kSource = "model.encoder.embed_tokens.weight",
                       *kTarget = "model.decoder.embed_tokens.weight", *kOutput = "lm_head.weight";
  const char* target_key = source == target ? "vocab_size" : "decoder_vocab_size";
  TableNames names;
  if (config.shared_embeddings && config.tied_output) {
    names.target = file.table({kShared, kSource, kTarget, kOutput}, target, d, target_key);
  } else if (config.shared_embeddings) {
    names.target = file.table({kShared, kSource, kTarget}, target, d, target_key);
  } else {
    names.source = file.table({kSource}, source, d, "vocab_size");
    names.target = config.tied_output ? file.table({kTarget, kOutput}, target, d, target_key)
                                      : file.table({kTarget}, target, d, target_key);
  }
  if (!config.tied_output) names.output = file.table({kOutput}, target, d, target_key);
  return names;
}

void read_output_bias(TensorReader& file, const MarianConfig& config, Checkpoint& model) {
  const uint64_t target = model.arch.target_vocabulary;
  // HuggingFace too takes a file without this tensor as one with zeros.
  model.output_bias.assign(target, 0.0f);
  if (file.has("final_logits_bias")) model.output_bias = file.read("final_logits_bias", {1, target});
  model.output_bias.resize(target);  // a refused tensor is empty
  for (const uint32_t id : config.never) model.output_bias[id] = -std::numeric_limits<float>::infinity();
}

// The large tensors, from the mapped files.
class MarianWeights : public WeightSource {
 public:
  MarianWeights(WeightFiles files, const Architecture& arch) : files_(std::move(files)), arch_(arch) {}

  const WeightFiles& files() const { return files_; }
  void set_tables(TableNames tables) { tables_ = std::move(tables); }

  Result<EncoderWeights> encoder_layer(size_t layer) const override {
    return checked([&](TensorReader& reader) { return read_encoder_layer(reader, arch_, layer); });
  }
  Result<DecoderWeights> decoder_layer(size_t layer) const override {
    return checked([&](TensorReader& reader) { return read_decoder_layer(reader, arch_, layer); });
  }
  Result<std::vector<float>> rows(Table table, size_t first, size_t count) const override {
    const std::string& name = table == Table::kSourceEmbedding   ? tables_.source
                              : table == Table::kTargetEmbedding ? tables_.target
                                                                 : tables_.output;
    const uint64_t d = arch_.d_model;
    return checked([&](TensorReader& reader) { return reader.values(name, first * d, count * d); });
  }

 private:
  template <class Read>
  auto checked(const Read& read) const -> Result<decltype(read(std::declval<TensorReader&>()))> {
    TensorReader reader(files_, TensorReader::Mode::kRead);
    auto weights = read(reader);
    if (const Status good = reader.status(); !good) return good.error();
    return weights;
  }

  WeightFiles files_;
  Architecture arch_;
  TableNames tables_;
};

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
  if (!file.ok()) return;
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

Status check_folder(const std::string& folder) {
  const char* path = folder.c_str();
  if (!file_exists(folder)) return fail("%s does not exist", path);
  if (!is_directory(folder)) return fail("%s is not a folder: give the folder that holds config.json", path);
  if (!file_exists(folder + "/config.json"))
    return fail("%s has no config.json: it is not a HuggingFace MarianMT folder", path);
  return Done{};
}

}  // namespace

Result<Checkpoint> read_marian_weights(const std::string& folder, const MarianConfig& config) {
  Result<WeightFiles> opened = WeightFiles::open(folder);
  if (!opened) return opened.error();
  const auto weights = std::make_shared<MarianWeights>(std::move(*opened), config.arch);
  const WeightFiles& files = weights->files();
  TensorReader checker(files, TensorReader::Mode::kCheck);
  TensorReader reader(files, TensorReader::Mode::kRead);
  Checkpoint model;
  model.arch = config.arch;
  weights->set_tables(find_tables(checker, config));
  check_layers(checker, config.arch);
  if (const Status good = checker.status(); !good) return good.error();
  // Sizes that only the configuration claims are not worth gigabytes: what follows is known to fit the file.
  read_output_bias(reader, config, model);
  read_positions(reader, config, model);
  read_norms(reader, model);
  checker.merge(reader);
  if (const Status finished = checker.finish(); !finished) return finished.error();
  model.weights = weights;
  model.origin = {"HuggingFace MarianMT", printable(base_name(folder)), files.names(), checker.storage(), files.bytes(),
                  files.checksum()};
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
