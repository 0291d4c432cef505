#include "converter/sentencepiece.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>

#include "converter/protobuf.h"
#include "runtime/tokenizer_format.h"
#include "runtime/trie.h"

namespace dragoman {
namespace {

using std::string_view;

Error damaged(const SentencePieceModel& model, const char* what) {
  return fail("%s: %s is damaged; this is not a SentencePiece model, or the file is cut short: fetch it again",
              model.name.c_str(), what);
}

// A field of a message: which kind of value it must have if it is there.
bool wants(const ProtoField& field, ProtoField::Wire wire) {
  return field.wire == wire;
}

Status read_piece(string_view message, SentencePieceModel& model) {
  SentencePiece piece;
  ProtoReader reader(message);
  for (ProtoField field; reader.next(field);) {
    if (field.number == 1 && wants(field, ProtoField::kBytes)) {
      piece.text = field.bytes;
    } else if (field.number == 2 && wants(field, ProtoField::kFixed32)) {
      piece.score = field.as_float();
    } else if (field.number == 3 && wants(field, ProtoField::kVarint)) {
      if (field.value < 1 || field.value > 6) {
        return fail(
            "%s: piece %zu has type %llu; only normal, unknown, control, user-defined, unused and byte pieces "
            "are known",
            model.name.c_str(), model.pieces.size(), static_cast<unsigned long long>(field.value));
      }
      piece.type = PieceType(field.value);
    } else if (field.number <= 3) {
      return damaged(model, "a piece");
    }
  }
  if (!reader.ok()) return damaged(model, "a piece");
  model.pieces.push_back(std::move(piece));
  return Done{};
}

Status read_trainer(string_view message, SentencePieceModel& model) {
  ProtoReader reader(message);
  for (ProtoField field; reader.next(field);) {
    const bool on = field.value != 0;
    switch (field.number) {
      case 3:
        if (field.value == 3 || field.value == 4) {
          return fail("%s is a SentencePiece %s model; only unigram and bpe models are supported", model.name.c_str(),
                      field.value == 3 ? "word" : "char");
        }
        if (field.value != 1 && field.value != 2) return damaged(model, "the model type");
        model.bpe = field.value == 2;
        break;
      case 24:
        model.whitespace_is_suffix = on;
        break;
      case 35:
        model.byte_fallback = on;
        break;
      case 44:  // the library stops at a NUL
        model.unknown_surface = field.bytes.substr(0, field.bytes.find('\0'));
        break;
      default:
        continue;
    }
    if (!wants(field, field.number == 44 ? ProtoField::kBytes : ProtoField::kVarint)) {
      return damaged(model, "the trainer's part");
    }
  }
  if (!reader.ok()) return damaged(model, "the trainer's part");
  return Done{};
}

constexpr size_t kMaxRuleBytes = size_t{1} << 27;

// The library's compiled rules: byte count of a Darts double array, the array, then NUL-terminated replacements that
// the array's values point to. Walks the array once and lists the rules, because our own tries are checked more
// cheaply.
class CharsMap {
 public:
  CharsMap(string_view blob, SentencePieceModel& model) : blob_(blob), model_(model) {}

  Status read() {
    uint32_t bytes = 0;
    if (blob_.size() <= sizeof bytes) return damaged(model_, "the normalisation table");
    std::memcpy(&bytes, blob_.data(), sizeof bytes);
    if (bytes >= blob_.size() - sizeof bytes) return damaged(model_, "the normalisation table");
    units_ = blob_.substr(sizeof bytes, bytes);
    replacements_ = blob_.substr(sizeof bytes + bytes);
    if (count() == 0 || unit(0) >> 31 != 0 || replacements_.back() != 0) {
      return damaged(model_, "the normalisation table");
    }
    model_.rules.clear();
    return walk();
  }

 private:
  size_t count() const { return units_.size() / 4; }
  uint32_t unit(size_t i) const {
    uint32_t u;
    std::memcpy(&u, units_.data() + 4 * i, sizeof u);
    return u;
  }
  // Darts: bit 31 a leaf; else bits 10-30 the distance to the children, bit 9 that it counts in 256s, bit 8 that a
  // leaf is among them, bits 0-7 the label.
  static uint64_t distance(uint32_t u) { return uint64_t(u >> 10) << ((u & 512) != 0 ? 8 : 0); }

