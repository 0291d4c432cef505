// What the converter does not understand it refuses by name. Each case changes one thing of a good folder.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "converter/convert.h"
#include "converter/sentencepiece.h"
#include "tests/command_support.h"
#include "tests/synthetic.h"

namespace dragoman {
namespace {

using nlohmann::json;
using test::SyntheticFolder;
using test::SyntheticModel;

struct Refusal {
  const char* sentence;  // part of it
  void (*change)(SyntheticFolder& folder);
};

// Each `change` runs before the folder is written.
void check_refusals(std::initializer_list<Refusal> cases) {
  for (const Refusal& refusal : cases) {
    CAPTURE(refusal.sentence);
    SyntheticFolder folder{SyntheticModel{}};
    refusal.change(folder);
    folder.write();
    const Result<ConvertReport> report = convert(folder.path, folder.file("m.dgm"), {});
    CHECK_FALSE(report);
    CAPTURE(std::string(report.error().text));
    CHECK(std::strstr(report.error().text, refusal.sentence) != nullptr);
    CHECK_FALSE(std::filesystem::exists(folder.file("m.dgm")));
    CHECK_FALSE(std::filesystem::exists(folder.file("m.dgm.tmp")));
  }
}

TEST_CASE("settings of config.json that are not understood are refused by name") {
  using F = SyntheticFolder;
  check_refusals({
      {"model_type is \"t5\"", [](F& f) { f.config["model_type"] = "t5"; }},
      {"config.json lacks model_type", [](F& f) { f.config.erase("model_type"); }},
      {"architectures is [\"MarianModel\"]", [](F& f) { f.config["architectures"] = {"MarianModel"}; }},
      {"add_bias_logits is true", [](F& f) { f.config["add_bias_logits"] = true; }},
      {"is_encoder_decoder is false", [](F& f) { f.config["is_encoder_decoder"] = false; }},
      {"tie_encoder_decoder is true", [](F& f) { f.config["tie_encoder_decoder"] = true; }},
      {"pruned_heads is {\"0\":[1]}",
       [](F& f) {
         f.config["pruned_heads"] = {{"0", {1}}};
       }},
      {"quantization_config is {\"bits\":4}",
       [](F& f) {
         f.config["quantization_config"] = {{"bits", 4}};
       }},
      {"activation_function \"tanh\"", [](F& f) { f.config["activation_function"] = "tanh"; }},
      {"activation_function is 3", [](F& f) { f.config["activation_function"] = 3; }},
      {"d_model is 40: the runtime needs a multiple of 16", [](F& f) { f.config["d_model"] = 40; }},
      {"d_model is \"32\", but must be a whole number", [](F& f) { f.config["d_model"] = "32"; }},
      {"d_model is -32", [](F& f) { f.config["d_model"] = -32; }},
      {"d_model is 1000000", [](F& f) { f.config["d_model"] = 1000000; }},
      {"lacks d_model", [](F& f) { f.config.erase("d_model"); }},
      {"encoder_ffn_dim is 50", [](F& f) { f.config["encoder_ffn_dim"] = 50; }},
      {"d_model 32 does not divide into encoder_attention_heads 3",
       [](F& f) { f.config["encoder_attention_heads"] = 3; }},
      {"decoder_attention_heads 8 gives heads of width 4", [](F& f) { f.config["decoder_attention_heads"] = 8; }},
      {"encoder_layers is 65", [](F& f) { f.config["encoder_layers"] = 65; }},
      {"encoder_layers is 0", [](F& f) { f.config["encoder_layers"] = 0; }},
      {"max_position_embeddings is 1,", [](F& f) { f.config["max_position_embeddings"] = 1; }},
      {"normalize_before is 1", [](F& f) { f.config["normalize_before"] = 1; }},
      {"decoder_vocab_size 500 differ", [](F& f) { f.config["decoder_vocab_size"] = 500; }},
  });
}

TEST_CASE("ids and search settings that contradict or are not understood are refused by name") {
  using F = SyntheticFolder;
  check_refusals({
      {"config.json lacks eos_token_id",
       [](F& f) { f.config.erase("eos_token_id"), f.generation.erase("eos_token_id"); }},
      {"config.json lacks pad_token_id",
       [](F& f) { f.config.erase("pad_token_id"), f.generation.erase("pad_token_id"); }},
      {"lacks decoder_start_token_id", [](F& f) { f.config.erase("decoder_start_token_id"); }},
      {"eos_token_id is 0, but generation_config.json says 2", [](F& f) { f.generation["eos_token_id"] = 2; }},
      {"eos_token_id is [0,2]",
       [](F& f) {
         f.config["eos_token_id"] = f.generation["eos_token_id"] = {0, 2};
       }},
      {"pad_token_id is 400", [](F& f) { f.config["pad_token_id"] = f.generation["pad_token_id"] = 400; }},
      {"bad_words_ids has [3,4]",
       [](F& f) {
         f.generation["bad_words_ids"] = {{399}, {3, 4}};
       }},
      {"bad_words_ids has [400]", [](F& f) { f.generation["bad_words_ids"] = json::array({json::array({400})}); }},
      {"bad_words_ids has 5", [](F& f) { f.generation["bad_words_ids"] = 5; }},
      {"no sentence could ever end", [](F& f) { f.generation["bad_words_ids"] = json::array({json::array({0})}); }},
      {"bad_words_ids is [[1]], but", [](F& f) { f.config["bad_words_ids"] = json::array({json::array({1})}); }},
      {"generation_config.json: repetition_penalty is 1.2", [](F& f) { f.generation["repetition_penalty"] = 1.2; }},
      {"no_repeat_ngram_size is 3", [](F& f) { f.generation["no_repeat_ngram_size"] = 3; }},
      {"config.json: min_length is 5", [](F& f) { f.config["min_length"] = 5; }},
      {"forced_bos_token_id is 0", [](F& f) { f.generation["forced_bos_token_id"] = 0; }},
      {"suppress_tokens is [1]", [](F& f) { f.generation["suppress_tokens"] = {1}; }},
  });
}

TEST_CASE("tensors that are missing, misshapen, left over or damaged are refused by name") {
  using F = SyntheticFolder;
  check_refusals({
      {"no tensor model.shared.weight", [](F& f) { f.tensors.erase("model.shared.weight"); }},
      {"no tensor model.encoder.layers.0.fc1.bias", [](F& f) { f.tensors.erase("model.encoder.layers.0.fc1.bias"); }},
      {"no tensor model.encoder.layers.1.self_attn.q_proj.weight", [](F& f) { f.config["encoder_layers"] = 2; }},
      {"no tensor model.encoder.layernorm_embedding.weight", [](F& f) { f.config["normalize_embedding"] = true; }},
      {"no tensor model.encoder.layer_norm.weight", [](F& f) { f.config["add_final_layer_norm"] = true; }},
      {"no tensor lm_head.weight", [](F& f) { f.config["tie_word_embeddings"] = false; }},
      {"no tensor model.encoder.embed_tokens.weight",
       [](F& f) { f.config["share_encoder_decoder_embeddings"] = false; }},
      {"no tensor model.encoder.embed_positions.weight", [](F& f) { f.config["static_position_embeddings"] = false; }},
      {"fc1.weight has shape (48, 32), but config.json asks for (64, 32)",
       [](F& f) { f.config["encoder_ffn_dim"] = 64; }},
      {"final_logits_bias has shape (400), but config.json asks for (1, 400)",
       [](F& f) { f.tensors["final_logits_bias"].shape = {400}; }},
      {"a tensor model.decoder.layers.1.fc1.bias (48) that config.json does not account for",
       [](F& f) { f.tensors["model.decoder.layers.1.fc1.bias"] = f.tensors["model.decoder.layers.0.fc1.bias"]; }},
      {"shared.weight has values that are not finite", [](F& f) { f.tensors["model.shared.weight"].values[5] = NAN; }},
      {"final_logits_bias has values that are not finite",
       [](F& f) { f.tensors["final_logits_bias"].values[5] = INFINITY; }},
      {"model.shared.weight and lm_head.weight differ",
       [](F& f) {
         f.tensors["lm_head.weight"] = f.tensors["model.shared.weight"];
         f.tensors["lm_head.weight"].values[0] += 0.5f;
       }},
  });
}

TEST_CASE("vocabularies that do not fit are refused by name") {
  using F = SyntheticFolder;
  check_refusals({
      {"vocab.json has no piece <unk>", [](F& f) { f.vocabulary["<unknown>"] = 1, f.vocabulary.erase("<unk>"); }},
      {"vocab.json has no piece </s>", [](F& f) { f.vocabulary["<end>"] = 0, f.vocabulary.erase("</s>"); }},
      {"vocab.json gives <pad> the id -1", [](F& f) { f.vocabulary["<nil>"] = 399, f.vocabulary.erase("<pad>"); }},
      {"gives </s> the id 5, but config.json says eos_token_id is 0",
       [](F& f) { f.vocabulary["</s>"] = 5, f.vocabulary["<0x03>"] = 0; }},
      {"vocab.json has 401 pieces, and \"<more>\" has id 400, but the model has rows for 400 ids (vocab_size): pieces "
       "were "
       "added to a model that was not resized",
       [](F& f) { f.vocabulary["<more>"] = 400; }},
      {"no piece for id 399 (1 of the 400 ids of vocab_size lack one): the model was resized or padded after training: "
       "add",
       [](F& f) { f.vocabulary.erase("<pad>"); }},
      {"no piece for id 7 (1 of the 400 ids of vocab_size lack one): add a piece for each, such as \"<unused7>\"",
       [](F& f) { f.vocabulary.erase("<0x05>"); }},
      {"model.shared.weight has 400 rows, but config.json says vocab_size is 401: the model was resized",
       [](F& f) { f.config["vocab_size"] = f.config["decoder_vocab_size"] = 401, f.vocabulary["<more>"] = 400; }},
      {"model.shared.weight has 408 rows, but config.json says vocab_size is 400: the model was resized, or the two "
       "files are "
       "of different models; if the vocabulary has 408 pieces, set vocab_size to 408",
       [](F& f) {
         f.tensors["model.shared.weight"].shape[0] = 408;
         f.tensors["model.shared.weight"].values.resize(408 * 32);
       }},
      {"final_logits_bias has shape (1, 400), but config.json asks for (1, 401)",
       [](F& f) {
         f.config["vocab_size"] = f.config["decoder_vocab_size"] = 401;
         f.tensors["model.shared.weight"].shape[0] = 401;
         f.tensors["model.shared.weight"].values.resize(401 * 32);
       }},
      {"the id of piece \"<unk>\" is not a whole number", [](F& f) { f.vocabulary["<unk>"] = "1"; }},
      {"the id of piece \"<unk>\" is not a whole number", [](F& f) { f.vocabulary["<unk>"] = {1}; }},
      {"the id of piece \"<unk>\" is not a whole number", [](F& f) { f.vocabulary["<unk>"] = -1; }},
      {"gives the id 7 to two pieces", [](F& f) { f.vocabulary["twice"] = 7; }},
      {"source.spm and vocab.json are not of one model: only ",
       [](F& f) {
         nlohmann::json renamed;
         for (const auto& [piece, id] : f.vocabulary.items())
           renamed[piece[0] == '<' ? piece : "w" + std::to_string(id.get<int>())] = id;
         f.vocabulary = renamed;
       }},
      {"target_vocab.json cannot be opened", [](F& f) { f.tokenizer_config["separate_vocabs"] = true; }},
  });
}

TEST_CASE("folders that lack a file, or have something else in its place, are refused by name") {
  const struct {
    const char *file, *content, *sentence;  // content nullptr: removed
  } cases[] = {
      {"config.json", nullptr, "has no config.json"},
      {"config.json", "{\"model_type\": ", "config.json is not a JSON object"},
      {"config.json", "[]", "config.json is not a JSON object"},
      {"generation_config.json", "{", "generation_config.json is not a JSON object"},
      {"model.safetensors", nullptr, "has no model.safetensors"},
      {"model.safetensors", "version https://git-lfs.github.com/spec/v1\n", "git-lfs pointer"},
      {"model.safetensors", "", "is empty"},
      {"source.spm", nullptr, "source.spm cannot be opened"},
      {"target.spm", "<!doctype html>", "target.spm is a web page"},
      {"source.spm", "not a SentencePiece model", "source.spm"},
      {"vocab.json", nullptr, "has neither vocab.json nor tokenizer.json"},
      {"vocab.json", "{\"a\": 1, \"a\": 2}", "piece \"a\" is listed twice"},
      {"vocab.json", "{\"a\": 1", "vocab.json is not a JSON object"},
  };
  for (const auto& one : cases) {
    CAPTURE(one.sentence);
    SyntheticFolder folder{SyntheticModel{}};
    folder.write();
    one.content ? folder.write_file(one.file, one.content) : folder.remove_file(one.file);
    const Result<ConvertReport> report = convert(folder.path, folder.file("m.dgm"), {});
    CHECK_FALSE(report);
    CAPTURE(std::string(report.error().text));
    CHECK(std::strstr(report.error().text, one.sentence) != nullptr);
  }
}

TEST_CASE("weights that int8 does not carry are converted with a warning, however quiet") {
  const auto convert_scaled = [](float scale) {
    SyntheticFolder folder{SyntheticModel{}};
    for (auto& [name, tensor] : folder.tensors)
      for (float& value : tensor.values) value *= scale;
    folder.write();
    return test::run_command({folder.path, folder.file("m.dgm"), "-q"}, {.binary = DRAGOMAN_CONVERT_BINARY});
  };
  const test::Ran good = convert_scaled(1);
  CHECK(good.code == 0);
  CHECK(good.err == "");
  const test::Ran bad = convert_scaled(1e15f);
  CHECK(bad.code == 0);
  CHECK(bad.err.find("warning: ") != std::string::npos);
  CHECK(bad.err.find("picks another word than the original weights") != std::string::npos);
}

TEST_CASE("a file in place of the folder is refused") {
  SyntheticFolder folder{SyntheticModel{}};
  folder.write();
  const Result<ConvertReport> file = convert(folder.file("config.json"), folder.file("m.dgm"), {});
  CHECK_FALSE(file);
  CHECK(std::strstr(file.error().text, "is not a folder") != nullptr);
}

// Every piece is a message of its own: a file that ends after one is well-formed, and half of the model is missing.
TEST_CASE("a .spm that is cut short at any byte is refused") {
  SyntheticFolder folder{SyntheticModel{}};
  folder.write();
  const std::string whole = test::read_bytes(folder.file("source.spm"));
  REQUIRE(read_spm(std::as_bytes(std::span(whole)), "source.spm"));
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    if (read_spm(std::as_bytes(std::span(whole).first(bytes)), "source.spm")) FAIL_CHECK("read: " << bytes << " bytes");
  }
}

TEST_CASE("a file that is no model is never replaced, and a link is followed") {
  SyntheticFolder folder{SyntheticModel{}};
  folder.write();
  const std::string weights = test::read_bytes(folder.file("model.safetensors"));
  const Result<ConvertReport> over = convert(folder.path, folder.file("model.safetensors"), {});
  CHECK_FALSE(over);
  CHECK(std::strstr(over.error().text, "is there already and is not a .dgm file") != nullptr);
  CHECK(test::read_bytes(folder.file("model.safetensors")) == weights);

  std::filesystem::create_symlink("real.dgm", folder.file("link.dgm"));
  const Result<ConvertReport> nowhere = convert(folder.path, folder.file("link.dgm"), {});
  CHECK_FALSE(nowhere);
  CHECK(std::strstr(nowhere.error().text, "is a link that leads nowhere") != nullptr);
  folder.write_file("real.dgm", "");
  for (int again = 0; again < 2; ++again) CHECK(convert(folder.path, folder.file("link.dgm"), {}));
  CHECK(std::filesystem::is_symlink(folder.file("link.dgm")));
  CHECK(test::read_bytes(folder.file("real.dgm")).starts_with("DRAGOMAN"));

  const Result<ConvertReport> nameless = convert(folder.path, "", {});
  CHECK_FALSE(nameless);
  CHECK(std::strstr(nameless.error().text, "is empty: give one") != nullptr);
}

}  // namespace
}  // namespace dragoman
