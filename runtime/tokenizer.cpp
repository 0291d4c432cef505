#include "runtime/tokenizer.h"

#include <algorithm>
#include <cstring>

#include "runtime/text_split.h"
#include "runtime/tokenizer_format.h"

namespace dragoman {
namespace {

// Neither starts_with() nor substr() of string_view: unoptimised, both want libstdc++ (text_split.h).
bool begins_with(std::string_view text, std::string_view with) {
  return text.size() >= with.size() && std::memcmp(text.data(), with.data(), with.size()) == 0;
}

constexpr size_t kLongestLanguage = 64;  // with its brackets, in a text: always inside the window a translator sees
constexpr size_t kSlack = 64;  // normalised bytes beyond twice the text: dummy prefix, short texts of many spaces

// Scratch per normalised byte: the text itself and what the algorithm keeps about it.
constexpr size_t kUnigramBytes = 1 + sizeof(UnigramNode);
constexpr size_t kBpeBytes = 1 + 2 * sizeof(uint64_t) + 2 * sizeof(uint16_t);

// Writes pieces as text. Where the buffer ends, the text ends.
class TextWriter {
 public:
  explicit TextWriter(std::span<char> text) : text_(text) {}
  size_t size() const { return size_; }

  void put(std::string_view piece) {
    const size_t n = std::min(piece.size(), text_.size() - size_);
    if (n != 0) std::memcpy(text_.data() + size_, piece.data(), n);
    size_ += n;
  }
  void put_with_spaces(std::string_view piece) {
    const std::string_view symbol(kSpaceSymbol, kSpaceSymbolBytes);
    for (size_t at; (at = piece.find(symbol)) != piece.npos; piece.remove_prefix(at + symbol.size())) {
      put({piece.data(), at});
      put(" ");
    }
    put(piece);
  }

 private:
  std::span<char> text_;
  size_t size_ = 0;
};

// Bytes of consecutive byte pieces: well-formed characters pass, every other byte becomes U+FFFD.
class ByteJoiner {
 public:
  explicit ByteJoiner(TextWriter& out) : out_(out) {}
  void add(uint8_t byte) {
    bytes_[count_++] = char(byte);
    if (count_ == sizeof bytes_) write_one();
  }
  void flush() {
    while (count_ != 0) write_one();
  }

 private:
  void write_one() {
    const size_t valid = utf8_valid(bytes_, count_);
    out_.put(valid == 0 ? std::string_view("\xEF\xBF\xBD") : std::string_view(bytes_, valid));
    const size_t used = std::max<size_t>(valid, 1);
    count_ -= used;
    std::memmove(bytes_, bytes_ + used, count_);
  }

