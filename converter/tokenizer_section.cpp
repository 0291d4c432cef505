// compile_tokenizer: everything about a SentencePiece model that can be decided before there is text.
#include <algorithm>
#include <cfloat>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "converter/sentencepiece.h"
#include "converter/trie_builder.h"
#include "runtime/tokenizer_format.h"
#include "runtime/trie.h"

namespace dragoman {
namespace {

using std::string_view;
using Keys = std::vector<std::pair<std::string, uint32_t>>;

class Compiler {
 public:
  Compiler(const SentencePieceModel& model, const Vocabulary* vocabulary, const SpecialIds& special)
      : model_(model), vocabulary_(vocabulary), special_(special) {}

  Result<std::vector<std::byte>> compile() {
    std::memcpy(header_.magic, kTokenizerMagic, sizeof header_.magic);
    header_.algorithm = model_.bpe ? TokenizerAlgorithm::kBpe : TokenizerAlgorithm::kUnigram;
    header_.flags = (model_.add_dummy_prefix ? kAddDummyPrefix : 0u) |
                    (model_.remove_extra_whitespaces ? kRemoveExtraWhitespace : 0u) |
                    (model_.escape_whitespaces ? kEscapeWhitespace : 0u) |
                    (model_.whitespace_is_suffix ? kWhitespaceIsSuffix : 0u) |
                    (model_.byte_fallback ? kByteFallback : 0u);
    section_.resize(sizeof header_);
    index_pieces();
    const Status status = assign_ids();
    if (!status) return status.error();
    if (!add_pieces() || !add_rules() || !add_surfaces()) {
      return fail("%s: the pieces need more than %u trie units; this many are not supported", model_.name.c_str(),
                  kMaxTrieUnits);
    }
    add_weights();
    add_ids();
    add_entries();
    header_.unknown_surface = add(std::span<const char>(model_.unknown_surface));
    header_.bytes = section_.size();
    std::memcpy(section_.data(), &header_, sizeof header_);
    return std::move(section_);
  }

 private:
  bool is_plain(const SentencePiece& piece) const {
    return piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined ||
           piece.type == PieceType::kUnused;
  }
  // Unused pieces of a unigram model never take part; those of a bpe model can be steps to other pieces.
  bool takes_part(const SentencePiece& piece) const {
    return is_plain(piece) && (model_.bpe || piece.type != PieceType::kUnused);
  }

  void index_pieces() {
    for (uint32_t i = 0; i < model_.pieces.size(); ++i) {
      const SentencePiece& piece = model_.pieces[i];
      (is_plain(piece) ? plain_ : reserved_).emplace(piece.text, i);
    }
  }

  // The library's PieceToId: special pieces before text, unknown if neither.
  uint32_t piece_number(string_view text) const {
    if (const auto it = reserved_.find(text); it != reserved_.end()) return it->second;
    if (const auto it = plain_.find(text); it != plain_.end()) return it->second;
    return model_.unk;
  }

  Status assign_ids() {
    const char* name = model_.name.c_str();
    const auto special_in = [](int32_t id) { return id < int32_t(kMaxPieces); };
    if (!special_in(special_.unk) || !special_in(special_.eos) || !special_in(special_.pad)) {
      return fail("%s: the ids of unk (%d), eos (%d) or pad (%d) are out of range", name, special_.unk, special_.eos,
                  special_.pad);
    }
    if (vocabulary_ == nullptr) {
      texts_.reserve(model_.pieces.size());
      for (const SentencePiece& piece : model_.pieces) texts_.push_back(piece.text);
      unk_id_ = model_.unk;
    } else {
      if (special_.unk < 0) return fail("%s: the id of unk is needed with a vocabulary", name);
      unk_id_ = uint32_t(special_.unk);
      for (const auto& [text, id] : *vocabulary_) {
        if (id < 0 || id >= int32_t(kMaxPieces) || text.size() > kMaxPieceBytes) {
          return fail(
              "%s: the vocabulary's entry \"%.40s\" has id %d and %zu bytes; ids must be below %u and texts at "
              "most %u bytes",
              name, text.c_str(), id, text.size(), kMaxPieces, kMaxPieceBytes);
        }
        if (texts_.size() <= size_t(id)) texts_.resize(size_t(id) + 1);
        texts_[size_t(id)] = text;
        if (!ids_.emplace(text, uint32_t(id)).second) {
          return fail("%s: the vocabulary has two entries \"%.40s\"", name, text.c_str());
        }
      }
    }
    const int32_t last = std::max({int32_t(unk_id_), special_.eos, special_.pad});
    if (texts_.size() <= size_t(last)) texts_.resize(size_t(last) + 1);
    header_.unk_id = unk_id_;
    return Done{};
  }

