#include "converter/selftest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>
#include <limits>
#include <memory>
#include <string_view>

#include "converter/arbitrary_ids.h"
#include "converter/reference.h"
#include "kernels/kernels.h"
#include "runtime/arena.h"
#include "runtime/checksum.h"
#include "runtime/model.h"
#include "runtime/translator.h"

namespace dragoman {
namespace {

// Short, so that large models are done in seconds; digits, punctuation, an accent, a sign few vocabularies have.
constexpr const char* kTexts[] = {
    "Hello!",
    "Where is the nearest station?",
    "I bought 3 apples for $2.50 on 14 May 2021.",
    "\"It's too late,\" she said, and left the caf\xC3\xA9 \xE2\x98\x83.",
    "We would like to thank everyone who has helped us to build this small house by the river.",
};
// Sources made of any ids, for models of any language. Lengths without eos.
constexpr size_t kIdLengths[] = {1, 6, 15};

// What one line gave.
struct Recording {
  Input input;
  bool taken = false;
  size_t parts = 0;
  uint32_t flags = 0;
  std::vector<int32_t> source, target;
  std::vector<float> logits;  // (target ids, target_vocabulary)
  uint64_t hash = kChecksumSeed;
};

Recording record(Translator& translator, const Input& input) {
  Recording recording;
  recording.input = input;
  Source source;
  source.user = &recording;
  source.peek = [](void* user, Input& in) {
    const Recording& r = *static_cast<Recording*>(user);
    if (!r.taken) in = r.input;
    return !r.taken;
  };
  source.take = [](void* user, size_t used) {
    Recording& r = *static_cast<Recording*>(user);
    r.input.text.remove_prefix(r.input.ids.empty() ? used : 0);
    r.input.ids = r.input.ids.subspan(r.input.ids.empty() ? 0 : used);
    r.taken = r.input.text.empty() && r.input.ids.empty();
  };
  Sink sink;
  sink.user = &recording;
  sink.part = [](void* user, const Output& output) {
    Recording& r = *static_cast<Recording*>(user);
    ++r.parts;
    r.flags |= output.flags;
    r.source.assign(output.source_ids.begin(), output.source_ids.end());
    r.target.assign(output.ids.begin(), output.ids.end());
  };
  Probe probe;
  probe.user = &recording;
  probe.logits = [](void* user, uint64_t, size_t, const float* row, size_t n) {
    Recording& r = *static_cast<Recording*>(user);
    r.logits.insert(r.logits.end(), row, row + n);
    r.hash = checksum(row, n * sizeof(float), r.hash);
  };
  translator.translate(source, sink, {}, probe);
  return recording;
}

// The section of runtime/format.h, case by case.
class SectionWriter {
 public:
  SectionWriter() : bytes_(8) {}

  void add(std::string_view text, const Recording& r) {
    SelfTestCase header{};
    header.text_bytes = static_cast<uint32_t>(text.size());
    header.source_ids = static_cast<uint32_t>(r.source.size());
    header.target_ids = static_cast<uint32_t>(r.target.size());
    header.logits_hash = r.hash;
    append(&header, sizeof header);
    append(text.data(), text.size());
    bytes_.resize(round_up(bytes_.size(), 4));
    append(r.source.data(), r.source.size() * sizeof(int32_t));
    append(r.target.data(), r.target.size() * sizeof(int32_t));
    bytes_.resize(round_up(bytes_.size(), 8));
    ++count_;
    std::memcpy(bytes_.data(), &count_, sizeof count_);
  }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void append(const void* data, size_t size) {
    const auto* begin = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), begin, begin + size);
  }
  std::vector<std::byte> bytes_;
  uint32_t count_ = 0;
};

