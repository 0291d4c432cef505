#include "tests/tokenizer_support.h"

#include <doctest/doctest.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <unordered_map>

#include "converter/protobuf.h"

namespace dragoman::tokenizer_test {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 400)) {
    char hex[8];
    std::snprintf(hex, sizeof hex, uint8_t(c) >= 32 && uint8_t(c) < 127 ? "%c" : "\\x%02x", uint8_t(c));
    out += hex;
  }
  return out;
}

std::string utf8(uint32_t code) {
  std::string out;
  if (code < 0x80) {
    out = {char(code)};
  } else if (code < 0x800) {
    out = {char(0xC0 | code >> 6), char(0x80 | (code & 63))};
  } else if (code < 0x10000) {
    out = {char(0xE0 | code >> 12), char(0x80 | (code >> 6 & 63)), char(0x80 | (code & 63))};
  } else {
    out = {char(0xF0 | code >> 18), char(0x80 | (code >> 12 & 63)), char(0x80 | (code >> 6 & 63)),
           char(0x80 | (code & 63))};
  }
  return out;
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 128; value >>= 7) out += char(value | 128);
  out += char(value);
}

void put_message(std::string& out, uint32_t number, std::string_view message) {
  put_varint(out, number << 3 | ProtoField::kBytes);
  put_varint(out, message.size());
  out += message;
}

// Copies a ModelProto; `edit` returns what to append to each piece (a later field wins over an earlier one).
template <class Edit>
std::string edit_pieces(const std::string& spm, Edit edit) {
  std::string out;
  ProtoReader reader(spm);
  for (ProtoField field; reader.next(field);) {
    std::string message(field.bytes);
    if (field.number == 1) message += edit(field.bytes);
    put_message(out, field.number, message);
  }
  REQUIRE(reader.ok());
  return out;
}

std::vector<std::string> corpus() {
  std::vector<std::string> lines;
  RandomText random(20240229);
  for (int i = 0; i < 800; ++i) lines.push_back(random.words(4 + random.below(12)));
  return lines;
}

// A doctest assertion costs more than tokenizing a text: only failures become one.
void require(bool good, const char* what) {
  if (!good) FAIL(what);
}

class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const std::vector<std::string>& lines) : lines_(lines) {}
  bool done() const override { return at_ == lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return lines_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  size_t at_ = 0;
};

}  // namespace

AlignedBlob::AlignedBlob(std::span<const std::byte> bytes) : blocks_((bytes.size() + 63) / 64), size_(bytes.size()) {
  if (size_ != 0) std::memcpy(blocks_.data(), bytes.data(), size_);
}

Pair::Pair(std::string name_, const std::string& spm, const Vocabulary* vocabulary, SpecialIds special_)
    : name(std::move(name_)), special(special_) {
  INFO(name);
  const auto status = library.LoadFromSerializedProto(spm);
  REQUIRE_MESSAGE(status.ok(), status.ToString());
  const auto model = read_spm(bytes_of(spm), name.c_str());
  REQUIRE_MESSAGE(model, model.error().text);
  const auto section = compile_tokenizer(*model, vocabulary, special);
  REQUIRE_MESSAGE(section, section.error().text);
  blob = AlignedBlob(*section);
  const auto opened = Tokenizer::open(blob.bytes(), 1u << 20);
  REQUIRE_MESSAGE(opened, opened.error().text);
  ours = *opened;
  if (vocabulary == nullptr) return;
  has_vocabulary = true;
  for (const auto& [text, id] : *vocabulary) {
    ids[text] = id;
    texts[id] = text;
  }
}

std::vector<int32_t> Pair::encode_library(std::string_view text) const {
  std::vector<int32_t> out;
  if (!has_vocabulary) {
    require(library.Encode(text, &out).ok(), "the library cannot encode a text");
    return out;
  }
  std::vector<std::string> pieces;
  require(library.Encode(text, &pieces).ok(), "the library cannot encode a text");
  for (const std::string& piece : pieces) {
    const auto it = ids.find(piece);
    out.push_back(it == ids.end() ? special.unk : it->second);
  }
  return out;
}

std::string Pair::decode_library(std::span<const int32_t> in) const {
  std::vector<std::string> pieces;
  const int32_t unk = has_vocabulary ? special.unk : library.unk_id();
  for (int32_t id : in) {
    if (id >= 0 && (id == special.eos || id == special.pad)) continue;
    if (has_vocabulary) {
      pieces.push_back(texts.contains(id) ? texts.at(id) : texts.at(unk));
    } else {
      pieces.push_back(library.IdToPiece(id < 0 || id >= library.GetPieceSize() ? unk : id));
    }
  }
  std::string text;
  require(library.Decode(pieces, &text).ok(), "the library cannot decode");
  return text;
}

// What HuggingFace does after the library, which leaves U+2581 in pieces that it does not know: spaces, then strip().
std::string spaced_and_stripped(std::string text) {
  constexpr std::string_view kSpace = "\xE2\x96\x81";
  for (size_t at; (at = text.find(kSpace)) != text.npos;) text.replace(at, kSpace.size(), " ");
  const size_t begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  return begin == text.npos ? "" : text.substr(begin, end + 1 - begin);
}

