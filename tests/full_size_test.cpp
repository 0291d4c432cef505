// Folders of the size people have: a real configuration and tokenizer with random weights of the true shape, converted
// in a bounded amount of memory, and run.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "converter/safetensors.h"
#include "runtime/mapped_file.h"
#include "tests/command_support.h"
#include "tests/support.h"
#include "tests/weight_writers.h"

namespace {

using namespace dragoman;
using namespace dragoman::test;
using Json = nlohmann::json;

struct Tensor {
  std::string name;
  std::vector<uint64_t> shape;
  float center = 0, reach = 0;

  uint64_t elements() const {
    uint64_t count = 1;
    for (const uint64_t extent : shape) count *= extent;
    return count;
  }
};

class Tensors {
 public:
  explicit Tensors(const Json& config) {
    const uint64_t d = config["d_model"], vocabulary = config["vocab_size"];
    all.push_back({"final_logits_bias", {1, vocabulary}, 0, 0.02f});
    all.push_back({"model.shared.weight", {vocabulary, d}, 0, std::sqrt(3.0f / static_cast<float>(d))});
    for (const std::string side : {"encoder", "decoder"}) {
      const uint64_t ffn = config[side + "_ffn_dim"], layers = config[side + "_layers"];
      for (uint64_t i = 0; i < layers; ++i) {
        const std::string layer = "model." + side + ".layers." + std::to_string(i);
        attention(layer + ".self_attn", d);
        if (side == "decoder") attention(layer + ".encoder_attn", d);
        linear(layer + ".fc1", ffn, d);
        linear(layer + ".fc2", d, ffn);
        norm(layer + ".final_layer_norm", d);
      }
    }
  }
  std::vector<Tensor> all;

 private:
  void linear(const std::string& name, uint64_t n, uint64_t k) {
    all.push_back({name + ".weight", {n, k}, 0, std::sqrt(6.0f / static_cast<float>(n + k))});
    all.push_back({name + ".bias", {n}, 0, 0.02f});
  }
  void norm(const std::string& name, uint64_t d) {
    all.push_back({name + ".weight", {d}, 1, 0.1f});
    all.push_back({name + ".bias", {d}, 0, 0.1f});
  }
  void attention(const std::string& name, uint64_t d) {
    for (const char* part : {".q_proj", ".k_proj", ".v_proj", ".out_proj"}) linear(name + part, d, d);
    norm(name + "_layer_norm", d);
  }
};

// Tensor by tensor, so that this process stays small. Returns the bytes of the file.
uint64_t write_weights(const std::string& path, const Json& config) {
  const Tensors tensors(config);
  Json header = Json::object();
  uint64_t at = 0;
  for (const Tensor& tensor : tensors.all) {
    const uint64_t end = at + tensor.elements() * sizeof(float);
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  const std::string text = header.dump();
  const uint64_t bytes = text.size();
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  out << text;
  uint64_t state = 42;
  std::vector<float> values;
  for (const Tensor& tensor : tensors.all) {
    values.resize(tensor.elements());
    for (float& value : values) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      value = tensor.center + tensor.reach * (static_cast<float>(state >> 40) * 0x1p-23f - 1.0f);
    }
    out.write(reinterpret_cast<const char*>(values.data()),
              static_cast<std::streamsize>(values.size() * sizeof(float)));
  }
  out.close();
  REQUIRE(out.good());
  return sizeof bytes + text.size() + at;
}

// The folder `source` as `model`, in bounded memory.
void convert(const std::string& source, const std::string& model) {
  const auto begin = std::chrono::steady_clock::now();
  const Ran ran = run_command({source, model}, {.binary = DRAGOMAN_CONVERT_BINARY, .seconds = 1000});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin);
  MESSAGE(source << ": converted in " << seconds.count() << " s with " << ran.peak_kilobytes / 1024
                 << " MB of memory to " << std::filesystem::file_size(model) / 1000000 << " MB");
#ifndef DRAGOMAN_SANITIZED
  CHECK(ran.peak_kilobytes < 400 * 1000);
#endif
}

// The same weights as torch.save writes them.
void write_torch(const std::string& from, const std::string& to) {
  const Result<MappedFile> file = map_file(from.c_str());
  REQUIRE_MESSAGE(file, file.error().text);
  MappedFile mapped = *file;
  const Result<TensorMap> tensors = parse_safetensors(mapped.bytes, from.c_str());
  REQUIRE_MESSAGE(tensors, tensors.error().text);
  write_file(to, torch_archive(torch_state(*tensors)));
  unmap_file(mapped);
}

void convert_and_translate(const std::string& name, bool torch_too) {
  const std::string tokenizers = shared_path("tokenizers/" + name);
  if (tokenizers.empty()) return;
  if (!full_run()) {
    MESSAGE("skipped: full-size folders are made with DRAGOMAN_FULL=1 only");
    return;
  }
  const TemporaryFolder folder;
  const std::string source = folder.path() + "/" + name, weights = source + "/model.safetensors";
  std::filesystem::copy(tokenizers, source);
  const uint64_t bytes = write_weights(weights, Json::parse(read_file(source + "/config.json")));
  MESSAGE(name << ": " << bytes / 1000000 << " MB of weights");

  const std::string model = folder.path() + "/model.dgm";
  convert(source, model);
  const Ran verified = run_command({"verify", model});
  CHECK_MESSAGE(verified.code == 0, verified.err);
  // Random weights do not translate, but they answer: a line for a line, the same in a batch.
  const std::string lines = "Hello.\n\nWhere is the station?\n";
  const Ran alone = run_command({"translate", "-m", model}, {.input = lines});
  const Ran batch = run_command({"translate", "-m", model, "--batch", "4"}, {.input = lines});
  CHECK_MESSAGE(alone.code == 0, alone.err);
  CHECK(split_lines(alone.out).size() == 3);
  CHECK(alone.out == batch.out);

  if (torch_too) {
    write_torch(weights, source + "/pytorch_model.bin");
    std::filesystem::remove(weights);
    convert(source, folder.path() + "/torch.dgm");
    CHECK(sections_of(folder.path() + "/torch.dgm") == sections_of(model));
  }
}

}  // namespace

TEST_CASE("an OPUS-MT folder with d_model 512 converts in bounded memory and translates, from torch's file as well") {
  convert_and_translate("opus-mt-en-mg", true);
}

TEST_CASE("an OPUS-MT folder with d_model 1024 converts in bounded memory and translates") {
  convert_and_translate("translation-en-pt", false);
}
