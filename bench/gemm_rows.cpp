// What of a table of products needs no clock.
#include <algorithm>
#include <cmath>

#include "bench/gemm_data.h"
#include "bench/gemm_table.h"

namespace dragoman::bench {

std::string GemmRow::name() const {
  return std::string(s8 ? "gemm_s8/" : "gemm_f32/") + kernels->name + "/" + shape.what +
         "/k:" + std::to_string(shape.k) + "/n:" + std::to_string(shape.n) + "/m:" + std::to_string(m);
}

std::vector<GemmRow> gemm_rows(const std::vector<const Kernels*>& tables, const std::regex& filter, bool hot) {
  std::vector<GemmRow> rows;
  for (const Kernels* kernels : tables) {
    for (const bool s8 : {true, false}) {
      for (const GemmShape& shape : gemm_shapes()) {
        for (const size_t m : shape.rows) {
          GemmRow row{.kernels = kernels, .s8 = s8, .shape = shape, .m = m, .form = {}};
          row.working_set = (hot ? 1 : copies_of(shape, s8)) * row.matrix_bytes();
          if (std::regex_search(row.name(), filter)) rows.push_back(std::move(row));
        }
      }
    }
  }
  return rows;
}

Bound gemm_bound(const GemmRow& row, const MachineLimits& limits) {
  Bound bound;
  bound.memory = static_cast<double>(row.matrix_bytes()) / limits.read_rate(static_cast<double>(row.working_set));
  bound.arithmetic = row.multiply_adds() / (row.s8 ? limits.s8 : limits.f32);
  bound.seconds = std::max(bound.memory, bound.arithmetic);
  bound.waiting = bound.memory > bound.arithmetic ? bound.memory : 0;
  return bound;
}

GemmSummary summarize(const std::vector<GemmRow>& rows, const std::function<bool(const GemmRow&)>& of) {
  GemmSummary summary;
  double logarithms = 0;
  for (const GemmRow& row : rows) {
    if (row.ratio() == 0 || !of(row)) continue;
    ++summary.compared;
    summary.slower += row.ratio() < 1;
    logarithms += std::log(row.ratio());
  }
  if (summary.compared > 0) summary.mean = std::exp(logarithms / static_cast<double>(summary.compared));
  return summary;
}

}  // namespace dragoman::bench