  TextWriter& out_;
  char bytes_[4] = {};
  size_t count_ = 0;
};

}  // namespace

Result<Tokenizer> Tokenizer::open(std::span<const std::byte> blob, uint32_t vocabulary) {
  Tokenizer tokenizer;
  tokenizer.blob_ = blob;
  const Status status = tokenizer.check_and_point(vocabulary);
  if (!status) return status.error();
  return tokenizer;
}

Status Tokenizer::check_and_point(uint32_t vocabulary) {
  if (blob_.size() < sizeof(TokenizerHeader)) {
    return fail("the tokenizer section is cut short: %zu bytes, its header alone has %zu; convert the model again",
                blob_.size(), sizeof(TokenizerHeader));
  }
  if (reinterpret_cast<uintptr_t>(blob_.data()) % 8 != 0) {
    return fail("the tokenizer section does not lie at a multiple of 8; it must be mapped at a multiple of 64");
  }
  header_ = reinterpret_cast<const TokenizerHeader*>(blob_.data());
  const TokenizerHeader& h = *header_;
  if (std::memcmp(h.magic, kTokenizerMagic, sizeof h.magic) != 0) {
    return fail("the tokenizer section is of a kind this version does not know; convert the model again");
  }
  const bool unigram = h.algorithm == TokenizerAlgorithm::kUnigram;
  const bool bytes = (h.flags & kByteFallback) != 0;
  if (h.bytes != blob_.size() || (!unigram && h.algorithm != TokenizerAlgorithm::kBpe) ||
      (h.flags & ~uint32_t(kAllTokenizerFlags)) != 0 || h.longest_piece > kMaxPieceBytes ||
      h.longest_symbol > kMaxPieceBytes || h.longest_rule > kMaxPieceBytes) {
    return fail("the tokenizer section's header is damaged; convert the model again");
  }

  const char* wrong = nullptr;  // the first table that is not inside the section
  const auto table = [&]<class T>(const TableRef& ref, const char* name, T) -> std::span<const T> {
    const uint64_t size = blob_.size();
    if (ref.offset % 8 == 0 && ref.offset <= size && ref.count <= (size - ref.offset) / sizeof(T)) {
      return {reinterpret_cast<const T*>(blob_.data() + ref.offset), size_t(ref.count)};
    }
    if (wrong == nullptr) wrong = name;
    return {};
  };
  const auto trie = [&](const TableRef& ref, const char* name) {
    const auto units = table(ref, name, TrieUnit{});
    return Trie(units.data(), units.size());
  };
  const Trie pieces = trie(h.pieces, "pieces"), symbols = trie(h.symbols, "symbols");
  const Trie rules = trie(h.rules, "rules"), surfaces = trie(h.surfaces, "surfaces");
  const auto replacements = table(h.replacements, "replacements", uint8_t{});
  const auto weights = table(h.weights, "weights", uint32_t{});
  const auto piece_ids = table(h.piece_ids, "piece ids", uint32_t{});
  const auto byte_ids = table(h.byte_ids, "byte ids", uint32_t{});
  const auto unused = table(h.unused, "unused", uint32_t{});
  const auto strings = table(h.strings, "strings", char{});
  const auto surface = table(h.unknown_surface, "unknown surface", char{});
  entries_ = table(h.entries, "entries", IdEntry{});
  if (wrong != nullptr) {
    return fail("the tokenizer's table \"%s\" lies outside its section; convert the model again", wrong);
  }
  if (entries_.size() > vocabulary) {
    return fail("the tokenizer has %zu ids but the model only %u; convert the tokenizer that belongs to the model",
                entries_.size(), vocabulary);
  }

  const auto all_below = [](std::span<const uint32_t> ids, size_t limit) {
    bool good = true;
    for (const uint32_t id : ids) good &= id < limit;
    return good;
  };
  const size_t count = piece_ids.size();
  if (pieces.empty() || count > kMaxPieces || weights.size() != count || unused.size() > count ||
      byte_ids.size() != (bytes ? 256 : 0) || h.unk_id >= entries_.size() || !all_below(piece_ids, entries_.size()) ||
      !all_below(byte_ids, entries_.size())) {
    return fail("the tokenizer's tables do not agree with each other; convert the model again");
  }
  if (!pieces.check(uint32_t(count), kPieceMask) || !symbols.check(1, kNoValue) ||
      !rules.check(uint32_t(std::min<size_t>(replacements.size(), kNoValue)), kNoValue) ||
      !surfaces.check(uint32_t(entries_.size()), kNoValue)) {
    return fail("a trie of the tokenizer points outside itself; convert the model again");
  }

  normalizer_ = Normalizer(h, rules, replacements, symbols);
  unigram_ = {pieces, reinterpret_cast<const float*>(weights.data()), h.longest_piece, h.unk_score, h.max_score};
  bpe_ = {pieces, symbols, weights.data(), unused, h.longest_piece, h.longest_symbol};
  ids_ = {piece_ids.data(), bytes ? byte_ids.data() : nullptr, surfaces, h.unk_id};
  strings_ = strings.data();
  unknown_surface_ = {surface.data(), surface.size()};
  return check_entries();
}

Status Tokenizer::check_entries() {
  size_t longest = std::max<size_t>(3, unknown_surface_.size());  // a lone byte becomes U+FFFD: three bytes
  bool good = unknown_surface_.size() <= kMaxPieceBytes;
  for (const IdEntry& entry : entries_) {
    good &= uint64_t(entry.text_offset) + entry.text_bytes <= header_->strings.count;
    good &= entry.kind <= TextKind::kByte;
    longest = std::max<size_t>(longest, entry.text_bytes);
  }
  if (!good) return fail("the tokenizer's list of ids is damaged; convert the model again");
  max_piece_bytes_ = longest;
  for (size_t id = 0; id < entries_.size(); ++id) {
    if (bare_language(text_of(entries_[id])).empty()) continue;
    if (!has_languages()) first_language_ = int32_t(id);
    language_end_ = int32_t(id) + 1;
  }
  return Done{};
}

size_t Tokenizer::scratch_bytes(size_t text_bytes) const {
  const size_t capacity = 2 * std::min<size_t>(text_bytes, kMaxNormalizedBytes / 2) + kSlack;
  if (header_->algorithm == TokenizerAlgorithm::kUnigram) return capacity * kUnigramBytes + sizeof(UnigramNode);
  return capacity * kBpeBytes + bpe_.unused.size() * sizeof(uint16_t);
}

size_t Tokenizer::normalized_capacity(size_t scratch) const {
  const bool unigram = header_->algorithm == TokenizerAlgorithm::kUnigram;
  const size_t fixed = unigram ? sizeof(UnigramNode) : bpe_.unused.size() * sizeof(uint16_t);
  if (scratch < fixed) return 0;
  return std::min<size_t>((scratch - fixed) / (unigram ? kUnigramBytes : kBpeBytes), kMaxNormalizedBytes);
}

Encoded Tokenizer::encode(std::string_view text, std::span<std::byte> scratch, std::span<int32_t> ids) const {
  Encoded result;
  if (text.empty()) return result;
  const size_t capacity = normalized_capacity(scratch.size());
  if (capacity == 0) {
    result.fits = false;
    return result;
  }
  // Largest alignment first: nodes or agenda, then lengths, then the text.
  std::byte* memory = scratch.data();
  const auto carve = [&memory](auto* /*type*/ pointer, size_t count) {
    pointer = reinterpret_cast<decltype(pointer)>(memory);
    memory += count * sizeof(*pointer);
    return pointer;
  };
  const bool unigram = header_->algorithm == TokenizerAlgorithm::kUnigram;
  UnigramNode* nodes = nullptr;
  BpeBuffers buffers = {};
  if (unigram) {
    nodes = carve(nodes, capacity + 1);
  } else {
    buffers.agenda = carve(buffers.agenda, 2 * capacity);
    buffers.starts = carve(buffers.starts, capacity);
    buffers.ends = carve(buffers.ends, capacity);
    buffers.splits = carve(buffers.splits, bpe_.unused.size());
  }
  char* const normalized = reinterpret_cast<char*>(memory);

  const Normalizer::Output output = normalizer_.run(text, {normalized, capacity});
  result.invalid_utf8 = output.invalid_utf8;
  result.fits = output.fits;
  if (!output.fits || output.size == 0) return result;
  IdWriter writer(ids_, normalized, ids);
  if (unigram) {
    unigram_encode(unigram_, normalized, output.size, nodes, writer);
  } else {
    bpe_encode(bpe_, normalized, output.size, buffers, writer);
  }
  writer.end_run();
  result.count = writer.count();
  result.fits = writer.fits();
  result.unknown = writer.unknown();
  return result;
}

const IdEntry& Tokenizer::entry_of(int32_t id) const {
  return entries_[uint32_t(id) < entries_.size() ? uint32_t(id) : header_->unk_id];
}

size_t Tokenizer::decode(std::span<const int32_t> ids, std::span<char> text) const {
  TextWriter out(text);
  ByteJoiner bytes(out);
  const std::string_view symbol(kSpaceSymbol, kSpaceSymbolBytes);
  const bool squeeze = (header_->flags & kRemoveExtraWhitespace) != 0;
  const bool strip = squeeze || (header_->flags & kAddDummyPrefix) != 0;
  bool at_start = true;      // nothing written yet: a leading space is the dummy prefix
  bool prefix_seen = false;  // the piece before this one held it
  for (const int32_t id : ids) {
    const IdEntry& entry = entry_of(id);
    if (entry.kind == TextKind::kDropped) continue;
    if (entry.kind == TextKind::kByte) {
      bytes.add(entry.byte);
      continue;
    }
    bytes.flush();
    if (prefix_seen || out.size() != 0) at_start = false;
    prefix_seen = false;
    std::string_view piece = text_of(entry);
    switch (entry.kind) {
      case TextKind::kUnknown:
        out.put(unknown_surface_);
        break;
      case TextKind::kForeign:
      case TextKind::kText:
        if (at_start && strip && begins_with(piece, symbol)) {
          piece.remove_prefix(symbol.size());
          prefix_seen = !squeeze;  // with extra spaces removed, all leading ones go, not only the first
        }
        out.put_with_spaces(piece);
        break;
      default:
        break;
    }
  }
  bytes.flush();
  return out.size();
}

size_t Tokenizer::max_piece_bytes() const {
  return max_piece_bytes_;
}

std::string_view Tokenizer::piece(int32_t id) const {
  if (id < 0 || size_t(id) >= entries_.size()) return {};
  return text_of(entries_[size_t(id)]);
}

std::string_view Tokenizer::language(int32_t id) const {
  return bare_language(piece(id));
}

int32_t Tokenizer::next_language(int32_t after) const {
  if (!has_languages()) return -1;
  for (int32_t id = std::max(first_language_, after + 1); id < language_end_; ++id) {
    if (!language(id).empty()) return id;
  }
  return -1;
}

std::string_view bare_language(std::string_view piece) {
  if (piece.size() <= 4 || !begins_with(piece, ">>")) return {};
  const std::string_view end(piece.data() + piece.size() - 2, 2);
  return end == "<<" ? std::string_view(piece.data() + 2, piece.size() - 4) : std::string_view();
}

int32_t Tokenizer::find_language(std::string_view name) const {
  for (int32_t id = -1; (id = next_language(id)) >= 0;) {
    if (language(id) == name) return id;
  }
  return -1;
}

Tokenizer::Leading Tokenizer::leading_language(std::string_view text) const {
  if (!has_languages() || !begins_with(text, ">>")) return {};
  const size_t end = beginning_of(text, kLongestLanguage).find("<<", 2);
  if (end == text.npos) return {};
  const std::string_view name(text.data() + 2, end - 2);
  if (name.empty() || name.find(' ') != name.npos) return {};
  const int32_t id = find_language(name);
  return {end + 2, id >= 0 ? id : int32_t(header_->unk_id)};
}

const char* Tokenizer::algorithm() const {
  return header_->algorithm == TokenizerAlgorithm::kUnigram ? "unigram" : "bpe";
}

uint32_t Tokenizer::pieces() const {
  return uint32_t(entries_.size());
}

bool Tokenizer::byte_fallback() const {
  return ids_.byte_ids != nullptr;
}

}  // namespace dragoman