std::vector<int32_t> Pair::encode(std::string_view text) const {
  // Normalised texts can be thirteen times as long as they were (U+FDFA); scratch for that, so that everything fits.
  thread_local std::vector<std::max_align_t> scratch;
  scratch.resize(ours.scratch_bytes(text.size() * 8) / sizeof(std::max_align_t) + 1);
  std::vector<int32_t> out(text.size() * 16 + 8);
  const Encoded encoded = ours.encode(text, std::as_writable_bytes(std::span(scratch)), out);
  require(encoded.fits, "a text does not fit into generous buffers");
  out.resize(encoded.count);
  return out;
}

std::string Pair::decode(std::span<const int32_t> in) const {
  std::string text(in.size() * ours.max_piece_bytes(), '\0');
  text.resize(ours.decode(in, text));
  return text;
}

bool Pair::agree(std::string_view text) const {
  const auto want = encode_library(text), got = encode(text);
  if (want != got) {
    std::string list;
    for (const auto& sequence : {want, got}) {
      for (const int32_t id : sequence) list += std::to_string(id) + " ";
      list += "| ";
    }
    FAIL_CHECK(name << " encodes \"" << escaped(text) << "\" differently: library | ours: " << list);
    return false;
  }
  return agree_decoding(got);
}

bool Pair::agree_decoding(std::span<const int32_t> in) const {
  const std::string want = decode_library(in), got = decode(in);
  if (want == got) return true;
  if (want.find("\xE2\x96\x81") != want.npos && spaced_and_stripped(want) == spaced_and_stripped(got)) return true;
  FAIL_CHECK(name << " decodes to \"" << escaped(got) << "\", the library to \"" << escaped(want) << "\"");
  return false;
}

std::string train(const char* model_type, int vocab_size, const std::string& options) {
  static std::map<std::string, std::string> trained;
  std::string& spm = trained[model_type + std::to_string(vocab_size) + options];
  if (!spm.empty()) return spm;
  static const std::vector<std::string> lines = corpus();
  std::unordered_map<std::string, std::string> args = {
      {"model_type", model_type},    {"vocab_size", std::to_string(vocab_size)},
      {"hard_vocab_limit", "false"}, {"minloglevel", "3"},
      {"num_threads", "1"},          {"character_coverage", "0.99"}};
  for (size_t at = 0; at < options.size();) {  // "key=value key=value"
    const size_t end = std::min(options.find(' ', at), options.size());
    const std::string option = options.substr(at, end - at);
    args[option.substr(0, option.find('='))] = option.substr(option.find('=') + 1);
    at = end + 1;
  }
  Lines iterator(lines);
  const auto status = sentencepiece::SentencePieceTrainer::Train(args, &iterator, &spm);
  REQUIRE_MESSAGE(status.ok(), status.ToString());
  return spm;
}

std::string random_letters(uint64_t seed) {
  static const char* const kLetters[] = {"a", "b", "b", "c", "\xC3\xA9", " ", "d"};
  std::mt19937_64 random(seed);
  std::string out;
  for (size_t n = random() % 24; n > 0; --n) out += kLetters[random() % std::size(kLetters)];
  return out;
}

std::string random_model(bool bpe, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string out;
  const auto add = [&out](std::string_view text, float score, unsigned type) {
    std::string piece;
    put_message(piece, 1, text);
    piece += '\x15';
    piece.append(reinterpret_cast<const char*>(&score), sizeof score);
    piece += {'\x18', char(type)};
    put_message(out, 1, piece);
  };
  add("<unk>", 0, 2);
  add("</s>", 0, 3);
  std::map<std::string, int> known;
  for (size_t n = 5 + random() % 60; n > 0; --n) {
    static const char* const kLetters[] = {"a", "b", "c", "\xC3\xA9", "\xE2\x96\x81"};
    std::string text;
    for (size_t k = 1 + random() % (1 + random() % 5); k > 0; --k) text += kLetters[random() % std::size(kLetters)];
    if (known[text]++ != 0) continue;
    const unsigned dice = unsigned(random() % 20);
    add(text, float(random() % 8) * -2.5f, dice == 0 ? 4 : dice < 5 ? 5 : 1);
  }
  add("abcabc", 0, 1);
  put_message(out, 2, bpe ? std::string_view("\x18\x02") : std::string_view("\x18\x01"));
  const char spaces[] = {'\x20', char(random() % 2)};  // remove_extra_whitespaces
  put_message(out, 3, {spaces, sizeof spaces});
  return out;
}

std::string with_unused_pieces(const std::string& spm, size_t every) {
  size_t count = 0;
  return edit_pieces(spm, [&](std::string_view piece) -> std::string {
    ProtoReader reader(piece);
    for (ProtoField field; reader.next(field);) {
      if (field.number == 3 && field.value != 1) return "";
    }
    return ++count % every == 0 ? "\x18\x05" : "";  // type = UNUSED
  });
}

