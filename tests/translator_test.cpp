// The way of a sentence: independence of neighbours, threads and instruction sets; statuses; parts; limits.
#include "runtime/translator.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "converter/convert.h"
#include "tests/support.h"
#include "tests/synthetic.h"

namespace dragoman::test {
namespace {

std::vector<std::string> sample_lines() {
  return {"Good morning.",
          "",
          "A man is riding a bicycle down the street while two dogs run after him.",
          "Tom!",
          "   ",
          "I don't know what you are talking about, but it sounds interesting.",
          "1234567890 and 3.14",
          "The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy dog again.",
          "\xf0\x9f\x98\x80 caf\xc3\xa9 \xe4\xbd\xa0\xe5\xa5\xbd",
          "x",
          "Yes, of course; no, never: perhaps - who knows?",
          "She said that she had never seen anything like it in her whole life, and I believed her."};
}

// Up to `most` lines of each test set, where they are there.
void add_test_sets(std::vector<std::string>& lines, size_t most) {
  for (const char* set :
       {"tatoeba_test", "tatoeba_dev", "m30k_test_2016_flickr", "m30k_test_2017_mscoco", "flores-dev"}) {
    const std::string path = shared_path(std::string("eval/en-de/") + set + ".en");
    if (path.empty()) return;
    std::vector<std::string> sentences = read_lines(path);
    sentences.resize(std::min(sentences.size(), most));
    lines.insert(lines.end(), sentences.begin(), sentences.end());
  }
}

std::vector<const char*> small_models() {
  return {"tiny-none", "tiny-int8"};
}

// Everything about a line but its score (asked for or not) is a function of the line alone.
void check_equal(const std::vector<Translated>& got, const std::vector<Translated>& want) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i].ids == want[i].ids);
    CHECK(got[i].text == want[i].text);
    CHECK(got[i].flags == want[i].flags);
    CHECK(got[i].logits_hash == want[i].logits_hash);
    CHECK(got[i].score == want[i].score);
  }
}

std::vector<Translated> one_by_one(const Model& model, const std::vector<std::string>& lines, const Setup& setup) {
  std::vector<Translated> results;
  Session session(model, setup);
  for (const std::string& line : lines) results.push_back(session.translate(std::span(&line, 1))[0]);
  return results;
}

}  // namespace

