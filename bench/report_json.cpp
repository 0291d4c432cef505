#include "bench/report_json.h"

#include <algorithm>
#include <fstream>
#include <thread>

#include "bench/report.h"

namespace dragoman::bench {
namespace {

using Json = nlohmann::json;

double per_second(uint64_t tokens, const std::vector<double>& seconds) {
  const double took = median(seconds);
  return took > 0 ? static_cast<double>(tokens) / took : 0;
}

double milliseconds(const std::vector<double>& seconds, double fraction) {
  return 1e3 * percentile(seconds, fraction);
}

Json peak(const Row& row) {
  return row.peak_bytes > 0 ? Json(static_cast<double>(row.peak_bytes) / 1e6) : Json();
}

Json part_json(const ProfilePart& part, const Row& row) {
  const Bound bound = bound_of(part, row.profile, *row.limits);
  const Counters& total = part.total;
  return {{"part", part.name},
          {"side", part.encoder ? "encoder" : "decoder"},
          {"calls", total.calls},
          {"seconds", total.seconds},
          {"bytes", total.bytes},
          {"working_set_bytes", working_set(part, row.profile)},
          {"int8_multiply_adds", total.s8},
          {"float32_multiply_adds", total.f32},
          {"limit_seconds", bound.seconds},
          {"limit", bound.by_memory() ? "memory" : "arithmetic"},
          {"limit_fraction", bound.seconds / total.seconds}};
}

Json profile_json(const Row& row) {
  Json parts = Json::array();
  for (const ProfilePart& part : row.profile.parts) parts.push_back(part_json(part, row));
  return {{"seconds", row.profile_seconds},
          {"decoder_steps", row.profile.steps},
          {"decoder_weight_bytes", row.profile.decoder_weights},
          {"encoder_weight_bytes", row.profile.encoder_weights},
          {"tokenize_seconds", row.tokenize},
          {"detokenize_seconds", row.detokenize},
          {"parts", parts}};
}

}  // namespace

Json limits_json(const MachineLimits& limits) {
  Json read = Json::array();
  for (const auto& b : limits.read)
    read.push_back({{"working_set_bytes", b.bytes}, {"bytes_per_second", b.per_second}});
  return {{"isa", limits.isa},
          {"threads", limits.threads},
          {"int8_multiply_adds_per_second", limits.s8},
          {"int8_own_instructions", limits.s8_own},
          {"int8_as_int16", limits.s8_as_s16},
          {"float32_multiply_adds_per_second", limits.f32},
          {"read", read}};
}

const std::vector<Column>& columns() {
  static const std::vector<Column> all = {
      {"model", "model", 0, [](const Row& r) -> Json { return r.model->name; }},
      {"weights", "weights", 0, [](const Row& r) -> Json { return r.model->weights; }},
      {"isa", "isa", 0, [](const Row& r) -> Json { return r.kernels->name; }},
      {"threads", "threads", 0, [](const Row& r) -> Json { return r.threads; }},
      {"batch", "batch", 0, [](const Row& r) -> Json { return r.batch; }},
      {"sentences", nullptr, 0, [](const Row& r) -> Json { return r.sentences; }},
      {"source_tokens", nullptr, 0, [](const Row& r) -> Json { return r.source_tokens; }},
      {"target_tokens", nullptr, 0, [](const Row& r) -> Json { return r.target_tokens; }},
      {"target_tokens_per_second", "target/s", 1,
       [](const Row& r) -> Json { return per_second(r.target_tokens, r.wall); }},
      {"target_tokens_per_cpu_second", "per CPU-s", 1,
       [](const Row& r) -> Json { return per_second(r.target_tokens, r.cpu); }},
      {"source_tokens_per_second", "source/s", 1,
       [](const Row& r) -> Json { return per_second(r.source_tokens, r.wall); }},
      {"source_tokens_per_cpu_second", "per CPU-s", 1,
       [](const Row& r) -> Json { return per_second(r.source_tokens, r.cpu); }},
      {"first_token_ms", "first ms", 2, [](const Row& r) -> Json { return milliseconds(r.first_token, 0.5); }},
      {"sentence_p50_ms", "p50 ms", 1, [](const Row& r) -> Json { return milliseconds(r.sentence, 0.5); }},
      {"sentence_p95_ms", "p95 ms", 1, [](const Row& r) -> Json { return milliseconds(r.sentence, 0.95); }},
      {"arena_mb", "arena MB", 2, [](const Row& r) -> Json { return static_cast<double>(r.arena_bytes) / 1e6; }},
      {"peak_mb", "peak MB", 1, peak},
      {"model_mb", nullptr, 2, [](const Row& r) -> Json { return static_cast<double>(r.model->bytes) / 1e6; }},
      {"load_ms", "load ms", 2, [](const Row& r) -> Json { return milliseconds(r.load, 0.5); }},
      {"load_and_first_token_ms", nullptr, 2, [](const Row& r) -> Json { return milliseconds(r.start, 0.5); }},
      {"limit", "limit", 0, [](const Row& r) -> Json { return r.bound.by_memory() ? "memory" : "arithmetic"; }},
      {"limit_memory_ms", nullptr, 2, [](const Row& r) -> Json { return 1e3 * r.bound.memory; }},
      {"limit_arithmetic_ms", nullptr, 2, [](const Row& r) -> Json { return 1e3 * r.bound.arithmetic; }},
      {"limit_ms", nullptr, 2, [](const Row& r) -> Json { return 1e3 * r.bound.seconds; }},
      {"run_ms", nullptr, 2, [](const Row& r) -> Json { return milliseconds(r.wall, 0.5); }},
      {"percent_of_limit", "% of limit", 1, [](const Row& r) -> Json { return 100 * r.limit_fraction(); }},
      {"percent_of_limit_then", "% then", 1, [](const Row& r) -> Json { return 100 * r.limit_then_fraction(); }},
  };
  return all;
}

std::string machine_name() {
  std::ifstream in("/proc/cpuinfo");
  std::string name = "unknown CPU";
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("model name") && !line.starts_with("Model")) continue;
    name = line.substr(std::min(line.find(':') + 2, line.size()));
    break;
  }
  return name + ", " + std::to_string(std::thread::hardware_concurrency()) + " CPUs";
}

std::string json_report(const Results& results, const Arguments& arguments) {
  Json json = {{"program", "dragoman-bench " DRAGOMAN_VERSION}, {"machine", machine_name()}};
  json["repeat"] = arguments.repeat;
  json["preload"] = arguments.preload;
  json["source_length"] = arguments.forced() ? Json(arguments.source_length) : Json("natural");
  json["target_length"] = arguments.forced() ? Json(arguments.target_length) : Json("natural");
  json["limits"] = Json::array();
  for (const MachineLimits& limits : results.limits) json["limits"].push_back(limits_json(limits));
  json["rows"] = Json::array();
  for (const Row& row : results.rows) {
    Json& to = json["rows"].emplace_back(Json::object());
    for (const Column& column : columns()) to[column.key] = column.value(row);
    to["wall_seconds"] = row.wall;
    to["cpu_seconds"] = row.cpu;
    if (arguments.profile) to["profile"] = profile_json(row);
  }
  return json.dump(1) + "\n";
}

}  // namespace dragoman::bench
