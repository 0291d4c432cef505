// The tokenizer's own promises: buffers that are too small, damaged sections, hostile .spm files, time.
#include "runtime/tokenizer.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <chrono>
#include <cstring>

#include "runtime/tokenizer_format.h"
#include "tests/tokenizer_support.h"

using namespace dragoman;
using namespace dragoman::tokenizer_test;

namespace {

// Small models with every table in use: symbols, bytes, unused pieces, rules, surfaces.
struct Small {
  AlignedBlob blob;
  std::string name;
};

AlignedBlob compile_small(SentencePieceModel model, bool with_vocabulary) {
  Vocabulary vocabulary;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    if (i % 3 != 2) vocabulary.emplace_back(model.pieces[i].text, int32_t(i));
  }
  vocabulary.emplace_back("\xC3\x9F", int32_t(model.pieces.size()));
  vocabulary.emplace_back("<pad>", int32_t(model.pieces.size() + 1));
  const SpecialIds special = {int32_t(model.unk), 1, int32_t(model.pieces.size() + 1)};
  const auto section =
      compile_tokenizer(model, with_vocabulary ? &vocabulary : nullptr, with_vocabulary ? special : SpecialIds{});
  REQUIRE_MESSAGE(section, section.error().text);
  return AlignedBlob(*section);
}

SentencePieceModel small_model(bool bpe, bool bytes) {
  SentencePieceModel model;
  model.name = "small.spm";
  model.bpe = bpe;
  model.byte_fallback = bytes;
  model.rules = {{"A", "a"}, {"\xC2\xBD", "1/2"}, {"\xEF\xAC\x81", "fi"}};
  model.pieces = {{"<unk>", 0, PieceType::kUnknown}, {"</s>", 0, PieceType::kControl}};
  float score = -1;
  for (const char* text : {"\xE2\x96\x81",
                           "\xE2\x96\x81"
                           "a",
                           "\xE2\x96\x81"
                           "ab",
                           "a", "b", "ab", "abc", "c", "bc", "fi", "f", "i", "1", "/", "aa", "aaaa", "\xC3\xA9"}) {
    model.pieces.push_back({text, score -= 0.5f, PieceType::kNormal});
  }
  model.pieces.push_back({"<x>", 0, PieceType::kUserDefined});
  model.pieces.push_back({"<xy>", 0, PieceType::kUserDefined});
  model.pieces.push_back({"aaa", -1, PieceType::kUnused});
  model.pieces.push_back({"abcabc", -1, PieceType::kUnused});
  for (unsigned byte = 0; byte < 256 && bytes; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    model.pieces.push_back({text, 0, PieceType::kByte});
  }
  return model;
}

std::vector<Small> small_blobs() {
  std::vector<Small> out;
  out.push_back({compile_small(small_model(false, false), true), "unigram with vocabulary"});
  out.push_back({compile_small(small_model(true, false), true), "bpe with vocabulary"});
  out.push_back({compile_small(small_model(false, true), false), "unigram with bytes"});
  out.push_back({compile_small(small_model(true, true), false), "bpe with bytes"});
  return out;
}

// Uses whatever opens. Buffers are exact, so that a sanitizer sees a byte too much; ids must stay in the vocabulary.
bool exercise(std::span<const std::byte> blob, uint32_t vocabulary, std::string_view text) {
  const auto opened = Tokenizer::open(blob, vocabulary);
  if (!opened) {
    CHECK(std::strlen(opened.error().text) > 20);
    return false;
  }
  const size_t scratch_bytes = opened->scratch_bytes(text.size());
  std::vector<std::max_align_t> storage(scratch_bytes / sizeof(std::max_align_t) + 1);
  const std::span<std::byte> scratch = std::as_writable_bytes(std::span(storage)).first(scratch_bytes);
  std::vector<int32_t> ids(text.size() * 2);
  const Encoded encoded = opened->encode(text, scratch, ids);
  bool good = encoded.count <= ids.size();
  for (size_t i = 0; i < encoded.count && encoded.fits; ++i) good &= ids[i] >= 0 && uint32_t(ids[i]) < vocabulary;
  ids.resize(encoded.fits ? encoded.count : 0);
  for (const int32_t id : {0, 1, 5, 300, -1, INT32_MAX, INT32_MIN}) ids.push_back(id);
  std::vector<char> out(ids.size() * opened->max_piece_bytes());
  good &= opened->decode(ids, out) <= out.size();
  size_t sum = 0;
  for (const int32_t id : ids) {
    for (const char c : opened->piece(id)) sum += uint8_t(c);
  }
  good &= sum != 1;  // reads every byte
  if (!good) FAIL_CHECK("ids out of range or too much text");
  return true;
}