SelfTestFigures compare(const Recording& recording, const Reference& reference) {
  const ReferenceRun run = reference.follow(recording.source, recording.target);
  SelfTestFigures figures;
  figures.sentences = 1;
  figures.tokens = recording.target.size();
  for (size_t i = 0; i < recording.target.size(); ++i) figures.agreeing_tokens += run.ids[i] == recording.target[i];
  figures.agreeing_sentences = figures.agreeing_tokens == figures.tokens;
  for (size_t i = 0; i < recording.logits.size(); ++i) {
    const double want = run.logits.values[i], got = static_cast<double>(recording.logits[i]);
    if (want == -std::numeric_limits<double>::infinity() && got == want) continue;  // never produced
    const double difference = std::abs(got - want);
    figures.logit_difference = std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                                      : std::max(figures.logit_difference, difference);
    figures.squared_differences += difference * difference;
    ++figures.logits;
  }
  return figures;
}

void add(SelfTestFigures& sum, const SelfTestFigures& one) {
  sum.sentences += one.sentences;
  sum.tokens += one.tokens;
  sum.agreeing_sentences += one.agreeing_sentences;
  sum.agreeing_tokens += one.agreeing_tokens;
  sum.logit_difference = std::max(sum.logit_difference, one.logit_difference);
  sum.squared_differences += one.squared_differences;
  sum.logits += one.logits;
}

struct Case {
  std::string_view text;     // empty: ids
  std::vector<int32_t> ids;  // without eos
};

std::vector<Case> all_cases(const Architecture& arch, size_t longest) {
  std::vector<Case> cases;
  for (const char* text : kTexts) cases.push_back({text, {}});
  for (const size_t length : kIdLengths) cases.push_back({"", arbitrary_ids(arch, std::min(length, longest), length)});
  return cases;
}

Status run_cases(Translator& translator, const Checkpoint& checkpoint, const Progress& progress, SelfTest& result) {
  const Reference reference(checkpoint);
  const std::vector<Case> cases = all_cases(checkpoint.arch, translator.plan().limits.source - 1);
  SectionWriter section;
  std::vector<Recording> kept;  // not in the task: where no thread is to be had, g++ 12 runs what it has moved from
  kept.reserve(cases.size());
  std::vector<std::future<SelfTestFigures>> references;  // beside each other: they take longer than the runtime
  for (const Case& one : cases) {
    Input input;
    if (one.text.empty()) {
      input.ids = one.ids;
    } else {
      input.text = one.text;
    }
    Recording recording = record(translator, input);
    if (recording.flags & kNumeric)
      return fail("the self-test found no finite score: the weights overflow; this model cannot be used");
    if (recording.parts > 1) continue;  // too long for this model's positions: a part has no text of its own
    const bool whole = recording.parts == 1 && !recording.target.empty() &&
                       recording.logits.size() == recording.target.size() * checkpoint.arch.target_vocabulary;
    if (!whole) return fail("the self-test could not translate its sentences: please report this");
    section.add(one.text, recording);
    kept.push_back(std::move(recording));
    references.push_back(std::async([&reference, &last = kept.back()] { return compare(last, reference); }));
    if (progress) progress("self-test", static_cast<double>(references.size()) / static_cast<double>(2 * cases.size()));
  }
  for (size_t i = 0; i < references.size(); ++i) {
    add(result.figures, references[i].get());
    const double done = static_cast<double>(references.size() + i + 1);
    if (progress) progress("self-test", done / static_cast<double>(2 * references.size()));
  }
  result.section = section.take();
  return Done{};
}

}  // namespace

Result<SelfTest> run_selftest(std::span<const std::byte> image, const Checkpoint& checkpoint,
                              const Progress& progress) {
  const auto model = std::make_unique<Model>();
  if (const Status opened = open_model(image, "the converted model", *model); !opened) return opened.error();
  const Kernels* kernels = find_kernels("portable");
  if (!kernels) return fail("this build of the converter has no portable kernels: please report this");
  const Result<Plan> plan = make_plan(*model, {});
  if (!plan) return plan.error();
  const ArenaMemory memory(plan->bytes);
  if (!memory.data()) return fail("the self-test needs %zu bytes of memory, which are not to be had", plan->bytes);
  const Result<Translator*> translator = Translator::create(*model, *kernels, *plan, memory.data());
  if (!translator) return translator.error();
  SelfTest result;
  const Status ran = run_cases(**translator, checkpoint, progress, result);
  (*translator)->destroy();
  if (!ran) return ran.error();
  return result;
}

}  // namespace dragoman