  // The id of a piece the library produces when it reads text.
  uint32_t id_of(string_view text, uint32_t number) const {
    if (vocabulary_ == nullptr) return number;
    const auto it = ids_.find(text);
    return it == ids_.end() ? unk_id_ : it->second;
  }
  bool is_dropped(size_t id) const { return int64_t(id) == special_.eos || int64_t(id) == special_.pad; }

  bool add_pieces() {
    Keys pieces, symbols;
    for (const auto& [text, number] : plain_) {
      const SentencePiece& piece = model_.pieces[number];
      const bool user_defined = piece.type == PieceType::kUserDefined;
      if (user_defined) {
        symbols.emplace_back(text, 0);
        header_.longest_symbol = std::max(header_.longest_symbol, uint32_t(text.size()));
      }
      if (!takes_part(piece)) continue;
      const uint32_t mark = user_defined ? kUserDefinedMark : piece.type == PieceType::kUnused ? kUnusedMark : 0;
      pieces.emplace_back(text, number | mark);
      header_.longest_piece = std::max(header_.longest_piece, uint32_t(text.size()));
    }
    if (pieces.empty()) {  // only unused ones: a root without children
      header_.pieces = add(std::span<const TrieUnit>(std::vector<TrieUnit>(kTrieBlock, {0, kNoValue})));
      return true;
    }
    return add_trie(header_.pieces, pieces) && add_trie(header_.symbols, symbols);
  }

  bool add_rules() {
    Keys keys;
    std::vector<uint8_t> replacements;
    std::unordered_map<string_view, uint32_t> known;
    std::fill_n(header_.plain, sizeof header_.plain, uint8_t(1));
    for (const auto& [text, replacement] : model_.rules) {
      const auto [it, is_new] = known.emplace(replacement, uint32_t(replacements.size()));
      if (is_new) {
        replacements.push_back(uint8_t(replacement.size()));
        replacements.insert(replacements.end(), replacement.begin(), replacement.end());
      }
      keys.emplace_back(text, it->second);
      header_.longest_rule = std::max(header_.longest_rule, uint32_t(text.size()));
      const auto first = uint8_t(text[0]);
      if (first < 128 && (text.size() == 1 || uint8_t(text[1]) < 128)) header_.plain[first] = 0;
    }
    for (const SentencePiece& piece : model_.pieces) {
      const auto first = uint8_t(piece.text[0]);
      if (piece.type == PieceType::kUserDefined && first < 128) header_.plain[first] = 0;
    }
    header_.replacements = add(std::span<const uint8_t>(replacements));
    return add_trie(header_.rules, keys);
  }

  // With a vocabulary, a run of unknown characters may have an id although the .spm does not know it. Only texts
  // made of characters that are no piece of their own can be such a run.
  bool add_surfaces() {
    Keys keys;
    if (vocabulary_ != nullptr && !model_.byte_fallback) {
      for (const auto& [text, id] : *vocabulary_) {
        if (text.empty() || is_dropped(size_t(id)) || uint32_t(id) == unk_id_) continue;
        bool unknown = text.find('\0') == text.npos;
        for (size_t at = 0; at < text.size() && unknown;) {
          const string_view character = string_view(text).substr(at, utf8_length(text[at]));
          const auto it = plain_.find(character);
          unknown = it == plain_.end() || !takes_part(model_.pieces[it->second]);
          at += character.size();
        }
        if (unknown) keys.emplace_back(text, uint32_t(id));
      }
    }
    return add_trie(header_.surfaces, keys);
  }

