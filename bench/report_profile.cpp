// The profile of one row as a table.
#include <cmath>

#include "bench/report.h"

namespace dragoman::bench {
namespace {

std::string percent(double part, double whole) {
  return whole > 0 ? number(100 * part / whole, 1) : "-";
}

std::vector<std::string> part_cells(const ProfilePart& part, const Row& row) {
  const Counters& total = part.total;
  const Bound bound = bound_of(part, row.profile, *row.limits);
  const uint64_t products = total.s8 + total.f32;
  return {part.name,
          number(1e3 * total.seconds, 2),
          percent(total.seconds, row.profile_seconds),
          std::to_string(total.calls),
          number(static_cast<double>(total.bytes) / 1e6, 1),
          number(static_cast<double>(total.bytes) / total.seconds / 1e9, 1),
          products > 0 ? number(static_cast<double>(products) / total.seconds / 1e9, 1) : "-",
          bound.by_memory() ? "memory" : "arithmetic",
          percent(bound.seconds, total.seconds),
          number(1e3 * (total.seconds - bound.seconds), 2)};
}

}  // namespace

Cells profile_cells(const Row& row) {
  Cells cells = {{"part", "ms", "% of time", "calls", "MB", "GB/s", "GMAC/s", "limit", "% of limit", "ms lost"}};
  double rest = row.profile_seconds;
  for (const ProfilePart& part : row.profile.parts) {
    cells.push_back(part_cells(part, row));
    rest -= part.total.seconds;
  }
  const auto plain = [&](const char* name, double seconds) {
    cells.push_back({name, number(1e3 * seconds, 2), percent(seconds, row.profile_seconds), "-", "-", "-", "-", "-",
                     "-", number(1e3 * seconds, 2)});
  };
  plain("text to ids", row.tokenize);
  plain("ids to text", row.detokenize);
  plain("outside kernels", rest - row.tokenize - row.detokenize);  // K/V stores, the pool, search, the profiler itself
  cells.push_back({"all", number(1e3 * row.profile_seconds, 2), "100.0", "-", "-", "-", "-",
                   row.bound.by_memory() ? "memory" : "arithmetic", percent(row.bound.seconds, row.profile_seconds),
                   number(1e3 * (row.profile_seconds - row.bound.seconds), 2)});
  return cells;
}

}  // namespace dragoman::bench
