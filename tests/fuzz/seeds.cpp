// dragoman-fuzz-seeds FOLDER: small good models for the fuzzers to start from, float32 and int8.
#define DOCTEST_CONFIG_IMPLEMENT  // synthetic.cpp checks with it
#include <doctest/doctest.h>

#include <cstdio>
#include <string>

#include "converter/convert.h"
#include "tests/synthetic.h"

int main(int argc, char** argv) {
  using namespace dragoman;
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
    if (!report) return std::fprintf(stderr, "%s\n", report.error().text), 1;
  }
}
