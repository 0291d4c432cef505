#include "runtime/model.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "runtime/checksum.h"

namespace dragoman {
namespace {

// Finds sections and remembers the first thing that was wrong.
class Loader {
 public:
  Loader(std::span<const std::byte> file, const char* name) : file_(file), name_(name) {}

  Status open(Model& model);

 private:
  bool wrong(const Error& error) {
    if (ok_) error_ = error;
    ok_ = false;
    return false;
  }
  bool check_header();
  bool check_section(const Section& section, uint64_t first);
  bool check_architecture(const Architecture& a);

  const Section* find(const char* name);
  const std::byte* tensor(const char* name, Layout layout, uint64_t rows, uint64_t cols);
  std::span<const std::byte> blob(const char* name, SectionKind kind, bool required);
  Tokenizer tokenizer(const char* name, uint32_t vocabulary);
  const float* vector(const char* base, const char* part, uint64_t cols);
  Linear linear(const char* base, size_t k, size_t n);
  Norm norm(const char* base);
  void load_encoder(Model& model);
  void load_decoder(Model& model);
  void load_rest(Model& model);

  std::span<const std::byte> file_;
  const char* name_;
  std::span<const Section> sections_;
  size_t hint_ = 0;  // sections are asked for in about the order in which they are stored
  Architecture arch_{};
  bool ok_ = true;
  Error error_;
};

struct Name {
  char text[sizeof(Section::name)];
};

__attribute__((format(printf, 1, 2))) Name name_of(const char* format, ...) {
  Name name;
  va_list args;
  va_start(args, format);
  std::vsnprintf(name.text, sizeof name.text, format, args);
  va_end(args);
  return name;
}

// The architecture's bounds keep this far from 2^64.
uint64_t layout_bytes(Layout layout, uint64_t rows, uint64_t cols) {
  switch (layout) {
    case Layout::kVectorF32:
    case Layout::kVectorI32:
      return cols * 4;
    case Layout::kRowsF32:
    case Layout::kPanelsF32:
      return rows * cols * 4;
    case Layout::kPanelsS8:
      return rows * cols;
    case Layout::kNone:
      break;
  }
  return 0;
}

bool Loader::check_header() {
  FileHeader header;
  if (file_.size() < sizeof header) {
    return wrong(fail("%s is not a dragoman model: only %zu bytes long", name_, file_.size()));
  }
  std::memcpy(&header, file_.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) {
    return wrong(fail("%s is not a dragoman model (.dgm): make one with dragoman-convert", name_));
  }
  if (header.endian_mark != kEndianMark) return wrong(fail("%s was written for the other byte order", name_));
  if (header.version != kFormatVersion) {
    return wrong(
        fail("%s has format version %u, this program reads version %u: use a matching dragoman or convert again", name_,
             header.version, kFormatVersion));
  }
  if (header.header_checksum != checksum(&header, offsetof(FileHeader, header_checksum))) {
    return wrong(fail("%s is damaged: the header's checksum does not match; copy or download it again", name_));
  }
  if (header.file_bytes != file_.size()) {
    return wrong(fail("%s should have %llu bytes but has %zu: %s; copy or download it again", name_,
                      static_cast<unsigned long long>(header.file_bytes), file_.size(),
                      file_.size() < header.file_bytes ? "it is incomplete" : "something was added to it"));
  }
  const uint64_t table_bytes = uint64_t{header.section_count} * sizeof(Section);
  if (header.section_count > kMaxSections || table_bytes > file_.size() - sizeof header || header.reserved0 ||
      header.reserved[0] || header.reserved[1]) {
    return wrong(fail("%s has a header that contradicts itself: convert the model again", name_));
  }
  const std::byte* table = file_.data() + sizeof header;
  if (header.table_checksum != checksum(table, table_bytes)) {
    return wrong(fail("%s is damaged: the section table's checksum does not match; copy or download it again", name_));
  }
  sections_ = {reinterpret_cast<const Section*>(table), header.section_count};
  uint64_t end = sizeof header + table_bytes;  // sections do not overlap: checking them reads the file once at most
  for (const Section& section : sections_) {
    if (!check_section(section, end)) return false;
    end = section.offset + section.bytes;
  }
  return true;
}

bool Loader::check_section(const Section& section, uint64_t first) {
  const uint64_t bytes = file_.size();
  const bool named = section.name[0] != 0 && section.name[sizeof section.name - 1] == 0;
  if (!named) return wrong(fail("%s has a section without a proper name: convert the model again", name_));
  if (section.offset % kAlignment || section.offset < first || section.offset > bytes ||
      section.bytes > bytes - section.offset || section.reserved[0] || section.reserved[1]) {
    return wrong(fail("%s: section %s lies outside the file or on top of another: convert the model again", name_,
                      section.name));
  }
  const bool is_tensor = section.kind == SectionKind::kTensor;
  if (section.kind < SectionKind::kArchitecture || section.kind > SectionKind::kText ||
      section.layout > Layout::kPanelsS8 || is_tensor != (section.layout != Layout::kNone)) {
    return wrong(
        fail("%s: section %s is of a kind this program does not know: use a newer dragoman", name_, section.name));
  }
  if (!is_tensor && section.checksum != checksum(file_.data() + section.offset, section.bytes)) {
    return wrong(fail("%s is damaged: the checksum of section %s does not match; copy or download it again", name_,
                      section.name));
  }
  return true;
}

bool Loader::check_architecture(const Architecture& a) {
  const auto in = [](uint64_t value, uint64_t low, uint64_t high) { return low <= value && value <= high; };
  const auto heads_fit = [&](uint32_t heads) {
    return in(heads, 1, a.d_model) && a.d_model % heads == 0 && a.d_model / heads % 8 == 0;
  };
  uint32_t reserved = 0;
  for (const uint32_t word : a.reserved) reserved |= word;
  const uint32_t smaller = a.source_vocabulary < a.target_vocabulary ? a.source_vocabulary : a.target_vocabulary;
  const struct {
    bool holds;
    const char* what;
  } rules[] = {
      {in(a.d_model, 16, kMaxDModel) && a.d_model % 16 == 0, "d_model"},
      {in(a.encoder_layers, 1, kMaxLayers) && in(a.decoder_layers, 1, kMaxLayers), "the layer count"},
      {heads_fit(a.encoder_heads) && heads_fit(a.decoder_heads), "the head count"},
      {in(a.encoder_ffn, 16, kMaxFfn) && a.encoder_ffn % 16 == 0, "encoder_ffn"},
      {in(a.decoder_ffn, 16, kMaxFfn) && a.decoder_ffn % 16 == 0, "decoder_ffn"},
      {in(a.source_vocabulary, 2, kMaxVocabulary) && in(a.target_vocabulary, 2, kMaxVocabulary), "the vocabulary"},
      {in(a.positions, 2, kMaxPositions), "positions"},
      {a.activation <= Activation::kGeluTanh, "the activation"},
      {a.norm <= NormPosition::kPre && a.weights <= Weights::kInt8, "an enum"},
      {(a.flags & ~uint32_t{kAllArchitectureFlags}) == 0 && reserved == 0, "a flag"},
      {a.eos < smaller && a.unk < smaller && a.pad < a.target_vocabulary, "a special id"},
      {a.decoder_start < a.target_vocabulary, "decoder_start"},
      {std::isfinite(a.embedding_scale), "embedding_scale"},
      {std::isfinite(a.layer_norm_epsilon) && a.layer_norm_epsilon >= 0, "layer_norm_epsilon"},
      {!(a.flags & kSharedEmbedding) || a.source_vocabulary == a.target_vocabulary, "the shared vocabulary"},
  };
  for (const auto& rule : rules) {
    if (!rule.holds) {
      return wrong(fail("%s: the architecture record has an impossible value for %s", name_, rule.what));
    }
  }
  return true;
}

const Section* Loader::find(const char* name) {
  for (size_t i = 0; i < sections_.size(); ++i) {
    const size_t at = (hint_ + i) % sections_.size();
    if (std::strcmp(sections_[at].name, name) == 0) {
      hint_ = at + 1;
      return &sections_[at];
    }
  }
  return nullptr;
}

const std::byte* Loader::tensor(const char* name, Layout layout, uint64_t rows, uint64_t cols) {
  if (!ok_) return nullptr;
  const Section* section = find(name);
  if (!section || section->kind != SectionKind::kTensor) {
    wrong(fail("%s: tensor %s is missing: convert the model again", name_, name));
    return nullptr;
  }
  if (section->layout != layout || section->rows != rows || section->cols != cols ||
      section->bytes != layout_bytes(layout, rows, cols)) {
    wrong(fail("%s: tensor %s does not have the shape that the architecture asks for (%llu, %llu)", name_, name,
               static_cast<unsigned long long>(rows), static_cast<unsigned long long>(cols)));
    return nullptr;
  }
  return file_.data() + section->offset;
}

std::span<const std::byte> Loader::blob(const char* name, SectionKind kind, bool required) {
  if (!ok_) return {};
  const Section* section = find(name);
  if (section && section->kind == kind) return file_.subspan(section->offset, section->bytes);
  if (required) wrong(fail("%s: section %s is missing: convert the model again", name_, name));
  return {};
}

const float* Loader::vector(const char* base, const char* part, uint64_t cols) {
  return reinterpret_cast<const float*>(tensor(name_of("%s.%s", base, part).text, Layout::kVectorF32, 1, cols));
}

Linear Loader::linear(const char* base, size_t k, size_t n) {  // both below 2^21, says the architecture's check
  const size_t cols = round_up(n, kPanel);
  const bool int8 = arch_.weights == Weights::kInt8;
  const std::byte* w = tensor(name_of("%s.weight", base).text, int8 ? Layout::kPanelsS8 : Layout::kPanelsF32, k, cols);
  const float* bias = vector(base, "bias", cols);
  Linear map;
  if (int8) {
    const std::byte* sum = tensor(name_of("%s.sum", base).text, Layout::kVectorI32, 1, cols);
    map.s8 = {reinterpret_cast<const int8_t*>(w),
              vector(base, "scale", cols),
              reinterpret_cast<const int32_t*>(sum),
              bias,
              k,
              cols / kPanel};
  } else {
    map.f32 = {reinterpret_cast<const float*>(w), bias, k, cols / kPanel};
  }
  return map;
}

Norm Loader::norm(const char* base) {
  return {vector(base, "gamma", arch_.d_model), vector(base, "beta", arch_.d_model)};
}

void Loader::load_encoder(Model& model) {
  const size_t d = arch_.d_model;
  for (uint32_t i = 0; i < arch_.encoder_layers; ++i) {
    EncoderLayer& layer = model.encoder[i];
    layer.qkv = linear(name_of("encoder.%u.self.qkv", i).text, d, 3 * d);
    layer.out = linear(name_of("encoder.%u.self.out", i).text, d, d);
    layer.self_norm = norm(name_of("encoder.%u.self.norm", i).text);
    layer.ffn_in = linear(name_of("encoder.%u.ffn.in", i).text, d, arch_.encoder_ffn);
    layer.ffn_out = linear(name_of("encoder.%u.ffn.out", i).text, arch_.encoder_ffn, d);
    layer.ffn_norm = norm(name_of("encoder.%u.ffn.norm", i).text);
  }
}

void Loader::load_decoder(Model& model) {
  const size_t d = arch_.d_model;
  for (uint32_t i = 0; i < arch_.decoder_layers; ++i) {
    DecoderLayer& layer = model.decoder[i];
    layer.qkv = linear(name_of("decoder.%u.self.qkv", i).text, d, 3 * d);
    layer.out = linear(name_of("decoder.%u.self.out", i).text, d, d);
    layer.self_norm = norm(name_of("decoder.%u.self.norm", i).text);
    layer.cross_q = linear(name_of("decoder.%u.cross.q", i).text, d, d);
    layer.cross_kv = linear(name_of("decoder.%u.cross.kv", i).text, d, 2 * d);
    layer.cross_out = linear(name_of("decoder.%u.cross.out", i).text, d, d);
    layer.cross_norm = norm(name_of("decoder.%u.cross.norm", i).text);
    layer.ffn_in = linear(name_of("decoder.%u.ffn.in", i).text, d, arch_.decoder_ffn);
    layer.ffn_out = linear(name_of("decoder.%u.ffn.out", i).text, arch_.decoder_ffn, d);
    layer.ffn_norm = norm(name_of("decoder.%u.ffn.norm", i).text);
  }
}

void Loader::load_rest(Model& model) {
  const size_t d = arch_.d_model, positions = arch_.positions;
  model.target_embedding = linear("target_embedding", d, arch_.target_vocabulary);
  model.source_embedding =
      model.has(kSharedEmbedding) ? model.target_embedding : linear("source_embedding", d, arch_.source_vocabulary);
  model.output = model.has(kTiedOutput) ? model.target_embedding : linear("output", d, arch_.target_vocabulary);
  const auto rows = [&](const char* name) {
    return reinterpret_cast<const float*>(tensor(name, Layout::kRowsF32, positions, d));
  };
  model.encoder_positions = rows("encoder.positions");
  model.decoder_positions = model.has(kSharedPositions) ? model.encoder_positions : rows("decoder.positions");
  if (model.has(kEncoderEmbeddingNorm)) model.encoder_embedding_norm = norm("encoder.embedding_norm");
  if (model.has(kDecoderEmbeddingNorm)) model.decoder_embedding_norm = norm("decoder.embedding_norm");
  if (model.has(kEncoderFinalNorm)) model.encoder_norm = norm("encoder.norm");
  if (model.has(kDecoderFinalNorm)) model.decoder_norm = norm("decoder.norm");

  const auto text = [&](const char* name) {
    const auto bytes = blob(name, SectionKind::kText, false);
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  model.provenance = text("provenance");
  model.licence = text("licence");
  model.selftest = blob("selftest", SectionKind::kSelfTest, false);
  model.source = tokenizer("tokenizer.source", arch_.source_vocabulary);
  model.target =
      tokenizer(model.has(kSharedTokenizer) ? "tokenizer.source" : "tokenizer.target", arch_.target_vocabulary);
}

Tokenizer Loader::tokenizer(const char* name, uint32_t vocabulary) {
  const auto bytes = blob(name, SectionKind::kTokenizer, true);
  if (!ok_) return {};
  Result<Tokenizer> opened = Tokenizer::open(bytes, vocabulary);
  if (!opened) wrong(fail("%s: %s: %.300s", name_, name, opened.error().text));
  return *opened;
}

Status Loader::open(Model& model) {
  if (!check_header()) return error_;
  const auto record = blob("architecture", SectionKind::kArchitecture, true);
  if (ok_ && record.size() != sizeof arch_) wrong(fail("%s: the architecture record has the wrong size", name_));
  if (!ok_) return error_;
  std::memcpy(&arch_, record.data(), sizeof arch_);
  if (!check_architecture(arch_)) return error_;
  model.arch = arch_;
  model.file = file_;
  model.sections = sections_;
  load_encoder(model);
  load_decoder(model);
  load_rest(model);
  if (!ok_) return error_;
  return Done{};
}

}  // namespace

Status open_model(std::span<const std::byte> file, const char* name, Model& model) {
  if (reinterpret_cast<uintptr_t>(file.data()) % kAlignment) {
    return fail("%s: a model in memory must start at a multiple of %zu bytes", name, kAlignment);
  }
  return Loader(file, name).open(model);
}

namespace {

// In [-127, 127], and no pair beyond the limit: a CPU that adds two products in 16 bits would give other results. The
// bytes at 2 i and 2 i + 1 are a pair of one column.
bool weights_in_range(std::span<const int8_t> w) {
  bool good = true;
  for (size_t i = 0; i + 1 < w.size(); i += 2) {
    const int pair = w[i] + w[i + 1];
    good &= w[i] >= -127 && w[i + 1] >= -127 && pair >= -kPairLimit && pair <= kPairLimit;
  }
  return good;
}

// The stored sums of the columns are what a u8 x s8 instruction takes its offset back with: a wrong one would give
// other results on CPUs that have it.
bool sums_hold(const PanelsS8& w) {
  for (size_t column = 0; column < w.panels * kPanel; ++column) {
    const int8_t* at = w.w + column / kPanel * kPanel * w.k + column % kPanel * 4;
    int32_t sum = 0;
    for (size_t i = 0; i < w.k; ++i) sum += at[i / 4 * kPanel * 4 + i % 4];
    if (sum != w.sum[column]) return false;
  }
  return true;
}

bool all_sums_hold(const Model& model) {
  bool hold =
      sums_hold(model.source_embedding.s8) && sums_hold(model.target_embedding.s8) && sums_hold(model.output.s8);
  for (uint32_t i = 0; i < model.arch.encoder_layers; ++i) {
    const EncoderLayer& layer = model.encoder[i];
    for (const Linear* w : {&layer.qkv, &layer.out, &layer.ffn_in, &layer.ffn_out}) hold = hold && sums_hold(w->s8);
  }
  for (uint32_t i = 0; i < model.arch.decoder_layers; ++i) {
    const DecoderLayer& layer = model.decoder[i];
    for (const Linear* w :
         {&layer.qkv, &layer.out, &layer.cross_q, &layer.cross_kv, &layer.cross_out, &layer.ffn_in, &layer.ffn_out})
      hold = hold && sums_hold(w->s8);
  }
  return hold;
}

}  // namespace

Status verify_tensors(const Model& model, const char* name) {
  for (const Section& section : model.sections) {
    const std::byte* data = model.file.data() + section.offset;
    if (section.checksum != checksum(data, section.bytes)) {
      return fail("%s is damaged: the checksum of %s does not match; copy or download it again", name, section.name);
    }
    if (section.layout == Layout::kPanelsS8 &&
        !weights_in_range({reinterpret_cast<const int8_t*>(data), static_cast<size_t>(section.bytes)})) {
      return fail(
          "%s: %s holds a weight of -128 or two neighbours that add up to more than %d, which no converter writes: "
          "convert the model again",
          name, section.name, kPairLimit);
    }
  }
  if (!all_sums_hold(model))
    return fail(
        "%s: the sums stored beside the weights are wrong, and no converter writes that: convert the model again",
        name);
  return Done{};
}

}  // namespace dragoman
