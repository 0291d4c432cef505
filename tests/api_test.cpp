// The C API and its C++ face, as a program that links the library would use them.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/dragoman.hpp"
#include "tests/support.h"

namespace dragoman::test {
namespace {

namespace dg = dragoman::v1;

struct AlignedFile {
  std::vector<char> bytes;
  std::span<std::byte> view;
  explicit AlignedFile(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::string content((std::istreambuf_iterator<char>(in)), {});
    bytes.resize(content.size() + 64);
    char* at = bytes.data() + (-reinterpret_cast<uintptr_t>(bytes.data()) & 63);
    std::memcpy(at, content.data(), content.size());
    view = {reinterpret_cast<std::byte*>(at), content.size()};
  }
};

std::string translate(dg::Translator& translator, std::string_view text, const dg::Options* options = nullptr) {
  std::vector<char> buffer(translator.plan().output_bytes * 10);
  return std::string(translator.translate(text, buffer, options).text);
}

}  // namespace

TEST_CASE("api: file, preloaded file and memory give the same translation") {
  const std::string path = model_path("tiny-int8");
  dg::Error error{};
  const dg::Model mapped = dg::Model::open(path.c_str(), error), preloaded = dg::Model::open(path.c_str(), error, true);
  const AlignedFile file(path);
  const dg::Model in_memory = dg::Model::open_memory(file.view, error);
  REQUIRE(mapped);
  REQUIRE(preloaded);
  REQUIRE(in_memory);
  auto a = dg::Translator::start(mapped, {}, error), b = dg::Translator::start(preloaded, {}, error),
       c = dg::Translator::start(in_memory, {}, error);
  const std::string text = "A man is riding a bicycle.";
  const std::string want = translate(a, text);
  CHECK(!want.empty());
  CHECK(translate(b, text) == want);
  CHECK(translate(c, text) == want);
  CHECK(mapped.verify(error));
  CHECK(mapped.verify(error, "portable"));
}

TEST_CASE("api: errors are sentences") {
  dg::Error error{};
  CHECK(!dg::Model::open("/no/such/file.dgm", error));
  MESSAGE(error.text);
  CHECK(!dg::Model::open("/", error));
  MESSAGE(error.text);
  const std::string path = model_path("tiny-int8");
  const dg::Model model = dg::Model::open(path.c_str(), error);
  CHECK(!dg::Translator::start(model, {}, error, "no-such-isa"));
  MESSAGE(error.text);
  CHECK(!dg::Translator::start(model, {.source = 1}, error));
  MESSAGE(error.text);
  alignas(64) static char memory[128];
  CHECK(!dg::Translator::start(model, {}, error, nullptr, memory + 1));
  MESSAGE(error.text);
  const AlignedFile file(path);
  CHECK(!dg::Model::open_memory(file.view.subspan(1), error));
  CHECK(!dg::Model::open_memory(file.view.first(100), error));
}

TEST_CASE("api: a small output buffer truncates, says so and says how much it takes") {
  dg::Error error{};
  const dg::Model model = dg::Model::open(model_path("tiny-none").c_str(), error);
  auto translator = dg::Translator::start(model, {}, error);
  const std::string text = "They are pretty.";  // on these random weights an endless sigh
  const std::string whole = translate(translator, text);
  REQUIRE(whole.size() > 8);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{5}, whole.size(), whole.size() + 1}) {
    std::vector<char> buffer(size + 1, '#');
    const dg::Translation t = translator.translate(text, std::span(buffer).first(size));
    CHECK(t.result.bytes == whole.size());
    CHECK(((t.result.flags & DRAGOMAN_TRUNCATED) != 0) == (size < whole.size() + 1));
    CHECK(t.text == whole.substr(0, size ? size - 1 : 0));
    CHECK(buffer[size] == '#');
  }
}

// Every thread has lines of its own and translates them in an order of its own, with one thread or with two workers
// besides: whatever two translators shared, the thread sanitizer would see, and a text would come out different.
TEST_CASE("api: one model, eight translators in eight threads, each as if it were alone") {
  dg::Error error{};
  const dg::Model model = dg::Model::open(model_path("tiny-int8").c_str(), error);
  REQUIRE(model);
  const char* const lines[] = {"Good morning to you all.", "A man is riding a bicycle.",  "Where is the station?",
                               "They are pretty.",         "It rained the whole week.",   "No.",
                               "My sister has two cats.",  "We will see, said the blind."};
  constexpr size_t kThreads = 8;
  std::vector<std::string> want;
  {
    auto alone = dg::Translator::start(model, {}, error);
    for (const char* line : lines) want.push_back(translate(alone, line));
  }
  CHECK(std::set<std::string>(want.begin(), want.end()).size() > 4);  // or mixed up results would go unseen

  std::vector<std::vector<std::string>> got(kThreads, std::vector<std::string>(want.size()));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      dg::Error mine{};
      auto translator = dg::Translator::start(model, {.threads = t % 2 ? 3u : 1u}, mine);
      for (size_t i = 0; i < want.size(); ++i) {
        const size_t line = (i + t) % want.size();
        got[t][line] = translate(translator, lines[line]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<std::string>& texts : got) CHECK(texts == want);
}

TEST_CASE("api: empty models and translators answer, they do not crash") {
  dg::Error error{};
  dg::Model none = dg::Model::open("/no/such/file.dgm", error);
  dg::Plan plan{};
  CHECK(!none.verify(error));
  CHECK(!none.plan({}, plan, error));
  CHECK(std::string(error.text).find("no model") != std::string::npos);
  dg::Translator translator = dg::Translator::start(none, {}, error);
  REQUIRE(!translator);
  char buffer[8] = "old";
  const dg::Translation t = translator.translate("Good morning.", buffer);
  CHECK(t.text.empty());
  CHECK(buffer[0] == 0);
  CHECK(!translator.translate_lines({}));
  CHECK(std::string(translator.isa()).empty());
}

TEST_CASE("api: the token callback sees the ids and can stop") {
  dg::Error error{};
  const dg::Model model = dg::Model::open(model_path("tiny-none").c_str(), error);
  auto translator = dg::Translator::start(model, {}, error);
  size_t left = 4;
  const dg::Options options{
      .cut_loops = 0,
      .scores = 0,
      .token = [](void* user, uint64_t, int32_t) -> int { return --*static_cast<size_t*>(user) > 0; },
      .token_user = &left,
      .target_language = 0};
  std::vector<char> buffer(translator.plan().output_bytes);
  const dg::Translation t = translator.translate("They are pretty.", buffer, &options);
  CHECK(t.result.target_ids == 4);
  CHECK((t.result.flags & DRAGOMAN_STOPPED) != 0);
}

TEST_CASE("api: mean log-probability is negative and repeatable") {
  dg::Error error{};
  const dg::Model model = dg::Model::open(model_path("tiny-none").c_str(), error);
  auto translator = dg::Translator::start(model, {}, error);
  const dg::Options options{.cut_loops = 0, .scores = 1, .token = nullptr, .token_user = nullptr, .target_language = 0};
  std::vector<char> buffer(translator.plan().output_bytes);
  const double score = translator.translate("Hello there.", buffer, &options).result.score;
  CHECK(score < 0);
  CHECK(score > -10);
  CHECK(translator.translate("Hello there.", buffer, &options).result.score == score);
}

}  // namespace dragoman::test
