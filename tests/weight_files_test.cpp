// The same model in every container people keep it in.
#include "converter/weight_files.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "converter/convert.h"
#include "converter/safetensors.h"
#include "converter/torch.h"
#include "runtime/checksum.h"
#include "tests/support.h"
#include "tests/synthetic.h"
#include "tests/weight_writers.h"

namespace dragoman {
namespace {

using test::read_bytes;
using test::sections_of;
using test::SyntheticFolder;
using test::SyntheticModel;

const std::string kTiny = DRAGOMAN_TEST_DATA "/tiny";

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// A safetensors file in memory, with its tensors.
struct Original {
  std::string file;
  TensorMap tensors;
  explicit Original(std::string bytes) : file(std::move(bytes)) {
    Result<TensorMap> read = parse_safetensors(bytes_of(file), "original");
    REQUIRE_MESSAGE(read, read.error().text);
    tensors = std::move(*read);
  }
};

using Write = std::string (*)(const TensorMap& tensors);
std::string write_stream(const TensorMap& tensors) {
  return test::torch_stream(test::torch_state(tensors));
}
std::string write_archive(const TensorMap& tensors) {
  return test::torch_archive(test::torch_state(tensors));
}

std::string part_name(const char* stem, size_t part, size_t parts, const char* ending) {
  return std::string(stem) + "-0000" + std::to_string(part + 1) + "-of-0000" + std::to_string(parts) + ending;
}

// Every third tensor to another file, and the index that says so.
void write_parts(const SyntheticFolder& folder, const TensorMap& tensors, size_t parts, const char* stem,
                 const char* ending, Write write) {
  std::vector<TensorMap> split(parts);
  nlohmann::json index = {{"metadata", {{"total_size", 1}}}};
  size_t i = 0;
  for (const auto& [name, tensor] : tensors) {
    split[i % parts].emplace(name, tensor);
    index["weight_map"][name] = part_name(stem, i++ % parts, parts, ending);
  }
  for (size_t part = 0; part < parts; ++part)
    folder.write_file(part_name(stem, part, parts, ending), write(split[part]));
  folder.write_file(std::string(stem) + ending + ".index.json", index.dump(1));
}

// tests/data/tiny without its weights.
std::unique_ptr<SyntheticFolder> tiny_folder() {
  auto folder = std::make_unique<SyntheticFolder>(SyntheticModel{});
  for (const char* name :
       {"config.json", "generation_config.json", "tokenizer_config.json", "vocab.json", "source.spm", "target.spm"})
    folder->write_file(name, read_bytes(kTiny + "/" + name));
  return folder;
}

std::string convert_tiny(const SyntheticFolder& folder, Weights weights) {
  ConvertOptions options;
  options.weights = weights;
  options.licence = "MIT";
  const Result<ConvertReport> report = convert(folder.path, folder.file("m.dgm"), options);
  REQUIRE_MESSAGE(report, report.error().text);
  return report->provenance;
}

std::string line_of(const std::string& provenance, const char* key) {
  const size_t begin = provenance.find(key);
  REQUIRE(begin != std::string::npos);
  return provenance.substr(begin, provenance.find('\n', begin) - begin);
}

TEST_CASE("one model from every container: the same file, but for its provenance") {
  const Original original(read_bytes(kTiny + "/model.safetensors"));
  const auto whole = tiny_folder(), archive = tiny_folder(), archive64 = tiny_folder(), stream = tiny_folder(),
             parts = tiny_folder(), torch_parts = tiny_folder();
  whole->write_file("model.safetensors", original.file);
  archive->write_file("pytorch_model.bin", write_archive(original.tensors));
  archive64->write_file("pytorch_model.bin", test::torch_archive(test::torch_state(original.tensors), true));
  stream->write_file("pytorch_model.bin", write_stream(original.tensors));
  write_parts(*parts, original.tensors, 3, "model", ".safetensors", test::safetensors_bytes);
  write_parts(*torch_parts, original.tensors, 2, "pytorch_model", ".bin", write_archive);

  for (const Weights weights : {Weights::kF32, Weights::kInt8}) {
    const std::string provenance = convert_tiny(*whole, weights);
    const std::string want = sections_of(whole->file("m.dgm"));
    CHECK(want.size() > 100000);
    CHECK(line_of(provenance, "source weights") ==
          "source weights: model.safetensors, " + std::to_string(original.file.size()) + " bytes, F32");
    for (const auto* other : {&archive, &archive64, &stream, &parts, &torch_parts}) {
      const std::string from = line_of(convert_tiny(**other, weights), "source weights");
      CAPTURE(from);
      CHECK(sections_of((*other)->file("m.dgm")) == want);
    }
  }
}

TEST_CASE("the provenance names all files, their bytes and a checksum over them") {
  const Original original(read_bytes(kTiny + "/model.safetensors"));
  const auto folder = tiny_folder();
  write_parts(*folder, original.tensors, 3, "model", ".safetensors", test::safetensors_bytes);
  uint64_t bytes = 0, state = kChecksumSeed;
  for (size_t part = 0; part < 3; ++part) {
    const std::string file = read_bytes(folder->file(part_name("model", part, 3, ".safetensors")));
    bytes += file.size();
    state = checksum(file.data(), file.size(), state);
  }
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(state));
  const std::string provenance = convert_tiny(*folder, Weights::kF32);
  CHECK(line_of(provenance, "source weights") ==
        "source weights: 3 files from model-00001-of-00003.safetensors to model-00003-of-00003.safetensors, " +
            std::to_string(bytes) + " bytes, F32");
  CHECK(line_of(provenance, "source checksum") == std::string("source checksum: ") + hex);

