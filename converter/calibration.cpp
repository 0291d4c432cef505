#include "converter/calibration.h"

#include <algorithm>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "converter/arbitrary_ids.h"
#include "converter/reference.h"

namespace dragoman {
namespace {

// The products whose inputs are to be known.
std::vector<const LinearWeights*> watched(const Checkpoint& checkpoint) {
  std::vector<const LinearWeights*> maps{&checkpoint.output_layer()};
  for (const auto& [self, ffn] : checkpoint.encoder) maps.insert(maps.end(), {&self.q, &self.out, &ffn.in, &ffn.out});
  for (const auto& [self, cross, ffn] : checkpoint.decoder)
    maps.insert(maps.end(), {&self.q, &self.out, &cross.q, &cross.k, &cross.out, &ffn.in, &ffn.out});
  return maps;
}

Calibration empty_calibration(const std::vector<const LinearWeights*>& maps) {
  Calibration moments;
  for (const LinearWeights* map : maps) moments.try_emplace(map, map->k);
  return moments;
}

// 8 to 31 ids with eos each; fewer sources for larger models, whose reference takes longer (128 for en-de: 5 s on two
// cores of a Zen 3; 32 for a model of 60 M weights).
std::vector<std::vector<int32_t>> make_sources(const Checkpoint& checkpoint, double weights) {
  const size_t count = std::clamp<size_t>(static_cast<size_t>(1e9 / weights), 32, 128);
  std::vector<std::vector<int32_t>> sources;
  for (size_t i = 0; i < count; ++i) {
    const size_t length = std::min<size_t>(7 + i % 24, checkpoint.arch.positions - 1);
    sources.push_back(arbitrary_ids(checkpoint.arch, length, 1000 + i));
    sources.back().push_back(static_cast<int32_t>(checkpoint.arch.eos));
  }
  return sources;
}

}  // namespace

Calibration calibrate(const Checkpoint& checkpoint, const Progress& progress) {
  const std::vector<const LinearWeights*> maps = watched(checkpoint);
  double weights = 0;
  for (const LinearWeights* map : maps) weights += static_cast<double>(map->w.size());
  const std::vector<std::vector<int32_t>> sources = make_sources(checkpoint, weights);
  // As many shares on every machine, added in the same order: the same checkpoint gives the same file.
  constexpr size_t kShares = 2;
  std::vector<Calibration> shares(kShares, empty_calibration(maps));
  std::mutex showing;
  size_t done = 0;
  const auto run_share = [&](size_t share) {
    const Reference reference(checkpoint, [&](const LinearWeights& map, const DoubleMatrix& x) {
      const auto found = shares[share].find(&map);
      if (found == shares[share].end()) return;
      for (size_t r = 0; r < x.rows; ++r) found->second.add(x.row(r));
    });
    for (size_t i = share; i < sources.size(); i += kShares) {
      reference.greedy(sources[i], sources[i].size() + 10);
      const std::lock_guard lock(showing);
      if (progress) progress("calibrating", static_cast<double>(++done) / static_cast<double>(sources.size()));
    }
  };
  {
    std::vector<std::jthread> threads;
    for (size_t share = 0; share < kShares; ++share) {
      try {
        threads.emplace_back(run_share, share);
      } catch (const std::system_error&) {  // no thread to be had: the same, later
        run_share(share);
      }
    }
  }
  for (auto& [map, moments] : shares[0])
    for (size_t share = 1; share < kShares; ++share) moments.add(shares[share].at(map));
  return std::move(shares[0]);
}

}  // namespace dragoman
