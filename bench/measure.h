// Every combination that was asked for, run in turn, several times.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/bound.h"
#include "bench/memory_file.h"
#include "bench/workload.h"

namespace dragoman::bench {

struct BenchModel {
  std::string name;  // "base", or the file's
  std::string path;
  std::string weights;  // "int8" or "f32"
  size_t bytes = 0;     // of the file
  MemoryFile file;      // where the path leads to memory
};

struct Row {
  const BenchModel* model = nullptr;
  const Kernels* kernels = nullptr;
  uint32_t threads = 1, batch = 1;
  const MachineLimits* limits = nullptr;

  size_t sentences = 0;  // in a run
  uint64_t source_tokens = 0, target_tokens = 0;
  std::vector<double> wall, cpu, load, start;  // by repeat; start: load and the first token after it
  std::vector<double> limit_then;              // by repeat: the least time, by limits measured just before and after
  std::vector<double> first_token, sentence;   // of all repeats
  size_t arena_bytes = 0, peak_bytes = 0;

  Profile profile;             // of its quickest profiled run
  double profile_seconds = 0;  // that run's time, CPU or wall as below
  double tokenize = 0, detokenize = 0;
  Bound bound;

  // The least time there could be, to the median of what it took: of CPU time with one thread, where that is wall time
  // without what other programs took; of wall time with several, which may wait for each other.
  double limit_fraction() const;
  double limit_then_fraction() const;  // the median of the same by repeat, each to the limit of its own moment
};

struct Results {
  std::vector<BenchModel> models;
  std::vector<MachineLimits> limits;  // for each instruction set and number of threads
  std::vector<Row> rows;
};

double median(std::vector<double> values);                       // 0 of nothing
double percentile(std::vector<double> values, double fraction);  // the nearest of them

// The models that were asked for, at the end of results.models.
Status make_models(const Arguments& arguments, const std::function<void(const char*)>& progress, Results& results);

// Fills `results`, which must stay where it is. progress: what is done now, for a person who waits.
Status measure(const Arguments& arguments, const std::function<void(const char*)>& progress, Results& results);

}  // namespace dragoman::bench
