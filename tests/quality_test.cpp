// int8 against float32, as a reader of the translations sees it: corpus BLEU and the share of identical texts.
#include <cmath>

#include "bench/bleu.h"
#include "tests/support.h"

namespace dragoman::test {

TEST_CASE("quality: the BLEU tool gives a published score") {
  const std::string folder = shared_path("eval/en-de");
  if (folder.empty()) return;
  // Mozilla publishes 40.0 for this output; sacreBLEU says 39.97.
  const double score = bench::corpus_bleu(read_lines(folder + "/flores-dev.bergamot-base-memory.de"),
                                          read_lines(folder + "/flores-dev.de"))
                           .score;
  MESSAGE("BLEU " << score);
  CHECK(std::abs(score - 39.97) < 0.01);
}

TEST_CASE("quality: 13a separates words as mteval does") {
  using Words = std::vector<std::string>;
  CHECK(bench::tokenize_13a("Hello, world.") == Words{"Hello", ",", "world", "."});
  CHECK(bench::tokenize_13a("1,000.5 km/h -- don't") == Words{"1,000.5", "km", "/", "h", "--", "don't"});
  CHECK(bench::tokenize_13a("5-6 (x) &quot;y&quot;...") ==
        Words{"5", "-", "6", "(", "x", ")", "\"", "y", "\"", ".", ".", "."});
}

TEST_CASE("quality: int8 stays close to float32") {
  const std::string f32_path = model_path("en-de-none"), folder = shared_path("eval/en-de");
  if (f32_path.empty() || folder.empty()) return;
  const LoadedModel f32 = load_model(f32_path), int8 = load_model(model_path("en-de-int8"));
  std::vector<const char*> sets{"tatoeba_test"};
  if (full_run())
    sets = {"tatoeba_dev", "tatoeba_test", "m30k_test_2016_flickr", "m30k_test_2017_mscoco", "flores-dev"};
  for (const char* set : sets) {
    const std::vector<std::string> source = read_lines(folder + "/" + set + ".en");
    const std::vector<std::string> reference = read_lines(folder + "/" + set + ".de");
    std::vector<std::string> texts[2];
    const Model* models[2] = {f32.model.get(), int8.model.get()};
    for (int i = 0; i < 2; ++i) {
      Session session(*models[i], {.limits = {.slots = 32, .source = 512, .threads = 2}});
      for (const Translated& t : session.translate(source)) texts[i].push_back(t.text);
    }
    size_t same = 0;
    for (size_t i = 0; i < source.size(); ++i) same += texts[0][i] == texts[1][i];
    const double want = bench::corpus_bleu(texts[0], reference).score,
                 got = bench::corpus_bleu(texts[1], reference).score;
    MESSAGE(std::string(set) << ": BLEU float32 " << want << ", int8 " << got << "; " << same << " of " << source.size()
                             << " texts identical");
    CHECK(std::abs(got - want) <= 0.3);
  }
}

}  // namespace dragoman::test
