// dragoman-fuzz-seeds FOLDER: small good files for the fuzzers to start from, in FOLDER/TARGET.
#define DOCTEST_CONFIG_IMPLEMENT  // synthetic.cpp checks with it
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "converter/convert.h"
#include "tests/synthetic.h"
#include "tests/weight_writers.h"

namespace {

using namespace dragoman;

// A good model, float32 or int8.
bool write_model(const std::string& folder, bool int8) {
  test::SyntheticModel model;
  model.d_model = model.encoder_ffn = model.decoder_ffn = 16;
  model.positions = 16;
  model.pre_norm = model.embedding_norm = model.final_norm = !int8;
  model.shared_embeddings = model.tied_output = int8;
  model.activation = int8 ? "relu" : "gelu";
  test::SyntheticFolder source(model);
  source.write();
  ConvertOptions options;
  options.weights = int8 ? Weights::kInt8 : Weights::kF32;
  const auto report = convert(source.path, folder + (int8 ? "/int8.dgm" : "/f32.dgm"), options);
  if (!report) std::fprintf(stderr, "%s\n", report.error().text);
  return static_cast<bool>(report);
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void write_safetensors(const std::string& folder) {
  const test::SyntheticTensor a{{2, 3}, {1, 2, 3, 4, 5, 6}}, b{{1}, {7}};
  for (const char* dtype : {"F32", "F16", "BF16"})
    write_file(folder + "/" + dtype, test::safetensors_bytes({{"a", a}, {"b", b}}, dtype));
}

void write_torch(const std::string& folder) {
  const test::TorchStorage floats{"0", "FloatStorage", 6, std::string(24, 1)},
      halves{"1", "HalfStorage", 6, std::string(12, 1)};
  const test::TorchState state{{floats, halves},
                               {{"a", 0, 0, {2, 3}, {3, 1}}, {"b", 0, 2, {3}, {1}}, {"c", 1, 0, {3, 2}, {1, 3}}}};
  write_file(folder + "/archive", test::torch_archive(state));
  write_file(folder + "/archive64", test::torch_archive(state, true));
  write_file(folder + "/stream", test::torch_stream(state));
  for (const char* name : {"archive.bin", "stream.bin", "protocol4.bin"})  // by torch itself
    write_file(folder + "/" + name, test::read_bytes(DRAGOMAN_TEST_DATA "/torch/" + std::string(name)));
  write_file(folder + "/pickle", test::pickle::dict_of_x(state.tensors[0].pickled(floats)));
}

void write_seed(const std::string& folder, const char* name, const std::string& bytes) {
  write_file(folder + "/" + name, bytes);
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
  const std::string folder = argv[1];
  for (const char* target :
       {"json-fuzz", "lines-fuzz", "model-fuzz", "safetensors-fuzz", "spm-fuzz", "tokenizer-fuzz", "torch-fuzz"})
    std::filesystem::create_directories(folder + "/" + target);
  write_safetensors(folder + "/safetensors-fuzz");
  write_torch(folder + "/torch-fuzz");
  test::SyntheticFolder synthetic{test::SyntheticModel{}};
  synthetic.write();
  write_text_seeds(folder, synthetic);
  const bool wrote = write_model(folder + "/model-fuzz", true) && write_model(folder + "/model-fuzz", false);
  return wrote ? 0 : 1;
}
