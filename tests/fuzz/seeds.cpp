// dragoman-fuzz-seeds FOLDER: small good files for the fuzzers to start from: models, float32 and int8; in a folder of
// their own what the readers of other people's files and of lines take.
#define DOCTEST_CONFIG_IMPLEMENT  // synthetic.cpp checks with it
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "converter/convert.h"
#include "tests/synthetic.h"

namespace {

using namespace dragoman;

void write_seed(const std::string& folder, const char* name, const std::string& bytes) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
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
