// SentencePiece models: reading .spm files and compiling them into the tokenizer section of a .dgm file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/result.h"

namespace dragoman {

enum class PieceType : uint8_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

struct SentencePiece {
  std::string text;
  float score = 0;
  PieceType type = PieceType::kNormal;
};

// What of a .spm file decides ids and text. The defaults are the format's.
struct SentencePieceModel {
  std::string name;  // of the file, for messages
  std::vector<SentencePiece> pieces;
  bool bpe = false;  // else unigram
  bool byte_fallback = false;
  bool whitespace_is_suffix = false;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  std::string unknown_surface = " \xE2\x81\x87 ";
  std::vector<std::pair<std::string, std::string>> rules;  // normalisation, longest match first; sorted by left side
  uint32_t unk = 0;                                        // the unknown piece
};

// Reads a .spm file. Whatever the library would refuse, and whatever this runtime cannot repeat to the bit, is an
// error.
Result<SentencePieceModel> read_spm(std::span<const std::byte> file, const char* name);

// vocab.json of a HuggingFace Marian folder: piece and id. Where two pieces have one id, the later one is its text.
using Vocabulary = std::vector<std::pair<std::string, int32_t>>;

// Ids of the model's configuration; -1: none. eos and pad are dropped when ids become text.
struct SpecialIds {
  int32_t unk = -1;  // needed with a vocabulary; without one it is the unknown piece of the .spm
  int32_t eos = -1;
  int32_t pad = -1;
};

// The section Tokenizer::open reads. Without a vocabulary ids are the .spm's own; with one, they are vocabulary[piece].
// For a folder with source.spm and target.spm, compile both with the same vocabulary; if the files are equal, so are
// the sections.
Result<std::vector<std::byte>> compile_tokenizer(const SentencePieceModel& model, const Vocabulary* vocabulary,
                                                 const SpecialIds& special);

}  // namespace dragoman
