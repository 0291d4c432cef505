// Target languages of a multilingual model: the ids before a text, the options and the sentences about them.
#include "runtime/languages.h"

#include <doctest/doctest.h>

#include <cstring>

#include "converter/convert.h"
#include "converter/marian.h"
#include "converter/reference.h"
#include "runtime/dragoman.hpp"
#include "tests/command_support.h"
#include "tests/support.h"
#include "tests/synthetic.h"

namespace dragoman::test {
namespace {

using Ids = std::vector<int32_t>;

constexpr int32_t kDeu = 3, kFra = 4, kUnk = 1, kEos = 0;  // of tiny-languages

Translated translate_one(const Model& model, const std::string& line, const Setup& setup = {}) {
  return Session(model, setup).translate(std::span(&line, 1))[0];
}

Setup with_language(int32_t language, uint32_t source = 64) {
  Setup setup;
  setup.limits.source = source;
  setup.options.target_language = language;
  return setup;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string sentence_of(const Model& model, std::string_view name) {
  const Result<int32_t> found = find_language(model, name);
  return found ? "found" : found.error().text;
}

// A model with these target languages, converted from a folder of random weights.
struct Multilingual {
  SyntheticFolder folder;
  LoadedModel model;
  explicit Multilingual(const std::vector<std::string>& languages) : folder(make(languages)), model(convert_folder()) {}

 private:
  static SyntheticModel make(const std::vector<std::string>& languages) {
    SyntheticModel synthetic;
    synthetic.languages = languages;
    return synthetic;
  }
  LoadedModel convert_folder() {
    folder.write();
    ConvertOptions options;
    options.weights = Weights::kF32;
    const Result<ConvertReport> report = convert(folder.path, folder.file("m.dgm"), options);
    REQUIRE_MESSAGE(report, report.error().text);
    return load_model(folder.file("m.dgm"));
  }
};

TEST_CASE("languages: a model lists them, finds them with and without brackets, and says what it has") {
  const LoadedModel model = load_model(model_path("tiny-languages"));
  CHECK(model->source.has_languages());
  CHECK(model->source.next_language(-1) == kDeu);
  CHECK(model->source.next_language(kDeu) == kFra);
  CHECK(model->source.next_language(kFra) == -1);
  CHECK(model->source.language(kFra) == "fra");
  for (const int32_t id : {-2, -1, 0, 5, 399, 400, INT32_MAX}) CHECK(model->source.language(id).empty());
  CHECK(*find_language(*model, "fra") == kFra);
  CHECK(*find_language(*model, ">>fra<<") == kFra);
  CHECK(sentence_of(*model, "fr") == "this model does not translate into \"fr\"; it has fra, deu");
  CHECK(sentence_of(*model, "") == "this model does not translate into \"\"; it has deu, fra");
  CHECK(sentence_of(*model, std::string(100000, 'x')).size() < 480);

  const LoadedModel plain = load_model(model_path("tiny-int8"));
  CHECK_FALSE(plain->source.has_languages());
  CHECK(has(sentence_of(*plain, "deu"), "this model has one target language"));
}

TEST_CASE("languages: the sentence about a missing one stays short for a model of hundreds") {
  std::vector<std::string> names;
  for (char a = 'a'; a <= 'z'; ++a)
    for (char b = 'a'; b <= 'j'; ++b) names.push_back({a, b, a});
  const Multilingual many(names);
  CHECK(*find_language(*many.model, "zjz") == 400 + 259);
  const std::string sentence = sentence_of(*many.model, "mcx");
  CAPTURE(sentence);
  CHECK(has(sentence, "it has mcm, mam, mbm, mdm"));  // the nearest first
  CHECK(has(sentence, " and 240 more"));
}

TEST_CASE("languages: one that begins a text is one id; everything else stays text") {
  const LoadedModel model = load_model(model_path("tiny-languages"));
  const Ids plain = translate_one(*model, "Good morning.").source_ids;
  Ids want{kDeu};
  want.insert(want.end(), plain.begin(), plain.end());
  CHECK(translate_one(*model, ">>deu<< Good morning.").source_ids == want);
  CHECK(translate_one(*model, ">>deu<<Good morning.").source_ids == want);
  CHECK(translate_one(*model, "Good morning.", with_language(kDeu)).source_ids == want);

  want[0] = kFra;
  CHECK(translate_one(*model, ">>fra<< Good morning.", with_language(kDeu)).source_ids == want);

  want[0] = kUnk;  // as MarianTokenizer has it
  const Translated unknown = translate_one(*model, ">>klingon<< Good morning.");
  CHECK(unknown.source_ids == want);
  CHECK((unknown.flags & kUnknown) != 0);

  for (const char* text : {">> Good morning. << said he", " >>deu<< Good morning.", ">>deu< Good morning.", ">><< a",
                           "Good >>deu<< morning.", ">>", ">>deu"}) {
    CAPTURE(text);
    const Ids ids = translate_one(*model, text).source_ids;
    CHECK(model->source.leading_language(text).bytes == 0);
    CHECK(std::find(ids.begin(), ids.end(), kDeu) == ids.end());
    CHECK(!ids.empty());
  }
  const LoadedModel none = load_model(model_path("tiny-int8"));
  CHECK(none->source.leading_language(">>deu<< Good morning.").bytes == 0);
}

TEST_CASE("languages: nothing to translate stays empty") {
  const LoadedModel model = load_model(model_path("tiny-languages"));
  for (const char* text : {"", "   ", ">>deu<<", ">>deu<<  "}) {
    CAPTURE(text);
    const Translated t = translate_one(*model, text, with_language(kFra));
    CHECK(t.source_ids.empty());
    CHECK(t.text.empty());
    CHECK(t.parts == 1);
  }
}

// Sessions join the source ids of a line's parts; each ends with eos.
std::vector<Ids> split_parts(const Ids& ids) {
  std::vector<Ids> parts(1);
  for (const int32_t id : ids) {
    parts.back().push_back(id);
    if (id == kEos) parts.emplace_back();
  }
  parts.pop_back();
  return parts;
}

TEST_CASE("languages: every part of a long line begins with the line's language, within the limit") {
  const LoadedModel model = load_model(model_path("tiny-languages"));
  std::string text;
  for (int i = 0; i < 40; ++i) text += "A man is riding a bicycle. >>fra<< Two dogs, ";
  const Translated by_option = translate_one(*model, text, with_language(kDeu, 16));
  const Translated typed = translate_one(*model, ">>deu<<" + text, with_language(-1, 16));
  const Translated typed_against = translate_one(*model, ">>deu<<" + text, with_language(kFra, 16));
  CHECK(by_option.parts > 20);
  for (const Ids& part : split_parts(by_option.source_ids)) {
    CHECK(part[0] == kDeu);
    CHECK(part.size() <= 16);
    CHECK(std::count(part.begin(), part.end(), kFra) == 0);  // inside a line it is text
  }
  CHECK(typed_against == typed);
  CHECK(split_parts(typed.source_ids).front()[0] == kDeu);
  CHECK(split_parts(typed.source_ids).back()[0] == kDeu);
  const Ids next = Session(*model, with_language(-1, 16))
                       .translate(std::vector<std::string>{">>deu<<" + text, "Yes."})[1]
                       .source_ids;
  CHECK(next[0] != kDeu);  // the next line starts anew
}

TEST_CASE("languages: ids in, and the language before them") {
  const LoadedModel model = load_model(model_path("tiny-languages"));
  const std::vector<Ids> lines = {{300, 301}, {kFra, 300, 301}, {}, {kFra}, Ids(40, 300)};
  const auto got = Session(*model, with_language(kDeu, 16)).translate_ids(lines);
  CHECK(got[0].source_ids == Ids{kDeu, 300, 301, kEos});
  CHECK(got[1].source_ids == Ids{kFra, 300, 301, kEos});
  CHECK(got[2].source_ids.empty());
  CHECK(got[3].source_ids == Ids{kFra, kEos});
  CHECK(got[4].parts == 3);
  size_t content = 0;
  for (const Ids& part : split_parts(got[4].source_ids)) {
    CHECK(part[0] == kDeu);
    content += part.size() - 2;
  }
  CHECK(content == 40);
}

TEST_CASE("languages: a line's translation does not depend on its neighbours or on threads") {
  const LoadedModel model = load_model(model_path("tiny-languages"));
  std::string text;
  for (int i = 0; i < 12; ++i) text += "A man, riding a bicycle; ";
  const std::vector<std::string> lines = {"Good morning.",  ">>fra<< Good morning.", "",         text,
                                          ">>fra<<" + text, ">>xx<< Two dogs.",      "Two dogs."};
  std::vector<Translated> alone;
  for (const std::string& line : lines) alone.push_back(translate_one(*model, line, with_language(kDeu, 32)));
  CHECK(alone[0].logits_hash != alone[1].logits_hash);
  for (const uint32_t slots : {1u, 2u, 7u}) {
    Setup setup = with_language(kDeu, 32);
    setup.limits.slots = slots;
    setup.limits.threads = slots > 2 ? 3 : 1;
    CHECK(Session(*model, setup).translate(lines) == alone);
  }
}

TEST_CASE("languages: the runtime agrees with the double-precision reference") {
  const Multilingual two({"deu", "fra"});
  const Result<Checkpoint> checkpoint = read_marian(two.folder.path);
  REQUIRE(checkpoint);
  for (const char* name : {"deu", "fra"}) {
    Setup setup = with_language(*find_language(*two.model, name));
    const Translated t = translate_one(*two.model, "Good morning.", setup);
    REQUIRE(t.source_ids.at(0) == *find_language(*two.model, name));
    CHECK(best_after(*checkpoint, {t.source_ids, t.ids}) == t.ids);
  }
}

TEST_CASE("languages: the C API and its C++ face") {
  namespace dg = dragoman::v1;
  dg::Error error;
  const dg::Model model = dg::Model::open(model_path("tiny-languages").c_str(), error);
  auto translator = dg::Translator::start(model, {}, error);
  std::string names;
  model.each_language([&](std::string_view name) { names += std::string(name) + ";"; });
  CHECK(names == "deu;fra;");
  CHECK(model.find_language("xx", error) == 0);
  CHECK(has(error.text, "it has deu, fra"));

  std::vector<char> buffer(translator.plan().output_bytes);
  const std::string typed(translator.translate(">>fra<< Good morning.", buffer).text);
  const std::string plain(translator.translate("Good morning.", buffer).text);
  dg::Options options{};
  options.target_language = model.find_language("fra", error);
  REQUIRE(options.target_language != 0);
  CHECK(translator.translate("Good morning.", buffer, &options).text == typed);
  CHECK(typed != plain);
  for (const uint32_t wrong : {uint32_t{1}, uint32_t{400}, UINT32_MAX}) {  // no language: none
    options.target_language = wrong;
    CHECK(translator.translate("Good morning.", buffer, &options).text == plain);
  }
  const dg::Model none = dg::Model::open(model_path("tiny-int8").c_str(), error);
  none.each_language([](std::string_view) { FAIL_CHECK("it has none"); });
  CHECK(none.find_language("deu", error) == 0);
}

TEST_CASE("languages: dragoman translate --target-language, its errors and its one warning") {
  const std::string model = model_path("tiny-languages");
  const auto run = [&](std::vector<std::string> more, const std::string& input) {
    more.insert(more.begin(), {"translate", "-m", model});
    return run_command(more, {.input = input});
  };
  const std::string warning = "was not told which: use --target-language";
  const Ran typed = run({}, ">>fra<< Good morning.\n\n>>fra<< Two dogs.\n");
  CHECK_FALSE(has(typed.err, warning));
  for (const char* name : {"fra", ">>fra<<"}) {
    const Ran option = run({"--target-language", name}, "Good morning.\n\nTwo dogs.\n");
    CHECK(option.out == typed.out);
    CHECK(option.code == 0);
    CHECK_FALSE(has(option.err, warning));
  }
  const Ran none = run({}, "\n>>fra<< Yes.\nGood morning.\nTwo dogs.\n");
  CHECK(none.code == 0);
  CHECK(none.err.find(warning) != std::string::npos);
  CHECK(none.err.find(warning) == none.err.rfind(warning));  // once
  CHECK(has(none.err, "such as >>deu<<. It has deu, fra"));
  CHECK_FALSE(has(run({"-q"}, "Good morning.\n").err, warning));
  CHECK_FALSE(has(run_command({"translate", "-m", model_path("tiny-int8"), "Good morning."}).err, warning));

  const Ran wrong = run({"--target-language", "xx"}, "Good morning.\n");
  CHECK(wrong.code == 2);
  CHECK(wrong.out.empty());
  CHECK(wrong.err == "dragoman: this model does not translate into \"xx\"; it has deu, fra\n");
  const Ran without = run_command({"translate", "-m", model_path("tiny-int8"), "--target-language=deu", "a"});
  CHECK(without.code == 2);
  CHECK(has(without.err, "this model has one target language"));
}

TEST_CASE("languages: inspect lists them, tokenize shows their ids") {
  CHECK(has(run_command({"inspect", model_path("tiny-languages")}).out, "\n  target languages     deu, fra\n"));
  CHECK_FALSE(has(run_command({"inspect", model_path("tiny-int8")}).out, "target languages"));
  const auto tokenize = [](const std::string& model, const std::string& text) {
    return run_command({"tokenize", "-m", model_path(model), text}).out;
  };
  CHECK(tokenize("tiny-languages", ">>fra<< Two dogs.") == "4 " + tokenize("tiny-languages", "Two dogs."));
  CHECK(tokenize("tiny-languages", ">>fra<<") == "4\n");
  CHECK(tokenize("tiny-languages", ">>xx<< Two dogs.") == "1 " + tokenize("tiny-languages", "Two dogs."));
}

}  // namespace
}  // namespace dragoman::test
