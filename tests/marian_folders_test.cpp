// MarianMT folders as people have them: exports with tokenizer.json, vocabularies of two sizes, real configurations.
#include <doctest/doctest.h>

#include <cstring>

#include "converter/convert.h"
#include "converter/marian.h"
#include "converter/vocabulary.h"
#include "tests/support.h"
#include "tests/synthetic.h"

namespace dragoman::test {
namespace {

using nlohmann::json;

// What exports for other runtimes hold: pieces in the order of their ids, and the special ones again with their ids.
json fast_tokenizer(const json& vocabulary) {
  json pieces = json::array(), added = json::array();
  for (const auto& [piece, id] : vocabulary.items()) pieces[id.get<size_t>()] = {piece, -1.5};
  for (const char* special : {"</s>", "<unk>", "<pad>"}) {
    const json flags = {{"special", true}, {"normalized", false}};
    added.push_back({{"id", vocabulary[special]}, {"content", special}});
    added.back().update(flags);
  }
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", nullptr}}},
          {"model", {{"type", "Unigram"}, {"unk_id", 2}, {"vocab", pieces}}}};
}

std::string converted(const SyntheticFolder& folder) {
  const Result<ConvertReport> report = convert(folder.path, folder.file("m.dgm"), {});
  REQUIRE_MESSAGE(report, report.error().text);
  return read_bytes(folder.file("m.dgm"));
}

std::string refused(const SyntheticFolder& folder) {
  const Result<ConvertReport> report = convert(folder.path, folder.file("m.dgm"), {});
  CHECK_FALSE(report);
  return report.error().text;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("tokenizer.json stands for a missing vocab.json, and gives the same file to the byte") {
  SyntheticModel synthetic;
  synthetic.languages = {"deu", "fra"};
  SyntheticFolder folder(synthetic);
  folder.write();
  const std::string want = converted(folder);

  folder.write_file("tokenizer.json", "nothing that could be read");
  CHECK(converted(folder) == want);  // vocab.json goes first

  json fast = fast_tokenizer(folder.vocabulary);
  folder.remove_file("vocab.json");
  folder.write_file("tokenizer.json", fast.dump());
  CHECK(converted(folder) == want);

  fast["model"]["vocab"].erase(401);  // the second language as an added token only
  fast["added_tokens"].push_back({{"id", 401}, {"content", ">>fra<<"}});
  fast["added_tokens"].push_back({{"id", nullptr}, {"content", "<no id>"}});
  folder.write_file("tokenizer.json", fast.dump());
  CHECK(converted(folder) == want);
}

TEST_CASE("a tokenizer.json that is of another kind, or whose ids cannot be known, is refused by name") {
  using Change = void (*)(json & fast);
  const struct {
    const char* sentence;
    Change change;
  } cases[] = {
      {"tokenizer.json: model.type is \"BPE\": only \"Unigram\"", [](json& f) { f["model"]["type"] = "BPE"; }},
      {"model.type is \"WordPiece\"", [](json& f) { f["model"]["type"] = "WordPiece"; }},
      {"model.type is null", [](json& f) { f["model"].erase("type"); }},
      {"model.type is null", [](json& f) { f.erase("model"); }},
      {"model.type is null", [](json& f) { f["model"] = 3; }},
      {"model.vocab is not a list",
       [](json& f) {
         f["model"]["vocab"] = {{"a", 1}};
       }},
      {"model.vocab is not a list", [](json& f) { f["model"].erase("vocab"); }},
      {"number 5 of model.vocab is not of the form", [](json& f) { f["model"]["vocab"][5] = "a"; }},
      {"number 0 of model.vocab is not of the form",
       [](json& f) {
         f["model"]["vocab"][0] = {1, 2};
       }},
      {"piece \"<NIL>\" has the ids 5 and 6",
       [](json& f) { f["model"]["vocab"][5][0] = f["model"]["vocab"][6][0] = "<NIL>"; }},
      {"\"</s>\" has id 0 in added_tokens but is number 1 of model.vocab, so that no id can be trusted",
       [](json& f) { std::swap(f["model"]["vocab"][0], f["model"]["vocab"][1]); }},
      {"added_tokens is not a list", [](json& f) { f["added_tokens"] = "x"; }},
      {"added_tokens has {\"content\":\"</s>\",\"id\":-1", [](json& f) { f["added_tokens"][0]["id"] = -1; }},
      {"added_tokens has 3", [](json& f) { f["added_tokens"][0] = 3; }},
      {"tokenizer.json has no piece for id 399",
       [](json& f) { f["model"]["vocab"].erase(399), f["added_tokens"].erase(2); }},
      {"tokenizer.json has 401 pieces, and \"<more>\" has id 400",
       [](json& f) {
         f["model"]["vocab"].push_back({"<more>", 0});
       }},
      {"tokenizer.json has no piece <unk>",
       [](json& f) { f["model"]["vocab"][1][0] = "<x>", f["added_tokens"].erase(1); }},
  };
  SyntheticFolder folder{SyntheticModel{}};
  folder.write();
  folder.remove_file("vocab.json");
  for (const auto& one : cases) {
    CAPTURE(one.sentence);
    json fast = fast_tokenizer(folder.vocabulary);
    one.change(fast);
    folder.write_file("tokenizer.json", fast.dump());
    const std::string sentence = refused(folder);
    CAPTURE(sentence);
    CHECK(has(sentence, one.sentence));
  }
  folder.write_file("tokenizer.json", "{\"model\": ");
  CHECK(has(refused(folder), "tokenizer.json is not a JSON object"));
  folder.write_file("tokenizer.json", fast_tokenizer(folder.vocabulary).dump());
  folder.write_file("tokenizer_config.json", "{\"separate_vocabs\": true}");
  CHECK(has(refused(folder), "tokenizer.json cannot stand for it"));
}

TEST_CASE("separate vocabularies: each side's own ids, and sentences that name the side") {
  SyntheticModel synthetic;
  synthetic.shared_embeddings = false;
  synthetic.separate_vocabularies = true;
  synthetic.extra_pieces = 45;
  SyntheticFolder folder(synthetic);
  folder.write();
  REQUIRE(!converted(folder).empty());
  const LoadedModel model = load_model(folder.file("m.dgm"));
  CHECK(model->arch.source_vocabulary == 445);
  CHECK(model->arch.target_vocabulary == 403);
  CHECK_FALSE(model->has(kSharedTokenizer));
  CHECK(model->source.piece(402) == "<extra2>");
  CHECK(model->target.piece(402) == "<more2>");

  const auto sentence_after = [&](const char* file, const json& content) {
    folder.write();
    folder.write_file(file, content.dump());
    return refused(folder);
  };
  json vocabulary = folder.target_vocabulary;
  vocabulary["<another>"] = 403;
  CHECK(has(sentence_after("target_vocab.json", vocabulary),
            "target_vocab.json has 404 pieces, and \"<another>\" has id 403, but the model has rows for 403 ids "
            "(decoder_vocab_size)"));
  json config = folder.config;
  config["decoder_vocab_size"] = 404;
  CHECK(has(sentence_after("config.json", config),
            "embed_tokens.weight has 403 rows, but config.json says decoder_vocab_size is 404"));
  config = folder.config;
  config["vocab_size"] = 444;
  CHECK(has(sentence_after("config.json", config),
            "embed_tokens.weight has 445 rows, but config.json says vocab_size is 444"));
  vocabulary = folder.target_vocabulary;
  std::swap(vocabulary["<unk>"], vocabulary["<more0>"]);
  CHECK(has(sentence_after("target_vocab.json", vocabulary), "give <unk> different ids, 1 and 400"));
}

// Real folders, without weights.
TEST_CASE("real configurations and tokenizers are understood") {
  const struct {
    const char* folder;
    uint32_t ids, eos, unk;
    const char* languages;
  } cases[] = {{"opus-mt-en-mg", 54688, 0, 1, ""}, {"translation-en-pt", 54776, 44670, 52024, "pob;por;"}};
  for (const auto& one : cases) {
    CAPTURE(one.folder);
    const std::string folder = shared_path(std::string("tokenizers/") + one.folder);
    if (folder.empty()) continue;
    const Result<MarianConfig> config = read_marian_config(folder);
    REQUIRE_MESSAGE(config, config.error().text);
    Checkpoint checkpoint;
    checkpoint.arch = config->arch;
    const Status read = read_marian_tokenizers(folder, checkpoint);
    REQUIRE_MESSAGE(read, read.error().text);
    CHECK(checkpoint.arch.source_vocabulary == one.ids);
    CHECK(checkpoint.arch.eos == one.eos);
    CHECK(checkpoint.arch.unk == one.unk);

    std::vector<uint64_t> aligned(checkpoint.source_tokenizer.size() / 8 + 1);
    std::memcpy(aligned.data(), checkpoint.source_tokenizer.data(), checkpoint.source_tokenizer.size());
    const auto blob = std::as_bytes(std::span(aligned)).first(checkpoint.source_tokenizer.size());
    const Result<Tokenizer> tokenizer = Tokenizer::open(blob, one.ids);
    REQUIRE_MESSAGE(tokenizer, tokenizer.error().text);
    std::string names;
    for (int32_t id = -1; (id = tokenizer->next_language(id)) >= 0;)
      names += std::string(tokenizer->language(id)) + ";";
    CHECK(names == one.languages);
  }
}

// The same vocabulary as a list, as an export's script writes it: in the order of vocab.json, which is not that of the
// ids in every folder.
TEST_CASE(
    "tokenizer.json made from real vocabularies: the same pieces, or a sentence where the order is not the ids'") {
  for (const bool sorted : {true, false}) {
    const std::string folder = shared_path(sorted ? "tokenizers/opus-mt-en-mg" : "tokenizers/translation-en-pt");
    if (folder.empty()) continue;
    const auto read = nlohmann::ordered_json::parse(read_bytes(folder + "/vocab.json"));
    json list = json::array(), added = json::array();
    for (const auto& [piece, id] : read.items()) list.push_back({piece, 0.0});
    for (const char* special : {"</s>", "<unk>", "<pad>"})
      added.push_back({{"id", read[special].get<int>()}, {"content", special}});
    const json fast = {{"added_tokens", added}, {"model", {{"type", "Unigram"}, {"vocab", list}}}};
    const auto pieces = parse_fast_tokenizer(fast.dump(), "tokenizer.json");
    CHECK(bool(pieces) == sorted);
    if (pieces) {
      const std::string text = read_bytes(folder + "/vocab.json");
      CHECK(*pieces == *parse_vocabulary(text, "vocab.json"));
    } else {
      CHECK(has(pieces.error().text, "so that no id can be trusted"));
    }
  }
}

}  // namespace
}  // namespace dragoman::test
