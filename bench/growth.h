// How the cost grows: time against the length of a sentence, and time of a step against the sentences side by side.
#pragma once

#include "bench/measure.h"

namespace dragoman::bench {

// Runs over `sentences` of equal lengths.
struct GrowthPoint {
  uint32_t source, target, batch, sentences;
  std::vector<double> seconds{};  // of a run, by repeat: of CPU time with one thread, else of wall time
  Profile profile{};              // what such a run reads and multiplies

  // The quickest run: a law of growth is about a machine that is left alone.
  double run_seconds() const { return percentile(seconds, 0); }
  double sentence_seconds() const { return run_seconds() / sentences; }
};

struct Growth {
  std::string model, weights;
  MachineLimits limits;
  std::vector<std::vector<GrowthPoint>> by_length;  // batch 1; a series for each rule of the target's length
  std::vector<GrowthPoint> brief, longer;           // by batch: few steps, and many

  uint64_t decoder_bytes() const { return longer[0].profile.decoder_weights; }  // that one step reads
};

// Names of the series in Growth::by_length.
inline constexpr const char* kGrowthSeries[] = {"target 1: the encoder", "target 16", "target = source"};

// An exponent e says that time grew as length^e since the point before; 0 for the first.
struct LengthCost {
  const GrowthPoint* point;
  double seconds, limit;  // of a sentence: as measured, and the least this machine needs (bound.h)
  double exponent, limit_exponent;
};
std::vector<LengthCost> length_costs(const std::vector<GrowthPoint>& series, const MachineLimits& limits);

// The difference between many steps and few has neither the encoder nor anything else that comes once in a sentence.
struct BatchCost {
  uint32_t batch;
  double step;                // seconds
  double tokens_per_second;   // of the longer runs, encoder included
  double memory, arithmetic;  // the least a step takes: to read the weights, to multiply
};
std::vector<BatchCost> batch_costs(const Growth& growth);

Result<Growth> measure_growth(const Arguments& arguments, const std::function<void(const char*)>& progress);

std::string growth_report(const Growth& growth, const Arguments& arguments);
std::string growth_svg(const Growth& growth);

}  // namespace dragoman::bench
