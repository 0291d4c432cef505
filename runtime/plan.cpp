// What a translator needs, before anything runs: make_plan() runs the same constructor that later hands out the memory.
#include <algorithm>
#include <new>

#include "runtime/translator.h"

namespace dragoman {
namespace {

constexpr uint32_t kDefaultSource = 256;
constexpr uint32_t kLeastSource = 16;
constexpr uint32_t kTypicalPositions = 160;  // source and target of a long everyday sentence
constexpr uint32_t kMaxSlots = 4096;
constexpr size_t kWindowPerId = 32;  // bytes of text shown per source id: pieces are shorter than this, nearly always

size_t worst_blocks(const Limits& l, uint32_t positions) {
  return blocks_for(l.source) + blocks_for(length_cap(l.source, l.target, positions));
}

// The encoder takes sentences until this many tokens.
size_t encoder_rows(const Limits& l) {
  return std::max<size_t>(l.source, size_t{16} * l.slots);
}

Result<Limits> resolve(const Model& model, Limits l) {
  const uint32_t positions = model.arch.positions;
  if (l.slots == 0) l.slots = 1;
  if (l.threads == 0) l.threads = 1;
  if (l.source == 0) l.source = std::min(kDefaultSource, positions);
  if (l.slots > kMaxSlots)
    return fail("%u sentences side by side asked for; at most %u are possible", l.slots, kMaxSlots);
  if (l.threads > Pool::kMaxThreads) {
    return fail("%u threads asked for; at most %zu are possible", l.threads, Pool::kMaxThreads);
  }
  if (l.source < std::min(kLeastSource, positions)) {
    return fail("the longest source must be at least %u ids: one character may need several", kLeastSource);
  }
  if (l.source > positions || l.target > positions) {
    return fail("a %s of %u ids asked for, but this model has positions for %u only",
                l.source > positions ? "source" : "target", l.source > positions ? l.source : l.target, positions);
  }
  if (l.target == 0) l.target = static_cast<uint32_t>(length_cap(l.source, positions, positions));
  const uint64_t worst = worst_blocks(l, positions) * kBlock;
  if (l.positions == 0) {
    const uint64_t typical = worst + uint64_t{l.slots - 1} * kTypicalPositions;
    l.positions = static_cast<uint32_t>(std::min({typical, worst * l.slots, uint64_t{1} << 31}));
  }
  if (l.positions < worst) {
    return fail("%u positions in flight asked for, but one sentence at its longest needs %llu", l.positions,
                static_cast<unsigned long long>(worst));
  }
  return l;
}

}  // namespace

Translator::Translator(Carver& carve, const Model& model, const Kernels& kernels, const Plan& plan)
    : plan_(plan), context_{&model, &kernels, &pool_} {
  const Architecture& a = model.arch;
  const Limits& l = plan.limits;
  kv_ = KvPool(carve, a, plan.kv_blocks);

  part_count_ = size_t{4} * l.slots;  // three may wait behind a long sentence for their turn to be delivered
  parts_ = carve.array<Part>(part_count_);
  int32_t* ids = carve.array<int32_t>(part_count_ * (l.source + l.target));
  const size_t source_blocks = blocks_for(l.source), target_blocks = blocks_for(l.target);
  float** blocks = carve.array<float*>(part_count_ * (source_blocks + target_blocks));
  for (size_t i = 0; ids && i < part_count_; ++i) {
    Part& part = *new (&parts_[i]) Part;
    part.source = {ids + i * (l.source + l.target), l.source};
    part.target = {part.source.data() + l.source, l.target};
    part.slot.memory_blocks = blocks + i * (source_blocks + target_blocks);
    part.slot.self_blocks = part.slot.memory_blocks + source_blocks;
  }
  active_ = carve.array<Part*>(l.slots);
  entering_ = carve.array<Part*>(l.slots);
  memory_rows_ = carve.array<MemoryRows>(l.slots);

  const size_t scratch = model.source.scratch_bytes(plan.window_bytes);
  token_scratch_ = {carve.array<std::byte>(scratch), scratch};
  text_ = {carve.array<char>(plan.output_bytes), plan.output_bytes};

  const uint64_t mark = carve.mark();
  encoder_ = EncoderBuffers(carve, a, encoder_rows(l), l.slots, l.source, l.threads);
  carve.rewind(mark);
  decoder_ = DecoderBuffers(carve, a, l.slots, std::max(l.source, l.target), l.threads);
}

Result<Plan> make_plan(const Model& model, const Limits& limits) {
  const Result<Limits> resolved = resolve(model, limits);
  if (!resolved) return resolved.error();
  Plan plan;
  plan.limits = *resolved;
  plan.kv_blocks = plan.limits.positions / kBlock;
  plan.kv_block_bytes = KvPool::block_floats(model.arch) * sizeof(float);
  plan.window_bytes = std::max<size_t>(256, kWindowPerId * plan.limits.source);
  plan.output_bytes = plan.limits.target * model.target.max_piece_bytes() + 1;
  Carver count;
  count.array<Translator>(1);
  static const Kernels none{};
  Translator measured(count, model, none, plan);
  if (count.bytes() > SIZE_MAX / 2) return fail("these limits need more memory than this machine can address");
  plan.bytes = count.bytes();
  return plan;
}

}  // namespace dragoman
