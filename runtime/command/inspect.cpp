// `dragoman inspect`: what is in a model file, and the memory it needs.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "runtime/command/buffers.h"
#include "runtime/command/commands.h"
#include "runtime/command/locate.h"
#include "runtime/command/text_out.h"

namespace dragoman::command {
namespace {

constexpr size_t kLicenceLines = 12;

using Bytes = unsigned long long;

struct Size {
  char text[24];
};

// "11.8 MB", decimal units.
Size human(uint64_t bytes) {
  Size size;
  const double value = static_cast<double>(bytes);
  if (bytes < 1000) {
    std::snprintf(size.text, sizeof size.text, "%llu B", static_cast<Bytes>(bytes));
  } else {
    const bool large = bytes >= 1000000;
    std::snprintf(size.text, sizeof size.text, "%.1f %s", value / (large ? 1e6 : 1e3), large ? "MB" : "kB");
  }
  return size;
}

// Text of the file on a terminal: no control characters but tabs, indented.
void put_clean(TextOut& out, std::string_view text) {
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  for (const char c : text) out.put((static_cast<unsigned char>(c) < ' ' && c != '\t') || c == 0x7F ? '?' : c);
}

void put_text(TextOut& out, std::string_view text, size_t most_lines) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  while (!text.empty() && most_lines > 0) {
    const std::string_view line = text.substr(0, text.find('\n'));
    out.put("  ");
    put_clean(out, line);
    out.put('\n');
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    --most_lines;
  }
  const auto more = std::count(text.begin(), text.end(), '\n') + !text.empty();
  if (more > 0) out.format("  ... and %lld lines more (--licence shows all)\n", static_cast<long long>(more));
}

const char* name_of(Activation activation) {
  static constexpr const char* kNames[] = {"ReLU", "SiLU", "GELU", "GELU (tanh form)"};
  return kNames[static_cast<uint32_t>(activation)];
}

const char* name_of(Layout layout) {
  static constexpr const char* kNames[] = {"", "f32", "i32", "f32 rows", "f32 panels", "int8 panels"};
  return kNames[static_cast<uint32_t>(layout)];
}

const char* name_of(SectionKind kind) {
  static constexpr const char* kNames[] = {"", "architecture", "tensors", "tokenizer", "self-test", "text"};
  return kNames[static_cast<uint32_t>(kind)];
}

void put_architecture(TextOut& out, const Model& model) {
  const Architecture& a = model.arch;
  const auto yes = [&](ArchitectureFlags flag) { return model.has(flag) ? "yes" : "no"; };
  out.put("Architecture\n");
  out.format("  Transformer          d_model %u, %s-norm, %s\n", a.d_model,
             a.norm == NormPosition::kPre ? "pre" : "post", name_of(a.activation));
  out.format("  encoder              %u layers, %u heads, feed-forward %u\n", a.encoder_layers, a.encoder_heads,
             a.encoder_ffn);
  out.format("  decoder              %u layers, %u heads, feed-forward %u\n", a.decoder_layers, a.decoder_heads,
             a.decoder_ffn);
  out.format("  vocabulary           %u source ids, %u target ids\n", a.source_vocabulary, a.target_vocabulary);
  out.format("  positions            %u\n", a.positions);
  out.format("  special ids          eos %u, pad %u, unk %u, decoder start %u\n", a.eos, a.pad, a.unk, a.decoder_start);
  out.format("  shared embedding     %s\n  tied output          %s\n", yes(kSharedEmbedding), yes(kTiedOutput));
  out.format("Numbers\n  weights              %s\n",
             a.weights == Weights::kInt8 ? "int8, one scale per output channel; activations int8, one scale per row"
                                         : "float32");
}

void put_tokenizer(TextOut& out, const char* name, const Tokenizer& tokenizer) {
  out.format("  %-20s %s, %u pieces%s\n", name, tokenizer.algorithm(), tokenizer.pieces(),
             tokenizer.byte_fallback() ? ", byte fallback" : "");
}

// What --target-language takes, for a multilingual model.
void put_languages(TextOut& out, const Tokenizer& tokenizer) {
  const char* before = "  target languages     ";
  for (int32_t id = -1; (id = tokenizer.next_language(id)) >= 0; before = ", ") {
    out.put(before);
    put_clean(out, tokenizer.language(id));
  }
  if (tokenizer.has_languages()) out.put('\n');
}

void put_tokenizers(TextOut& out, const Model& model) {
  out.put("Tokenizer\n");
  if (model.has(kSharedTokenizer)) {
    put_tokenizer(out, "both languages", model.source);
  } else {
    put_tokenizer(out, "source", model.source);
    put_tokenizer(out, "target", model.target);
  }
  put_languages(out, model.source);
}

void put_origin(TextOut& out, const Model& model) {
  out.put("Provenance\n");
  put_text(out, model.provenance.empty() ? "not stated in the file" : model.provenance, SIZE_MAX);
  out.put("Licence\n");
  put_text(out, model.licence.empty() ? "not stated in the file" : model.licence, kLicenceLines);
}

void put_section(TextOut& out, const Section& section) {
  char shape[32] = "";
  if (section.layout == Layout::kVectorF32 || section.layout == Layout::kVectorI32) {
    std::snprintf(shape, sizeof shape, "%u", section.cols);
  } else if (section.kind == SectionKind::kTensor) {
    std::snprintf(shape, sizeof shape, "%u x %u", section.rows, section.cols);
  }
  const std::string_view name = section.name;
  out.put("  ");
  put_clean(out, name);
  out.put_repeated(' ', 40 - std::min<size_t>(name.size(), 39));
  out.format("%-12s %14s %12llu\n", name_of(section.layout), shape, static_cast<Bytes>(section.bytes));
}

void put_sections(TextOut& out, const Model& model) {
  out.format("Sections%34s%-12s %14s %12s\n", "", "numbers", "shape", "bytes");
  uint64_t by_kind[6] = {}, total = 0;
  for (const Section& section : model.sections) {
    put_section(out, section);
    by_kind[static_cast<uint32_t>(section.kind)] += section.bytes;
    total += section.bytes;
  }
  out.put("Bytes\n");
  const auto row = [&](const char* name, uint64_t bytes) {
    out.format("  %-20s %12llu  %10s\n", name, static_cast<Bytes>(bytes), human(bytes).text);
  };
  for (uint32_t kind = 1; kind < 6; ++kind) {
    if (by_kind[kind]) row(name_of(static_cast<SectionKind>(kind)), by_kind[kind]);
  }
  row("tables and gaps", model.file.size() - std::min<uint64_t>(total, model.file.size()));
  row("file", model.file.size());
}

void put_plan(TextOut& out, const Plan& plan) {
  const Limits& l = plan.limits;
  const uint64_t cache = uint64_t{plan.kv_blocks} * plan.kv_block_bytes;
  out.put("Plan (--batch, --max-source, --max-length and --threads change it)\n");
  out.format("  %-24s %12u\n", "sentences side by side", l.slots);
  out.format("  %-24s %12u ids\n", "longest source", l.source);
  out.format("  %-24s %12u ids\n", "longest translation", l.target);
  out.format("  %-24s %12u\n", "threads", l.threads);
  out.format("  %-24s %12zu of 16 positions, %zu bytes each\n", "K/V blocks", plan.kv_blocks, plan.kv_block_bytes);
  out.format("  %-24s %12zu bytes at most for one part\n", "output text", plan.output_bytes);
  const auto row = [&](const char* name, uint64_t bytes) {
    out.format("  %-24s %12llu  %10s\n", name, static_cast<Bytes>(bytes), human(bytes).text);
  };
  row("K/V cache", cache);
  row("activations and the rest", plan.bytes - cache);
  row("the command's buffers", buffer_bytes(plan));
  out.format("arena: %zu bytes\n", plan.bytes);
}

}  // namespace

int run_inspect(const Settings& settings) {
  if (settings.words.size() > 1 || (settings.model && !settings.words.empty())) {
    say("inspect takes one file at a time");
    return kUsageError;
  }
  Settings with_model = settings;
  if (!settings.words.empty()) with_model.model = settings.words[0];
  const Model* model = open_located_model(with_model);
  if (!model) return kRuntimeError;
  TextOut& out = standard_output();
  if (settings.licence) {
    put_text(out, model->licence, SIZE_MAX);
    return finish_output(out, kOk);
  }
  const Result<Plan> plan = make_plan(*model, settings.limits(16));
  if (!plan) {
    say("%s", plan.error().text);
    return kUsageError;
  }
  put_architecture(out, *model);
  put_tokenizers(out, *model);
  put_origin(out, *model);
  put_sections(out, *model);
  put_plan(out, *plan);
  return finish_output(out, kOk);
}

}  // namespace dragoman::command