  void add_weights() {
    const auto& pieces = model_.pieces;
    if (!model_.bpe) {
      std::vector<float> scores;
      float lowest = FLT_MAX, highest = FLT_MIN;  // FLT_MIN, as in the library: the smallest positive number
      for (const SentencePiece& piece : pieces) {
        scores.push_back(piece.score);
        if (piece.type != PieceType::kNormal) continue;
        lowest = std::min(lowest, piece.score);
        highest = std::max(highest, piece.score);
      }
      header_.unk_score = lowest - 10.0f;
      header_.max_score = highest;
      header_.weights = add(std::span<const float>(scores));
      return;
    }
    std::vector<float> scores;
    for (const SentencePiece& piece : pieces) scores.push_back(piece.score);
    std::sort(scores.begin(), scores.end(), std::greater<>());
    scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
    std::vector<uint32_t> ranks, unused;
    for (uint32_t i = 0; i < pieces.size(); ++i) {
      const auto it = std::lower_bound(scores.begin(), scores.end(), pieces[i].score, std::greater<>());
      ranks.push_back(uint32_t(it - scores.begin()));
      if (pieces[i].type == PieceType::kUnused) unused.push_back(i);
    }
    header_.weights = add(std::span<const uint32_t>(ranks));
    header_.unused = add(std::span<const uint32_t>(unused));
  }

  void add_ids() {
    std::vector<uint32_t> piece_ids, byte_ids;
    for (uint32_t i = 0; i < model_.pieces.size(); ++i) piece_ids.push_back(id_of(model_.pieces[i].text, i));
    for (unsigned byte = 0; byte < 256 && model_.byte_fallback; ++byte) {
      char text[8];
      std::snprintf(text, sizeof text, "<0x%02X>", byte);
      byte_ids.push_back(id_of(text, piece_number(text)));
    }
    header_.piece_ids = add(std::span<const uint32_t>(piece_ids));
    header_.byte_ids = add(std::span<const uint32_t>(byte_ids));
  }

  // How the library's DecodePieces would treat each text; a vocabulary's own, which it does not know, are text too.
  void add_entries() {
    std::vector<IdEntry> entries;
    std::string strings;
    for (size_t id = 0; id < texts_.size(); ++id) {
      const std::string text = texts_[id].value_or("");
      IdEntry entry = {uint32_t(strings.size()), uint16_t(text.size()), TextKind::kText, 0};
      strings += text;
      const uint32_t number = piece_number(text);
      switch (model_.pieces[number].type) {
        case PieceType::kControl:
          entry.kind = TextKind::kControl;
          break;
        case PieceType::kByte:
          entry.kind = TextKind::kByte;
          entry.byte = uint8_t(std::strtoul(text.substr(3, 2).c_str(), nullptr, 16));
          break;
        case PieceType::kUnknown: {  // an id without a text is read as unk
          const bool is_unk = !texts_[id].has_value() || text == model_.pieces[number].text;
          entry.kind = is_unk ? TextKind::kUnknown : TextKind::kForeign;
          break;
        }
        default:
          break;
      }
      if (is_dropped(id)) entry.kind = TextKind::kDropped;
      entries.push_back(entry);
    }
    header_.entries = add(std::span<const IdEntry>(entries));
    header_.strings = add(std::span<const char>(strings));
  }

  bool add_trie(TableRef& ref, Keys& keys) {
    const bool has_keys = !keys.empty();
    const std::vector<TrieUnit> units = build_trie(std::move(keys));
    ref = add(std::span<const TrieUnit>(units));
    return !units.empty() || !has_keys;
  }

  template <class T>
  TableRef add(std::span<const T> table) {
    section_.resize((section_.size() + 7) / 8 * 8);
    const TableRef ref = {section_.size(), table.size()};
    section_.resize(section_.size() + table.size_bytes());
    if (!table.empty()) std::memcpy(section_.data() + ref.offset, table.data(), table.size_bytes());
    return ref;
  }

  const SentencePieceModel& model_;
  const Vocabulary* vocabulary_;
  const SpecialIds& special_;
  std::unordered_map<string_view, uint32_t> plain_, reserved_;  // of the .spm: text -> piece
  std::unordered_map<string_view, uint32_t> ids_;               // of the vocabulary: text -> id
  std::vector<std::optional<std::string>> texts_;               // of each id
  uint32_t unk_id_ = 0;
  TokenizerHeader header_ = {};
  std::vector<std::byte> section_;
};

}  // namespace

Result<std::vector<std::byte>> compile_tokenizer(const SentencePieceModel& model, const Vocabulary* vocabulary,
                                                 const SpecialIds& special) {
  return Compiler(model, vocabulary, special).compile();
}

}  // namespace dragoman
