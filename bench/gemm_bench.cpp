// The products of a Transformer, on every instruction set this machine runs: multiply-adds per second.
//   dragoman-bench-kernels --benchmark_filter=gemm_s8/avx2
// One copy of the weights, in the nearest cache that holds it. dragoman-bench-gemm has them where a model has them, and
// beside oneDNN's, in one table.
#include <benchmark/benchmark.h>

#include <string>

#include "bench/gemm_data.h"

namespace dragoman::bench {
namespace {

void report_rate(benchmark::State& state, const GemmData& data) {
  using benchmark::Counter;
  state.counters["MAC/s"] = Counter(data.multiply_adds(), Counter::kIsIterationInvariantRate);
}

void ours(benchmark::State& state, const Kernels* kernels, const GemmShape& shape, bool s8) {
  GemmData data(shape, s8);
  data.set_rows(static_cast<size_t>(state.range(0)));
  OurGemm gemm(*kernels, data, 1);
  for (auto _ : state) {
    gemm.run(0);
    benchmark::ClobberMemory();
  }
  report_rate(state, data);
}

}  // namespace
}  // namespace dragoman::bench

int main(int argc, char** argv) {
  using namespace dragoman;
  using namespace dragoman::bench;
  for (const Kernels* kernels : available_kernels()) {
    for (const GemmShape& shape : gemm_shapes()) {
      for (const bool s8 : {false, true}) {
        const std::string name = std::string(s8 ? "gemm_s8/" : "gemm_f32/") + kernels->name + "/" + shape.what +
                                 "/k:" + std::to_string(shape.k) + "/n:" + std::to_string(shape.n);
        auto* bench = benchmark::RegisterBenchmark(name.c_str(), ours, kernels, shape, s8)->ArgName("m");
        for (const size_t m : shape.rows) bench->Arg(static_cast<int64_t>(m));
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
