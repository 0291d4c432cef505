// libFuzzer: a .spm file from anywhere. What is read must compile, what was compiled must open, and the tokenizer must
// take any text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/sentencepiece.h"
#include "runtime/tokenizer.h"
#include "runtime/tokenizer_format.h"

namespace {

using namespace dragoman;

constexpr std::string_view kText =
    "  Good morning, 123 caf\xC3\xA9 \xFF \xF0\x9F\x98\x80 aaaaaaaa <x></s>\xE2\x96\x81 ";

void use(std::span<const std::byte> section) {
  std::vector<std::max_align_t> aligned(section.size() / sizeof(std::max_align_t) + 1);
  std::memcpy(aligned.data(), section.data(), section.size());
  const auto opened = Tokenizer::open(std::as_bytes(std::span(aligned)).first(section.size()), kMaxPieces);
  if (!opened) std::abort();
  const size_t scratch_bytes = opened->scratch_bytes(kText.size());
  std::vector<std::max_align_t> scratch(scratch_bytes / sizeof(std::max_align_t) + 1);
  std::vector<int32_t> ids(4 * kText.size());
  const Encoded encoded = opened->encode(kText, std::as_writable_bytes(std::span(scratch)).first(scratch_bytes), ids);
  ids.resize(encoded.fits ? encoded.count : 0);
  std::vector<char> out(ids.size() * opened->max_piece_bytes());
  if (opened->decode(ids, out) > out.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto model = read_spm(std::as_bytes(std::span(data, size)), "fuzz.spm");
  if (!model) return 0;
  Vocabulary vocabulary{{"<unk>", 0}, {">>deu<<", 1}, {"\xF0\x9F\x98\x80", 2}};
  for (const SentencePiece& piece : model->pieces) {
    if (piece.text != "<unk>") vocabulary.emplace_back(piece.text, int32_t(vocabulary.size()));
  }
  for (const bool with_vocabulary : {false, true}) {
    const SpecialIds special = with_vocabulary ? SpecialIds{0, 3, -1} : SpecialIds{};
    const auto section = compile_tokenizer(*model, with_vocabulary ? &vocabulary : nullptr, special);
    if (section) use(*section);
  }
  return 0;
}
