#include "bench/growth.h"

#include <algorithm>
#include <cmath>

namespace dragoman::bench {
namespace {

constexpr uint32_t kLengths[] = {8, 16, 32, 64, 128, 256, 512};
constexpr uint32_t kBatches[] = {1, 2, 4, 8, 16, 32, 64};
constexpr uint32_t kFixedTarget = 16;                       // the shortest source may have 26
constexpr uint32_t kSource = 25, kBrief = 8, kLonger = 40;  // of the batches

// One point and the translator that serves it.
struct Station {
  GrowthPoint* point;
  std::unique_ptr<Session> session;
  Workload work;

  void time() {
    const Run run = run_once(*session, work, point->sentences);
    point->seconds.push_back(session->translator().plan().limits.threads == 1 ? run.cpu : run.wall);
  }
};

Result<Station> open_station(GrowthPoint& point, const BenchModel& model, const Kernels& kernels, uint32_t threads,
                             bool profiled) {
  Limits limits;
  limits.slots = point.batch;
  limits.threads = threads;
  limits.source = std::max(point.source, 16u);  // the least a plan takes
  limits.target = point.target;
  Result<std::unique_ptr<Session>> session = Session::open(model.path, kernels, limits, profiled);
  if (!session) return session.error();
  Workload work = forced_sources((*session)->model().arch, point.sentences, point.source);
  return Station{&point, std::move(*session), std::move(work)};
}

void choose_points(Growth& growth, uint32_t positions) {
  growth.by_length.resize(std::size(kGrowthSeries));
  for (const uint32_t length : kLengths) {
    if (length > positions) continue;
    const uint32_t sentences = std::clamp(256 / length, 1u, 8u);
    const uint32_t targets[] = {1, kFixedTarget, length};
    for (size_t i = 0; i < std::size(targets); ++i) growth.by_length[i].push_back({length, targets[i], 1, sentences});
  }
  for (const uint32_t batch : kBatches) {
    const uint32_t sentences = std::max(batch, 8u);
    growth.brief.push_back({kSource, kBrief, batch, sentences});
    growth.longer.push_back({kSource, kLonger, batch, sentences});
  }
}

std::vector<GrowthPoint*> points_of(Growth& growth) {
  std::vector<GrowthPoint*> points;
  for (auto& series : growth.by_length) {
    for (GrowthPoint& point : series) points.push_back(&point);
  }
  for (size_t i = 0; i < growth.brief.size(); ++i) {  // side by side, because their difference is wanted
    points.push_back(&growth.brief[i]);
    points.push_back(&growth.longer[i]);
  }
  return points;
}

Status profile_point(GrowthPoint& point, const BenchModel& model, const Kernels& kernels, uint32_t threads) {
  Result<Station> station = open_station(point, model, kernels, threads, true);
  if (!station) return station.error();
  run_once(*station->session, station->work, point.sentences);
  point.profile = station->session->profiler()->collect();
  return Done{};
}

Result<uint32_t> positions_of(const BenchModel& model, const Kernels& kernels) {
  const Result<std::unique_ptr<Session>> session =
      Session::open(model.path, kernels, {.source = 16, .target = 1}, false);
  if (!session) return session.error();
  return (*session)->model().arch.positions;
}

}  // namespace

std::vector<LengthCost> length_costs(const std::vector<GrowthPoint>& series, const MachineLimits& limits) {
  std::vector<LengthCost> costs;
  for (const GrowthPoint& point : series) {
    LengthCost cost{&point, point.sentence_seconds(), bound_of(point.profile, limits).seconds / point.sentences, 0, 0};
    if (!costs.empty()) {
      const LengthCost& before = costs.back();
      const double longer = std::log(static_cast<double>(point.source) / before.point->source);
      cost.exponent = std::log(cost.seconds / before.seconds) / longer;
      cost.limit_exponent = std::log(cost.limit / before.limit) / longer;
    }
    costs.push_back(cost);
  }
  return costs;
}

std::vector<BatchCost> batch_costs(const Growth& growth) {
  const bool int8 = growth.weights == "int8";
  const double bytes = static_cast<double>(growth.decoder_bytes());
  std::vector<BatchCost> costs;
  for (size_t i = 0; i < growth.longer.size(); ++i) {
    const GrowthPoint &longer = growth.longer[i], &brief = growth.brief[i];
    const double rounds = static_cast<double>(longer.sentences) / longer.batch;
    BatchCost cost{.batch = longer.batch, .step = 0, .tokens_per_second = 0, .memory = 0, .arithmetic = 0};
    cost.step = (longer.run_seconds() - brief.run_seconds()) / rounds / (longer.target - brief.target);
    cost.tokens_per_second = longer.target / longer.sentence_seconds();
    cost.memory = bytes / growth.limits.read_rate(bytes);
    cost.arithmetic = longer.batch * (int8 ? bytes / growth.limits.s8 : bytes / sizeof(float) / growth.limits.f32);
    costs.push_back(cost);
  }
  return costs;
}

Result<Growth> measure_growth(const Arguments& arguments, const std::function<void(const char*)>& progress) {
  Results results;
  if (const Status made = make_models(arguments, progress, results); !made) return made.error();
  const BenchModel& model = results.models.front();
  const Kernels& kernels = arguments.isa.empty() ? *available_kernels()[0] : *find_kernels(arguments.isa[0].c_str());
  const uint32_t threads = arguments.threads[0];
  Growth growth;
  growth.model = model.name;
  growth.weights = model.weights;
  progress("measuring this machine");
  const Result<MachineLimits> limits = measure_limits(kernels, threads);
  if (!limits) return limits.error();
  growth.limits = *limits;
  const Result<uint32_t> positions = positions_of(model, kernels);
  if (!positions) return positions.error();
  choose_points(growth, *positions);
  std::vector<Station> stations;
  for (GrowthPoint* point : points_of(growth)) {
    if (const Status done = profile_point(*point, model, kernels, threads); !done) return done.error();
    Result<Station> station = open_station(*point, model, kernels, threads, false);
    if (!station) return station.error();
    stations.push_back(std::move(*station));
    run_once(*stations.back().session, stations.back().work, 1);  // touches every page
  }
  for (uint32_t repeat = 0; repeat < arguments.repeat; ++repeat) {
    progress(("repeat " + std::to_string(repeat + 1)).c_str());
    for (Station& station : stations) station.time();
  }
  const Result<MachineLimits> again = measure_limits(kernels, threads);
  if (again) growth.limits.improve(*again);
  return growth;
}

}  // namespace dragoman::bench
