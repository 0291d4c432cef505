// Text to ids and back, from tables in the model file: no library, no allocation.
// The converter compiles a SentencePiece model (unigram or BPE) into the blob that open() reads in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/bpe.h"
#include "runtime/normalizer.h"
#include "runtime/result.h"
#include "runtime/unigram.h"

namespace dragoman {

struct Encoded {
  size_t count = 0;           // ids written (no eos: the caller adds it)
  bool fits = true;           // false: scratch or `ids` ran out; nothing else is valid, pass a shorter text
  bool unknown = false;       // at least one id is unk
  bool invalid_utf8 = false;  // bytes that are not UTF-8 were replaced by U+FFFD, as SentencePiece does
};

class Tokenizer {
 public:
  // Checks every offset, size and index of the blob: after this any text and any id are memory-safe.
  // The blob must outlive the tokenizer. `vocabulary`: ids produced are below it.
  static Result<Tokenizer> open(std::span<const std::byte> blob, uint32_t vocabulary);

  // Scratch for texts of up to `text_bytes` bytes whose normalised form is not much longer (encode reports the rest).
  size_t scratch_bytes(size_t text_bytes) const;

  // Ids of the text. `scratch` is 16-byte aligned.
  Encoded encode(std::string_view text, std::span<std::byte> scratch, std::span<int32_t> ids) const;

  // Text of ids (special ids such as eos and pad are dropped, unk shows as SentencePiece writes it). Returns the bytes
  // written; at most max_piece_bytes() per id are needed. Ids out of range are treated as unk.
  size_t decode(std::span<const int32_t> ids, std::span<char> text) const;
  size_t max_piece_bytes() const;

  // The piece of an id as in the vocabulary ("\u2581the"), for people who debug a model. Empty if out of range.
  std::string_view piece(int32_t id) const;

  // Target languages of a multilingual model: pieces of the form ">>deu<<". One of them stands before a text.
  bool has_languages() const { return language_end_ > 0; }
  std::string_view language(int32_t id) const;             // "deu"; empty where the id is no language
  int32_t next_language(int32_t after) const;              // the lowest such id above `after` (-1: of all), or -1
  int32_t find_language(std::string_view language) const;  // -1: none

  // A language that begins a text is one id, and unk where the model does not know it: so HuggingFace's MarianTokenizer
  // reads it, and encode() knows nothing of it. Here it must not have a space inside, and in a model without languages
  // there is none: a quotation between >> and << stays text.
  struct Leading {
    size_t bytes = 0;  // 0: the text begins with none
    int32_t id = -1;
  };
  Leading leading_language(std::string_view text) const;

  // For `inspect`.
  const char* algorithm() const;  // "unigram" or "bpe"
  uint32_t pieces() const;
  bool byte_fallback() const;

 private:
  std::span<const std::byte> blob_;
  const TokenizerHeader* header_ = nullptr;
  Normalizer normalizer_;
  UnigramTables unigram_;  // of the two, the one the model uses
  BpeTables bpe_;
  IdWriter::Tables ids_;
  std::span<const IdEntry> entries_;
  const char* strings_ = nullptr;
  std::string_view unknown_surface_;
  size_t max_piece_bytes_ = 0;
  // Ids from the first to before the last; zeros: none. Zeros, so that a model at rest takes no room in a program.
  int32_t first_language_ = 0, language_end_ = 0;

  Status check_and_point(uint32_t vocabulary);
  Status check_entries();
  size_t normalized_capacity(size_t scratch) const;
  std::string_view text_of(const IdEntry& entry) const { return {strings_ + entry.text_offset, entry.text_bytes}; }
  const IdEntry& entry_of(int32_t id) const;
};

// "deu" of ">>deu<<"; empty for any other piece.
std::string_view bare_language(std::string_view piece);

}  // namespace dragoman
