#include "converter/marian_config.h"

#include <algorithm>
#include <cmath>

#include "converter/file.h"
#include "converter/json_fields.h"

namespace dragoman {
namespace {

using Json = nlohmann::json;

struct Neutral {
  const char* key;
  double value;  // of a number or, as 0 and 1, of false and true
};

// Settings that change what the model computes. Anything but this value (or null, or an empty list) is refused.
constexpr Neutral kModelSettings[] = {{"add_bias_logits", 0},     {"tie_encoder_decoder", 0},
                                      {"is_encoder_decoder", 1},  {"do_blenderbot_90_layernorm", 0},
                                      {"is_decoder", 0},          {"force_bos_token_to_be_generated", 0},
                                      {"quantization_config", 0}, {"pruned_heads", 0}};

// Settings that change what greedy search picks.
constexpr Neutral kSearchSettings[] = {{"repetition_penalty", 1},
                                       {"encoder_repetition_penalty", 1},
                                       {"no_repeat_ngram_size", 0},
                                       {"encoder_no_repeat_ngram_size", 0},
                                       {"min_length", 0},
                                       {"min_new_tokens", 0},
                                       {"forced_bos_token_id", -1},
                                       {"forced_decoder_ids", 0},
                                       {"suppress_tokens", 0},
                                       {"begin_suppress_tokens", 0},
                                       {"sequence_bias", 0},
                                       {"guidance_scale", 1},
                                       {"exponential_decay_length_penalty", 0}};

bool is_neutral(const Json& value, double neutral) {
  if (value.is_null()) return true;
  if (value.is_boolean()) return value.get<bool>() == (neutral != 0);
  if (value.is_number()) return value.get<double>() == neutral;
  return value.is_structured() && value.empty();
}

template <size_t N>
void demand_neutral(JsonFields& fields, const Neutral (&settings)[N]) {
  for (const auto& [key, neutral] : settings) {
    const Json& value = fields.at(key);
    if (is_neutral(value, neutral)) continue;
    fields.refuse(
        fail("%s: %s is %s, which this converter does not support: only a model that does without it can be "
             "converted",
             fields.file(), key, printable(value.dump()).c_str()));
  }
}

void check_kind(JsonFields& config) {
  const std::string type = config.text("model_type");
  if (!config.error() && type != "marian")
    config.refuse(
        fail("%s: model_type is \"%s\": only \"marian\" can be converted", config.file(), printable(type).c_str()));
  const Json& architectures = config.at("architectures");
  if (architectures.is_null()) return;
  const bool known = architectures.is_array() && architectures.size() == 1 && architectures[0] == "MarianMTModel";
  if (!known)
    config.refuse(fail("%s: architectures is %s: only [\"MarianMTModel\"] can be converted", config.file(),
                       printable(architectures.dump()).c_str()));
}

void read_sizes(JsonFields& config, Architecture& arch) {
  arch.d_model = config.integer("d_model", 16, kMaxDModel);
  arch.encoder_layers = config.integer("encoder_layers", 1, kMaxLayers);
  arch.decoder_layers = config.integer("decoder_layers", 1, kMaxLayers);
  arch.encoder_heads = config.integer("encoder_attention_heads", 1, kMaxDModel);
  arch.decoder_heads = config.integer("decoder_attention_heads", 1, kMaxDModel);
  arch.encoder_ffn = config.integer("encoder_ffn_dim", 1, kMaxFfn);
  arch.decoder_ffn = config.integer("decoder_ffn_dim", 1, kMaxFfn);
  arch.positions = config.integer("max_position_embeddings", 2, kMaxPositions);
  arch.source_vocabulary = config.integer("vocab_size", 2, kMaxVocabulary);
  arch.target_vocabulary = config.integer("decoder_vocab_size", 2, kMaxVocabulary, arch.source_vocabulary);

  const auto demand_multiple = [&](const char* what, uint32_t value, uint32_t of) {
    if (value % of)
      config.refuse(fail("%s: %s is %u: the runtime needs a multiple of %u", config.file(), what, value, of));
  };
  demand_multiple("d_model", arch.d_model, 16);
  demand_multiple("encoder_ffn_dim", arch.encoder_ffn, 16);
  demand_multiple("decoder_ffn_dim", arch.decoder_ffn, 16);
  for (const auto& [key, heads] : {std::pair{"encoder_attention_heads", arch.encoder_heads},
                                   std::pair{"decoder_attention_heads", arch.decoder_heads}}) {
    if (arch.d_model % heads) {
      config.refuse(fail("%s: d_model %u does not divide into %s %u", config.file(), arch.d_model, key, heads));
    } else if (arch.d_model / heads % 8) {
      config.refuse(fail("%s: %s %u gives heads of width %u: the runtime needs a multiple of 8", config.file(), key,
                         heads, arch.d_model / heads));
    }
  }
}

void read_activation(JsonFields& config, Architecture& arch) {
  const std::string name = config.text("activation_function");
  constexpr std::pair<const char*, Activation> kKnown[] = {
      {"relu", Activation::kRelu}, {"silu", Activation::kSilu},         {"swish", Activation::kSilu},
      {"gelu", Activation::kGelu}, {"gelu_new", Activation::kGeluTanh}, {"gelu_pytorch_tanh", Activation::kGeluTanh}};
  for (const auto& [known, activation] : kKnown) {
    if (name != known) continue;
    arch.activation = activation;
    return;
  }
  config.refuse(
      fail("%s: activation_function \"%s\" is not known: relu, silu, swish, gelu, gelu_new and "
           "gelu_pytorch_tanh can be converted",
           config.file(), printable(name).c_str()));
}

void read_shape_of_layers(JsonFields& config, MarianConfig& marian) {
  Architecture& arch = marian.arch;
  arch.norm = config.boolean("normalize_before", false) ? NormPosition::kPre : NormPosition::kPost;
  if (config.boolean("normalize_embedding", false)) arch.flags |= kEncoderEmbeddingNorm | kDecoderEmbeddingNorm;
  if (config.boolean("add_final_layer_norm", false)) arch.flags |= kEncoderFinalNorm | kDecoderFinalNorm;
  arch.layer_norm_epsilon = 1e-5f;  // torch's default; no Marian configuration has a key for it
  const bool scaled = config.boolean("scale_embedding", false);
  arch.embedding_scale = scaled ? static_cast<float>(std::sqrt(static_cast<double>(arch.d_model))) : 1.0f;

  marian.shared_embeddings = config.boolean("share_encoder_decoder_embeddings", true);
  marian.tied_output = config.boolean("tie_word_embeddings", true);
  marian.static_positions = config.boolean("static_position_embeddings", true);
  if (marian.shared_embeddings) arch.flags |= kSharedEmbedding;
  if (marian.tied_output) arch.flags |= kTiedOutput;
  if (marian.shared_embeddings && arch.source_vocabulary != arch.target_vocabulary)
    config.refuse(
        fail("%s: vocab_size %u and decoder_vocab_size %u differ although "
             "share_encoder_decoder_embeddings is true",
             config.file(), arch.source_vocabulary, arch.target_vocabulary));
}

// A setting that both files may have: they must agree.
const Json& agreed(JsonFields& config, const JsonFields& generation, const char* key) {
  const Json &first = config.at(key), &second = generation.at(key);
  if (!first.is_null() && !second.is_null() && first != second)
    config.refuse(fail("%s says %s is %s, but %s says %s: make them agree", config.file(), key,
                       printable(first.dump()).c_str(), generation.file(), printable(second.dump()).c_str()));
  return second.is_null() ? first : second;
}

uint32_t read_special_id(JsonFields& config, const JsonFields& generation, const char* key, uint32_t vocabulary) {
  const Json& value = agreed(config, generation, key);
  const Json& id = value.is_array() && value.size() == 1 ? value[0] : value;
  if (id.is_null()) {
    config.refuse(fail("%s lacks %s: add it with the value the model was trained with", config.file(), key));
  } else if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocabulary) {
    config.refuse(fail("%s: %s is %s, but must be one id below the vocabulary's size %u", config.file(), key,
                       printable(value.dump()).c_str(), vocabulary));
  } else {
    return static_cast<uint32_t>(id.get<uint64_t>());
  }
  return 0;
}

void read_never(JsonFields& config, const JsonFields& generation, MarianConfig& marian) {
  const Architecture& arch = marian.arch;
  marian.never.push_back(arch.pad);
  const Json& words = agreed(config, generation, "bad_words_ids");
  for (const Json& word : words) {
    if (!word.is_array() || word.size() != 1) {
      config.refuse(
          fail("%s: bad_words_ids has %s: only bad words of one id can be converted; remove it to go on "
               "without it",
               config.file(), printable(word.dump()).c_str()));
    } else if (!word[0].is_number_unsigned() || word[0].get<uint64_t>() >= arch.target_vocabulary) {
      config.refuse(fail("%s: bad_words_ids has %s, which is no id below the vocabulary's size %u", config.file(),
                         printable(word.dump()).c_str(), arch.target_vocabulary));
    } else {
      marian.never.push_back(static_cast<uint32_t>(word[0].get<uint64_t>()));
    }
  }
  if (std::find(marian.never.begin(), marian.never.end(), arch.eos) != marian.never.end())
    config.refuse(
        fail("%s: eos_token_id %u is also the pad or a bad word: no sentence could ever end", config.file(), arch.eos));
}

}  // namespace

