#include "converter/convert.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "converter/marian.h"
#include "converter/reference.h"
#include "runtime/selftest.h"
#include "tests/support.h"
#include "tests/synthetic.h"

namespace dragoman {
namespace {

using test::read_bytes;
using test::SyntheticFolder;
using test::SyntheticModel;

const std::string kTiny = DRAGOMAN_TEST_DATA "/tiny";

struct Variant {
  const char* name;
  SyntheticModel model;
};

// One for each thing a checkpoint may be, and one for all at once.
std::vector<Variant> variants() {
  std::vector<Variant> list{{"plain", {}}};
  const auto add = [&](const char* name) -> SyntheticModel& {
    list.push_back({name, {}});
    return list.back().model;
  };
  add("silu").activation = "silu";
  add("swish").activation = "swish";
  add("gelu").activation = "gelu";
  add("gelu_new").activation = "gelu_new";
  add("pre-norm").pre_norm = true;
  add("embedding norm").embedding_norm = true;
  add("final norm").final_norm = true;
  add("no embedding scale").scale_embedding = false;
  add("untied output").tied_output = false;
  add("separate embeddings").shared_embeddings = false;
  add("tied copies").tied_copies = true;
  add("learned positions").stored_positions = true;
  add("vocabulary of 405").extra_pieces = 5;
  add("few positions").positions = 16;
  SyntheticModel& uneven = add("uneven depth, heads and ffn");
  uneven.encoder_layers = 3;
  uneven.encoder_heads = 4;
  uneven.encoder_ffn = 80;
  uneven.decoder_ffn = 16;
  SyntheticModel& separate = add("nothing shared, separate vocabularies");
  separate.shared_embeddings = separate.tied_output = false;
  separate.separate_vocabularies = true;
  separate.extra_pieces = 1;
  SyntheticModel& smaller = add("separate vocabularies, the target's smaller and tied to the output");
  smaller.shared_embeddings = false;
  smaller.separate_vocabularies = true;
  smaller.extra_pieces = 45;
  SyntheticModel& languages = add("target languages, learned positions, untied output");
  languages.languages = {"deu", "fra"};
  languages.stored_positions = true;
  languages.tied_output = false;
  SyntheticModel& all = add("everything");
  all.pre_norm = all.embedding_norm = all.final_norm = all.stored_positions = true;
  all.shared_embeddings = all.tied_output = false;
  all.activation = "gelu";
  all.encoder_layers = 2;
  all.decoder_layers = 3;
  all.d_model = 48;
  all.encoder_heads = 6;
  all.decoder_heads = 3;
  all.dtype = "BF16";
  return list;
}

Result<ConvertReport> convert_to(const std::string& source, const std::string& out, Weights weights) {
  ConvertOptions options;
  options.weights = weights;
  return convert(source, out, options);
}

ConvertReport must_convert(const SyntheticFolder& folder, const std::string& out, Weights weights) {
  const Result<ConvertReport> report = convert_to(folder.path, folder.file(out), weights);
  REQUIRE_MESSAGE(report, report.error().text);
  return *report;
}

TEST_CASE("every variant converts, and float32 agrees with the double-precision reference") {
  double worst = 0, worst_int8 = 0;
  for (const Variant& variant : variants()) {
    CAPTURE(variant.name);
    SyntheticFolder folder(variant.model);
    folder.write();
    const ConvertReport f32 = must_convert(folder, "f32.dgm", Weights::kF32);
    CHECK(f32.selftest.logit_difference < 2e-5);
    CHECK(f32.selftest.sentences >= 3);
    CHECK(f32.selftest.agreeing_tokens >= f32.selftest.tokens - 1);  // a near tie may fall the other way
    worst = std::max(worst, f32.selftest.logit_difference);

    const ConvertReport int8 = must_convert(folder, "int8.dgm", Weights::kInt8);
    CHECK(int8.selftest.logit_difference < 0.5);
    CHECK(int8.selftest.agreeing_tokens > int8.selftest.tokens / 2);
    CHECK(int8.file_bytes < f32.file_bytes);
    worst_int8 = std::max(worst_int8, int8.selftest.logit_difference);
    for (const TensorReport& tensor : int8.tensors) CHECK(tensor.error.relative < 0.02);  // calibrated: not the nearest
  }
  MESSAGE("largest logit difference: float32 " << worst << ", int8 " << worst_int8);
}

TEST_CASE("what was converted opens, verifies, and replays its self-test on every table") {
  for (const Variant& variant : variants()) {
    for (const Weights weights : {Weights::kF32, Weights::kInt8}) {
      CAPTURE(variant.name);
      SyntheticFolder folder(variant.model);
      folder.write();
      must_convert(folder, "m.dgm", weights);
      const test::LoadedModel model = test::load_model(folder.file("m.dgm"));
      CHECK(verify_tensors(*model, "m.dgm"));
      for (const Kernels* kernels : available_kernels()) {
        CAPTURE(kernels->name);
        const Result<SelfTestReport> replayed = replay_selftest(*model, *kernels);
        REQUIRE_MESSAGE(replayed, replayed.error().text);
        CHECK(replayed->cases > 0);
        CHECK(replayed->failed == 0);
      }
    }
  }
}

TEST_CASE("the architecture record says what the checkpoint is") {
  SyntheticModel synthetic = variants().back().model;
  SyntheticFolder folder(synthetic);
  folder.write();
  const ConvertReport report = must_convert(folder, "m.dgm", Weights::kInt8);
  const Architecture& arch = report.arch;
  CHECK(arch.d_model == 48);
  CHECK(arch.encoder_layers == 2);
  CHECK(arch.decoder_layers == 3);
  CHECK(arch.encoder_heads == 6);
  CHECK(arch.decoder_heads == 3);
  CHECK(arch.activation == Activation::kGelu);
  CHECK(arch.norm == NormPosition::kPre);
  CHECK(arch.weights == Weights::kInt8);
  CHECK(arch.flags ==
        (kEncoderEmbeddingNorm | kDecoderEmbeddingNorm | kEncoderFinalNorm | kDecoderFinalNorm | kSharedTokenizer));
  CHECK(arch.eos == 0);
  CHECK(arch.unk == 1);
  CHECK(arch.pad == 399);
  CHECK(arch.decoder_start == 399);
  CHECK(report.provenance.find("source weights: model.safetensors") != std::string::npos);
  CHECK(report.provenance.find("BF16") != std::string::npos);
}

TEST_CASE("F16 and BF16 files of the same numbers give the same tensors as F32") {
  std::vector<std::vector<Section>> tables;
  for (const char* dtype : {"F32", "F16", "BF16"}) {
    SyntheticModel synthetic;
    synthetic.dtype = dtype;
    SyntheticFolder folder(synthetic);
    folder.write();
    must_convert(folder, "m.dgm", Weights::kF32);
    const test::LoadedModel model = test::load_model(folder.file("m.dgm"));
    std::vector<Section> tensors;
    for (const Section& section : model->sections)
      if (section.kind == SectionKind::kTensor || section.kind == SectionKind::kSelfTest) tensors.push_back(section);
    tables.push_back(tensors);
  }
  const auto same = [](const Section& a, const Section& b) {
    return std::strcmp(a.name, b.name) == 0 && a.checksum == b.checksum && a.bytes == b.bytes;
  };
  CHECK(std::ranges::equal(tables[0], tables[1], same));
  CHECK(std::ranges::equal(tables[0], tables[2], same));
}

TEST_CASE("computed positions are the sines and cosines of the paper, sin block first") {
  const Result<MarianConfig> config = read_marian_config(kTiny);
  REQUIRE(config);
  const Result<Checkpoint> stored = read_marian_weights(kTiny, *config);  // has HuggingFace's table
  REQUIRE(stored);
  SyntheticModel synthetic;
  synthetic.d_model = 64;
  synthetic.positions = 128;
  SyntheticFolder folder(synthetic);
  folder.write();
  const Result<MarianConfig> same = read_marian_config(folder.path);
  REQUIRE(same);
  const Result<Checkpoint> computed = read_marian_weights(folder.path, *same);
  REQUIRE(computed);
  REQUIRE(computed->encoder_positions.size() == stored->encoder_positions.size());
  for (size_t i = 0; i < stored->encoder_positions.size(); ++i)
    CHECK(std::abs(computed->encoder_positions[i] - stored->encoder_positions[i]) <= 6e-8f);
  CHECK(stored->has(kSharedPositions));
}

TEST_CASE("pad and bad words can never be produced") {
  SyntheticFolder folder(SyntheticModel{});
  folder.write();
  const Result<Checkpoint> model = read_marian(folder.path);
  REQUIRE_MESSAGE(model, model.error().text);
  for (size_t id = 0; id < 400; ++id) CHECK(std::isinf(model->output_bias[id]) == (id == 399 || id == 7));
}

TEST_CASE("the reference gives PyTorch's ids on the fixture") {
  const Result<Checkpoint> model = read_marian(kTiny);
  REQUIRE_MESSAGE(model, model.error().text);
  size_t sentences = 0;
  for (const std::string& line : test::read_lines(kTiny + "/reference.jsonl")) {
    const auto json = nlohmann::json::parse(line);
    const auto source = json["src_ids"].get<std::vector<int32_t>>();
    CAPTURE(line);
    const auto ids = json["out_ids"].get<std::vector<int32_t>>();
    CHECK(test::best_after(*model, {source, ids}) == ids);
    ++sentences;
  }
  CHECK(sentences == 26);
}

TEST_CASE("the same source gives the same bytes, and no temporary stays behind") {
  for (const Weights weights : {Weights::kF32, Weights::kInt8}) {
    SyntheticFolder folder(SyntheticModel{});
    folder.write();
    must_convert(folder, "a.dgm", weights);
    must_convert(folder, "b.dgm", weights);
    CHECK(read_bytes(folder.file("a.dgm")) == read_bytes(folder.file("b.dgm")));
    CHECK_FALSE(std::filesystem::exists(folder.file("a.dgm.tmp")));
  }
}

// In a child, so that the limit is not ours.
int convert_with_file_limit(const SyntheticFolder& folder, rlim_t bytes) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
    const Result<ConvertReport> report = convert_to(folder.path, folder.file("full.dgm"), Weights::kF32);
    const bool said = !report && std::strstr(report.error().text, "File too large");
    std::_Exit(said ? 7 : 8);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("what cannot be written is said, and an older file stays as it was") {
  SyntheticFolder folder(SyntheticModel{});
  folder.write();
  folder.write_file("full.dgm", "DRAGOMAN of yesterday");
  CHECK(convert_with_file_limit(folder, 20000) == 7);
  CHECK(read_bytes(folder.file("full.dgm")) == "DRAGOMAN of yesterday");
  CHECK_FALSE(std::filesystem::exists(folder.file("full.dgm.tmp")));

  const struct {
    std::string out;
    const char* sentence;
  } cases[] = {{folder.file("no/such/folder/m.dgm"), "No such file or directory"},
               {folder.path, "is a folder"},
               {"/proc/m.dgm", "cannot write /proc/m.dgm.tmp"}};
  for (const auto& one : cases) {
    CAPTURE(one.out);
    const Result<ConvertReport> report = convert_to(folder.path, one.out, Weights::kInt8);
    CHECK_FALSE(report);
    CAPTURE(std::string(report.error().text));
    CHECK(std::strstr(report.error().text, one.sentence) != nullptr);
  }
}

TEST_CASE("licence: from the option, the folder's LICENSE, the model card, or unknown") {
  SyntheticFolder folder(SyntheticModel{});
  folder.write();
  CHECK(must_convert(folder, "m.dgm", Weights::kInt8).licence.starts_with("unknown: ask"));
  folder.write_file("README.md", "---\nlanguage: de\nlicense: \"cc-by-4.0\"\n---\n# A model\nlicense: no\n");
  CHECK(licence_of_folder(folder.path) == "cc-by-4.0 (as the model card says)");
  folder.write_file("LICENSE", "All of it.\n");
  CHECK(licence_of_folder(folder.path) == "All of it.\n");

  ConvertOptions options;
  options.licence = "MIT";
  options.attribution = "Jane Doe";
  REQUIRE(convert(folder.path, folder.file("m.dgm"), options));
  CHECK(test::load_model(folder.file("m.dgm"))->licence == "MIT\nattribution: Jane Doe\n");
  options.attribution = "\x1b[2J";
  CHECK_FALSE(convert(folder.path, folder.file("m.dgm"), options));
}

struct Ran {
  int code = -1;
  std::string output;  // both streams
};

Ran run_command(const std::string& arguments) {
  Ran ran;
  FILE* pipe = popen((DRAGOMAN_CONVERT_BINARY " " + arguments + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  char buffer[4096];
  while (const size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) ran.output.append(buffer, got);
  const int status = pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

TEST_CASE("dragoman-convert: exit codes and what it prints") {
  SyntheticFolder folder(SyntheticModel{});
  folder.write();
  const std::string out = folder.file("m.dgm");
  const struct {
    std::string arguments;
    int code;
    const char* prints;
  } cases[] = {
      {"--help", 0, "Exit codes"},
      {"--version", 0, "dragoman-convert "},
      {"", 2, "SOURCE is required"},
      {"a b c", 2, ""},
      {"a b --quantize int4", 2, "int4"},
      {"/no/such/model " + out, 1, "dragoman-convert: /no/such/model does not exist"},
      {folder.path + " " + out, 0, "encoder.0.self.qkv"},
      {folder.path + " " + out + " --quantize none", 0, "logits differ by"},
      {folder.path + " " + out + " --rounding nearest", 0, "logits differ by"},
      {folder.path + " " + out + " --rounding up", 2, "up"},
  };
  for (const auto& one : cases) {
    CAPTURE(one.arguments);
    const Ran ran = run_command(one.arguments);
    CHECK(ran.code == one.code);
    CAPTURE(ran.output);
    CHECK(ran.output.find(one.prints) != std::string::npos);
    CHECK(ran.output.find('\r') == std::string::npos);  // no progress bar without a terminal
  }
  CHECK(run_command(folder.path + " " + out + " --quiet").output.empty());
}

}  // namespace
}  // namespace dragoman
