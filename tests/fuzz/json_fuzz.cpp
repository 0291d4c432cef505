// libFuzzer: the JSON files of somebody's MarianMT folder. The first byte says which; config.json and
// generation_config.json come together, with a zero byte between them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "converter/json_fields.h"
#include "converter/marian_config.h"
#include "converter/vocabulary.h"

namespace {

using namespace dragoman;

void parse_config(std::string_view text) {
  const size_t end = text.find('\0');
  const auto config = parse_json(text.substr(0, end), "config.json");
  const auto generation = parse_json(end == text.npos ? "{}" : text.substr(end + 1), "generation_config.json");
  if (!config || !generation) return;
  const auto marian = parse_marian_config(*config, *generation);
  if (!marian) return;
  const Architecture& arch = marian->arch;  // what the reader of tensors relies on
  bool good = arch.d_model > 0 && arch.encoder_heads > 0 && arch.d_model % arch.encoder_heads == 0;
  good &= arch.eos < arch.source_vocabulary && arch.eos < arch.target_vocabulary && arch.pad < arch.target_vocabulary;
  for (const uint32_t id : marian->never) good &= id < arch.target_vocabulary && id != arch.eos;
  if (!good) std::abort();
}

void check(const Result<Vocabulary>& vocabulary) {
  if (!vocabulary) return;
  for (const auto& [piece, id] : *vocabulary) {
    if (id < 0 || static_cast<uint32_t>(id) >= kMaxVocabulary) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'c':
      parse_config(text);
      break;
    case 'v':
      check(parse_vocabulary(text, "vocab.json"));
      break;
    case 't':
      check(parse_fast_tokenizer(text, "tokenizer.json"));
      break;
    default:
      break;
  }
  return 0;
}
