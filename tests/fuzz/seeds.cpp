// dragoman-fuzz-seeds FOLDER: small good files for the fuzzers to start from, in FOLDER/TARGET.
#define DOCTEST_CONFIG_IMPLEMENT  // synthetic.cpp checks with it
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: dragoman-fuzz-seeds FOLDER\n"), 2;
  doctest::Context context;
  context.setAsDefaultForAssertsOutOfTestCases();
  const std::string folder = argv[1];
  for (const char* target : {"model-fuzz", "safetensors-fuzz", "tokenizer-fuzz", "torch-fuzz"})
    std::filesystem::create_directories(folder + "/" + target);
  write_safetensors(folder + "/safetensors-fuzz");
  write_torch(folder + "/torch-fuzz");
  const bool wrote = write_model(folder + "/model-fuzz", true) && write_model(folder + "/model-fuzz", false);
  return wrote ? 0 : 1;
}
