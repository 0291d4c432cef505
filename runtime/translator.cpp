#include "runtime/translator.h"

#include <algorithm>
#include <cfloat>
#include <cstring>
#include <new>

#include "kernels/float_env.h"
#include "runtime/clock.h"
#include "runtime/text_split.h"

namespace dragoman {

struct Translator::Call {
  const Source& source;
  const Sink& sink;
  const Options& options;
  const Probe& probe;
};

Result<Translator*> Translator::create(const Model& model, const Kernels& kernels, const Plan& plan, void* memory) {
  if (reinterpret_cast<uintptr_t>(memory) % kAlignment) {
    return fail("the translator's memory must start at a multiple of %zu bytes", kAlignment);
  }
  std::memset(memory, 0, plan.bytes);  // the first touch of every page happens here, not in a sentence
  Carver carve(memory);
  Translator* at = carve.array<Translator>(1);
  Translator* translator = new (at) Translator(carve, model, kernels, plan);
  const Status started = translator->pool_.start(plan.limits.threads);
  if (!started) return started.error();
  return translator;
}

void Translator::destroy() {
  pool_.stop();
}

void Translator::translate(const Source& source, const Sink& sink, const Options& options, const Probe& probe) {
  const FloatEnv env;
  const Call call{source, sink, options, probe};
  first_ = next_;
  do {
    drained_ = false;
    admit(call);
    if (active_count_ > 0) step(call);
    deliver(call);
  } while (!drained_ || active_count_ > 0 || oldest_ < next_);
}

// --- text to ids ---------------------------------------------------------------------------------------------------

// Reads the next part into `part`; false when the source has nothing now.
bool Translator::read_part(const Call& call, Part& part) {
  Input input;
  drained_ = !call.source.peek(call.source.user, input) ||
             (!input.complete && input.text.empty() && input.ids.empty());  // a line of which nothing is there yet
  if (drained_) return false;
  part.number = next_ - first_;
  part.flags = 0;
  part.score_after(0) = 0;
  part.source_count = part.target_count = 0;
  part.finished = false;
  part.loops.reset();
  part.admitted = part.encoded = part.done = seconds_now();
  if (!line_is_split_) line_language_ = call.options.target_language;
  if (input.text.data()) {
    read_text(call, input, part);
  } else {
    read_ids(call, input, part);
  }
  if (line_is_split_ || !part.line_end) part.flags |= kSplit;
  line_is_split_ = !part.line_end;
  return true;
}

// The line's target language, if it has one, is the first id of each of its parts. Returns how many ids that is.
size_t Translator::put_language(Part& part) const {
  if (line_language_ < 0 || part.source.size() < 3) return 0;  // a source of two ids: one, and eos
  part.source[0] = line_language_;
  return 1;
}

void Translator::read_ids(const Call& call, const Input& input, Part& part) {
  const int32_t eos = static_cast<int32_t>(context_.model->arch.eos);
  const bool has_eos = !input.ids.empty() && input.ids.back() == eos;
  const auto ids = has_eos ? input.ids.first(input.ids.size() - 1) : input.ids;
  const bool has_own = !line_is_split_ && !ids.empty() && !context_.model->source.language(ids[0]).empty();
  if (has_own) line_language_ = ids[0];
  const size_t before = has_own ? 0 : put_language(part);
  const size_t take = std::min(ids.size(), part.source.size() - 1 - before);
  part.line_end = input.complete && take == ids.size();
  for (size_t i = 0; i < take; ++i) {
    const bool known = ids[i] >= 0 && static_cast<uint32_t>(ids[i]) < context_.model->arch.source_vocabulary;
    part.source[before + i] = known ? ids[i] : static_cast<int32_t>(context_.model->arch.unk);
    if (!known) part.flags |= kUnknown;
  }
  part.source_count = take > 0 ? before + take : 0;
  if (take > 0) part.source[part.source_count++] = eos;
  call.source.take(call.source.user, part.line_end ? input.ids.size() : take);
}

void Translator::read_text(const Call& call, const Input& input, Part& part) {
  const Tokenizer& tokenizer = context_.model->source;
  const Tokenizer::Leading own = line_is_split_ ? Tokenizer::Leading{} : tokenizer.leading_language(input.text);
  if (own.bytes > 0) line_language_ = own.id;
  const size_t before = put_language(part);
  const std::span<int32_t> room = part.source.subspan(before, part.source.size() - 1 - before);
  std::string_view text = beginning_of(input.text, plan_.window_bytes);
  const bool whole = input.complete && text.size() == input.text.size();
  text.remove_prefix(own.bytes);
  Encoded encoded;
  const size_t used = own.bytes + cut_to_fit(text, whole, [&](std::string_view beginning) {
                        encoded = tokenizer.encode(beginning, token_scratch_, room);
                        return encoded.fits;
                      });
  if (!encoded.fits) encoded = {.unknown = true};  // one character with more ids than the longest source
  part.line_end = input.complete && used == input.text.size();
  part.source_count = encoded.count > 0 ? before + encoded.count : 0;  // a language alone is an empty line
  if (encoded.count > 0) part.source[part.source_count++] = static_cast<int32_t>(context_.model->arch.eos);
  if (encoded.unknown || line_language_ == static_cast<int32_t>(context_.model->arch.unk)) part.flags |= kUnknown;
  if (encoded.invalid_utf8) part.flags |= kInvalidUtf8;
  call.source.take(call.source.user, used);
}

// --- into the slots ------------------------------------------------------------------------------------------------

void Translator::admit(const Call& call) {
  while (const size_t count = admit_batch(call)) encode_batch(call, count);
}

// Gives slots and K/V blocks to parts until a limit is reached; they are entering_[0, count).
size_t Translator::admit_batch(const Call& call) {
  size_t count = 0, rows = 0;
  while (active_count_ + count < plan_.limits.slots && next_ - oldest_ < part_count_) {
    Part& part = part_at(next_);
    if (!waiting_ && !read_part(call, part)) break;
    waiting_ = true;
    if (part.source_count > 0) {
      part.cap = length_cap(part.source_count, plan_.limits.target, context_.model->arch.positions);
      const size_t source_blocks = blocks_for(part.source_count), target_blocks = blocks_for(part.cap);
      if (source_blocks + target_blocks > kv_.free_count || rows + part.source_count > encoder_.max_rows) break;
      kv_.take(source_blocks, part.slot.memory_blocks);
      kv_.take(target_blocks, part.slot.self_blocks);
      rows += part.source_count;
      entering_[count++] = &part;
    } else {
      part.finished = true;
    }
    waiting_ = false;
    ++next_;
  }
  return count;
}

void Translator::encode_batch(const Call& call, size_t count) {
  const Architecture& a = context_.model->arch;
  size_t rows = 0, blocks = 0;
  for (size_t i = 0; i < count; ++i) {
    Part& part = *entering_[i];
    part.slot.memory_length = part.source_count;
    part.slot.length = 0;
    part.slot.last_id = static_cast<int32_t>(a.decoder_start);
    encoder_.sentences[i] = {part.source.first(part.source_count), rows, blocks};
    memory_rows_[i] = {&part.slot, rows};
    rows += part.source_count;
    blocks += blocks_for(part.source_count);
  }
  const Operand memory = encode(context_, encoder_, count);
  enter(context_, memory, memory_rows_, count, encoder_.layer.qkv);
  const double time = seconds_now();
  for (size_t i = 0; i < count; ++i) {
    Part& part = *entering_[i];
    part.encoded = time;
    active_[active_count_++] = &part;
    if (call.probe.memory) {
      const float* x = encoder_.layer.x + memory_rows_[i].first_row * a.d_model;
      call.probe.memory(call.probe.user, part.number, x, part.source_count, a.d_model);
    }
  }
}

// --- one token for every slot --------------------------------------------------------------------------------------

void Translator::step(const Call& call) {
  for (size_t row = 0; row < active_count_; ++row) decoder_.active[row] = &active_[row]->slot;
  const Operand x = decode_step(context_, decoder_, active_count_);
  if (call.options.scores || call.probe.logits) {
    score_rows(call, x);
  } else {
    best_ids(context_, decoder_, x);
  }
  size_t left = 0;
  for (size_t row = 0; row < active_count_; ++row) {
    Part& part = *active_[row];
    if (accept(call, part, decoder_.best[row], decoder_.log_probability[row])) {
      finish(part);
    } else {
      active_[left++] = &part;
    }
  }
  active_count_ = left;
}

// The best ids as best_ids() finds them, with all logits of a few rows at a time, for scores and for whoever looks on.
void Translator::score_rows(const Call& call, const Operand& x) {
  const Kernels& kernels = *context_.kernels;
  const size_t ids = context_.model->arch.target_vocabulary, stride = context_.model->output.outputs();
  for (size_t first = 0; first < x.rows; first += decoder_.logit_rows) {
    const size_t count = std::min(decoder_.logit_rows, x.rows - first);
    output_logits(context_, decoder_, x.part(first, count, context_.model->arch.d_model));
    for (size_t i = 0; i < count; ++i) {
      const float* logits = decoder_.logits + i * stride;
      const Part& part = *active_[first + i];
      if (call.probe.logits) call.probe.logits(call.probe.user, part.number, part.target_count, logits, ids);
      ArgMax& best = decoder_.best[first + i] = {};
      kernels.argmax(logits, ids, 0, best);
      if (call.options.scores) decoder_.log_probability[first + i] = best.value - kernels.log_sum_exp(logits, ids);
    }
  }
}

// Takes the best id of a row; true when the part is finished.
bool Translator::accept(const Call& call, Part& part, const ArgMax& best, float log_probability) {
  const Architecture& a = context_.model->arch;
  const int32_t id = static_cast<int32_t>(best.index != ArgMax::kNone ? best.index : a.eos);
  const bool finite = best.index != ArgMax::kNone && best.value <= FLT_MAX;
  if (!finite) part.flags |= kNumeric;
  double score = part.score_after(part.target_count);
  if (call.options.scores && finite) score += static_cast<double>(log_probability);
  part.target[part.target_count++] = id;
  part.score_after(part.target_count) = score;
  part.slot.last_id = id;
  ++part.slot.length;
  if (call.options.token && !call.options.token(call.options.token_user, part.number, id)) {
    part.flags |= kStopped;
    return true;
  }
  if (id == static_cast<int32_t>(a.eos)) return true;
  if (const size_t period = part.loops.push(part.target.first(part.target_count))) {
    part.flags |= kLoop;
    if (call.options.cut_loops) {
      part.flags |= kLoopCut;
      part.target_count -= (LoopDetector::kTimes - 1) * period;
      return true;
    }
  }
  if (part.target_count < part.cap) return false;
  part.flags |= kLengthCap;
  return true;
}

void Translator::finish(Part& part) {
  kv_.give_back(blocks_for(part.cap), part.slot.self_blocks);
  kv_.give_back(blocks_for(part.source_count), part.slot.memory_blocks);
  part.finished = true;
  part.done = seconds_now();
}

// --- ids to text ---------------------------------------------------------------------------------------------------

void Translator::deliver(const Call& call) {
  for (; oldest_ < next_ && part_at(oldest_).finished; ++oldest_) {
    Part& part = part_at(oldest_);
    Output output;
    output.ids = part.target.first(part.target_count);
    output.source_ids = part.source.first(part.source_count);
    const size_t bytes = context_.model->target.decode(output.ids, text_.first(text_.size() - 1));
    text_[bytes] = 0;
    output.text = {text_.data(), bytes};
    output.flags = part.flags;
    output.part = part.number;
    output.line_end = part.line_end;
    output.score = part.score_after(part.target_count);
    output.encode_seconds = part.encoded - part.admitted;
    output.decode_seconds = part.done - part.encoded;
    call.sink.part(call.sink.user, output);
  }
}

}  // namespace dragoman
