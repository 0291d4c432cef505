// `dragoman translate`: lines in, lines out. Between the opening of the model and the last line nothing allocates (C5).
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "runtime/command/buffers.h"
#include "runtime/command/commands.h"
#include "runtime/command/ids_in.h"
#include "runtime/command/line_out.h"
#include "runtime/command/lines_in.h"
#include "runtime/command/locate.h"
#include "runtime/command/progress.h"
#include "runtime/command/text_out.h"
#include "runtime/languages.h"

namespace dragoman::command {
namespace {

constexpr uint32_t kDefaultBatch = 16;
constexpr double kLongestDelay = 0.1;  // seconds that a finished line may wait in the output buffer

// Numbers of the lines that were not ids, between their reading and their turn in the output.
class BadLines {
 public:
  bool full() const { return last_ - first_ == kRoom; }
  void add(uint64_t line) { lines_[last_++ % kRoom] = line; }
  bool take(uint64_t line) {
    const bool here = first_ < last_ && lines_[first_ % kRoom] == line;
    first_ += here;
    return here;
  }

 private:
  static constexpr size_t kRoom = 64;
  uint64_t lines_[kRoom] = {};
  uint64_t first_ = 0, last_ = 0;
};

// One run: what the translator's callbacks need.
class Run {
 public:
  Run(const Settings& settings, int32_t language, const Buffers& buffers, const Translator& translator)
      : settings_(settings),
        model_(translator.model()),
        language_(language),
        window_(translator.plan().window_bytes),
        lines_(settings.words.empty() ? LineReader(STDIN_FILENO, buffers.in) : LineReader(settings.words)),
        ids_(lines_, buffers.ids, translator.model().arch.source_vocabulary),
        out_(STDOUT_FILENO, buffers.out),
        writer_(out_, {.json = settings.json, .scores = settings.scores, .ids = settings.ids}, buffers.keep),
        progress_(settings.progress),
        to_terminal_(::isatty(STDOUT_FILENO) == 1) {}

  int translate_all(Translator& translator);

 private:
  bool peek(Input& input);
  bool peek_text(Input& input);
  bool peek_ids(Input& input);
  void look_for_language();
  void take(size_t used);
  void deliver(const Output& part);
  bool tick();
  void flush();
  int finish();

