// dragoman-fuzz-seeds FOLDER: small good files for the fuzzers to start from: models, float32 and int8; in a folder of
// their own what the readers of other people's files and of lines take.
#define DOCTEST_CONFIG_IMPLEMENT  // synthetic.cpp checks with it
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "converter/convert.h"
#include "tests/synthetic.h"

namespace {

using namespace dragoman;

void write_seed(const std::string& folder, const char* name, const std::string& bytes) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
}

// A field of a protobuf message.
std::string proto_bytes(int number, const std::string& bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  size_t size = bytes.size();
  for (; size >= 128; size >>= 7) out += static_cast<char>((size & 127) | 128);
  return out + static_cast<char>(size) + bytes;
}

std::string words_of(const std::vector<uint32_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(uint32_t)};
}

// A .spm of a dozen pieces and one rule, A to a: small enough for a mutation to be still a model.
std::string small_spm(bool bpe) {
  const auto piece = [](const std::string& text, float score, char type) {
    const std::string number(reinterpret_cast<const char*>(&score), sizeof score);
    return proto_bytes(1, proto_bytes(1, text) + "\x15" + number + "\x18" + type);
  };
  std::string spm = piece("<unk>", 0, 2) + piece("</s>", 0, 3) + piece("<x>", 0, 4) + piece("ooo", -1, 5);
  float score = -1;
  for (const char* text : {"\xE2\x96\x81", "G", "o", "oo", "d", "Good", "m", "n", "a", "aa", "\xC3\xA9"})
    spm += piece(text, score -= 0.5f, 1);
  std::vector<uint32_t> units(256);  // darts: the root, its child by 'A', that one's leaf
  units[0] = 0x80 << 10;
  units[0x80 ^ 'A'] = 2 << 10 | 256 | 'A';
  units[0x80 ^ 'A' ^ 2] = uint32_t{1} << 31;
  const std::string rules = words_of({1024}) + words_of(units) + std::string("a\0", 2);
  return spm + proto_bytes(2, std::string("\x18") + (bpe ? '\2' : '\1')) + proto_bytes(3, proto_bytes(2, rules));
}

// Small ones: mutations of a short text get further.
void write_text_seeds(const std::string& out, const test::SyntheticFolder& folder) {
  using namespace std::string_literals;
  write_seed(out + "/json-fuzz", "config", "c" + folder.config.dump() + "\0"s + folder.generation.dump());
  write_seed(out + "/json-fuzz", "vocabulary", R"(v{"</s>": 0, "<unk>": 1, "a": 2, "<pad>": 3})");
  write_seed(out + "/json-fuzz", "tokenizer",
             R"(t{"added_tokens": [{"id": 0, "content": "</s>"}, {"id": 2, "content": ">>deu<<"}],
                  "model": {"type": "Unigram", "unk_id": 1, "vocab": [["</s>", 0], ["<unk>", 0.5]]}})");
  write_seed(out + "/spm-fuzz", "bytes.spm", test::read_bytes(folder.file("source.spm")));
  write_seed(out + "/spm-fuzz", "unigram.spm", small_spm(false));
  write_seed(out + "/spm-fuzz", "bpe.spm", small_spm(true));
  write_seed(out + "/lines-fuzz", "lines",
             "\x05\x03\x02\x01\x09\xEF\xBB\xBFone\r\ntwo\rthree\n\nfour, which is longer\r");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: dragoman-fuzz-seeds FOLDER\n"), 2;
  doctest::Context context;
  context.setAsDefaultForAssertsOutOfTestCases();
  test::SyntheticModel model;
  model.d_model = model.encoder_ffn = model.decoder_ffn = 16;
  model.positions = 16;
  for (const bool plain : {true, false}) {
    model.pre_norm = model.embedding_norm = model.final_norm = !plain;
    model.shared_embeddings = model.tied_output = plain;
    model.activation = plain ? "relu" : "gelu";
    test::SyntheticFolder folder(model);
    folder.write();
    ConvertOptions options;
    options.weights = plain ? Weights::kInt8 : Weights::kF32;
    const std::string out = std::string(argv[1]) + (plain ? "/int8.dgm" : "/f32.dgm");
    const auto report = convert(folder.path, out, options);
    if (plain) write_text_seeds(argv[1], folder);
    if (!report) return std::fprintf(stderr, "%s\n", report.error().text), 1;
  }
}
