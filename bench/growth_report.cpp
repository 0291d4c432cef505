// How the cost grows, as two tables or as JSON.
#include <nlohmann/json.hpp>

#include "bench/growth.h"
#include "bench/report.h"
#include "bench/report_json.h"

namespace dragoman::bench {
namespace {

using Json = nlohmann::json;

std::string exponent_text(double exponent) {
  return exponent != 0 ? number(exponent, 2) : "-";
}

Cells length_cells(const Growth& growth) {
  Cells cells = {{"series", "source", "target", "ms/sentence", "us/source id", "exponent", "limit ms", "its exponent",
                  "% of limit"}};
  for (size_t i = 0; i < growth.by_length.size(); ++i) {
    for (const LengthCost& cost : length_costs(growth.by_length[i], growth.limits)) {
      cells.push_back({kGrowthSeries[i], std::to_string(cost.point->source), std::to_string(cost.point->target),
                       number(1e3 * cost.seconds, 2), number(1e6 * cost.seconds / cost.point->source, 1),
                       exponent_text(cost.exponent), number(1e3 * cost.limit, 2), exponent_text(cost.limit_exponent),
                       number(100 * cost.limit / cost.seconds, 0)});
    }
  }
  return cells;
}

Cells batch_cells(const Growth& growth) {
  Cells cells = {
      {"batch", "ms/step", "ms/step and sentence", "reading: ms", "multiplying: ms", "% of limit", "target/s"}};
  for (const BatchCost& cost : batch_costs(growth)) {
    cells.push_back({std::to_string(cost.batch), number(1e3 * cost.step, 3), number(1e3 * cost.step / cost.batch, 3),
                     number(1e3 * cost.memory, 3), number(1e3 * cost.arithmetic, 3),
                     number(100 * std::max(cost.memory, cost.arithmetic) / cost.step, 0),
                     number(cost.tokens_per_second, 0)});
  }
  return cells;
}

std::string growth_json(const Growth& growth) {
  Json json = {{"program", "dragoman-bench --growth"},
               {"machine", machine_name()},
               {"model", growth.model},
               {"weights", growth.weights},
               {"decoder_weight_bytes", growth.decoder_bytes()},
               {"limits", limits_json(growth.limits)}};
  json["lengths"] = Json::array();
  for (size_t i = 0; i < growth.by_length.size(); ++i) {
    for (const LengthCost& cost : length_costs(growth.by_length[i], growth.limits)) {
      json["lengths"].push_back({{"series", kGrowthSeries[i]},
                                 {"source_length", cost.point->source},
                                 {"target_length", cost.point->target},
                                 {"seconds_per_sentence", cost.seconds},
                                 {"limit_seconds", cost.limit},
                                 {"exponent", cost.exponent != 0 ? Json(cost.exponent) : Json()},
                                 {"limit_exponent", cost.limit_exponent != 0 ? Json(cost.limit_exponent) : Json()}});
    }
  }
  json["batches"] = Json::array();
  for (const BatchCost& cost : batch_costs(growth)) {
    json["batches"].push_back({{"batch", cost.batch},
                               {"seconds_per_step", cost.step},
                               {"limit_memory_seconds", cost.memory},
                               {"limit_arithmetic_seconds", cost.arithmetic},
                               {"target_tokens_per_second", cost.tokens_per_second}});
  }
  return json.dump(1) + "\n";
}

}  // namespace

std::string growth_report(const Growth& growth, const Arguments& arguments) {
  if (arguments.output == Format::kJson) return growth_json(growth);
  const bool markdown = arguments.output == Format::kMarkdown;
  std::string text = machine_name() + "\n\n" + machine_text(growth.limits, markdown);
  text += growth.model + " " + growth.weights + ", batch 1, by length\n" + (markdown ? "\n" : "");
  text += layout(length_cells(growth), markdown);
  text += "\n" + growth.model + " " + growth.weights + ", one step of the decoder, by batch (sources of " +
          std::to_string(growth.longer[0].source) + ", targets of " + std::to_string(growth.longer[0].target) + ")\n" +
          (markdown ? "\n" : "");
  return text + layout(batch_cells(growth), markdown);
}

}  // namespace dragoman::bench
