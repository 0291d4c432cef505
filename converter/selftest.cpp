#include "converter/selftest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
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

// A line on its way through the translator, and what it gave.
struct Passage {
  Input input;
  bool taken = false;
  size_t parts = 0;
  uint32_t flags = 0;
  Recording recording;
};

Passage record(Translator& translator, const Input& input) {
  Passage passage;
  passage.input = input;
  passage.recording.hash = kChecksumSeed;
  Source source;
  source.user = &passage;
  source.peek = [](void* user, Input& in) {
    const Passage& p = *static_cast<Passage*>(user);
    if (!p.taken) in = p.input;
    return !p.taken;
  };
  source.take = [](void* user, size_t used) {
    Passage& p = *static_cast<Passage*>(user);
    p.input.text.remove_prefix(p.input.ids.empty() ? used : 0);
    p.input.ids = p.input.ids.subspan(p.input.ids.empty() ? 0 : used);
    p.taken = p.input.text.empty() && p.input.ids.empty();
  };
  Sink sink;
  sink.user = &passage;
  sink.part = [](void* user, const Output& output) {
    Passage& p = *static_cast<Passage*>(user);
    ++p.parts;
    p.flags |= output.flags;
    p.recording.source.assign(output.source_ids.begin(), output.source_ids.end());
    p.recording.target.assign(output.ids.begin(), output.ids.end());
  };
  Probe probe;
  probe.user = &passage;
  probe.logits = [](void* user, uint64_t, size_t, const float* row, size_t n) {
    Recording& r = static_cast<Passage*>(user)->recording;
    r.logits.insert(r.logits.end(), row, row + n);
    r.hash = checksum(row, n * sizeof(float), r.hash);
  };
  translator.translate(source, sink, {}, probe);
  return passage;
}

// The section of runtime/format.h, case by case.
class SectionWriter {
 public:
  SectionWriter() : bytes_(8) {}

  void add(const Recording& r) {
    SelfTestCase header{};
    header.text_bytes = static_cast<uint32_t>(r.text.size());
    header.source_ids = static_cast<uint32_t>(r.source.size());
    header.target_ids = static_cast<uint32_t>(r.target.size());
    header.logits_hash = r.hash;
    append(&header, sizeof header);
    append(r.text.data(), r.text.size());
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

void add_difference(double got, double want, SelfTestFigures& figures) {
  if (want == -std::numeric_limits<double>::infinity() && got == want) return;  // never produced
  const double difference = std::abs(got - want);
  figures.logit_difference =
      std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::max(figures.logit_difference, difference);
  figures.squared_differences += difference * difference;
  ++figures.logits;
}

struct Case {
  std::string_view text;     // empty: ids
  std::vector<int32_t> ids;  // without eos
};

std::vector<Case> all_cases(const Architecture& arch, size_t longest) {
  std::vector<Case> cases;
  for (const char* text : kTexts) cases.push_back({text, {}});
  for (const size_t length : kIdLengths)
    cases.push_back({"", arbitrary_ids(arch, arch.source_vocabulary, std::min(length, longest), length)});
  return cases;
}

Result<std::vector<Recording>> record_cases(Translator& translator, const Architecture& arch,
                                            const Progress& progress) {
  const std::vector<Case> cases = all_cases(arch, translator.plan().limits.source - 1);
  std::vector<Recording> recordings;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& one = cases[i];
    Input input;
    if (one.text.empty()) {
      input.ids = one.ids;
    } else {
      input.text = one.text;
    }
    Passage passage = record(translator, input);
    if (passage.flags & kNumeric)
      return fail("the self-test found no finite score: the weights overflow; this model cannot be used");
    if (passage.parts > 1) continue;  // too long for this model's positions: a part has no text of its own
    Recording& recording = passage.recording;
    const bool whole = passage.parts == 1 && !recording.target.empty() &&
                       recording.logits.size() == recording.target.size() * arch.target_vocabulary;
    if (!whole) return fail("the self-test could not translate its sentences: please report this");
    recording.text = one.text;
    recordings.push_back(std::move(recording));
    if (progress) progress("self-test", static_cast<double>(i + 1) / static_cast<double>(2 * cases.size()));
  }
  return recordings;
}

}  // namespace

Result<std::vector<Recording>> record_selftest(std::span<const std::byte> image, const Progress& progress) {
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
  Result<std::vector<Recording>> recordings = record_cases(**translator, model->arch, progress);
  (*translator)->destroy();
  return recordings;
}

std::vector<std::byte> selftest_section(std::span<const Recording> recordings) {
  SectionWriter section;
  for (const Recording& recording : recordings) section.add(recording);
  return section.take();
}

Result<SelfTestFigures> compare_with_reference(std::span<const Recording> recordings, const Checkpoint& checkpoint,
                                               const Progress& progress) {
  const size_t vocabulary = checkpoint.arch.target_vocabulary;
  std::vector<SentencePair> sentences;
  std::vector<const float*> rows;  // of recorded logits, for every target id of all sentences
  for (const Recording& recording : recordings) {
    sentences.push_back({recording.source, recording.target});
    for (size_t i = 0; i < recording.target.size(); ++i) rows.push_back(recording.logits.data() + i * vocabulary);
  }
  Reference reference(checkpoint, sentences);
  if (const Status ran = run_reference(reference, checkpoint); !ran) return ran.error();

  SelfTestFigures figures;
  struct Best {
    double logit = -std::numeric_limits<double>::infinity();
    size_t id = 0;
  };
  std::vector<Best> best(rows.size());
  const Status compared =
      for_each_logits(checkpoint, reference.hidden(), [&](size_t first, const DoubleMatrix& logits) {
        for (size_t r = 0; r < logits.rows; ++r) {
          for (size_t i = 0; i < logits.cols; ++i) {
            const double want = logits.row(r)[i];
            if (want > best[r].logit) best[r] = {want, first + i};
            add_difference(static_cast<double>(rows[r][first + i]), want, figures);
          }
        }
        const double done = static_cast<double>(first + logits.cols) / static_cast<double>(vocabulary);
        if (progress) progress("self-test", 0.5 + 0.5 * done);
      });
  if (!compared) return compared.error();

  size_t row = 0;
  for (const Recording& recording : recordings) {
    size_t agreeing = 0;
    for (const int32_t id : recording.target) agreeing += best[row++].id == static_cast<size_t>(id);
    ++figures.sentences;
    figures.tokens += recording.target.size();
    figures.agreeing_tokens += agreeing;
    figures.agreeing_sentences += agreeing == recording.target.size();
  }
  return figures;
}

}  // namespace dragoman
