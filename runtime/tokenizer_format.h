// The tokenizer section of a .dgm file: tables the converter compiles from a SentencePiece model and the board reads
// in place. Little-endian; the section starts at a multiple of 64 and each table at a multiple of 8 inside it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dragoman {

inline constexpr char kTokenizerMagic[8] = {'D', 'G', 'M', 'T', 'O', 'K', 'N', '1'};

// Limits that let a length and a piece share 32 bits, and that keep the time per byte of text bounded whatever a file
// says.
inline constexpr uint32_t kMaxPieceBytes = 512;        // piece, user-defined symbol or left side of a rule
inline constexpr uint32_t kMaxReplacementBytes = 255;  // right side of a normalisation rule
inline constexpr uint32_t kMaxPieces = 1u << 21;
inline constexpr uint32_t kMaxNormalizedBytes = 1u << 24;
inline constexpr uint32_t kMaxTrieUnits = 1u << 23;
inline constexpr uint32_t kTrieBlock = 256;  // a trie has whole blocks, so that base ^ byte stays inside it

enum class TokenizerAlgorithm : uint32_t { kUnigram = 1, kBpe = 2 };

enum TokenizerFlags : uint32_t {
  kAddDummyPrefix = 1,
  kRemoveExtraWhitespace = 2,
  kEscapeWhitespace = 4,    // ' ' becomes U+2581
  kWhitespaceIsSuffix = 8,  // the dummy prefix is a dummy suffix
  kByteFallback = 16,       // unknown characters become byte pieces
  kAllTokenizerFlags = 31,
};

// A double-array trie. Node 0 is the root; the child of a node by byte b is unit `base ^ b`, and it is one if its label
// is b and it is marked as used. Only nodes with equal children (same bytes, values and so on down) share a base, and
// base 0 means no children: so the label alone proves the parent.
struct TrieUnit {
  uint32_t link;   // base << 9 | used << 8 | label
  uint32_t value;  // kNoValue: no key ends here
};
static_assert(sizeof(TrieUnit) == 8);
inline constexpr uint32_t kTrieUsed = 256;
inline constexpr uint32_t kNoValue = 0xFFFFFFFF;

// Values in the trie of pieces are piece numbers with these marks.
inline constexpr uint32_t kUserDefinedMark = 1u << 30;
inline constexpr uint32_t kUnusedMark = 1u << 29;  // bpe: may be merged, but is split again in the end
inline constexpr uint32_t kPieceMask = kUnusedMark - 1;

// How an id is written when ids become text.
enum class TextKind : uint8_t {
  kText = 0,     // U+2581 becomes ' '
  kForeign = 1,  // the same, of a piece that the decoding model does not know; the library alone would leave U+2581
  kUnknown = 2,  // the unk piece: the unknown surface
  kControl = 3,  // nothing; separates byte pieces
  kDropped = 4,  // as if the id were not there: eos, pad
  kByte = 5,     // one byte of a character
};

struct IdEntry {
  uint32_t text_offset;  // in the table of strings
  uint16_t text_bytes;
  TextKind kind;
  uint8_t byte;  // of kByte
};
static_assert(sizeof(IdEntry) == 8);

struct TableRef {
  uint64_t offset;  // from the start of the section, a multiple of 8
  uint64_t count;   // elements
};

struct TokenizerHeader {
  char magic[8];
  uint64_t bytes;  // of the section, this header included
  TokenizerAlgorithm algorithm;
  uint32_t flags;
  uint32_t unk_id;
  uint32_t longest_piece;    // bytes, user-defined symbols included
  uint32_t longest_symbol;   // bytes of a user-defined symbol
  uint32_t longest_rule;     // bytes of the left side of a normalisation rule
  float unk_score;           // unigram: min score - 10
  float max_score;           // unigram: what a byte of a user-defined symbol is worth
  TableRef pieces;           // TrieUnit: piece -> number and marks
  TableRef symbols;          // TrieUnit: user-defined symbols -> 0; may be empty
  TableRef rules;            // TrieUnit: text -> offset of its replacement; may be empty
  TableRef replacements;     // uint8_t: length, then as many bytes
  TableRef surfaces;         // TrieUnit: unknown runs that have an id all the same -> id; may be empty
  TableRef weights;          // one per piece. unigram: float score; bpe: uint32_t rank, the lowest is merged first
  TableRef piece_ids;        // uint32_t per piece
  TableRef byte_ids;         // uint32_t: 256 with kByteFallback, else empty
  TableRef unused;           // uint32_t, ascending: bpe pieces with kUnusedMark
  TableRef entries;          // IdEntry per id
  TableRef strings;          // char
  TableRef unknown_surface;  // char
  uint8_t plain[128];        // 1: no rule or symbol touches this ASCII byte when an ASCII byte (or the end) follows
};
static_assert(sizeof(TokenizerHeader) == 48 + 12 * 16 + 128);

}  // namespace dragoman
