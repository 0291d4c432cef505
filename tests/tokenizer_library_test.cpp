// Ids and text beside the SentencePiece library: real vocabularies on real text, trained ones on random text.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tokenizer_support.h"

using namespace dragoman;
using namespace dragoman::tokenizer_test;

namespace {

// source.spm or target.spm of a HuggingFace Marian folder.
Pair open_folder(const std::string& folder, const char* spm) {
  const auto config = nlohmann::json::parse(read_text(folder + "/config.json"));
  const auto json = nlohmann::json::parse(read_text(folder + "/vocab.json"));
  Vocabulary vocabulary;
  for (const auto& [text, id] : json.items()) vocabulary.emplace_back(text, id.get<int32_t>());
  const SpecialIds special = {json.at("<unk>"), config.at("eos_token_id"), config.at("pad_token_id")};
  return Pair(folder.substr(folder.rfind('/') + 1) + "/" + spm, read_text(folder + "/" + spm), &vocabulary, special);
}

template <class Visit>
void each_real_tokenizer(const std::string& shared, Visit visit) {
  for (const char* name : {"vocab.deen.spm", "vocab.ruen.spm", "vocab.csen.spm"}) {
    visit(Pair(name, read_text(shared + "/tokenizers/" + name)));
  }
  for (const char* folder :
       {"/tokenizers/opus-mt-en-mg", "/tokenizers/translation-en-pt", "/models/en-de", "/models/tiny"}) {
    for (const char* spm : {"source.spm", "target.spm"}) visit(open_folder(shared + folder, spm));
  }
}

std::vector<std::string> lines_of(const std::string& shared) {
  std::vector<std::string> lines;
  for (const char* folder : {"/eval/tokenizer", "/eval/en-de"}) {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(shared + folder)) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) {
      const std::string text = read_text(path);
      for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        lines.push_back(text.substr(at, end - at));
        at = end + 1;
      }
    }
  }
  return lines;
}

// Random texts and random ids. Stops at the tenth difference.
void compare_random(const Pair& pair, size_t count, uint64_t seed, const std::vector<std::string>& fragments = {}) {
  RandomText random(seed);
  int differences = 0;
  std::vector<int32_t> ids;
  for (size_t i = 0; i < count && differences < 10; ++i) {
    std::string text = random.next();
    if (!fragments.empty()) {
      for (uint32_t n = random.below(3); n > 0; --n) {
        const std::string& line = fragments[random.below(uint32_t(fragments.size()))];
        const size_t begin = random.below(uint32_t(line.size()) + 1);
        text.insert(random.below(uint32_t(text.size()) + 1), line.substr(begin, random.below(60)));
      }
    }
    differences += !pair.agree(text);
    ids.clear();
    const uint32_t range = pair.ours.pieces() + 3;
    for (uint32_t n = random.below(12); n > 0; --n) {
      // Low ids are the special ones and the bytes: the interesting ones come often.
      ids.push_back(int32_t(random.below(random.below(3) == 0 ? std::min(range, 270u) : range)) - 1);
    }
    differences += !pair.agree_decoding(ids);
  }
  CHECK(differences == 0);
}

}  // namespace

TEST_CASE("real vocabularies give the library's ids and text on every line of the test sets") {
  const std::string shared = shared_folder();
  if (shared.empty()) return;
  const std::vector<std::string> lines = lines_of(shared);
  const size_t step = size_t(1 / test_share());
  size_t compared = 0;
  each_real_tokenizer(shared, [&](const Pair& pair) {
    int differences = 0;
    for (size_t i = 0; i < lines.size() && differences < 10; i += step, ++compared)
      differences += !pair.agree(lines[i]);
    CHECK(differences == 0);
  });
  MESSAGE(compared << " lines compared");
}

