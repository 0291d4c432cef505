// The runtime against PyTorch: reference outputs of the two models, made in float32, batch 1, greedy.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/npz.h"
#include "tests/support.h"

namespace dragoman::test {
namespace {

struct Reference {
  std::string text, out;
  std::vector<int32_t> source_ids, ids;
};

std::vector<Reference> read_references(const std::string& path) {
  std::vector<Reference> references;
  for (const std::string& line : read_lines(path)) {
    const auto json = nlohmann::json::parse(line);
    references.push_back({json["src"], json["out"], json["src_ids"], json["out_ids"]});
  }
  return references;
}

// What passed through the model, by sentence.
struct Trace {
  std::map<uint64_t, std::vector<float>> memory, logits;
  std::map<uint64_t, std::vector<float>> margins;  // best minus second best logit, per step
  bool keep_logits = true;

  Probe probe() {
    Probe p;
    p.user = this;
    p.memory = [](void* user, uint64_t part, const float* x, size_t rows, size_t cols) {
      static_cast<Trace*>(user)->memory[part].assign(x, x + rows * cols);
    };
    p.logits = [](void* user, uint64_t part, size_t, const float* row, size_t n) {
      Trace& t = *static_cast<Trace*>(user);
      float best = -std::numeric_limits<float>::infinity(), second = best;
      for (size_t i = 0; i < n; ++i) {
        if (row[i] > best) {
          second = best, best = row[i];
        } else if (row[i] > second) {
          second = row[i];
        }
      }
      t.margins[part].push_back(best - second);
      if (t.keep_logits) t.logits[part].insert(t.logits[part].end(), row, row + n);
    };
    return p;
  }
};

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()) && largest == largest; ++i) {
    if (std::isinf(a[i])) continue;  // ids that are never produced: the references are not masked
    const double difference = std::abs(double{a[i]} - double{b[i]});
    if (!(difference <= largest)) largest = difference;  // NaN stays
  }
  return largest;
}

// Encoder output and logits of the stored sentences; returns the largest logit difference.
double check_numbers(const Model& model, const std::string& npz, const Kernels* kernels) {
  const auto arrays = read_npz(npz);
  double encoder = 0, logits = 0;
  size_t sentences = 0;
  for (; arrays.count((sentences < 10 ? "s0" : "s") + std::to_string(sentences) + "_index"); ++sentences) {
    const std::string key = (sentences < 10 ? "s0" : "s") + std::to_string(sentences);
    const Array &ids = arrays.at(key + "_src_ids"), &memory = arrays.at(key + "_encoder_out");
    Trace trace;
    Session session(model, {.kernels = kernels, .probe = trace.probe()});
    const std::vector<std::vector<int32_t>> input{{ids.values.begin(), ids.values.end()}};
    session.translate_ids(input);
    REQUIRE(trace.memory[0].size() == memory.values.size());
    REQUIRE(trace.logits[0].size() == arrays.at(key + "_logits").values.size());
    for (const auto& [worst, now] :
         {std::pair{&encoder, largest_difference(trace.memory[0], memory.values)},
          {&logits, largest_difference(trace.logits[0], arrays.at(key + "_logits").values)}}) {
      if (!(now <= *worst)) *worst = now;
    }
  }
  MESSAGE(std::string(kernels->name) << ": " << sentences << " sentences, encoder within " << encoder
                                     << ", logits within " << logits);
  CHECK(sentences >= 4);
  CHECK(encoder <= 1e-4);
  CHECK(logits <= 2e-4);
  return logits;
}

// Ids of a whole test set; where one differs, PyTorch's choice must have been as good as tied.
void check_ids(const Model& model, const std::string& jsonl, double logit_error, size_t most) {
  std::vector<Reference> references = read_references(jsonl);
  if (!full_run() && references.size() > most) references.resize(most);
  std::vector<std::string> lines;
  for (const Reference& r : references) lines.push_back(r.text);
  Trace trace;
  trace.keep_logits = false;
  // The references have no limit but 2n + 10; the longest sources are split, so they are given all positions.
  Session session(model, {.limits = {.slots = 16, .source = model.arch.positions}, .probe = trace.probe()});
  const std::vector<Translated> translated = session.translate(lines);
  size_t same = 0, compared = 0;
  double largest_margin = 0;
  for (size_t i = 0; i < references.size(); ++i) {
    const Translated& t = translated[i];
    const Reference& r = references[i];
    CAPTURE(r.text);
    if (r.source_ids.size() == 1) {  // nothing but eos: the references ask the model, we keep an empty line empty
      CHECK(t.text.empty());
      continue;
    }
    CHECK(t.source_ids == r.source_ids);
    ++compared;
    if (t.ids == r.ids) {
      ++same;
      CHECK(t.text == r.out);
      continue;
    }
    const auto [at, other] = std::mismatch(t.ids.begin(), t.ids.end(), r.ids.begin(), r.ids.end());
    REQUIRE(at != t.ids.end());
    const double margin = trace.margins[i][static_cast<size_t>(at - t.ids.begin())];
    largest_margin = std::max(largest_margin, margin);
    CHECK(margin < 2 * logit_error);
  }
  MESSAGE(jsonl.substr(jsonl.rfind('/') + 1)
          << ": ids of " << same << " of " << compared << " sentences identical; largest margin at a difference "
          << largest_margin);
  CHECK(static_cast<double>(same) >= 0.999 * static_cast<double>(compared));
}

}  // namespace

TEST_CASE("parity: tiny float32 equals PyTorch") {
  const LoadedModel model = load_model(model_path("tiny-none"));
  const std::string npz = shared_path("models/tiny/reference/tiny_ref.numeric.npz");
  double error = 5e-5;
  if (!npz.empty()) {
    for (const Kernels* kernels : available_kernels()) error = check_numbers(*model, npz, kernels);
  }
  check_ids(*model, data_path("tiny/reference.jsonl"), error, 1000);
}

TEST_CASE("parity: en-de float32 equals PyTorch") {
  const std::string path = model_path("en-de-none");
  const std::string npz = shared_path("models/en-de/reference/tatoeba_dev.numeric.npz");
  if (path.empty() || npz.empty()) return;
  const LoadedModel model = load_model(path);
  double error = 0;
  for (const Kernels* kernels : available_kernels()) error = check_numbers(*model, npz, kernels);
  for (const char* set :
       {"tatoeba_dev", "tatoeba_test", "m30k_test_2016_flickr", "m30k_test_2017_mscoco", "flores-dev"}) {
    check_ids(*model, shared_path(std::string("models/en-de/reference/") + set + ".jsonl"), error, 200);
  }
}

}  // namespace dragoman::test
