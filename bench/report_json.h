// The columns of a report, and all of it as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/measure.h"

namespace dragoman::bench {

struct Column {
  const char* key;    // in JSON and CSV
  const char* title;  // in tables; null: not shown there
  int digits;         // after the point, except in JSON
  nlohmann::json (*value)(const Row& row);
};

const std::vector<Column>& columns();

nlohmann::json limits_json(const MachineLimits& limits);
std::string json_report(const Results& results, const Arguments& arguments);

}  // namespace dragoman::bench
