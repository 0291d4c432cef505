#include "runtime/selftest.h"

#include <algorithm>
#include <cstring>

#include "runtime/arena.h"

namespace dragoman {
namespace {

// A case in the section, checked against its bounds.
struct Case {
  std::string_view text;
  std::span<const int32_t> source_ids, target_ids;
  uint64_t logits_hash = 0;
};

// Takes the next case off `bytes`; false when the section does not hold it.
bool next_case(std::span<const std::byte>& bytes, Case& out) {
  SelfTestCase header;
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.text_bytes > bytes.size()) return false;
  const uint64_t text_bytes = round_up(header.text_bytes, 4);
  const uint64_t ids = uint64_t{header.source_ids} + header.target_ids;
  const uint64_t total = (sizeof header + text_bytes + 4 * ids + 7) / 8 * 8;
  if (total > bytes.size() || header.source_ids == 0) return false;
  const std::byte* at = bytes.data() + sizeof header;
  out.text = {reinterpret_cast<const char*>(at), header.text_bytes};
  const int32_t* first = reinterpret_cast<const int32_t*>(at + text_bytes);
  out.source_ids = {first, header.source_ids};
  out.target_ids = {first + header.source_ids, header.target_ids};
  out.logits_hash = header.logits_hash;
  bytes = bytes.subspan(total);
  return true;
}

const char* replay(Translator& translator, const Case& expected) {
  const char* different = nullptr;
  Input input;
  if (expected.text.empty()) {
    input.ids = expected.source_ids;
  } else {
    input.text = expected.text;
  }
  const uint64_t hash = translate_hashed(translator, input, [&](const Output& output) {
    if (!std::ranges::equal(output.source_ids, expected.source_ids)) different = "source ids";
    if (!different && !std::ranges::equal(output.ids, expected.target_ids)) different = "target ids";
  });
  if (!different && hash != expected.logits_hash) different = "logits";
  return different;
}

}  // namespace

Result<SelfTestReport> replay_selftest(const Model& model, const Kernels& kernels) {
  std::span<const std::byte> bytes = model.selftest;
  uint32_t count = 0;
  if (bytes.size() < 8) return fail("the file holds no self-test: convert the model again to have one");
  std::memcpy(&count, bytes.data(), sizeof count);
  bytes = bytes.subspan(8);

  const Result<Plan> plan = make_plan(model, {});
  if (!plan) return plan.error();
  ArenaMemory memory(plan->bytes);
  if (!memory.data()) return fail("%zu bytes of memory are not to be had", plan->bytes);
  const Result<Translator*> translator = Translator::create(model, kernels, *plan, memory.data());
  if (!translator) return translator.error();

  SelfTestReport report;
  for (uint32_t i = 0; i < count; ++i) {
    Case expected;
    if (!next_case(bytes, expected)) {
      (*translator)->destroy();
      return fail("the self-test section is damaged: convert the model again");
    }
    ++report.cases;
    if (const char* different = replay(**translator, expected)) {
      if (report.failed++ == 0) report.first_failure = different;
    }
  }
  (*translator)->destroy();
  return report;
}

}  // namespace dragoman