constexpr std::string_view kText =
    "  Aabcabcaaaaaa <x><xy> \xC3\x9F\xC3\x9F \xC3\x9F b\xEF\xAC\x81 \xC2\xBD\xFF\xE2\x96\x81 \xF0\x9F\x98\x80 abc  ";

}  // namespace

TEST_CASE("ids, text and pieces of a small model") {
  const AlignedBlob blob = compile_small(small_model(false, false), true);
  const auto opened = Tokenizer::open(blob.bytes(), 100);
  REQUIRE_MESSAGE(opened, opened.error().text);
  CHECK(std::string_view(opened->algorithm()) == "unigram");
  CHECK_FALSE(opened->byte_fallback());
  CHECK(opened->pieces() == 25);
  CHECK(opened->piece(3) ==
        "\xE2\x96\x81"
        "a");
  CHECK(opened->piece(2) == "");  // has no id in the vocabulary
  CHECK(opened->piece(-1) == "");
  CHECK(opened->piece(25) == "");

  alignas(16) std::byte scratch[4096];
  int32_t ids[64];
  const auto encode = [&](std::string_view text) { return opened->encode(text, scratch, ids); };
  Encoded encoded = encode("A\xC3\x9F");
  CHECK((encoded.fits && !encoded.unknown && !encoded.invalid_utf8 && encoded.count == 2));
  CHECK((ids[0] == 3 && ids[1] == 23));  // the unknown character has an id in the vocabulary
  encoded = encode("a\xC3\x9F\xC3\x9F");
  CHECK((encoded.unknown && encoded.count == 2 && ids[1] == 0));  // two of them together have none
  encoded = encode("a\xFF");
  CHECK((encoded.unknown && encoded.invalid_utf8));
  encoded = encode("");
  CHECK((encoded.fits && encoded.count == 0));
  encoded = encode("   ");
  CHECK((encoded.fits && encoded.count == 0));

  char text[64];
  const int32_t sequence[] = {3, 9, 1, 23, 24, 99, -5};  // eos, pad and ids beyond the vocabulary among them
  const size_t size = opened->decode(sequence, text);
  CHECK(std::string_view(text, size) == "ac\xC3\x9F \xE2\x81\x87  \xE2\x81\x87 ");
}

TEST_CASE("a piece of the vocabulary that the .spm does not know begins with a space all the same, as in HuggingFace") {
  SentencePieceModel model = small_model(false, false);
  const Vocabulary vocabulary = {{"<unk>", 0}, {"</s>", 1}, {"a", 2}, {"\xE2\x96\x81zz", 3}};
  const auto section = compile_tokenizer(model, &vocabulary, {.unk = 0, .eos = 1});
  REQUIRE_MESSAGE(section, section.error().text);
  const AlignedBlob blob(*section);
  const auto opened = Tokenizer::open(blob.bytes(), 4);
  REQUIRE_MESSAGE(opened, opened.error().text);
  const int32_t sequence[] = {3, 2, 3, 1};
  char text[32];
  CHECK(std::string_view(text, opened->decode(sequence, text)) == "zza zz");
}

TEST_CASE("of two equally good ways to split a text, the one found first stays") {
  // Unknown characters cost 10 more than the worst piece: "a" + unknown is worth 10 - 30, as much as "ab".
  SentencePieceModel model;
  model.name = "tie.spm";
  model.add_dummy_prefix = false;
  model.pieces = {{"<unk>", 0, PieceType::kUnknown}, {"a", 10, PieceType::kNormal}, {"ab", -20, PieceType::kNormal},
                  {"c", -10, PieceType::kNormal},    {"d", -5, PieceType::kNormal}, {"cd", -15, PieceType::kNormal}};
  const auto section = compile_tokenizer(model, nullptr, {});
  REQUIRE_MESSAGE(section, section.error().text);
  const AlignedBlob blob(*section);
  const auto opened = Tokenizer::open(blob.bytes(), 6);
  REQUIRE_MESSAGE(opened, opened.error().text);
  alignas(16) std::byte scratch[2048];
  int32_t ids[8];
  CHECK((opened->encode("ab", scratch, ids).count == 1 && ids[0] == 2));
  CHECK((opened->encode("cd", scratch, ids).count == 1 && ids[0] == 5));
}

