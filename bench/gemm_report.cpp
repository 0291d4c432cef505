// The table of products as text and as JSON.
#include <nlohmann/json.hpp>
#include <set>

#include "bench/gemm_table.h"
#include "bench/report.h"
#include "bench/report_json.h"
#include "bench/synthetic_model.h"

namespace dragoman::bench {
namespace {

using Json = nlohmann::json;

double rate(const GemmRow& row, double seconds) {
  return row.multiply_adds() / seconds / 1e9;
}

const char* numbers_of(const GemmRow& row) {
  return row.s8 ? "int8" : "float32";
}

Cells cells_of(const std::vector<GemmRow>& rows, bool beside) {
  Cells cells = {{"kernel", "isa", "shape", "k", "n", "m", "ours GMAC/s", "limit", "% of limit"}};
  if (beside) cells[0].insert(cells[0].end(), {"oneDNN GMAC/s", "oneDNN's quickest form", "ours/oneDNN"});
  for (const GemmRow& row : rows) {
    std::vector<std::string>& line = cells.emplace_back();
    line = {numbers_of(row),
            row.kernels->name,
            row.shape.what,
            std::to_string(row.shape.k),
            std::to_string(row.shape.n),
            std::to_string(row.m),
            number(rate(row, row.ours), 1),
            row.bound.by_memory() ? "memory" : "arithmetic",
            number(100 * row.bound.seconds / row.ours, 0)};
    if (beside && row.onednn > 0)
      line.insert(line.end(), {number(rate(row, row.onednn), 1), row.form, number(row.ratio(), 2)});
    if (beside && row.onednn == 0) line.insert(line.end(), {"-", "none", "-"});
  }
  return cells;
}

// Means of ours/oneDNN over the shapes of a model, by the number of rows.
Cells mean_cells(const std::vector<GemmRow>& rows) {
  std::set<size_t> counts;
  for (const GemmRow& row : rows) counts.insert(row.m);
  Cells cells = {{"ours/oneDNN"}};
  for (const size_t m : counts) cells[0].push_back("m = " + std::to_string(m));
  for (const bool s8 : {true, false}) {
    for (const Shape& model : shapes()) {
      std::vector<std::string> line = {std::string(s8 ? "int8 " : "float32 ") + model.name};
      size_t compared = 0;
      for (const size_t m : counts) {
        const GemmSummary s = summarize(
            rows, [&](const GemmRow& row) { return row.s8 == s8 && row.m == m && row.shape.model == model.name; });
        line.push_back(s.compared > 0 ? number(s.mean, 2) : "-");
        compared += s.compared;
      }
      if (compared > 0) cells.push_back(std::move(line));
    }
  }
  return cells;
}

std::string summary_text(const std::vector<GemmRow>& rows, bool markdown) {
  if (onednn_version().empty())
    return "\nBuilt without oneDNN, so there is nothing beside ours: apt-get install libdnnl-dev, and configure "
           "again.\n";
  std::string text = "\n" + layout(mean_cells(rows), markdown) + "\n";
  for (const bool s8 : {true, false}) {
    const GemmSummary s = summarize(rows, [&](const GemmRow& row) { return row.s8 == s8; });
    if (s.compared == 0) continue;
    text += std::string(s8 ? "int8" : "float32") + ": ours is " + number(s.mean, 2) + " times as fast as oneDNN " +
            onednn_version() + " (geometric mean of " + std::to_string(s.compared) + " rows); oneDNN is faster in " +
            std::to_string(s.slower) + "\n";
  }
  return text;
}

}  // namespace

std::string gemm_text(const std::vector<GemmRow>& rows, const std::vector<MachineLimits>& limits, bool markdown) {
  std::string text = machine_name() + "\n\n";
  for (const MachineLimits& one : limits) text += machine_text(one, markdown);
  return text + layout(cells_of(rows, !onednn_version().empty()), markdown) + summary_text(rows, markdown);
}

std::string gemm_json(const std::vector<GemmRow>& rows, const std::vector<MachineLimits>& limits) {
  Json json = {{"program", "dragoman-bench-gemm"}, {"machine", machine_name()}};
  json["onednn"] = onednn_version().empty() ? Json() : Json(onednn_version());
  json["limits"] = Json::array();
  for (const MachineLimits& one : limits) json["limits"].push_back(limits_json(one));
  json["rows"] = Json::array();
  for (const GemmRow& row : rows) {
    Json line = {{"name", row.name()},
                 {"kernel", numbers_of(row)},
                 {"isa", row.kernels->name},
                 {"shape", row.shape.what},
                 {"k", row.shape.k},
                 {"n", row.shape.n},
                 {"m", row.m},
                 {"working_set_bytes", row.working_set},
                 {"seconds", row.ours},
                 {"multiply_adds_per_second", 1e9 * rate(row, row.ours)},
                 {"limit", row.bound.by_memory() ? "memory" : "arithmetic"},
                 {"percent_of_limit", 100 * row.bound.seconds / row.ours}};
    if (row.onednn > 0) {
      line["onednn_seconds"] = row.onednn;
      line["onednn_multiply_adds_per_second"] = 1e9 * rate(row, row.onednn);
      line["onednn_form"] = row.form;
      line["onednn_error"] = row.error;
      line["ratio"] = row.ratio();
    }
    json["rows"].push_back(std::move(line));
  }
  return json.dump(1) + "\n";
}

}  // namespace dragoman::bench
