#include "bench/limits.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <thread>

#include "bench/limit_loops.h"
#include "kernels/float_env.h"
#include "runtime/arena.h"
#include "runtime/clock.h"

namespace dragoman::bench {
namespace {

// Close together around 32 MB, a common size of the last cache: the rate falls steeply there.
constexpr size_t kSizes[] = {16 << 10, 128 << 10, 256 << 10, 1 << 20,  4 << 20,  8 << 20,   16 << 20,
                             24 << 20, 32 << 20,  40 << 20,  48 << 20, 64 << 20, 128 << 20, 256 << 20};
constexpr double kSlice = 0.004;           // seconds of one timing: within one time slice of a busy machine
constexpr int kTries = 12, kTriesNow = 5;  // a best needs more of them than a median

// Runs work(thread) on all threads at once, after all have arrived; returns the seconds until the last is done.
double together(size_t threads, const std::function<void(size_t)>& work) {
  std::atomic<size_t> arrived{0};
  std::atomic<double> last{0};
  double begin = 0;
  const auto body = [&](size_t thread) {
    const FloatEnv env;
    arrived.fetch_add(1);
    while (arrived.load() < threads) std::this_thread::yield();
    if (thread == 0) begin = seconds_now();
    work(thread);
    const double end = seconds_now();
    for (double seen = last.load(); seen < end && !last.compare_exchange_weak(seen, end);) {
    }
  };
  std::vector<std::thread> others;
  for (size_t thread = 1; thread < threads; ++thread) others.emplace_back(body, thread);
  body(0);
  for (std::thread& other : others) other.join();
  return last.load() - begin;
}

// The rates of several tries, from the worst to the best; work(thread, times) does `times` units.
std::vector<double> sorted_rates(size_t threads, int tries, const std::function<double(size_t, uint64_t)>& work) {
  uint64_t times = 1;
  const auto once = [&] {
    std::vector<double> done(threads);
    const double seconds = together(threads, [&](size_t thread) { done[thread] = work(thread, times); });
    double all = 0;
    for (const double d : done) all += d;
    return std::pair(seconds, all / seconds);
  };
  while (once().first < kSlice && times < uint64_t{1} << 40) times *= 2;
  std::vector<double> rates;
  for (int i = 0; i < tries; ++i) rates.push_back(once().second);
  std::sort(rates.begin(), rates.end());
  return rates;
}

double rate(size_t threads, Moment moment, const std::function<double(size_t, uint64_t)>& work) {
  const bool best = moment == Moment::kBest;
  const std::vector<double> rates = sorted_rates(threads, best ? kTries : kTriesNow, work);
  return best ? rates.back() : rates[rates.size() / 2];
}

double peak(size_t threads, Moment moment, uint64_t (*loop)(uint64_t)) {
  if (!loop) return 0;
  return rate(threads, moment, [&](size_t, uint64_t times) { return static_cast<double>(loop(64 * times)); });
}

double read_bandwidth(const LimitLoops& loops, const float* data, size_t bytes, size_t threads, Moment moment) {
  const size_t floats = bytes / sizeof(float) / threads / 128 * 128;  // a slice for each, as products are shared
  const auto with = [&](void (*read)(const float*, size_t)) {
    return rate(threads, moment, [&](size_t thread, uint64_t times) {
      for (uint64_t i = 0; i < times; ++i) read(data + thread * floats, floats);
      return static_cast<double>(times * floats * sizeof(float));
    });
  };
  return std::max(with(loops.read), with(loops.read_asking));
}

}  // namespace

double MachineLimits::read_rate(double working_set) const {
  const auto above = std::find_if(read.begin(), read.end(),
                                  [&](const Bandwidth& b) { return static_cast<double>(b.bytes) >= working_set; });
  if (above == read.begin()) return above->per_second;
  if (above == read.end()) return read.back().per_second;
  const Bandwidth& low = *(above - 1);
  const double a = std::log(static_cast<double>(low.bytes)), b = std::log(static_cast<double>(above->bytes));
  const double part = (std::log(working_set) - a) / (b - a);
  return low.per_second + part * (above->per_second - low.per_second);
}

void MachineLimits::improve(const MachineLimits& other) {
  s8 = std::max(s8, other.s8);
  s8_own = std::max(s8_own, other.s8_own);
  s8_as_s16 = std::max(s8_as_s16, other.s8_as_s16);
  f32 = std::max(f32, other.f32);
  for (size_t i = 0; i < read.size(); ++i) read[i].per_second = std::max(read[i].per_second, other.read[i].per_second);
}

Result<MachineLimits> measure_limits(const Kernels& kernels, size_t threads) {
  return measure_limits(kernels, threads, Moment::kBest, kSizes);
}

Result<MachineLimits> measure_limits(const Kernels& kernels, size_t threads, Moment moment,
                                     std::span<const size_t> working_sets) {
  MachineLimits limits;
  limits.isa = kernels.name;
  limits.threads = threads;
  const LimitLoops* loops = find_limit_loops(kernels.name);
  if (!loops) return fail("there are no loops that find the limits of %s", kernels.name);
  limits.s8_own = peak(threads, moment, loops->s8);
  limits.s8_as_s16 = peak(threads, moment, loops->s8_as_s16);
  limits.s8 = std::max(limits.s8_own, limits.s8_as_s16);
  limits.f32 = peak(threads, moment, loops->f32);
  const size_t largest = *std::max_element(working_sets.begin(), working_sets.end());
  // In pages of the size that a mapped file has; aligned, for a load across two lines of a cache takes twice as long.
  const ArenaMemory memory(largest);
  float* data = static_cast<float*>(memory.data());
  if (!data) return fail("%zu bytes to measure this machine with are not to be had", largest);
  std::fill_n(data, largest / sizeof(float), 1.0f);
  for (const size_t bytes : working_sets)
    limits.read.push_back({bytes, read_bandwidth(*loops, data, bytes, threads, moment)});
  return limits;
}

}  // namespace dragoman::bench