TEST_CASE("translator: a line's translation does not depend on its neighbours or on threads (C6, C7)") {
  std::vector<const char*> names = small_models();
  if (!model_path("en-de-int8").empty()) names.push_back("en-de-int8");
  std::mt19937 random(7);
  for (const char* name : names) {
    CAPTURE(name);
    const LoadedModel model = load_model(model_path(name));
    std::vector<std::string> lines = sample_lines();
    if (std::string(name) == "en-de-int8") add_test_sets(lines, full_run() ? 60 : 2);
    Options options;
    options.scores = true;
    const std::vector<Translated> alone = one_by_one(*model, lines, {.limits = {.source = 64}, .options = options});
#ifdef DRAGOMAN_SANITIZED
    for (const uint32_t threads : {1u, 3u}) {
#else
    for (uint32_t threads = 1; threads <= 4; ++threads) {
#endif
      for (const uint32_t slots : {1u, 3u, 32u}) {
        CAPTURE(threads);
        CAPTURE(slots);
        std::vector<size_t> order(lines.size());
        std::iota(order.begin(), order.end(), size_t{0});
        std::shuffle(order.begin(), order.end(), random);
        std::vector<std::string> shuffled;
        std::vector<Translated> want;
        for (const size_t i : order) {
          shuffled.push_back(lines[i]);
          want.push_back(alone[i]);
        }
        Session session(*model, {.limits = {.slots = slots, .source = 64, .threads = threads}, .options = options});
        check_equal(session.translate(shuffled), want);
      }
    }
  }
}

TEST_CASE("translator: a vocabulary far larger than everything else (the decoder's bytes are the encoder's)") {
  SyntheticModel synthetic;
  synthetic.extra_pieces = 20000;
  SyntheticFolder folder(synthetic);
  folder.write();
  REQUIRE(convert(folder.path, folder.file("m.dgm"), {}));
  const LoadedModel model = load_model(folder.file("m.dgm"));
  std::vector<std::string> lines = sample_lines();
  for (const std::string& line : sample_lines()) lines.push_back(line + " Again.");
  const std::vector<Translated> alone = one_by_one(*model, lines, {});
  check_equal(Session(*model, {.limits = {.slots = 4}}).translate(lines), alone);
}

TEST_CASE("translator: a valid text stays valid wherever its window ends") {
  const LoadedModel model = load_model(model_path("tiny-none"));
  Session session(*model, {.limits = {.source = 32}});
  for (const char* character : {"\xe6\xbc\xa2", "\xc3\xbc", "\xf0\x9f\x98\x80"}) {
    for (size_t before = 0; before < 4; ++before) {
      std::string text(before, 'a');
      for (int i = 0; i < 1500; ++i) text += character;
      const std::vector<Translated> t = session.translate(std::span(&text, 1));
      CHECK((t[0].flags & kInvalidUtf8) == 0);
      CHECK((t[0].flags & kSplit) != 0);
    }
  }
}

TEST_CASE("translator: the score of a cut loop is that of the ids that are left") {
  const LoadedModel model = load_model(model_path("tiny-none"));
  std::vector<std::string> lines{"They are pretty.", "I went to bed early.", "Tom sealed the envelope."};
  Options plain, cut;
  plain.scores = cut.scores = cut.cut_loops = true;
  for (const std::string& line : lines) {
    const Translated shorter = Session(*model, {.options = cut}).translate(std::span(&line, 1))[0];
    REQUIRE((shorter.flags & kLoopCut) != 0);
    // The same, stopped by the callback after as many ids.
    struct Count {
      size_t left;
    } count{shorter.ids.size()};
    Options stop = plain;
    stop.token_user = &count;
    stop.token = [](void* user, uint64_t, int32_t) { return --static_cast<Count*>(user)->left > 0; };
    const Translated stopped = Session(*model, {.options = stop}).translate(std::span(&line, 1))[0];
    CHECK(stopped.ids == shorter.ids);
    CHECK(stopped.score == shorter.score);
  }
}

TEST_CASE("translator: every instruction set gives the same bits (C6)") {
  for (const char* name : {"tiny-none", "tiny-int8", "en-de-none", "en-de-int8"}) {
    const std::string path = model_path(name);
    if (path.empty()) continue;
    CAPTURE(name);
    const LoadedModel model = load_model(path);
    std::vector<std::string> lines = sample_lines();
    if (std::string(name).starts_with("en-de")) add_test_sets(lines, full_run() ? SIZE_MAX : 10);
    const Limits limits{.slots = 16, .source = 64, .threads = full_run() ? 2u : 1u};
    const std::vector<Translated> want =
        Session(*model, {.limits = limits, .kernels = find_kernels("portable")}).translate(lines);
    for (const Kernels* kernels : available_kernels()) {
      if (kernels == find_kernels("portable")) continue;
      CAPTURE(kernels->name);
      check_equal(Session(*model, {.limits = limits, .kernels = kernels}).translate(lines), want);
      MESSAGE(std::string(name) << ": " << lines.size() << " lines on " << std::string(kernels->name)
                                << " as on portable");
    }
  }
}

TEST_CASE("translator: empty and blank lines stay empty") {
  const LoadedModel model = load_model(model_path("tiny-int8"));
  Session session(*model, {.limits = {.slots = 2}});
  const std::vector<std::string> lines(50);
  for (const Translated& t : session.translate(lines)) {
    CHECK(t.text == "");
    CHECK(t.ids.empty());
    CHECK(t.flags == 0);
    CHECK(t.parts == 1);
  }
}

TEST_CASE("translator: a source longer than the limit is translated in parts, and says so") {
  const LoadedModel model = load_model(model_path("tiny-int8"));
  std::string text;
  for (int i = 0; i < 40; ++i) text += "This is sentence number " + std::to_string(i) + ". ";
  Session session(*model, {.limits = {.slots = 3, .source = 32}});
  const std::vector<std::string> lines{text, "Short."};
  const std::vector<Translated> translated = session.translate(lines);
  CHECK(translated[0].parts > 10);
  CHECK((translated[0].flags & kSplit) != 0);
  CHECK((translated[1].flags & kSplit) == 0);
  // Nothing is lost: the parts' sources together read as the text does.
  std::string pieces;
  std::vector<char> buffer(100000);
  for (size_t begin = 0; begin < translated[0].source_ids.size();) {
    const auto& ids = translated[0].source_ids;
    const size_t end = static_cast<size_t>(std::find(ids.begin() + begin, ids.end(), model->arch.eos) - ids.begin());
    const size_t bytes = model->source.decode(std::span(ids).subspan(begin, end - begin), buffer);
    pieces += std::string(buffer.data(), bytes) + " ";
    begin = end + 1;
  }
  CHECK(pieces == text);
}

TEST_CASE("translator: ids beyond the limit are split, unknown ids are unk") {
  const LoadedModel model = load_model(model_path("tiny-none"));
  Session session(*model, {.limits = {.source = 16}});
  std::vector<int32_t> many(100, 5);
  many[3] = -7;
  many[4] = 1 << 30;
  const std::vector<std::vector<int32_t>> lines{many, {}, {5, 6, 7}, {5, 6, 7, static_cast<int32_t>(model->arch.eos)}};
  const std::vector<Translated> t = session.translate_ids(lines);
  CHECK(t[0].parts == 7);
  CHECK((t[0].flags & kSplit) != 0);
  CHECK((t[0].flags & kUnknown) != 0);
  CHECK(t[0].source_ids[3] == static_cast<int32_t>(model->arch.unk));
  CHECK(t[1].ids.empty());
  CHECK(t[2].ids == t[3].ids);
  CHECK(t[2].source_ids == t[3].source_ids);
}

TEST_CASE("translator: the length cap and loops are reported, loops are cut only when asked") {
  const LoadedModel model = load_model(model_path("tiny-none"));  // random weights love to repeat themselves
  std::vector<std::string> lines;
  for (int i = 0; i < 40; ++i) lines.push_back("word " + std::to_string(i * 7919) + " test");
  const std::vector<Translated> plain = Session(*model, {}).translate(lines);
  Options cut;
  cut.cut_loops = true;
  const std::vector<Translated> shorter = Session(*model, {.options = cut}).translate(lines);
  size_t loops = 0, caps = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool at_cap = plain[i].ids.size() == 2 * plain[i].source_ids.size() + 10;
    const bool ended = plain[i].ids.back() == static_cast<int32_t>(model->arch.eos);
    CHECK(((plain[i].flags & kLengthCap) != 0) == (at_cap && !ended));
    CHECK((plain[i].flags & kLoopCut) == 0);
    CHECK(((shorter[i].flags & kLoopCut) != 0) == ((plain[i].flags & kLoop) != 0));
    caps += (plain[i].flags & kLengthCap) != 0;
    if (!(plain[i].flags & kLoop)) {
      CHECK(shorter[i].ids == plain[i].ids);
      continue;
    }
    ++loops;
    CHECK(shorter[i].ids.size() < plain[i].ids.size());
    CHECK(std::equal(shorter[i].ids.begin(), shorter[i].ids.end(), plain[i].ids.begin()));
  }
  CHECK(loops > 0);
  CHECK(caps > 0);
}

