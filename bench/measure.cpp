#include "bench/measure.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "bench/session.h"
#include "bench/synthetic_model.h"

namespace dragoman::bench {
namespace {

// A file with forced lengths: the same, but that eos can never win.
Result<MemoryFile> without_eos(std::span<const std::byte> file, const Model& model) {
  std::vector<std::byte> bytes(file.begin(), file.end());
  const std::string name = model.has(kTiedOutput) ? "target_embedding.bias" : "output.bias";
  const float never = -std::numeric_limits<float>::infinity();
  for (const Section& section : model.sections) {
    if (name != section.name) continue;
    std::memcpy(bytes.data() + section.offset + model.arch.eos * sizeof never, &never, sizeof never);
  }
  return MemoryFile::create(bytes);
}

Status open_file(const Arguments& arguments, BenchModel& to) {
  Result<MappedFile> file = map_file(arguments.model.c_str());
  if (!file) return file.error();
  const auto model = std::make_unique<Model>();
  Status status = open_model(file->bytes, arguments.model.c_str(), *model);
  to.name = arguments.model.substr(arguments.model.rfind('/') + 1);
  to.path = arguments.model;
  to.weights = model->arch.weights == Weights::kInt8 ? "int8" : "f32";
  to.bytes = file->bytes.size();
  if (status && arguments.forced()) {
    Result<MemoryFile> copy = without_eos(file->bytes, *model);
    if (copy) {
      to.file = std::move(*copy);
      to.path = to.file.path();
    } else {
      status = copy.error();
    }
  }
  unmap_file(*file);
  return status;
}

}  // namespace

Status make_models(const Arguments& arguments, const std::function<void(const char*)>& progress, Results& results) {
  if (!arguments.model.empty()) return open_file(arguments, results.models.emplace_back());
  for (const std::string& name : arguments.synthetic) {
    for (const std::string& quantize : arguments.quantize) {
      progress(("making " + name + " " + quantize).c_str());
      const bool int8 = quantize == "int8";
      Result<MemoryFile> file = synthetic_model(*find_shape(name), int8 ? Weights::kInt8 : Weights::kF32);
      if (!file) return file.error();
      BenchModel& model = results.models.emplace_back();
      model = {name, file->path(), int8 ? "int8" : "f32", file->bytes(), std::move(*file)};
    }
  }
#if defined(__GLIBC__)
  malloc_trim(0);  // what making them took is not part of any run's peak
#endif
  return Done{};
}

namespace {

void make_rows(const Arguments& arguments, Results& results) {
  std::vector<const Kernels*> tables;
  for (const std::string& isa : arguments.isa) tables.push_back(find_kernels(isa.c_str()));
  if (tables.empty()) tables.push_back(available_kernels()[0]);
  for (const BenchModel& model : results.models) {
    for (const Kernels* table : tables) {
      for (const uint32_t threads : arguments.threads) {
        for (const uint32_t batch : arguments.batch) {
          Row& row = results.rows.emplace_back();
          row.model = &model;
          row.kernels = table;
          row.threads = threads;
          row.batch = batch;
        }
      }
    }
  }
}

// Before all runs and again after them: a neighbour may have been busy in between.
Status measure_machine(Results& results) {
  for (MachineLimits& limits : results.limits) {
    const Result<MachineLimits> again = measure_limits(*find_kernels(limits.isa.c_str()), limits.threads);
    if (!again) return again.error();
    limits.improve(*again);
  }
  const auto find = [&](const Row& row) {
    return std::find_if(results.limits.begin(), results.limits.end(), [&](const MachineLimits& limits) {
      return limits.isa == row.kernels->name && limits.threads == row.threads;
    });
  };
  for (const Row& row : results.rows) {
    if (find(row) != results.limits.end()) continue;
    Result<MachineLimits> limits = measure_limits(*row.kernels, row.threads);
    if (!limits) return limits.error();
    results.limits.push_back(std::move(*limits));
  }
  for (Row& row : results.rows) row.limits = &*find(row);
  return Done{};
}

// The plan of a row: exactly the lengths asked for, so that the cap is the end of every sentence.
Limits limits_of(const Arguments& arguments, const Row& row) {
  Limits limits;
  limits.slots = row.batch;
  limits.threads = row.threads;
  if (arguments.forced()) {
    limits.source = std::max(arguments.source_length, 16u);  // the least a plan takes
    limits.target = arguments.target_length;
  }
  return limits;
}

Result<std::unique_ptr<Session>> open_session(const Arguments& arguments, const Row& row, bool profiled) {
  return Session::open(row.model->path, *row.kernels, limits_of(arguments, row), profiled, arguments.preload);
}

Result<Workload> make_workload(const Arguments& arguments, const Row& row, const Model& model) {
  if (!arguments.forced()) return text_sources(arguments.input);
  const uint32_t count = arguments.sentences > 0 ? arguments.sentences : std::max(row.batch, 8u);
  return forced_sources(model.arch, count, arguments.source_length);
}

size_t count_of(const Arguments& arguments, const Workload& work) {
  return arguments.sentences > 0 ? std::min<size_t>(arguments.sentences, work.size()) : work.size();
}

// Counts bytes and products; keeps the quickest of `runs`.
Status profile_row(const Arguments& arguments, Row& row, uint32_t runs) {
  Result<std::unique_ptr<Session>> session = open_session(arguments, row, true);
  if (!session) return session.error();
  const Result<Workload> work = make_workload(arguments, row, (*session)->model());
  if (!work) return work.error();
  row.sentences = count_of(arguments, *work);
  run_once(**session, *work, 1);  // touches every page
  for (uint32_t i = 0; i < runs; ++i) {
    (*session)->profiler()->reset();
    const Run run = run_once(**session, *work, row.sentences);
    const double took = row.threads == 1 ? run.cpu : run.wall;
    if (i > 0 && took > row.profile_seconds) continue;
    row.profile = (*session)->profiler()->collect();
    row.profile_seconds = took;
    row.tokenize = run.tokenize;
    row.detokenize = run.detokenize;
  }
  return Done{};
}

Status time_row(const Arguments& arguments, Row& row) {
  const bool peak_known = reset_peak();
  Result<std::unique_ptr<Session>> session = open_session(arguments, row, false);
  if (!session) return session.error();
  const Result<Workload> work = make_workload(arguments, row, (*session)->model());
  if (!work) return work.error();
  const Run cold = run_once(**session, *work, 1);
  const Run run = run_once(**session, *work, row.sentences);
  row.wall.push_back(run.wall);
  row.cpu.push_back(run.cpu);
  row.load.push_back((*session)->load_seconds());
  if (!cold.first_token.empty()) row.start.push_back((*session)->load_seconds() + cold.first_token[0]);
  row.first_token.insert(row.first_token.end(), run.first_token.begin(), run.first_token.end());
  row.sentence.insert(row.sentence.end(), run.sentence.begin(), run.sentence.end());
  row.source_tokens = run.source_tokens;
  row.target_tokens = run.target_tokens;
  row.arena_bytes = (*session)->translator().plan().bytes;
  if (peak_known) row.peak_bytes = std::max(row.peak_bytes, peak_bytes());
  return Done{};
}

// The least time of a run by what the machine does at this moment.
Result<double> limit_now(const Row& row) {
  const Result<MachineLimits> now = measure_limits(*row.kernels, row.threads, Moment::kNow, working_sets(row.profile));
  if (!now) return now.error();
  return bound_of(row.profile, *now).seconds;
}

Status time_row_between_limits(const Arguments& arguments, Row& row) {
  const Result<double> before = limit_now(row);
  if (!before) return before.error();
  if (const Status done = time_row(arguments, row); !done) return done;
  const Result<double> after = limit_now(row);
  if (!after) return after.error();
  row.limit_then.push_back((*before + *after) / 2);
  return Done{};
}

}  // namespace

double percentile(std::vector<double> values, double fraction) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(fraction * static_cast<double>(values.size() - 1)))];
}