TEST_CASE("real vocabularies give the library's ids and text on random texts") {
  const std::string shared = shared_folder();
  if (shared.empty()) return;
  const std::vector<std::string> lines = lines_of(shared);
  const auto count = size_t(6'000 * test_share());
  uint64_t seed = 1;
  size_t compared = 0;
  each_real_tokenizer(shared, [&](const Pair& pair) {
    compare_random(pair, count, ++seed, lines);
    compared += count;
  });
  MESSAGE(compared << " random texts compared");
}

TEST_CASE("trained models of all kinds give the library's ids and text on random texts") {
  const std::string symbols =
      "user_defined_symbols=<sep>,a,ab,abab,@@,\xE2\x96\x81ka,\xE6\x97\xA5,x control_symbols=<ctl>";
  const std::string spaces = "remove_extra_whitespaces=false";
  const std::string identity = "normalization_rule_name=identity";
  struct Variant {
    const char* name;
    std::string options;
  };
  const Variant variants[] = {
      {"plain", ""},
      {"identity", identity},
      {"nfkc_cf, no prefix", "normalization_rule_name=nfkc_cf add_dummy_prefix=false"},
      {"bytes", "byte_fallback=true"},
      {"bytes, identity, all spaces", "byte_fallback=true " + identity + " " + spaces},
      {"symbols", symbols},
      {"symbols, bytes, all spaces, no prefix", symbols + " byte_fallback=true add_dummy_prefix=false " + spaces},
      {"symbols that rules would change",
       "normalization_rule_name=nfkc_cf user_defined_symbols=aB,e\xEF\xAC\x81,<Sep>"},
      {"suffix", "treat_whitespace_as_suffix=true"},
      {"suffix, symbols, all spaces", "treat_whitespace_as_suffix=true " + symbols + " " + spaces},
      {"pieces over spaces", "split_by_whitespace=false unk_surface=?"},
      {"odd special ids", "unk_id=3 bos_id=-1 eos_id=0 pad_id=1 allow_whitespace_only_pieces=true " + spaces},
  };
  const auto count = size_t(4'500 * test_share());
  uint64_t seed = 1000;
  size_t compared = 0;
  for (const char* type : {"unigram", "bpe"}) {
    for (const Variant& variant : variants) {
      const std::string spm = train(type, 450, variant.options);
      const std::string name = std::string(type) + ", " + variant.name;
      compare_random(Pair(name, spm), count, ++seed);
      compare_random(Pair(name + ", unused pieces", with_unused_pieces(spm, 3)), count / 3, ++seed);
      compared += count + count / 3;
    }
    const std::string spm = train(type, 450, symbols);
    compare_random(Pair(std::string(type) + ", positive scores", with_scores(spm, 20)), count, ++seed);
    compare_random(Pair(std::string(type) + ", spaces stay", with_normalizer_fields(spm, {"\x28\x00", 2})), count,
                   ++seed);
    compared += 2 * count;
  }
  MESSAGE(compared << " random texts compared");
}

TEST_CASE("random models give the library's ids and text: ties, overlapping symbols, unused pieces") {
  int differences = 0;
  const auto models = uint64_t(20'000 * test_share());
  for (uint64_t seed = 0; seed < models && differences < 10; ++seed) {
    const bool bpe = seed % 2 != 0;
    const Pair pair("random model " + std::to_string(seed), random_model(bpe, seed));
    for (uint64_t i = 0; i < 30; ++i) differences += !pair.agree(random_letters(seed * 100 + i));
  }
  CHECK(differences == 0);
  MESSAGE((models * 30) << " texts compared");
}

TEST_CASE("a vocabulary gives ids to pieces, to some unknown runs and to nothing else") {
  for (const char* type : {"unigram", "bpe"}) {
    for (const char* options : {"", "byte_fallback=true", "user_defined_symbols=<sep>,ab"}) {
      const std::string spm = train(type, 450, options);
      const auto model = read_spm(bytes_of(spm), type);
      REQUIRE(model);
      Vocabulary vocabulary;
      for (size_t i = 0; i < model->pieces.size(); ++i) {  // shuffled ids, every fifth piece without one
        if (i % 5 != 4 || i == model->unk) vocabulary.emplace_back(model->pieces[i].text, int32_t((i * 37) % 1009));
      }
      for (const char* text : {"\xF0\x9F\x98\x80", "\xCC\x81", "\xEF\xBF\xBD", "\xEF\xBF\xBD\xEF\xBF\xBD", "@", "@@",
                               "zyx", "\xE2\x96\x81zz", "", "<pad>"}) {
        if (std::none_of(vocabulary.begin(), vocabulary.end(),
                         [&](const auto& entry) { return entry.first == text; })) {
          vocabulary.emplace_back(text, int32_t(1009 + vocabulary.size()));
        }
      }
      const int32_t unk = int32_t((model->unk * 37) % 1009);
      const SpecialIds special = {unk, 37 * 2 % 1009, vocabulary.back().second};
      const Pair pair(std::string(type) + " with vocabulary, " + options, spm, &vocabulary, special);
      compare_random(pair, size_t(6'000 * test_share()), 77);
    }
  }
}
