// Results as a table, markdown, CSV or JSON: one list of columns serves all four.
#pragma once

#include <string>

#include "bench/measure.h"

namespace dragoman::bench {

// The whole report, with the profile if it was asked for.
std::string report(const Results& results, const Arguments& arguments);

// Cells as aligned columns, or as markdown. The first row is the heading; numbers stand right.
using Cells = std::vector<std::vector<std::string>>;
std::string layout(const Cells& cells, bool markdown);
std::string number(double value, int digits);

// Where the time of a row went: parts, the slowest first, each beside its own limit.
Cells profile_cells(const Row& row);

std::string machine_name();
std::string machine_text(const MachineLimits& limits, bool markdown);  // what it can do

}  // namespace dragoman::bench