std::string with_scores(const std::string& spm, float shift) {
  return edit_pieces(spm, [&](std::string_view piece) {
    float score = 0;
    ProtoReader reader(piece);
    for (ProtoField field; reader.next(field);) {
      if (field.number == 2) score = field.as_float();
    }
    score += shift;
    std::string out = "\x15";
    return out.append(reinterpret_cast<const char*>(&score), sizeof score);
  });
}

std::string with_normalizer_fields(const std::string& spm, std::string_view fields) {
  std::string out = spm;
  put_message(out, 3, fields);
  return out;
}

std::string RandomText::words(size_t count) {
  // clang-format off
  static const char* const kSyllables[] = {
      "ka", "lo", "mi", "ren", "sta", "th", "e", "an", "in", "\xC3\xA9", "\xC3\xBCr", "\xD0\xB4\xD0\xB0",
      "\xD1\x80\xD0\xBE", "\xE6\x97\xA5", "\xE6\x9C\xAC", "qu", "or", "7", "20"};
  // clang-format on
  static const char* const kEnds[] = {"", "", "", "", ".", ",", "!", "?", ":", "-", "'s", ")", "\xE2\x80\x94"};
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    if (i != 0) out += ' ';
    // Chance on chance favours the first ones, so that some words are frequent.
    for (uint32_t n = 1 + below(4); n > 0; --n) {
      const uint32_t range = uint32_t(std::size(kSyllables));
      out += kSyllables[below(1 + below(range))];
    }
    out += kEnds[below(uint32_t(std::size(kEnds)))];
  }
  return out;
}

std::string RandomText::fragment() {
  // clang-format off
  static const char* const kSpecial[] = {
      // spaces, and U+2581 itself
      " ", "  ", "   ", "\t", "\n", "\r\n", "\xC2\xA0", "\xE3\x80\x80", "\xE2\x80\x8B", "\xE2\x80\x89",
      "\xE2\x96\x81", "\xE2\x96\x81\xE2\x96\x81",
      // special pieces, typed; user-defined symbols and parts of them
      "<unk>", "</s>", "<s>", "<pad>", "<0x41>", "<0xE4>", "<sep>", "<sep", "<se", "<Sep>", "abab", "ab", "a", "aB",
      "e\xEF\xAC\x81", "@@", "x y",
      // what NFKC makes longer, and combining characters
      "\xEF\xB7\xBA", "\xEF\xAC\x81", "\xEF\xBC\xA1", "\xC2\xBD", "\xE2\x84\xA2", "\xCC\x81", "e\xCC\x81",
      "A\xCC\x8A", "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB", "\xE0\xA4\x95\xE0\xA5\x8D",
      // replacement characters, emoji, control characters
      "\xEF\xBF\xBD", "\xE2\x81\x87", "\xF0\x9F\x98\x80", "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB", "\x01",
      "\x7F",
      // not UTF-8
      "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5", "\xE2\x96", "\xE2", "\xF0\x9F\x98", "\x80", "\xFF"};
  // clang-format on
  switch (below(12)) {
    case 0:
    case 1:
    case 2:
      return words(1 + below(4));
    case 3:
    case 4:
    case 5:
      return kSpecial[below(uint32_t(std::size(kSpecial)))];
    case 6:
      return std::string(1, char(below(256)));  // any byte, NUL included
    case 7:
      return utf8(0x20 + below(0x60));
    case 8: {
      const uint32_t code = below(4) == 0 ? below(0x110000) : below(0x3000);
      return utf8(code >= 0xD800 && code < 0xE000 ? 0x4E00 : code);
    }
    case 9: {  // a run
      std::string out;
      const std::string one = below(2) == 0 ? kSpecial[below(uint32_t(std::size(kSpecial)))] : words(1);
      for (uint32_t n = below(below(20) == 0 ? 200 : 8); n > 0; --n) out += one;
      return out;
    }
    case 10:
      return " " + words(1) + " ";
    default: {
      std::string out = words(1);
      out.resize(below(uint32_t(out.size()) + 1));  // cut anywhere
      return out;
    }
  }
}

std::string RandomText::next() {
  std::string out;
  for (uint32_t n = below(10); n > 0; --n) out += fragment();
  return out;
}

std::string shared_folder() {
  const char* folder = std::getenv("DRAGOMAN_SHARED");
#ifdef DRAGOMAN_SHARED_DIR
  if (folder == nullptr) folder = DRAGOMAN_SHARED_DIR;
#endif
  if (folder != nullptr && std::filesystem::is_directory(std::string(folder) + "/tokenizers")) return folder;
  MESSAGE("skipped: no folder with tokenizers and texts to compare; set DRAGOMAN_SHARED to one");
  return "";
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file.good(), path);
  return {std::istreambuf_iterator<char>(file), {}};
}

double test_share() {
  const char* full = std::getenv("DRAGOMAN_FULL");
  if (full != nullptr && std::string_view(full) == "1") return 1;
#if defined(__has_feature)
  if (__has_feature(address_sanitizer)) return 0.02;
#endif
#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
  return 0.02;
#else
  return 0.25;
#endif
}

}  // namespace dragoman::tokenizer_test