Result<MarianConfig> read_marian_config(const std::string& folder) {
  const Result<Json> json = read_json(folder + "/config.json");
  if (!json) return json.error();
  Json generation_json = Json::object();
  if (file_exists(folder + "/generation_config.json")) {
    Result<Json> read = read_json(folder + "/generation_config.json");
    if (!read) return read.error();
    generation_json = std::move(*read);
  }
  return parse_marian_config(*json, generation_json);
}

Result<MarianConfig> parse_marian_config(const Json& config_json, const Json& generation_json) {
  JsonFields config(config_json, "config.json");
  JsonFields generation(generation_json, "generation_config.json");

  MarianConfig marian;
  check_kind(config);
  demand_neutral(config, kModelSettings);
  demand_neutral(config, kSearchSettings);
  demand_neutral(generation, kSearchSettings);
  read_sizes(config, marian.arch);
  read_activation(config, marian.arch);
  read_shape_of_layers(config, marian);
  Architecture& arch = marian.arch;
  arch.eos =
      read_special_id(config, generation, "eos_token_id", std::min(arch.source_vocabulary, arch.target_vocabulary));
  arch.pad = read_special_id(config, generation, "pad_token_id", arch.target_vocabulary);
  arch.decoder_start = read_special_id(config, generation, "decoder_start_token_id", arch.target_vocabulary);
  read_never(config, generation, marian);
  if (config.error()) return *config.error();
  if (generation.error()) return *generation.error();
  return marian;
}

}  // namespace dragoman