  Status walk() {
    struct Node {
      size_t unit;
      size_t depth;
      uint8_t label;
    };
    std::vector<Node> stack = {{0, 0, 0}};
    std::string key;
    size_t visited = 0;
    while (!stack.empty()) {
      const Node node = stack.back();
      stack.pop_back();
      // Equal endings share their units, so units are met more than once; in a table with loops, without end.
      if (++visited > kMaxTrieUnits || node.depth > kMaxPieceBytes) return damaged(model_, "the normalisation table");
      if (node.depth != 0) {
        key.resize(node.depth - 1);
        key.push_back(char(node.label));
      }
      const uint32_t u = unit(node.unit);
      const uint64_t children = node.unit ^ distance(u);
      if ((u & 256) != 0) {
        const Status status = add_rule(key, children);
        if (!status) return status;
      }
      for (const char byte : labels(node.unit, children)) {
        stack.push_back({size_t(children ^ uint8_t(byte)), node.depth + 1, uint8_t(byte)});
      }
    }
    return Done{};
  }

  // The bytes that lead on from a unit, highest first, so that the list of rules comes out sorted. Found once per unit:
  // some are met hundreds of times.
  const std::string& labels(size_t unit_index, uint64_t children) {
    if (labels_.empty()) {
      labels_.resize(count());
      searched_.resize(count());
    }
    std::string& found = labels_[unit_index];
    if (searched_[unit_index]) return found;
    searched_[unit_index] = true;
    for (unsigned byte = 255; byte > 0; --byte) {
      const uint64_t child = children ^ byte;
      if (child < count() && (unit(size_t(child)) & 0x800000FF) == byte) found.push_back(char(byte));
    }
    return found;
  }

  Status add_rule(const std::string& key, uint64_t leaf) {
    if (key.empty() || leaf >= count()) return damaged(model_, "the normalisation table");
    const uint32_t at = unit(size_t(leaf)) & 0x7FFFFFFF;
    if (at >= replacements_.size()) return damaged(model_, "the normalisation table");
    const string_view text = replacements_.substr(at, replacements_.find('\0', at) - at);
    if (text.size() > kMaxReplacementBytes) {
      return fail("%s: a normalisation rule writes %zu bytes; at most %u are supported", model_.name.c_str(),
                  text.size(), kMaxReplacementBytes);
    }
    // Shared endings let a small table write out rules without end. SentencePiece's own 225,000 take 17 MB.
    rule_bytes_ += key.size() + text.size() + sizeof model_.rules[0];
    if (rule_bytes_ > kMaxRuleBytes) return damaged(model_, "the normalisation table");
    model_.rules.emplace_back(key, text);
    return Done{};
  }

