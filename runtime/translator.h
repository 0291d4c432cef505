// The way of a sentence: text -> ids -> encoder -> decoder, one step per token -> ids -> text.
// All memory is one arena, sized by plan() before anything runs; translate() allocates nothing (C5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/kernels.h"
#include "runtime/arena.h"
#include "runtime/decoder.h"
#include "runtime/dragoman.h"
#include "runtime/encoder.h"
#include "runtime/model.h"
#include "runtime/pool.h"
#include "runtime/result.h"
#include "runtime/search.h"

namespace dragoman {

// Zero means "choose for me"; resolve() writes what was chosen.
struct Limits {
  uint32_t slots = 0;      // sentences decoded side by side (1)
  uint32_t source = 0;     // longest source in ids, eos included (min(256, positions)); longer text is split
  uint32_t target = 0;     // longest target in ids (min(2 * source + 10, positions))
  uint32_t positions = 0;  // K/V positions in flight, all slots together
  uint32_t threads = 0;    // (1)
};

// What happened to a text: bits, 0 is "ok". dragoman.h says what each means.
enum Flags : uint32_t {
  kLengthCap = DRAGOMAN_LENGTH_CAP,
  kLoop = DRAGOMAN_LOOP,
  kLoopCut = DRAGOMAN_LOOP_CUT,
  kSplit = DRAGOMAN_SPLIT,
  kUnknown = DRAGOMAN_UNKNOWN,
  kInvalidUtf8 = DRAGOMAN_INVALID_UTF8,
  kStopped = DRAGOMAN_STOPPED,
  kNumeric = DRAGOMAN_NUMERIC,
};

struct Plan {
  Limits limits;            // resolved
  size_t bytes = 0;         // the arena, exactly
  size_t output_bytes = 0;  // the longest text of one part, with a zero byte
  size_t window_bytes = 0;  // a text source must show this much of a line that is not complete
  size_t kv_blocks = 0, kv_block_bytes = 0;
};

// Resolves the limits against the model; says what is impossible and why.
Result<Plan> make_plan(const Model& model, const Limits& limits);

// A line to translate, or as much of it as there is now. Either text or ids.
struct Input {
  std::string_view text;
  std::span<const int32_t> ids;  // used when text.data() is null; eos is added if missing
  bool complete = true;          // the line ends here; else at least Plan::window_bytes are shown
};

// Where lines come from. peek shows the rest of the current line (false: none now); take says how much of it was
// used, in bytes or ids. A complete line is finished when all of it was taken; an empty one by take(0).
struct Source {
  bool (*peek)(void* user, Input& input) = nullptr;
  void (*take)(void* user, size_t used) = nullptr;
  void* user = nullptr;
};

// One part of a line, translated. Most lines are one part. Parts arrive in the order of the input.
struct Output {
  std::string_view text;                // valid during the call; a zero byte follows it
  std::span<const int32_t> ids;         // with eos, unless it was never produced
  std::span<const int32_t> source_ids;  // with eos
  uint32_t flags = 0;
  uint64_t part = 0;                              // counts from 0
  bool line_end = true;                           // the last part of its line
  double score = 0;                               // sum of log-probabilities of ids, when asked for
  double encode_seconds = 0, decode_seconds = 0;  // wall time in flight: to the memory, from there to the last id
};

struct Sink {
  void (*part)(void* user, const Output& output) = nullptr;
  void* user = nullptr;
};

struct Options {
  bool cut_loops = false;
  bool scores = false;
  // Called for every id as it comes; false stops that part. May be null.
  bool (*token)(void* user, uint64_t part, int32_t id) = nullptr;
  void* token_user = nullptr;
  // Of Tokenizer::find_language: stands before every part of a line, unless the line begins with a language itself.
  int32_t target_language = -1;
};

// For tests, verify and the converter: sees the numbers as they pass.
struct Probe {
  void (*memory)(void* user, uint64_t part, const float* x, size_t rows, size_t cols) = nullptr;  // encoder output
  void (*logits)(void* user, uint64_t part, size_t step, const float* row, size_t n) = nullptr;
  void* user = nullptr;
};

// A part of a line between its text and its translation: its ids, its place in the K/V pool, what happened to it.
struct Part {
  std::span<int32_t> source, target;  // capacity: Limits::source and Limits::target
  size_t source_count = 0, target_count = 0;
  size_t cap = 0;       // of target ids
  uint64_t number = 0;  // Output::part
  Slot slot;
  LoopDetector loops;
  bool finished = false, line_end = true;
  uint32_t flags = 0;
  double scores[32] = {};  // sums of log-probabilities after the last ids: a cut loop takes up to 24 of them back
  double admitted = 0, encoded = 0, done = 0;  // times in seconds

  double& score_after(size_t ids) { return scores[ids % 32]; }
};

// Lives in its own arena. One translator belongs to one thread at a time; many may share a model.
class Translator {
 public:
  // memory: plan.bytes, 64-byte aligned. Starts the worker threads and touches every page.
  static Result<Translator*> create(const Model& model, const Kernels& kernels, const Plan& plan, void* memory);
  void destroy();  // stops the workers; the memory is the caller's again

  // Translates until the source has nothing more to show and everything in flight is delivered.
  void translate(const Source& source, const Sink& sink, const Options& options = {}, const Probe& probe = {});

  // The next text is a line of its own, even if the last source stopped in the middle of one.
  void start_line() { line_is_split_ = false; }

  const Plan& plan() const { return plan_; }
  const Model& model() const { return *context_.model; }
  const Kernels& kernels() const { return *context_.kernels; }
  size_t peak_kv_blocks() const { return kv_.block_count - kv_.least_free; }

 private:
  friend Result<Plan> make_plan(const Model& model, const Limits& limits);
  Translator(Carver& carve, const Model& model, const Kernels& kernels, const Plan& plan);
  struct Call;  // the arguments of translate()

  bool read_part(const Call& call, Part& part);
  void read_ids(const Call& call, const Input& input, Part& part);
  void read_text(const Call& call, const Input& input, Part& part);
  size_t put_language(Part& part) const;

  void admit(const Call& call);
  size_t admit_batch(const Call& call);
  void encode_batch(const Call& call, size_t count);
  void step(const Call& call);
  void score_rows(const Call& call, const Operand& x);
  bool accept(const Call& call, Part& part, const ArgMax& best, float log_probability);
  void finish(Part& part);
  void deliver(const Call& call);

  Part& part_at(uint64_t number) { return parts_[number % part_count_]; }

  Plan plan_;
  Context context_;
  Pool pool_;
  KvPool kv_;
  size_t part_count_ = 0;
  Part* parts_ = nullptr;           // a ring: [oldest_, next_) are in flight or wait for their turn
  uint64_t oldest_ = 0, next_ = 0;  // part numbers
  uint64_t first_ = 0;              // the number of this call's first part
  bool waiting_ = false;            // part next_ is read, but there is no room for it yet
  bool drained_ = false;            // the source had nothing more to show
  bool line_is_split_ = false;      // the current line has had a part before
  int32_t line_language_ = -1;      // the target language of the current line, or -1
  Part** active_ = nullptr;         // up to Limits::slots
  size_t active_count_ = 0;
  Part** entering_ = nullptr;  // parts of one encoder batch
  MemoryRows* memory_rows_ = nullptr;
  EncoderBuffers encoder_;
  DecoderBuffers decoder_;  // shares its bytes with encoder_
  std::span<std::byte> token_scratch_;
  std::span<char> text_;
};

}  // namespace dragoman
