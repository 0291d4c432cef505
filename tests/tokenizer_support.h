// What the tokenizer tests share: compiled tokenizers beside the SentencePiece library, models trained on the spot and
// random texts.
#pragma once

#include <sentencepiece_processor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/sentencepiece.h"
#include "runtime/tokenizer.h"

namespace dragoman::tokenizer_test {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// A section at the alignment it has in a file.
class AlignedBlob {
 public:
  AlignedBlob() = default;
  explicit AlignedBlob(std::span<const std::byte> bytes);
  std::span<std::byte> bytes() { return {reinterpret_cast<std::byte*>(blocks_.data()), size_}; }
  std::span<const std::byte> bytes() const { return {reinterpret_cast<const std::byte*>(blocks_.data()), size_}; }

 private:
  struct alignas(64) Block {
    std::byte bytes[64];
  };
  std::vector<Block> blocks_;
  size_t size_ = 0;
};

// A tokenizer of ours and the library's for the same .spm, and for a HuggingFace folder its vocabulary.
struct Pair {
  std::string name;
  sentencepiece::SentencePieceProcessor library;
  AlignedBlob blob;
  Tokenizer ours;
  bool has_vocabulary = false;
  std::map<std::string, int32_t, std::less<>> ids;
  std::map<int32_t, std::string> texts;
  SpecialIds special;

  // Fails the running test case if either side refuses the model.
  Pair(std::string name, const std::string& spm, const Vocabulary* vocabulary = nullptr, SpecialIds special = {});

  std::vector<int32_t> encode_library(std::string_view text) const;
  std::string decode_library(std::span<const int32_t> ids) const;
  std::vector<int32_t> encode(std::string_view text) const;
  std::string decode(std::span<const int32_t> ids) const;

  // Compares both ways; on a difference says which text. True if equal.
  bool agree(std::string_view text) const;
  bool agree_decoding(std::span<const int32_t> ids) const;
};

// A model trained by the library on generated text. `options` as for spm_train, without --model_type and --vocab_size.
std::string train(const char* model_type, int vocab_size, const std::string& options);
// A model no training would give: random short pieces over a few letters, scores with many ties, user-defined and
// unused pieces that overlap others.
std::string random_model(bool bpe, uint64_t seed);
// A text of the same letters.
std::string random_letters(uint64_t seed);
// The same model with every n-th normal piece marked as unused.
std::string with_unused_pieces(const std::string& spm, size_t every);
// The same model with `shift` added to all scores.
std::string with_scores(const std::string& spm, float shift);
// The same model with the fields of an encoded message merged into its normalizer_spec.
std::string with_normalizer_fields(const std::string& spm, std::string_view fields);

// Texts that tokenizers get wrong: words, spaces of all kinds, combining marks, broken UTF-8, NUL, long runs.
class RandomText {
 public:
  explicit RandomText(uint64_t seed) : random_(seed) {}
  std::string next();
  std::string words(size_t count);
  uint32_t below(uint32_t limit) { return uint32_t(random_() % limit); }

 private:
  std::string fragment();
  std::mt19937_64 random_;
};

// The folder of large test data, or empty if it is not there (then says so).
std::string shared_folder();
std::string read_text(const std::string& path);
// How much of the work a quick run does; DRAGOMAN_FULL=1 makes it 1.
double test_share();

}  // namespace dragoman::tokenizer_test
