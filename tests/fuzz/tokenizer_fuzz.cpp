// Damaged tokenizer sections and any text: libFuzzer target.
//   data: which small model (1 byte), number of edits n (1 byte), n * (position 2 bytes, value 1 byte), then the text;
//   the text's bytes are also ids to decode. A first byte of 255 takes the rest as the section itself.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/sentencepiece.h"
#include "runtime/tokenizer.h"

namespace {

using namespace dragoman;

struct alignas(64) Block {
  std::byte bytes[64];
};

SentencePieceModel model_of(unsigned kind) {
  SentencePieceModel model;
  model.name = "fuzz.spm";
  model.bpe = (kind & 1) != 0;
  model.byte_fallback = (kind & 2) != 0;
  model.whitespace_is_suffix = (kind & 4) != 0;
  model.remove_extra_whitespaces = (kind & 8) == 0;
  model.rules = {{"A", "a"}, {"A\xCC\x8A", "\xC3\xA5"}, {"\xC2\xA0", " "}, {"\xEF\xAC\x81", "fi"}, {"\x7F", ""}};
  model.pieces = {{"<unk>", 0, PieceType::kUnknown}, {"</s>", 0, PieceType::kControl}};
  float score = -1;
  for (const char* text : {"\xE2\x96\x81",
                           "\xE2\x96\x81t",
                           "\xE2\x96\x81the",
                           "a",
                           "b",
                           "ab",
                           "abc",
                           "c",
                           "bc",
                           "fi",
                           "f",
                           "i",
                           "aa",
                           "aaaa",
                           "aaaaaaaa",
                           "\xC3\xA9",
                           "\xC3\xA5",
                           "t",
                           "h",
                           "e",
                           "he",
                           "th"}) {
    model.pieces.push_back({text, score -= 0.5f, PieceType::kNormal});
  }
  model.pieces.push_back({"<x>", 0, PieceType::kUserDefined});
  model.pieces.push_back({"<xy>", 0, PieceType::kUserDefined});
  model.pieces.push_back({"aaa", -1, PieceType::kUnused});
  model.pieces.push_back({"abcabc", -1, PieceType::kUnused});
  for (unsigned byte = 0; byte < 256 && model.byte_fallback; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    model.pieces.push_back({text, 0, PieceType::kByte});
  }
  return model;
}

const std::vector<std::byte>& section_of(unsigned kind) {
  static std::vector<std::byte> sections[16];
  std::vector<std::byte>& section = sections[kind & 15];
  if (!section.empty()) return section;
  const SentencePieceModel model = model_of(kind);
  Vocabulary vocabulary;
  for (size_t i = 0; i < model.pieces.size(); ++i) vocabulary.emplace_back(model.pieces[i].text, int32_t(i));
  vocabulary.emplace_back("\xC3\x9F", int32_t(model.pieces.size()));
  auto compiled = compile_tokenizer(model, &vocabulary, {0, 1, -1});
  if (!compiled) std::abort();
  return section = *compiled;
}

void use(std::span<const std::byte> bytes, std::string_view text) {
  std::vector<Block> blocks((bytes.size() + 63) / 64);
  if (!bytes.empty()) std::memcpy(blocks.data(), bytes.data(), bytes.size());
  constexpr uint32_t kVocabulary = 400;
  const auto opened = Tokenizer::open({reinterpret_cast<const std::byte*>(blocks.data()), bytes.size()}, kVocabulary);
  if (!opened) return;
  const size_t scratch_bytes = opened->scratch_bytes(text.size());
  std::vector<std::max_align_t> scratch(scratch_bytes / sizeof(std::max_align_t) + 1);
  std::vector<int32_t> ids(text.size() + 4);
  const Encoded encoded = opened->encode(text, std::as_writable_bytes(std::span(scratch)).first(scratch_bytes), ids);
  if (!encoded.fits) ids.clear();
  ids.resize(encoded.fits ? encoded.count : 0);
  for (const int32_t id : ids) {
    if (id < 0 || uint32_t(id) >= kVocabulary) std::abort();
  }
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    ids.push_back(int32_t(uint8_t(text[i])) * (int8_t(text[i + 1]) > 100 ? 65536 : 1) - 1);
  }
  std::vector<char> out(ids.size() * opened->max_piece_bytes());
  if (opened->decode(ids, out) > out.size()) std::abort();
  for (const int32_t id : ids) {
    const std::string copy(opened->piece(id));
    if (copy.size() > opened->max_piece_bytes()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  if (data[0] == 255) {
    use({reinterpret_cast<const std::byte*>(data) + 1, size - 1}, "a text <x> \xC3\x9F\xFF aaaa");
    return 0;
  }
  std::vector<std::byte> section = section_of(data[0]);
  size_t edits = data[1];
  data += 2;
  size -= 2;
  for (; edits > 0 && size >= 3; --edits, data += 3, size -= 3) {
    const size_t position = size_t(data[0]) | size_t(data[1]) << 8;
    if (position < section.size()) section[position] = std::byte(data[2]);
  }
  use(section, {reinterpret_cast<const char*>(data), size});
  return 0;
}