  const Settings& settings_;
  const Model& model_;
  int32_t language_;              // -1: not given
  bool language_missing_ = true;  // until somebody was told, or there is nothing to tell
  size_t window_;
  LineReader lines_;
  IdReader ids_;
  TextOut out_;
  LineWriter writer_;
  Progress progress_;
  bool to_terminal_;
  Line shown_;                // to the translator, when it reads text
  bool inside_line_ = false;  // a part of that line was taken
  BadLines bad_;
  double flushed_ = 0;   // when
  uint64_t tokens_ = 0;  // so far
};

// When the input pauses, the translator finishes what it has, which is flushed; only then the program waits.
int Run::translate_all(Translator& translator) {
  const Source source{[](void* run, Input& input) { return static_cast<Run*>(run)->peek(input); },
                      [](void* run, size_t used) { static_cast<Run*>(run)->take(used); }, this};
  const Sink sink{[](void* run, const Output& part) { static_cast<Run*>(run)->deliver(part); }, this};
  Options options;
  options.cut_loops = settings_.cut_loops;
  options.scores = settings_.scores;
  options.token = [](void* run, uint64_t, int32_t) { return static_cast<Run*>(run)->tick(); };
  options.token_user = this;
  options.target_language = language_;
  while (true) {
    translator.translate(source, sink, options);
    flush();
    if (lines_.finished() || out_.failed()) return finish();
    lines_.wait();
  }
}

bool Run::peek(Input& input) {
  if (out_.failed()) return false;
  if (settings_.ids ? peek_ids(input) : peek_text(input)) return true;
  flush();  // whoever writes our input may be waiting for these lines
  return false;
}

bool Run::peek_text(Input& input) {
  if (!lines_.peek(window_, shown_)) return false;
  input.text = shown_.bytes;
  input.complete = shown_.complete;
  if (language_missing_ && !inside_line_) look_for_language();
  return true;
}

// Says once that a multilingual model was not told what to translate into: it would choose by itself, line by line.
void Run::look_for_language() {
  const bool blank = shown_.bytes.find_first_not_of(" \t\r") == shown_.bytes.npos;
  if (blank || model_.source.leading_language(shown_.bytes).bytes > 0) return;
  language_missing_ = false;
  if (language_ >= 0 || settings_.quiet || !model_.source.has_languages()) return;
  char room[320];
  const std::string_view list = list_languages(model_, "", 20, room);
  const std::string_view first = model_.source.language(model_.source.next_language(-1)).substr(0, 40);
  say("this model has several target languages and was not told which: use --target-language, or begin lines with one, "
      "such as >>%.*s<<. It has %.*s",
      static_cast<int>(first.size()), first.data(), static_cast<int>(list.size()), list.data());
}

bool Run::peek_ids(Input& input) {
  if (bad_.full() || !ids_.peek(input.ids, input.complete)) return false;
  if (ids_.bad()) bad_.add(lines_.number());
  return true;
}

void Run::take(size_t used) {
  if (settings_.ids) return ids_.take(used);
  lines_.take(used);
  inside_line_ = !shown_.complete || used < shown_.bytes.size();
  if (!inside_line_) lines_.next();
}

void Run::deliver(const Output& part) {
  if (part.line_end && bad_.take(writer_.counts().lines + 1)) writer_.bad_line();
  writer_.part(part);
}

// Once a token. False stops the work: there is nobody to read it.
bool Run::tick() {
  ++tokens_;
  const double now = seconds_now();
  if (out_.pending() && now - flushed_ >= kLongestDelay) flush();
  progress_.update(now, writer_.counts().lines, tokens_);
  return !out_.failed();
}

void Run::flush() {
  if (!out_.pending()) return;
  if (to_terminal_) progress_.clear();
  out_.flush();
  flushed_ = seconds_now();
}

int Run::finish() {
  progress_.finish(writer_.counts().lines, tokens_);
  int code = ids_.bad_lines() ? kFailed : kOk;
  if (lines_.error()) {
    say("standard input cannot be read (%s)%s", std::strerror(lines_.error()),
        writer_.counts().lines ? ": what came before was translated" : "");
    code = kRuntimeError;
  }
  if (!out_.failed() && !settings_.quiet) say_summary(writer_.counts(), !settings_.json);
  return finish_output(out_, code);
}

uint32_t default_batch(const Settings& settings) {
  const size_t words = settings.words.size();
  return words ? static_cast<uint32_t>(std::min<size_t>(words, kDefaultBatch)) : kDefaultBatch;
}

int run_in_arena(const Settings& settings, const Model& model, int32_t language, const Kernels& kernels,
                 const Plan& plan) {
  const size_t bytes = plan.bytes + buffer_bytes(plan);
  const ArenaMemory memory(bytes);
  if (!memory.data()) {
    say("%zu bytes of memory are not to be had: a smaller --batch or --max-source needs less", bytes);
    return kRuntimeError;
  }
  const Result<Translator*> translator = Translator::create(model, kernels, plan, memory.data());
  if (!translator) {
    say("%s", translator.error().text);
    return kRuntimeError;
  }
  char* own = static_cast<char*>(memory.data()) + plan.bytes;
  std::memset(own, 0, bytes - plan.bytes);  // the first touch of every page happens here, not in a sentence
  Carver carve(own);
  const Buffers buffers(carve, plan);
  Run run(settings, language, buffers, **translator);
  const int code = run.translate_all(**translator);
  (*translator)->destroy();
  return code;
}

}  // namespace

int run_translate(const Settings& settings) {
  const Result<KernelSelection> selection = select_kernels(settings);
  if (!selection) {
    say("%s", selection.error().text);
    return kUsageError;
  }
  const Model* model = open_located_model(settings);
  if (!model) return kRuntimeError;
  const Result<Plan> plan = make_plan(*model, settings.limits(default_batch(settings)));
  if (!plan) {
    say("%s", plan.error().text);
    return kUsageError;
  }
  Result<int32_t> language = int32_t{-1};
  if (settings.target_language) language = find_language(*model, settings.target_language);
  if (!language) {
    say("%s", language.error().text);
    return kUsageError;
  }
  if (settings.words.empty() && !settings.quiet && ::isatty(STDIN_FILENO) == 1) {
    write_error("dragoman: type lines to translate; Ctrl-D ends\n");
  }
  return run_in_arena(settings, *model, *language, *selection->kernels, *plan);
}

}  // namespace dragoman::command
