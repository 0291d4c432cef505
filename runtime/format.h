// The .dgm file, as it lies on disk and in memory (C2). Little-endian. docs/format.md explains it byte by byte.
//
//   FileHeader                     64 bytes
//   Section[section_count]         96 bytes each
//   sections                       each at a multiple of 64, in the order of the table; gaps are zero
//
// Checked at every open: header, section table, and the sections of kind architecture, tokenizer, selftest and text.
// Checked by `dragoman verify`: the tensors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dragoman {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a .dgm file is mapped as it is: little-endian CPUs only");

inline constexpr char kMagic[8] = {'D', 'R', 'A', 'G', 'O', 'M', 'A', 'N'};
inline constexpr uint32_t kFormatVersion = 2;  // 1: neighbouring int8 weights of any size
inline constexpr uint32_t kEndianMark = 0x01020304;
inline constexpr size_t kAlignment = 64;

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t endian_mark;
  uint64_t file_bytes;
  uint32_t section_count;
  uint32_t reserved0;
  uint64_t table_checksum;   // of the section table
  uint64_t reserved[2];      // zero
  uint64_t header_checksum;  // of the 56 bytes before it
};
static_assert(sizeof(FileHeader) == 64);

enum class SectionKind : uint32_t { kArchitecture = 1, kTensor = 2, kTokenizer = 3, kSelfTest = 4, kText = 5 };

enum class Layout : uint32_t {
  kNone = 0,       // not a tensor
  kVectorF32 = 1,  // cols floats
  kVectorI32 = 2,  // cols int32
  kRowsF32 = 3,    // (rows, cols) floats, row-major
  kPanelsF32 = 4,  // [cols/16][rows][16]: rows = k, cols = outputs, a multiple of 16
  kPanelsS8 = 5,   // [cols/16][rows/4][16][4]: rows = k, a multiple of 8; |w[k] + w[k + 1]| <= 129 for even k
};

struct Section {
  char name[40];  // zero-terminated, zero-padded
  SectionKind kind;
  Layout layout;
  uint64_t offset;
  uint64_t bytes;
  uint64_t checksum;
  uint32_t rows;
  uint32_t cols;
  uint64_t reserved[2];  // zero
};
static_assert(sizeof(Section) == 96);

enum class Activation : uint32_t { kRelu = 0, kSilu = 1, kGelu = 2, kGeluTanh = 3 };
enum class NormPosition : uint32_t { kPost = 0, kPre = 1 };
enum class Weights : uint32_t { kF32 = 0, kInt8 = 1 };

enum ArchitectureFlags : uint32_t {
  kSharedEmbedding = 1,   // source_embedding is target_embedding
  kTiedOutput = 2,        // output is target_embedding (its bias is the output's bias)
  kSharedPositions = 4,   // decoder.positions is encoder.positions
  kEncoderFinalNorm = 8,  // LayerNorm after the last layer
  kDecoderFinalNorm = 16,
  kEncoderEmbeddingNorm = 32,  // LayerNorm after embedding + position
  kDecoderEmbeddingNorm = 64,
  kSharedTokenizer = 128,  // tokenizer.target is tokenizer.source
  kAllArchitectureFlags = 255,
};

// Section "architecture". Names as in the paper.
struct Architecture {
  uint32_t d_model;  // multiple of 16; d_model / heads is a multiple of 8
  uint32_t encoder_layers, decoder_layers;
  uint32_t encoder_heads, decoder_heads;
  uint32_t encoder_ffn, decoder_ffn;              // multiples of 16
  uint32_t source_vocabulary, target_vocabulary;  // tensors are padded to a multiple of 16 with a bias of -infinity
  uint32_t positions;                             // rows of the position tables: the longest source and target
  Activation activation;
  NormPosition norm;
  Weights weights;
  uint32_t flags;
  uint32_t eos, pad, unk, decoder_start;  // eos and unk of the source side equal these
  float embedding_scale;
  float layer_norm_epsilon;
  uint32_t reserved[12];  // zero
};
static_assert(sizeof(Architecture) == 128);

inline constexpr uint32_t kMaxSections = 4096;  // 64 and 64 layers have fewer
inline constexpr uint32_t kMaxLayers = 64;
inline constexpr uint32_t kMaxDModel = 16384;
inline constexpr uint32_t kMaxFfn = 65536;
inline constexpr uint32_t kMaxVocabulary = 1 << 20;
inline constexpr uint32_t kMaxPositions = 1 << 16;

// Tensor names. A linear map NAME is stored as NAME.weight (panels), NAME.bias (vector, cols floats) and, when int8,
// NAME.scale (floats) and NAME.sum (int32). A norm NAME is NAME.gamma and NAME.beta.
//
//   source_embedding (unless shared)  target_embedding  output (unless tied): linear maps d_model -> vocabulary.
//       Ids that must never be produced (pad, bad words) and padding columns have bias -infinity in the output's map.
//   encoder.positions  decoder.positions (unless shared): kRowsF32 (positions, d_model)
//   encoder.embedding_norm  decoder.embedding_norm  encoder.norm  decoder.norm (as flags say)
//   encoder.I.self.qkv (d -> 3d: q, k, v side by side)  encoder.I.self.out  encoder.I.self.norm
//   encoder.I.ffn.in  encoder.I.ffn.out  encoder.I.ffn.norm
//   decoder.I.self.qkv|out|norm  decoder.I.cross.q  decoder.I.cross.kv (d -> 2d)  decoder.I.cross.out|norm
//   decoder.I.ffn.in|out|norm
//
// Other sections: "architecture", "tokenizer.source", "tokenizer.target" (unless shared), "selftest",
// "provenance" (kText: lines "key: value"), "licence" (kText).

// Section "selftest": uint32 count, uint32 zero; then for each case this header, the text (padded with zeros to a
// multiple of 4), source_ids int32 and target_ids int32 (both with eos). logits_hash chains checksum() over every
// step's row of target_vocabulary logits, starting from kChecksumSeed. Cases follow each other 8-byte aligned.
struct SelfTestCase {
  uint32_t text_bytes;
  uint32_t source_ids;
  uint32_t target_ids;
  uint32_t reserved;
  uint64_t logits_hash;
};
static_assert(sizeof(SelfTestCase) == 24);

}  // namespace dragoman
