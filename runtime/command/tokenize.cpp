// `dragoman tokenize`: text to ids or pieces, and ids to text, line by line, for people who debug a model.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "runtime/arena.h"
#include "runtime/command/commands.h"
#include "runtime/command/ids_in.h"
#include "runtime/command/lines_in.h"
#include "runtime/command/locate.h"
#include "runtime/command/text_out.h"
#include "runtime/text_split.h"

namespace dragoman::command {
namespace {

constexpr size_t kWindow = 16 * 1024;  // bytes of text tokenised at once
constexpr size_t kMostIds = kWindow;   // at once; a window that has more is cut again
constexpr size_t kDecoded = 4096;      // ids made into text at once
constexpr std::string_view kSpacePiece = "\xE2\x96\x81";

struct Buffers {
  std::span<char> in, out, text;
  std::span<std::byte> scratch;
  std::span<int32_t> ids;

  Buffers(Carver& carve, const Tokenizer& tokenizer)
      : in(span<char>(carve, 4 * kWindow)),
        out(span<char>(carve, 4 * kWindow)),
        text(span<char>(carve, kDecoded * tokenizer.max_piece_bytes() + 1)),
        scratch(span<std::byte>(carve, tokenizer.scratch_bytes(kWindow))),
        ids(span<int32_t>(carve, kMostIds)) {}

 private:
  template <class T>
  static std::span<T> span(Carver& carve, size_t count) {
    return {carve.array<T>(count), count};
  }
};

class Run {
 public:
  Run(const Settings& settings, const Tokenizer& tokenizer, uint32_t vocabulary, const Buffers& buffers)
      : settings_(settings),
        tokenizer_(tokenizer),
        buffers_(buffers),
        lines_(settings.words.empty() ? LineReader(STDIN_FILENO, buffers.in) : LineReader(settings.words)),
        ids_(lines_, buffers.ids.first(kDecoded), vocabulary),
        out_(STDOUT_FILENO, buffers.out) {}

  int run();

 private:
  bool encode_some();
  bool decode_some();
  size_t encode_part(const Line& line, Encoded& encoded);
  bool starts_word(int32_t id) const { return tokenizer_.piece(id).substr(0, 3) == kSpacePiece; }
  void put_id(int32_t id);
  void end_line();

  const Settings& settings_;
  const Tokenizer& tokenizer_;
  const Buffers& buffers_;
  LineReader lines_;
  IdReader ids_;
  TextOut out_;
  bool started_ = false;  // something of the current line was written
  bool cut_ = false;      // the current line was tokenised in parts
  uint64_t cut_lines_ = 0;
};

int Run::run() {
  while (!lines_.finished() && !out_.failed()) {
    if (settings_.decode ? decode_some() : encode_some()) continue;
    out_.flush();  // the input pauses: whoever writes it may be waiting for these lines
    lines_.wait();
  }
  if (cut_lines_ > 0 && !settings_.quiet) {
    say("%llu line%s longer than %zu bytes tokenised in parts", static_cast<unsigned long long>(cut_lines_),
        cut_lines_ == 1 ? " was" : "s were", kWindow);
  }
  if (lines_.error()) say("standard input cannot be read (%s)", std::strerror(lines_.error()));
  return finish_output(out_, lines_.error() ? kRuntimeError : ids_.bad_lines() ? kFailed : kOk);
}

void Run::end_line() {
  out_.put('\n');
  cut_lines_ += cut_;
  started_ = cut_ = false;
}

// The ids of the beginning of a line, and how many bytes that is.
size_t Run::encode_part(const Line& line, Encoded& encoded) {
  const std::string_view text = line.bytes.substr(0, kWindow);
  const bool whole = line.complete && text.size() == line.bytes.size();
  const size_t used = cut_to_fit(text, whole, [&](std::string_view beginning) {
    encoded = tokenizer_.encode(beginning, buffers_.scratch, buffers_.ids);
    return encoded.fits;
  });
  if (!encoded.fits) encoded = {};
  return used;
}

void Run::put_id(int32_t id) {
  if (started_) out_.put(' ');
  started_ = true;
  if (settings_.pieces) {
    out_.put(tokenizer_.piece(id));
  } else {
    out_.put_integer(id);
  }
}

bool Run::encode_some() {
  Line line;
  if (!lines_.peek(kWindow, line)) return false;
  const bool at_start = !started_ && !cut_;
  const auto language = at_start && !settings_.target ? tokenizer_.leading_language(line.bytes) : Tokenizer::Leading{};
  if (language.bytes > 0) put_id(language.id);
  line.bytes.remove_prefix(language.bytes);
  lines_.take(language.bytes);
  Encoded encoded;
  const size_t used = encode_part(line, encoded);
  for (size_t i = 0; i < encoded.count; ++i) put_id(buffers_.ids[i]);
  lines_.take(used);
  if (line.complete && used == line.bytes.size()) {
    lines_.next();
    end_line();
  } else {
    cut_ = true;
  }
  return true;
}

bool Run::decode_some() {
  std::span<const int32_t> ids;
  bool complete = true;
  if (!ids_.peek(ids, complete)) return false;
  if (!complete) {  // end before a word: a character made of several ids stays whole
    size_t cut = ids.size();
    while (cut > 1 && !starts_word(ids[cut - 1])) --cut;
    if (cut > 1) ids = ids.first(cut - 1);
  }
  if (started_ && !ids.empty() && starts_word(ids[0])) out_.put(' ');
  const size_t bytes = tokenizer_.decode(ids, buffers_.text);
  for (const char c : buffers_.text.first(bytes)) out_.put(c == '\n' || c == '\r' ? ' ' : c);
  started_ = true;
  ids_.take(ids.size());
  if (complete) end_line();
  return true;
}

}  // namespace

int run_tokenize(const Settings& settings) {
  if (settings.pieces && settings.decode) {
    say("--pieces and --decode exclude each other: --decode reads ids");
    return kUsageError;
  }
  const Model* model = open_located_model(settings);
  if (!model) return kRuntimeError;
  const Tokenizer& tokenizer = settings.target ? model->target : model->source;
  const uint32_t vocabulary = settings.target ? model->arch.target_vocabulary : model->arch.source_vocabulary;
  Carver count;
  const Buffers measured(count, tokenizer);
  const ArenaMemory memory(count.bytes());
  if (!memory.data()) {
    say("%llu bytes of memory are not to be had", static_cast<unsigned long long>(count.bytes()));
    return kRuntimeError;
  }
  Carver carve(memory.data());
  const Buffers buffers(carve, tokenizer);
  return Run(settings, tokenizer, vocabulary, buffers).run();
}

}  // namespace dragoman::command