double median(std::vector<double> values) {
  return percentile(std::move(values), 0.5);
}

double Row::limit_fraction() const {
  const double took = median(threads == 1 ? cpu : wall);
  return took > 0 ? bound.seconds / took : 0;
}

double Row::limit_then_fraction() const {
  std::vector<double> fractions;
  for (size_t i = 0; i < limit_then.size(); ++i) fractions.push_back(limit_then[i] / (threads == 1 ? cpu : wall)[i]);
  return median(fractions);
}

Status measure(const Arguments& arguments, const std::function<void(const char*)>& progress, Results& results) {
  results.models.reserve(arguments.synthetic.size() * arguments.quantize.size() + 1);  // rows point at them
  if (const Status made = make_models(arguments, progress, results); !made) return made;
  make_rows(arguments, results);
  progress("measuring this machine");
  if (const Status known = measure_machine(results); !known) return known;
  for (Row& row : results.rows) {
    progress("profiling");
    if (const Status done = profile_row(arguments, row, arguments.profile ? std::max(arguments.repeat, 3u) : 1); !done)
      return done;
  }
  for (uint32_t repeat = 0; repeat < arguments.repeat; ++repeat) {
    progress(("repeat " + std::to_string(repeat + 1)).c_str());
    for (Row& row : results.rows) {
      if (const Status done = time_row_between_limits(arguments, row); !done) return done;
    }
  }
  progress("measuring this machine");
  if (const Status known = measure_machine(results); !known) return known;
  for (Row& row : results.rows) row.bound = bound_of(row.profile, *row.limits);
  return Done{};
}

}  // namespace dragoman::bench
