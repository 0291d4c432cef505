// The products of a Transformer, on every instruction set this machine runs: multiply-adds per second.
//   dragoman-bench-kernels --benchmark_filter=gemm_s8/avx2
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/float_env.h"
#include "kernels/kernels.h"
#if defined(DRAGOMAN_HAVE_ONEDNN)
#include "bench/onednn_gemm.h"
#endif

namespace dragoman::bench {
namespace {

struct Shape {
  size_t k, n;
};
constexpr Shape kShapes[] = {{256, 768}, {256, 1024}, {1024, 256}, {512, 1536}, {512, 2048}, {2048, 512}, {512, 32000}};

void set_rate(benchmark::State& state, size_t m, const Shape& s) {
  using benchmark::Counter;
  state.counters["MAC/s"] = Counter(static_cast<double>(m * s.k * s.n), Counter::kIsIterationInvariantRate);
}

void gemm_f32(benchmark::State& state, const Kernels* kernels, Shape s) {
  const FloatEnv env;
  const size_t m = static_cast<size_t>(state.range(0));
  const std::vector<float> x(m * s.k, 0.5f), w(s.k * s.n, 0.25f), bias(s.n);
  std::vector<float> y(m * s.n);
  for (auto _ : state) {
    kernels->gemm_f32(x.data(), m, {w.data(), bias.data(), s.k, s.n / kPanel}, y.data(), s.n);
    benchmark::ClobberMemory();
  }
  set_rate(state, m, s);
}

void gemm_s8(benchmark::State& state, const Kernels* kernels, Shape s) {
  const FloatEnv env;
  const size_t m = static_cast<size_t>(state.range(0));
  const std::vector<int8_t> x(m * s.k, -3), w(s.k * s.n, 5);
  const std::vector<float> w_scale(s.n, 0.1f), bias(s.n);
  const std::vector<int32_t> sum(s.n, static_cast<int32_t>(5 * s.k));
  const std::vector<RowQuant> rows(m, {0.1f, 3});
  std::vector<float> y(m * s.n);
  const PanelsS8 panels{w.data(), w_scale.data(), sum.data(), bias.data(), s.k, s.n / kPanel};
  for (auto _ : state) {
    kernels->gemm_s8(x.data(), rows.data(), m, panels, y.data(), s.n);
    benchmark::ClobberMemory();
  }
  set_rate(state, m, s);
}

#if defined(DRAGOMAN_HAVE_ONEDNN)
void onednn(benchmark::State& state, OneDnnGemm::Numbers numbers, Shape s) {
  const size_t m = static_cast<size_t>(state.range(0));
  OneDnnGemm gemm(numbers, m, s.k, s.n);
  for (auto _ : state) gemm.run();
  set_rate(state, m, s);
}
#endif

void add_row_counts(benchmark::internal::Benchmark* bench) {
  bench->ArgName("m")->Arg(1)->Arg(8)->Arg(32)->Arg(128);
}

}  // namespace
}  // namespace dragoman::bench

int main(int argc, char** argv) {
  using namespace dragoman;
  using namespace dragoman::bench;
  for (const Kernels* kernels : available_kernels()) {
    for (const Shape& s : kShapes) {
      const std::string shape = std::string(kernels->name) + "/k:" + std::to_string(s.k) + "/n:" + std::to_string(s.n);
      add_row_counts(benchmark::RegisterBenchmark(("gemm_f32/" + shape).c_str(), gemm_f32, kernels, s));
      add_row_counts(benchmark::RegisterBenchmark(("gemm_s8/" + shape).c_str(), gemm_s8, kernels, s));
    }
  }
#if defined(DRAGOMAN_HAVE_ONEDNN)
  setenv("OMP_NUM_THREADS", "1", 0);  // ours run on one
  for (const Shape& s : kShapes) {
    const std::string shape = "onednn/k:" + std::to_string(s.k) + "/n:" + std::to_string(s.n);
    using Numbers = OneDnnGemm::Numbers;
    add_row_counts(benchmark::RegisterBenchmark(("gemm_f32/" + shape).c_str(), onednn, Numbers::kF32, s));
    add_row_counts(benchmark::RegisterBenchmark(("gemm_s8/" + shape).c_str(), onednn, Numbers::kS8, s));
  }
#endif
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