  string_view blob_;
  SentencePieceModel& model_;
  string_view units_, replacements_;
  size_t rule_bytes_ = 0;
  std::vector<std::string> labels_;
  std::vector<bool> searched_;
};

Status read_normalizer(string_view message, SentencePieceModel& model) {
  ProtoReader reader(message);
  for (ProtoField field; reader.next(field);) {
    const bool on = field.value != 0;
    switch (field.number) {
      case 2: {
        model.rules.clear();
        if (field.bytes.empty()) break;
        const Status status = CharsMap(field.bytes, model).read();
        if (!status) return status;
        break;
      }
      case 3:
        model.add_dummy_prefix = on;
        break;
      case 4:
        model.remove_extra_whitespaces = on;
        break;
      case 5:
        model.escape_whitespaces = on;
        break;
      case 7:  // Marian's fork of SentencePiece: encode_case, decode_case
      case 8:
        if (on) {
          return fail(
              "%s was made for Marian's case-encoding SentencePiece, which is not supported: use a model "
              "trained without --encode_case",
              model.name.c_str());
        }
        break;
      default:
        continue;
    }
    if (!wants(field, field.number == 2 ? ProtoField::kBytes : ProtoField::kVarint)) {
      return damaged(model, "the normaliser's part");
    }
  }
  if (!reader.ok()) return damaged(model, "the normaliser's part");
  return Done{};
}

Status refuse_denormalizer(string_view message, SentencePieceModel& model) {
  ProtoReader reader(message);
  for (ProtoField field; reader.next(field);) {
    if (field.number == 2 && !field.bytes.empty()) {
      return fail(
          "%s rewrites its output with a denormaliser, which is not supported: use a model trained without "
          "--denormalization_rule_tsv",
          model.name.c_str());
    }
  }
  if (!reader.ok()) return damaged(model, "the denormaliser's part");
  return Done{};
}

// What the library checks when it loads a model, and our own limits.
Status check(SentencePieceModel& model) {
  const char* name = model.name.c_str();
  if (model.pieces.empty()) return damaged(model, "the list of pieces");
  if (model.pieces.size() > kMaxPieces) {
    return fail("%s has %zu pieces; at most %u are supported", name, model.pieces.size(), kMaxPieces);
  }
  if (model.unknown_surface.size() > kMaxPieceBytes) {
    return fail("%s writes unknown pieces with %zu bytes; at most %u are supported", name, model.unknown_surface.size(),
                kMaxPieceBytes);
  }
  std::set<string_view> plain, reserved, bytes;
  bool unk_found = false;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const SentencePiece& piece = model.pieces[i];
    const string_view text = piece.text;
    const bool is_plain =
        piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined || piece.type == PieceType::kUnused;
    if (text.empty() || text.find('\0') != text.npos) {
      return fail("%s: piece %zu is %s; the file is damaged or was edited by hand", name, i,
                  text.empty() ? "empty" : "a text with a NUL byte in it");
    }
    if (text.size() > kMaxPieceBytes) {
      return fail("%s: piece %zu has %zu bytes; at most %u are supported", name, i, text.size(), kMaxPieceBytes);
    }
    if (!std::isfinite(piece.score)) return fail("%s: the score of piece %zu is not a number", name, i);
    if (!(is_plain ? plain : reserved).insert(text).second) {
      return fail("%s: piece \"%s\" is there twice", name, piece.text.c_str());
    }
    if (piece.type == PieceType::kUnknown) {
      if (unk_found) return fail("%s has two unknown pieces", name);
      unk_found = true;
      model.unk = uint32_t(i);
    }
    if (piece.type == PieceType::kByte) {
      char expected[8] = "";
      if (text.size() == 6) {
        const unsigned long value = std::strtoul(std::string(text.substr(3, 2)).c_str(), nullptr, 16);
        std::snprintf(expected, sizeof expected, "<0x%02X>", unsigned(value & 255));
      }
      if (text != expected || !model.byte_fallback) {
        return fail("%s: byte piece \"%s\" %s", name, piece.text.c_str(),
                    model.byte_fallback ? "is not of the form <0xFF>" : "in a model without byte fallback");
      }
      bytes.insert(text);
    }
  }
  if (!unk_found) return fail("%s has no unknown piece", name);
  if (plain.empty()) return fail("%s has no normal pieces", name);
  if (model.byte_fallback && bytes.size() != 256) {
    return fail("%s has byte fallback but %zu of the 256 byte pieces", name, bytes.size());
  }
  if (model.bpe) {  // the library would prefer the special piece when text becomes ids, and then give up
    for (const string_view text : reserved) {
      const bool character = utf8_length(text[0]) >= text.size() && text != model.pieces[model.unk].text;
      if (plain.contains(text) || character) {
        return fail("%s: piece \"%s\" is both a special piece and text; such bpe models are not supported", name,
                    std::string(text).c_str());
      }
    }
  }
  return Done{};
}

}  // namespace

Result<SentencePieceModel> read_spm(std::span<const std::byte> file, const char* name) {
  SentencePieceModel model;
  model.name = name;
  ProtoReader reader({reinterpret_cast<const char*>(file.data()), file.size()});
  bool trained = false, normalizes = false;  // these parts come last: a file that is cut between two pieces lacks them
  for (ProtoField field; reader.next(field);) {
    if (field.number > 5 || field.number == 4) continue;  // 4: self-test samples
    trained |= field.number == 2;
    normalizes |= field.number == 3;
    if (!wants(field, ProtoField::kBytes)) return damaged(model, "the file");
    const Status status = field.number == 1   ? read_piece(field.bytes, model)
                          : field.number == 2 ? read_trainer(field.bytes, model)
                          : field.number == 3 ? read_normalizer(field.bytes, model)
                                              : refuse_denormalizer(field.bytes, model);
    if (!status) return status.error();
  }
  if (!reader.ok()) return damaged(model, "the file");
  if (!trained || !normalizes)
    return fail("%s is cut short: how it was trained, or how it normalises text, is missing; download it again", name);
  const Status status = check(model);
  if (!status) return status.error();
  return model;
}

}  // namespace dragoman
