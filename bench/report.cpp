#include "bench/report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/report_json.h"

namespace dragoman::bench {
namespace {

using Json = nlohmann::json;

std::string text_of(const Column& column, const Row& row) {
  const Json value = column.value(row);
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "-";
  return number(value.get<double>(), column.digits);
}

Cells row_cells(const Results& results, bool all) {
  Cells cells(1);
  for (const Column& column : columns()) {
    if (all || column.title) cells[0].emplace_back(all ? column.key : column.title);
  }
  for (const Row& row : results.rows) {
    std::vector<std::string>& line = cells.emplace_back();
    for (const Column& column : columns()) {
      if (all || column.title) line.push_back(text_of(column, row));
    }
  }
  return cells;
}

std::string csv(const Cells& cells) {
  std::string text;
  for (const auto& line : cells) {
    for (size_t i = 0; i < line.size(); ++i) text += (i > 0 ? "," : "") + line[i];
    text += "\n";
  }
  return text;
}

std::string size_text(size_t bytes) {
  return bytes < (1 << 20) ? std::to_string(bytes >> 10) + " KB" : std::to_string(bytes >> 20) + " MB";
}

std::string row_title(const Row& row) {
  return row.model->name + " " + row.model->weights + ", " + row.kernels->name + ", batch " +
         std::to_string(row.batch) + ", threads " + std::to_string(row.threads);
}

}  // namespace

std::string number(double value, int digits) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string machine_text(const MachineLimits& limits, bool markdown) {
  std::string text = limits.isa + ", " + std::to_string(limits.threads) + (limits.threads > 1 ? " threads" : " thread");
  text += ": int8 " + number(limits.s8 / 1e9, 1) + " G multiply-adds/s";
  if (limits.s8_as_s16 > 0)
    text += " (the kernels' instructions " + number(limits.s8_own / 1e9, 1) + ", on int16 " +
            number(limits.s8_as_s16 / 1e9, 1) + ")";
  text += ", float32 " + number(limits.f32 / 1e9, 1) + "\n";
  Cells cells = {{"working set"}, {"read GB/s"}};
  for (const MachineLimits::Bandwidth& b : limits.read) {
    cells[0].push_back(size_text(b.bytes));
    cells[1].push_back(number(b.per_second / 1e9, 1));
  }
  return text + (markdown ? "\n" : "") + layout(cells, markdown) + "\n";
}

std::string layout(const Cells& cells, bool markdown) {
  std::vector<size_t> width, letters(cells[0].size());
  for (const std::string& title : cells[0]) width.push_back(title.size());
  for (size_t r = 1; r < cells.size(); ++r) {
    for (size_t i = 0; i < cells[r].size(); ++i) {
      width[i] = std::max(width[i], cells[r][i].size());
      letters[i] += cells[r][i].find_first_not_of("0123456789.-%") != std::string::npos;
    }
  }
  std::string text;
  const auto line = [&](const auto& cell) {
    for (size_t i = 0; i < width.size(); ++i)
      text += (i == 0 ? (markdown ? "| " : "") : markdown ? " | " : "  ") + cell(i);
    if (markdown) text += " |";
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  };
  for (size_t r = 0; r < cells.size(); ++r) {
    line([&](size_t i) {
      const std::string space(width[i] - std::min(width[i], cells[r][i].size()), ' ');
      return letters[i] ? cells[r][i] + space : space + cells[r][i];
    });
    if (r > 0) continue;
    line([&](size_t i) {
      const std::string dashes(width[i] - markdown, '-');
      return !markdown ? dashes : letters[i] ? dashes + "-" : dashes + ":";
    });
  }
  return text;
}

std::string report(const Results& results, const Arguments& arguments) {
  if (arguments.output == Format::kJson) return json_report(results, arguments);
  if (arguments.output == Format::kCsv) return csv(row_cells(results, true));
  const bool markdown = arguments.output == Format::kMarkdown;
  std::string text = machine_name() + "\n\n";
  for (const MachineLimits& limits : results.limits) text += machine_text(limits, markdown);
  text += layout(row_cells(results, false), markdown);
  if (!arguments.profile) return text;
  for (const Row& row : results.rows) {
    text.append("\n").append(row_title(row)).append(markdown ? "\n\n" : "\n");
    text += layout(profile_cells(row), markdown);
  }
  return text;
}

}  // namespace dragoman::bench