  folder->write_file("pytorch_model.bin", write_stream(original.tensors));
  CHECK(line_of(convert_tiny(*folder, Weights::kF32), "source weights").starts_with("source weights: 3 files"));
  folder->remove_file("model.safetensors.index.json");
  CHECK(line_of(convert_tiny(*folder, Weights::kF32), "source weights").starts_with("source weights: pytorch_model"));
  folder->write_file("model.safetensors", original.file);
  CHECK(line_of(convert_tiny(*folder, Weights::kF32), "source weights").starts_with("source weights: model.safeten"));
}

// Every tensor of one, bit by bit, in the other. What the other has more must be a copy under another name.
void check_same_tensors(const std::string& folder) {
  const std::string safe = read_bytes(folder + "/model.safetensors"), torch = read_bytes(folder + "/pytorch_model.bin");
  const Result<TensorMap> want = parse_safetensors(bytes_of(safe), "model.safetensors");
  REQUIRE_MESSAGE(want, want.error().text);
  const Result<TensorMap> got = parse_torch(bytes_of(torch), "pytorch_model.bin");
  REQUIRE_MESSAGE(got, got.error().text);
  CHECK(want->size() > 50);
  for (const auto& [name, tensor] : *want) {
    CAPTURE(name);
    REQUIRE(got->contains(name));
    const TensorView& other = got->at(name);
    CHECK(other.dtype == tensor.dtype);
    CHECK(other.shape == tensor.shape);
    CHECK(other.strides.empty());
    REQUIRE(other.data.size() == tensor.data.size());
    CHECK(std::memcmp(other.data.data(), tensor.data.data(), tensor.data.size()) == 0);
  }
  for (const auto& [name, tensor] : *got) {
    CAPTURE(name);
    const bool copy = std::any_of(want->begin(), want->end(), [&](const auto& known) {
      return got->at(known.first).data.data() == tensor.data.data();
    });
    CHECK(copy);
  }
  MESSAGE(folder << ": " << want->size() << " tensors, " << got->size() << " names in pytorch_model.bin");
}

TEST_CASE("files that torch wrote hold the same bits as the safetensors beside them") {
  for (const char* model : {"models/tiny", "models/en-de"}) {
    const std::string folder = test::shared_path(model);
    if (!folder.empty()) check_same_tensors(folder);
  }
}

TEST_CASE("a folder with only torch's own pytorch_model.bin gives the same model") {
  const std::string torch = test::shared_path("models/tiny/pytorch_model.bin");
  if (torch.empty()) return;
  const auto whole = tiny_folder(), folder = tiny_folder();
  whole->write_file("model.safetensors", read_bytes(kTiny + "/model.safetensors"));
  folder->write_file("pytorch_model.bin", read_bytes(torch));
  convert_tiny(*whole, Weights::kInt8);
  convert_tiny(*folder, Weights::kInt8);
  CHECK(sections_of(folder->file("m.dgm")) == sections_of(whole->file("m.dgm")));
}

TEST_CASE("tied copies, integer tensors nobody needs, and every float type, from torch's files") {
  for (const char* dtype : {"F32", "F16", "BF16"}) {
    CAPTURE(dtype);
    SyntheticModel model;
    model.dtype = dtype;
    SyntheticFolder folder(model);
    folder.write();
    convert_tiny(folder, Weights::kInt8);
    const std::string want = sections_of(folder.file("m.dgm"));
    const Original original(read_bytes(folder.file("model.safetensors")));
    test::TorchState state = test::torch_state(original.tensors);
    for (size_t i = 0; i < state.tensors.size(); ++i) {
      if (state.tensors[i].name != "model.shared.weight") continue;
      test::TorchTensor tied = state.tensors[i];
      for (const char* name : {"model.encoder.embed_tokens.weight", "lm_head.weight"}) {
        tied.name = name;
        state.tensors.push_back(tied);
      }
      break;
    }
    state.storages.push_back({"ids", "LongStorage", 3, std::string(24, 0)});
    state.tensors.push_back({"model.encoder.position_ids", state.storages.size() - 1, 0, {1, 3}, {3, 1}});
    folder.remove_file("model.safetensors");
    for (const std::string& file : {test::torch_archive(state), test::torch_stream(state)}) {
      folder.write_file("pytorch_model.bin", file);
      const std::string provenance = convert_tiny(folder, Weights::kInt8);
      CHECK(line_of(provenance, "source weights").ends_with(std::string(" bytes, ") + dtype));
      CHECK(sections_of(folder.file("m.dgm")) == want);
    }
  }
}

// What the converter says of this folder.
std::string sentence(const SyntheticFolder& folder) {
  const Result<ConvertReport> report = convert(folder.path, folder.file("m.dgm"), {});
  CHECK_FALSE(report);
  CHECK_FALSE(std::filesystem::exists(folder.file("m.dgm")));
  return report.error().text;
}

bool says(const SyntheticFolder& folder, const std::string& part) {
  const std::string text = sentence(folder);
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("said: " << text);
  return found;
}

TEST_CASE("messages name the file that is wrong") {
  SyntheticFolder folder{SyntheticModel{}};
  folder.write();
  const Original original(read_bytes(folder.file("model.safetensors")));
  folder.remove_file("model.safetensors");
  CHECK(says(folder, " has no model.safetensors and no pytorch_model.bin: download one of them into it"));

  const std::string archive = write_archive(original.tensors);
  folder.write_file("pytorch_model.bin", archive.substr(0, archive.size() / 2));
  CHECK(says(folder, "/pytorch_model.bin is cut short"));
  folder.write_file("pytorch_model.bin", "version https://git-lfs.github.com/spec/v1\n");
  CHECK(says(folder, "/pytorch_model.bin is a git-lfs pointer"));
  folder.write_file("pytorch_model.bin", "<html>");
  CHECK(says(folder, "/pytorch_model.bin is a web page"));
  folder.write_file("pytorch_model.bin", test::pickle::dict_of_x(test::pickle::global("posix", "system")));
  CHECK(says(folder, "/pytorch_model.bin asks to run posix.system"));

  TensorMap changed = original.tensors;
  changed.erase("model.encoder.layers.0.fc1.bias");
  folder.write_file("pytorch_model.bin", write_archive(changed));
  CHECK(says(folder, "pytorch_model.bin has no tensor model.encoder.layers.0.fc1.bias, which config.json asks for"));
  changed = original.tensors;
  changed.at("final_logits_bias").shape = {400};
  folder.write_file("pytorch_model.bin", write_stream(changed));
  CHECK(says(folder, "pytorch_model.bin: tensor final_logits_bias has shape (400), but config.json asks for (1, 400)"));
  changed = original.tensors;
  changed["extra"] = changed.at("final_logits_bias");
  folder.write_file("pytorch_model.bin", write_stream(changed));
  CHECK(says(folder, "pytorch_model.bin has a tensor extra (1, 400) that config.json does not account for"));
  const std::string doubles(8 * 400, 0);
  changed = original.tensors;
  changed["final_logits_bias"] = {"F64", {1, 400}, {}, 400, bytes_of(doubles)};
  folder.write_file("pytorch_model.bin", write_stream(changed));
  CHECK(says(folder, "pytorch_model.bin: tensor final_logits_bias is stored as F64: only F32, F16 and BF16"));
  changed = original.tensors;
  changed["packed"] = {"I8", {3200}, {}, 3200, bytes_of(doubles)};  // small integers may be weights
  folder.write_file("model.safetensors", test::safetensors_bytes(changed));
  CHECK(says(folder, "model.safetensors has a tensor packed (3200) that config.json does not account for"));

  const Result<WeightFiles> files = WeightFiles::open(kTiny);
  REQUIRE_MESSAGE(files, files.error().text);
  const Result<std::vector<float>> missing = files->floats("ghost", 0, 6);
  CHECK_FALSE(missing);
  CHECK(std::string(missing.error().text) == "tensor ghost is missing");
  CHECK(std::string(files->name_of("ghost")) == "model.safetensors");
}

TEST_CASE("indices that lead nowhere, lie or contradict are refused") {
  SyntheticFolder folder{SyntheticModel{}};
  folder.write();
  const Original original(read_bytes(folder.file("model.safetensors")));
  folder.remove_file("model.safetensors");
  const char* index_name = "model.safetensors.index.json";
  const std::string first = part_name("model", 0, 2, ".safetensors"), second = part_name("model", 1, 2, ".safetensors");
  write_parts(folder, original.tensors, 2, "model", ".safetensors", test::safetensors_bytes);
  const nlohmann::json index = nlohmann::json::parse(read_bytes(folder.file(index_name)));
  const std::string one = index["weight_map"].begin().key();  // in the first part

  const auto with_index = [&](const nlohmann::json& changed) { folder.write_file(index_name, changed.dump()); };
  for (const char* name : {"../model.safetensors", "/etc/passwd", "a/b", "..", ".", "", "a\\b", "a\nb"}) {
    CAPTURE(name);
    nlohmann::json changed = index;
    changed["weight_map"][one] = name;
    with_index(changed);
    CHECK(says(folder, "which is not the name of a file beside it"));
  }
  nlohmann::json changed = index;
  changed["weight_map"][one] = 7;
  with_index(changed);
  CHECK(says(folder, "tensor " + one + " is said to be in 7, which is not the name of a file"));
  for (const char* text : {"{}", "{\"weight_map\": []}", "{\"weight_map\": {}}"}) {
    folder.write_file(index_name, text);
    CHECK(says(folder, "model.safetensors.index.json has no weight_map"));
  }
  folder.write_file(index_name, "{\"weight_map\": ");
  CHECK(says(folder, "model.safetensors.index.json is not a JSON object"));
  changed = index;
  changed["weight_map"][one] = second;
  with_index(changed);
  CHECK(says(folder, " tensors of " + first + ", but it has "));
  changed = index;
  changed["weight_map"].erase(one);
  with_index(changed);
  CHECK(says(folder, " tensors of " + first + ", but it has "));
  changed = index;
  changed["weight_map"]["ghost"] = first;
  with_index(changed);
  CHECK(says(folder, "says that " + first + " has tensor ghost, but it has not"));

  with_index(index);
  const std::string good = read_bytes(folder.file(second));
  folder.write_file(second, read_bytes(folder.file(first)));
  CHECK(says(folder, second + ": tensor " + one + " is in another part, too"));
  folder.write_file(second, good.substr(0, good.size() - 1));
  CHECK(says(folder, second + ": tensor "));
  CHECK(says(folder, "the file is cut short; download it again"));
  folder.write_file(second, "version https://git-lfs.github.com/spec/v1\n");
  CHECK(says(folder, second + " is a git-lfs pointer"));
  folder.remove_file(second);
  CHECK(
      says(folder, "model.safetensors.index.json names " + second + ", which is not in the folder: download it, too"));

  TensorMap misshapen = original.tensors;
  misshapen.at(one).shape = {1, 1, misshapen.at(one).elements};
  write_parts(folder, misshapen, 2, "model", ".safetensors", test::safetensors_bytes);
  CHECK(says(folder, first + ": tensor " + one + " has shape (1, 1, "));
}

}  // namespace
}  // namespace dragoman