TEST_CASE("translator: the token callback sees every id and can stop a part") {
  const LoadedModel model = load_model(model_path("tiny-none"));
  struct Seen {
    std::vector<int32_t> ids;
    size_t stop_after;
  } seen{{}, 3};
  Options options;
  options.token_user = &seen;
  options.token = [](void* user, uint64_t, int32_t id) {
    Seen& s = *static_cast<Seen*>(user);
    s.ids.push_back(id);
    return s.ids.size() < s.stop_after;
  };
  const std::vector<std::string> line{"A longer sentence that will not be over after three tokens."};
  const std::vector<Translated> stopped = Session(*model, {.options = options}).translate(line);
  CHECK(stopped[0].ids == seen.ids);
  CHECK(seen.ids.size() == 3);
  CHECK((stopped[0].flags & kStopped) != 0);
}

TEST_CASE("translator: impossible limits are refused with a sentence") {
  const LoadedModel model = load_model(model_path("tiny-none"));
  const uint32_t positions = model->arch.positions;
  for (const Limits& limits : {Limits{.source = 3}, Limits{.source = positions + 1}, Limits{.target = positions + 1},
                               Limits{.slots = 100000}, Limits{.positions = 16}, Limits{.threads = 1000}}) {
    const Result<Plan> plan = make_plan(*model, limits);
    REQUIRE(!plan);
    MESSAGE(plan.error().text);
  }
}

}  // namespace dragoman::test