TEST_CASE("byte pieces join over dropped ids, not over control pieces") {
  SentencePieceModel model = small_model(false, true);
  const auto decode = [&](const SpecialIds& special) {
    const auto section = compile_tokenizer(model, nullptr, special);
    REQUIRE_MESSAGE(section, section.error().text);
    const AlignedBlob blob(*section);
    const auto opened = Tokenizer::open(blob.bytes(), 1000);
    REQUIRE_MESSAGE(opened, opened.error().text);
    const int32_t bytes = int32_t(model.pieces.size()) - 256;
    const int32_t ids[] = {bytes + 0xC3, 1, bytes + 0xA9};
    char text[64];
    return std::string(text, opened->decode(ids, text));
  };
  CHECK(decode({.eos = 1}) == "\xC3\xA9");
  CHECK(decode({}) == "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST_CASE("what does not fit is reported, and nothing is written past the end") {
  for (const Small& small : small_blobs()) {
    INFO(small.name);
    const auto opened = Tokenizer::open(small.blob.bytes(), 1000);
    REQUIRE_MESSAGE(opened, opened.error().text);
    std::vector<std::max_align_t> storage(4096);
    const auto memory = std::as_writable_bytes(std::span(storage));
    std::vector<int32_t> want(200);
    const Encoded all = opened->encode(kText, memory, want);
    REQUIRE(all.fits);
    want.resize(all.count);
    for (size_t room = 0; room <= all.count + 2; ++room) {
      std::vector<int32_t> ids(room);  // exact, for the sanitizer
      const Encoded encoded = opened->encode(kText, memory, ids);
      CHECK(encoded.fits == (room >= all.count));
      if (!encoded.fits) continue;
      ids.resize(encoded.count);
      CHECK(ids == want);
    }
    bool fitted = false;
    for (size_t bytes = 0; bytes <= opened->scratch_bytes(kText.size()); ++bytes) {
      std::vector<std::byte> exact(bytes + 16);
      std::byte* aligned = exact.data() + (16 - reinterpret_cast<uintptr_t>(exact.data()) % 16) % 16;
      std::vector<int32_t> ids(200);
      const Encoded encoded = opened->encode(kText, {aligned, bytes}, ids);
      CHECK(!(fitted && !encoded.fits));  // more memory never makes it worse
      fitted = encoded.fits;
      if (fitted) CHECK(encoded.count == all.count);
    }
    CHECK(fitted);

    // Decoding stops where the buffer ends, and never needs more than it says.
    std::vector<int32_t> ids;
    for (int32_t id = -1; id < int32_t(opened->pieces()) + 1; ++id) ids.push_back(id);
    std::string full(ids.size() * opened->max_piece_bytes(), '\0');
    full.resize(opened->decode(ids, full));
    for (size_t room = 0; room <= full.size(); ++room) {
      std::vector<char> text(room);
      REQUIRE(opened->decode(ids, text) <= room);
      CHECK(std::string_view(text.data(), room) == full.substr(0, room));
    }
  }
}

TEST_CASE("scratch stays within what the arena plans for") {
  for (const Small& small : small_blobs()) {
    const auto opened = Tokenizer::open(small.blob.bytes(), 1000);
    REQUIRE(opened);
    CHECK(opened->scratch_bytes(1000) <= 46 * 1000);
    CHECK(opened->scratch_bytes(SIZE_MAX) < size_t(1) << 30);  // saturates
    // A text of ordinary characters fits into the scratch for its size.
    std::string text;
    for (int i = 0; i < 200; ++i) text += "ab \xC3\xA9 ";
    std::vector<std::max_align_t> storage(opened->scratch_bytes(text.size()) / sizeof(std::max_align_t) + 1);
    std::vector<int32_t> ids(2 * text.size());
    CHECK(opened->encode(text, std::as_writable_bytes(std::span(storage)), ids).fits);
  }
}

TEST_CASE("a section with any byte changed is refused or harmless") {
  size_t refused = 0, harmless = 0;
  for (Small& small : small_blobs()) {
    INFO(small.name);
    const std::span<std::byte> bytes = small.blob.bytes();
    for (size_t i = 0; i < bytes.size(); ++i) {
      const std::byte before = bytes[i];
      for (const unsigned flip : {1u, 0x80u, 0xFFu}) {
        bytes[i] = before ^ std::byte(flip);
        ++(exercise(bytes, 300, kText) ? harmless : refused);
      }
      bytes[i] = before;
    }
    REQUIRE(exercise(bytes, 300, kText));
  }
  MESSAGE(refused << " changed sections refused, " << harmless << " used safely");
}

TEST_CASE("cut, misplaced and randomly damaged sections are refused or harmless") {
  RandomText random(5);
  for (Small& small : small_blobs()) {
    INFO(small.name);
    const std::span<const std::byte> bytes = small.blob.bytes();
    for (size_t size = 0; size < bytes.size(); size += size < 400 ? 1 : 97) {
      const AlignedBlob cut(bytes.first(size));
      CHECK_FALSE(exercise(cut.bytes(), 300, kText));
      AlignedBlob lying(bytes.first(size));  // the same, with a header that says the size is right
      if (size < sizeof(TokenizerHeader)) continue;
      auto* header = reinterpret_cast<TokenizerHeader*>(lying.bytes().data());
      header->bytes = size;
      exercise(lying.bytes(), 300, kText);
    }
    for (int i = 0; i < 2500; ++i) {
      AlignedBlob damaged(bytes);
      for (uint32_t n = 1 + random.below(8); n > 0; --n) {
        const uint32_t range = random.below(2) == 0 ? uint32_t(sizeof(TokenizerHeader)) : uint32_t(bytes.size());
        damaged.bytes()[random.below(range)] = std::byte(random.below(256));
      }
      exercise(damaged.bytes(), 300, i % 4 == 0 ? random.next() : std::string(kText));
    }
    std::vector<std::byte> shifted(bytes.size() + 65);
    std::byte* at = shifted.data() + (64 - reinterpret_cast<uintptr_t>(shifted.data()) % 64) % 64 + 1;
    std::memcpy(at, bytes.data(), bytes.size());
    CHECK_FALSE(Tokenizer::open({at, bytes.size()}, 300));
    CHECK_FALSE(Tokenizer::open(bytes, 10));  // more ids than the model has
  }
}

TEST_CASE("sixteen thousand bytes of anything take milliseconds") {
  const std::string spm = train("bpe", 450, "user_defined_symbols=<sep>,aaaaaaaaaaaaaaaa,aaaaaaaaaaaaaaab");
  for (const char* type : {"unigram", "bpe"}) {
    const std::string model = type[0] == 'b' ? spm : train(type, 450, "user_defined_symbols=aaaaaaaaaaaaaaaa");
    const Pair pair(type, model);
    for (const char* one :
         {"a", "ab", "ka", "kalo ", " ", "\xE2\x96\x81", "\xFF", "\xEF\xB7\xBA", "\xCC\x81", "<sep", "-"}) {
      INFO(type << " " << one);
      std::string text;
      while (text.size() < 16384) text += one;
      const auto begin = std::chrono::steady_clock::now();
      pair.encode(text);
      const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
      CHECK(time.count() < 200);  // measured: under 2; the rest is for sanitizers and busy machines
      CHECK(pair.agree(text));
    }
  }
}

TEST_CASE("damaged .spm files are refused with a sentence") {
  const std::string spm = train("bpe", 450, "byte_fallback=true");
  RandomText random(9);
  const auto use = [](const std::string& file) {
    const auto model = read_spm(bytes_of(file), "broken.spm");
    if (!model) {
      CHECK(std::string_view(model.error().text).find("broken.spm") == 0);
      return;
    }
    const auto section = compile_tokenizer(*model, nullptr, {});
    if (!section) return;
    REQUIRE(exercise(AlignedBlob(*section).bytes(), kMaxPieces, kText));
  };
  // The normalisation table is most of the file: aim at the rest as often as at the table.
  const size_t pieces = spm.find("nmt_nfkc");
  REQUIRE(pieces != spm.npos);
  const int count = test_share() == 1 ? 400 : 40;
  for (int i = 0; i < count; ++i) {
    std::string damaged = spm;
    for (uint32_t n = 1 + random.below(4); n > 0; --n) {
      damaged[random.below(uint32_t(i % 3 == 0 ? spm.size() : pieces + 40))] = char(random.below(256));
    }
    use(damaged);
    use(spm.substr(0, random.below(uint32_t(spm.size()))));
  }
  CHECK_FALSE(read_spm({}, "empty.spm"));
}

TEST_CASE("models that cannot be repeated to the bit are refused by name") {
  const auto message = [](const std::string& spm) -> std::string {
    const auto model = read_spm(bytes_of(spm), "model.spm");
    return model ? "" : model.error().text;
  };
  CHECK(message(train("word", 200, "")).find("word model") != std::string::npos);
  CHECK(message(train("char", 60, "")).find("char model") != std::string::npos);
  const std::string spm = train("unigram", 450, "");
  CHECK(message(spm) == "");
  CHECK(message(with_normalizer_fields(spm, {"\x38\x00", 2})) == "");  // encode_case = false
  CHECK(message(with_normalizer_fields(spm, {"\x38\x01", 2})).find("case-encoding") != std::string::npos);
  CHECK(message(spm + std::string("\x2A\x03\x12\x01x", 5)).find("denormaliser") != std::string::npos);
  CHECK(message(spm + std::string("\x0A\x05\x0A\x03<s>", 7)) ==
        "");  // a normal piece beside the control piece: allowed
  CHECK(message(spm + std::string("\x0A\x07\x0A\x03<s>\x18\x03", 9)).find("twice") != std::string::npos);
  CHECK(message(spm + std::string("\x0A\x02\x0A\x00", 4)).find("empty") != std::string::npos);
  CHECK(message(spm + std::string("\x0A\x05\x0A\x03"
                                  "a\0b",
                                  7))
            .find("NUL") != std::string::npos);
  CHECK(message(spm + std::string("\x0A\x05\x0A\x01z\x18\x09", 7)).find("type 9") != std::string::npos);
  CHECK(message(spm + std::string("\x0A\x0A\x0A\x06<0x41>\x18\x06", 12)).find("byte fallback") != std::string::npos);
}

#ifndef DRAGOMAN_SANITIZED  // sanitizers bring memory of their own
TEST_CASE("a small .spm whose rules share their endings cannot ask for memory without end") {
  // Darts: 60 levels of two bytes each, every node a rule: 2^60 ways through 63 KB.
  constexpr uint32_t kLevels = 60;
  std::vector<uint32_t> units(256 * (kLevels + 2));
  units[0] = 256 << 10;
  for (uint32_t level = 1; level <= kLevels; ++level) {
    const uint32_t base = 256 * level, next = base + 256;
    for (const uint32_t label : {'a', 'b'}) units[base ^ label] = ((base ^ label) ^ next) << 10 | 256 | label;
    units[next] = uint32_t{1} << 31;
  }
  const auto field = [](int number, const std::string& bytes) {  // up to 2^21 bytes
    const size_t size = bytes.size();
    return std::string(1, char(number << 3 | 2)) + char(size | 128) + char(size >> 7 | 128) + char(size >> 14) + bytes;
  };
  const auto bytes = uint32_t(units.size() * sizeof units[0]);
  std::string rules(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  rules.append(reinterpret_cast<const char*>(units.data()), bytes).append("x", 2);
  const std::string spm =
      field(1, field(1, "<unk>") + "\x18\x02") + field(1, field(1, "a")) + field(3, field(2, rules));

  const auto peak_megabytes = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
  };
  const long before = peak_megabytes();
  const auto model = read_spm(bytes_of(spm), "hostile.spm");
  REQUIRE_FALSE(model);
  CHECK(std::strstr(model.error().text, "the normalisation table") != nullptr);
  CHECK(peak_megabytes() - before < 400);
}
#endif
