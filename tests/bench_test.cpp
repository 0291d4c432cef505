// dragoman-bench: its models are models, its counts are exact, its figures are read by programs.
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/bound.h"
#include "bench/gemm_data.h"
#include "bench/gemm_table.h"
#include "bench/growth.h"
#include "bench/report.h"
#include "bench/synthetic_model.h"
#include "bench/workload.h"
#include "tests/command_support.h"
#include "tests/support.h"

namespace dragoman::test {
namespace {

using bench::MemoryFile;

const MemoryFile& tiny() {
  static const MemoryFile file = [] {
    Result<MemoryFile> made = bench::synthetic_model(*bench::find_shape("tiny"), Weights::kInt8);
    REQUIRE(made);
    return std::move(*made);
  }();
  return file;
}

Ran run_bench(std::vector<std::string> arguments) {
  return run_command(arguments, {.binary = DRAGOMAN_BENCH_BINARY});
}

// The smallest run there is, as JSON.
std::vector<std::string> quick(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"--batch",         "2", "--repeat",        "2", "--sentences", "3",
                                        "--source-length", "6", "--target-length", "4"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("a synthetic model opens and verifies, and has the shape it is named for") {
  const LoadedModel model = load_model(tiny().path());
  CHECK(verify_tensors(*model, "tiny"));
  CHECK(model->arch.d_model == 256);
  CHECK(model->arch.decoder_layers == 2);
  CHECK(model->arch.target_vocabulary == 32000);
  CHECK(model->source.pieces() == 32000);
  CHECK(model->source.piece(31998).size() > 3);
}

TEST_CASE("every sentence has exactly the lengths asked for") {
  const Kernels& kernels = *available_kernels()[0];
  for (const uint32_t batch : {1u, 3u}) {
    CAPTURE(batch);
    auto session = bench::Session::open(tiny().path(), kernels, {.slots = batch, .source = 16, .target = 7}, false);
    REQUIRE(session);
    const bench::Workload work = bench::forced_sources((*session)->model().arch, 4, 9);
    const bench::Run run = bench::run_once(**session, work, work.size());
    CHECK(run.source_tokens == 4 * 9);
    CHECK(run.target_tokens == 4 * 7);
    CHECK(run.sentence.size() == 4);
    CHECK(run.first_token.size() == 4);
    for (size_t i = 0; i < 4; ++i) CHECK(run.first_token[i] <= run.sentence[i] + 1e-3);
  }
}

TEST_CASE("the profile counts every product of a run, however many threads share it") {
  for (const uint32_t threads : {1u, 2u}) {
    CAPTURE(threads);
    const Limits limits{.slots = 2, .source = 16, .target = 5, .threads = threads};
    auto session = bench::Session::open(tiny().path(), *available_kernels()[0], limits, true);
    REQUIRE(session);
    const bench::Workload work = bench::forced_sources((*session)->model().arch, 2, 8);
    bench::run_once(**session, work, 2);
    const bench::Profile profile = (*session)->profiler()->collect();
    CHECK(profile.steps == 5);
    uint64_t counted = 0;
    for (const bench::ProfilePart& part : profile.parts) {
      counted += part.total.s8;
      if (part.name == "output projection") CHECK(part.total.s8 == uint64_t{2 * 5} * 256 * 32000);
      if (part.name == "decoder cross kv") CHECK(part.total.s8 == uint64_t{2 * 8} * 2 * 256 * 512);
      if (part.name == "encoder attention") CHECK(part.total.f32 == uint64_t{2} * 6 * 2 * 8 * 8 * 256);
      if (part.name == "decoder argmax") CHECK(part.total.bytes == uint64_t{2 * 5} * 32000 * sizeof(float));
    }
    const uint64_t d = 256, ffn = 1536;
    const uint64_t encoder = 2 * 8 * (6 * (4 * d * d + 2 * d * ffn) + 2 * 2 * d * d);
    const uint64_t decoder = 2 * 5 * (2 * (6 * d * d + 2 * d * ffn) + d * 32000);
    CHECK(counted == encoder + decoder);
    CHECK(profile.decoder_weights == 2 * (6 * d * d + 2 * d * ffn) + d * 32000);
  }
}

TEST_CASE("a bound is the longer of reading and multiplying") {
  bench::MachineLimits machine;
  machine.read = {{1 << 10, 4e9}, {1 << 20, 1e9}};
  machine.s8 = 8e9;
  machine.f32 = 2e9;
  CHECK(machine.read_rate(1) == 4e9);
  CHECK(std::abs(machine.read_rate(1 << 15) - 2.5e9) < 1);  // half way between the sizes, as powers go
  CHECK(machine.read_rate(1e12) == 1e9);
  bench::Profile profile;
  profile.decoder_weights = 1 << 20;
  profile.parts = {{"output projection", false, bench::Kind::kProduct, {.bytes = 1000000, .s8 = 4000000}}};
  CHECK(std::abs(bench::bound_of(profile, machine).seconds - 1e-3) < 1e-9);
  CHECK(bench::bound_of(profile, machine).by_memory());
  profile.parts[0].total.s8 = 16000000;
  CHECK(std::abs(bench::bound_of(profile, machine).seconds - 2e-3) < 1e-9);
  CHECK(!bench::bound_of(profile, machine).by_memory());
}

TEST_CASE("the table of products has each shape of the four models once") {
  const std::vector<bench::GemmShape> shapes = bench::gemm_shapes();
  CHECK(shapes.size() == 20);
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (size_t j = 0; j < i; ++j) CHECK((shapes[i].k != shapes[j].k || shapes[i].n != shapes[j].n));
  }
  CHECK(shapes[0].weights == 2 * (6 * 256 * 256 + 2 * 256 * 1536) + 256 * 32000);  // as the profile counts, above
  const auto rows = bench::gemm_rows({available_kernels()[0]}, std::regex("gemm_s8/.*-output/.*m:(32|128)$"), false);
  REQUIRE(rows.size() == 4);  // no decoder has 128 sentences
  CHECK(rows[0].working_set == 256 * 32000);
  CHECK(rows[0].name().ends_with("/tiny-output/k:256/n:32000/m:32"));
}

TEST_CASE("numbers for the products keep the kernels' contract, and weights are not left in a cache by accident") {
  const bench::GemmShape shape{"odd", 32, 48, 32 * 48 * 7 + 5, {3}};
  CHECK(bench::copies_of(shape, true) == 7);
  CHECK(bench::copies_of({"large", 1024, 32000, size_t{1} << 40, {1}}, false) == 1);  // 125 of at most 128 MB
  const bench::GemmData data(shape, true);
  for (size_t i = 0; i < data.w_s8.size(); i += 2) {
    CHECK(data.w_s8[i] >= -127);
    CHECK(std::abs(data.w_s8[i] + data.w_s8[i + 1]) <= kPairLimit);
  }
}

TEST_CASE("what is said of products: the nearer limit, and the mean of the ratios") {
  bench::MachineLimits machine;
  machine.read = {{1 << 10, 4e9}, {1 << 20, 1e9}};
  machine.s8 = 8e9;
  bench::GemmRow row{
      .kernels = available_kernels()[0], .s8 = true, .shape = {"a", 1000, 1000, 0, {}}, .m = 1, .form = {}};
  row.working_set = 1 << 20;
  CHECK(bench::gemm_bound(row, machine).by_memory());
  CHECK(std::abs(bench::gemm_bound(row, machine).seconds - 1e-3) < 1e-9);
  row.m = 16;
  CHECK(!bench::gemm_bound(row, machine).by_memory());
  CHECK(std::abs(bench::gemm_bound(row, machine).seconds - 2e-3) < 1e-9);
  row.ours = 1;
  bench::GemmRow faster = row, slower = row;
  faster.onednn = 8;
  slower.onednn = 0.5;
  const bench::GemmSummary summary = bench::summarize({row, faster, slower}, [](const auto&) { return true; });
  CHECK(summary.compared == 2);  // the first has nothing beside it
  CHECK(summary.slower == 1);
  CHECK(std::abs(summary.mean - 2) < 1e-9);
  CHECK(bench::summarize({faster}, [](const auto& r) { return r.m == 1; }).compared == 0);
}

TEST_CASE("dragoman-bench-gemm: one row, as JSON") {
  const auto run = [](const std::vector<std::string>& arguments) {
    return run_command(arguments, {.binary = DRAGOMAN_BENCH_BINARY "-gemm"});
  };
  const Ran ran = run({"--filter", "gemm_s8/.*tiny-out/.*m:4$", "--repeat", "1", "--output", "json"});
  CAPTURE(ran.err);
  REQUIRE(ran.code == 0);
  const nlohmann::json json = nlohmann::json::parse(ran.out);
  REQUIRE(json["rows"].size() == 1);
  CHECK(json["rows"][0]["multiply_adds_per_second"] > 1e6);
  CHECK(json["rows"][0]["percent_of_limit"] > 0);
  if (!json["onednn"].is_null()) CHECK(json["rows"][0]["onednn_error"] < 0.05);  // the same product, rounded weights
  CHECK(run({"--filter", "nothing"}).code == 2);
  CHECK(run({"--filter", "("}).code == 2);
  CHECK(run({"--isa", "abacus"}).err.find("abacus") != std::string::npos);
}

TEST_CASE("growth: exponents between lengths, and steps without what comes once") {
  bench::MachineLimits machine;
  machine.read = {{1 << 10, 1e9}};
  machine.s8 = 4e9;
  const std::vector<bench::GrowthPoint> series = {{8, 8, 1, 2, {9, 4}}, {16, 16, 1, 1, {8}}, {64, 64, 1, 1, {32}}};
  const auto lengths = bench::length_costs(series, machine);
  CHECK(lengths[0].seconds == 2);  // the quickest run, of two sentences
  CHECK(std::abs(lengths[1].exponent - 2) < 1e-9);
  CHECK(std::abs(lengths[2].exponent - 1) < 1e-9);
  bench::Growth growth;
  growth.weights = "int8";
  growth.limits = machine;
  growth.brief = {{25, 8, 2, 8, {1.5}}};
  growth.longer = {{25, 40, 2, 8, {6.62}}};
  growth.longer[0].profile.decoder_weights = 2000000;
  const auto batches = bench::batch_costs(growth);
  CHECK(std::abs(batches[0].step - 0.04) < 1e-9);  // 5.12 s in 4 rounds of 32 steps
  CHECK(std::abs(batches[0].memory - 2e-3) < 1e-9);
  CHECK(std::abs(batches[0].arithmetic - 1e-3) < 1e-9);
}

TEST_CASE("growth of a file, drawn") {
  const TemporaryFolder folder;
  const std::string plot = folder.path() + "/growth.svg";
  const Ran ran = run_bench({"-m", model_path("tiny-int8"), "--growth", plot, "--repeat", "1", "--output", "json"});
  CAPTURE(ran.err);
  REQUIRE(ran.code == 0);
  const nlohmann::json json = nlohmann::json::parse(ran.out);
  CHECK(json["lengths"].size() >= 9);
  CHECK(json["batches"].size() == 7);
  CHECK(read_file(plot).find("</svg>") != std::string::npos);
}

TEST_CASE("JSON has every figure") {
  const TemporaryFolder folder;
  const std::string plot = folder.path() + "/roof.svg";
  const Ran ran = run_bench(quick({"--output", "json", "--profile", "--plot", plot}));
  CAPTURE(ran.err);
  REQUIRE(ran.code == 0);
  const nlohmann::json json = nlohmann::json::parse(ran.out);
  CHECK(json["limits"][0]["int8_multiply_adds_per_second"] > 1e6);
  CHECK(json["limits"][0]["read"].size() > 5);
  const nlohmann::json& row = json["rows"].at(0);
  CHECK(row["model"] == "tiny");
  CHECK(row["source_tokens"] == 3 * 6);
  CHECK(row["target_tokens"] == 3 * 4);
  CHECK(row["wall_seconds"].size() == 2);
  CHECK(row["percent_of_limit"] > 0);
  CHECK(row["arena_mb"] > 0.1);
  CHECK(row["profile"]["parts"].size() > 15);
  CHECK(read_file(plot).find("</svg>") != std::string::npos);
}

TEST_CASE("CSV and markdown are tables") {
  const std::vector<std::string> csv = split_lines(run_bench(quick({"--output", "csv"})).out);
  REQUIRE(csv.size() == 2);
  CHECK(std::count(csv[0].begin(), csv[0].end(), ',') == std::count(csv[1].begin(), csv[1].end(), ','));
  CHECK(bench::layout({{"a", "bb"}, {"x", "1.5"}}, false) == "a   bb\n-  ---\nx  1.5\n");
  CHECK(bench::layout({{"a", "bb"}, {"x", "1.5"}}, true) == "| a |  bb |\n| - | --: |\n| x | 1.5 |\n");
}

TEST_CASE("a file is measured with its own lengths, or with forced ones") {
  const std::string model = model_path("tiny-int8");
  const std::vector<std::string> natural = {"-m", model, "--batch", "4", "--repeat", "1", "--output", "json"};
  const nlohmann::json json = nlohmann::json::parse(run_bench(natural).out);
  CHECK(json["source_length"] == "natural");
  CHECK(json["rows"][0]["target_tokens"] > 16);
  const nlohmann::json forced = nlohmann::json::parse(run_bench(quick({"-m", model, "--output", "json"})).out);
  CHECK(forced["rows"][0]["target_tokens"] == 3 * 4);
}

TEST_CASE("a command line that asks for what is not there") {
  const auto refused = [](const std::vector<std::string>& arguments, int code, const std::string& part) {
    const Ran ran = run_bench(arguments);
    CAPTURE(ran.err);
    CHECK(ran.code == code);
    CHECK(ran.out.empty());
    CHECK(ran.err.starts_with("dragoman-bench: "));
    CHECK(split_lines(ran.err).size() == 1);
    CHECK(ran.err.find(part) != std::string::npos);
  };
  refused({"--synthetic", "huge"}, 2, "huge");
  refused({"--batch", "0"}, 2, "--batch");
  refused({"--batch", "1,x"}, 2, "--batch");
  refused({"--isa", "abacus"}, 2, "portable");
  refused({"--frobnicate"}, 2, "--frobnicate");
  refused({"--output", "png"}, 2, "png");
  refused({"--input", "lines.txt"}, 2, "--model");
  refused({"--source-length", "8", "--target-length", "27"}, 2, "26");
  refused({"--growth", "g.svg", "--synthetic", "tiny,base"}, 2, "one model");
  refused({"--growth", "g.svg", "--batch", "4"}, 2, "--batch");
  refused({"--growth", "g.svg", "--output", "csv"}, 2, "json");
  refused({"--source-length", "2000"}, 2, "1024");
  refused({"-m", "/nowhere.dgm", "--synthetic", "tiny"}, 2, "--synthetic");
  refused({"-m", "/nowhere.dgm"}, 1, "/nowhere.dgm");
  CHECK(run_bench({"--help"}).out.find("--synthetic") != std::string::npos);
}

}  // namespace
}  // namespace dragoman::test
