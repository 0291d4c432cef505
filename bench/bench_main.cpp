// dragoman-bench: how fast, and how fast this machine would allow.
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "bench/growth.h"
#include "bench/plot.h"
#include "bench/report.h"

namespace dragoman::bench {
namespace {

int complain(const std::string& text, int code) {
  std::fprintf(stderr, "dragoman-bench: %s\n", text.c_str());
  return code;
}

int draw(const std::string& path, const std::string& svg) {
  std::ofstream out(path);
  out << svg;
  return out.flush().good() ? 0 : complain("cannot write " + path, 1);
}

int main_with(int argc, char** argv) {
  Arguments arguments;
  Stop stop;
  if (!parse(argc, argv, arguments, stop)) return stop.text.empty() ? stop.code : complain(stop.text, stop.code);
  const bool terminal = isatty(STDERR_FILENO);
  const auto progress = [&](const char* step) {
    if (terminal) std::fprintf(stderr, "\r%-60s\r", step);
  };
  if (!arguments.growth.empty()) {
    const Result<Growth> growth = measure_growth(arguments, progress);
    progress("");
    if (!growth) return complain(growth.error().text, 1);
    std::fputs(growth_report(*growth, arguments).c_str(), stdout);
    return draw(arguments.growth, growth_svg(*growth));
  }
  Results results;
  const Status measured = measure(arguments, progress, results);
  progress("");
  if (!measured) return complain(measured.error().text, 1);
  std::fputs(report(results, arguments).c_str(), stdout);
  return arguments.plot.empty() ? 0 : draw(arguments.plot, roofline_svg(results));
}

}  // namespace
}  // namespace dragoman::bench

int main(int argc, char** argv) {
  return dragoman::bench::main_with(argc, argv);
}
