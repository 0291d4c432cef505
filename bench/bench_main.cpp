// dragoman-bench: how fast, and how fast this machine would allow.
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "bench/plot.h"
#include "bench/report.h"

namespace dragoman::bench {
namespace {

int complain(const std::string& text, int code) {
  std::fprintf(stderr, "dragoman-bench: %s\n", text.c_str());
  return code;
}

int main_with(int argc, char** argv) {
  Arguments arguments;
  Stop stop;
  if (!parse(argc, argv, arguments, stop)) return stop.text.empty() ? stop.code : complain(stop.text, stop.code);
  const bool terminal = isatty(STDERR_FILENO);
  const auto progress = [&](const char* step) {
    if (terminal) std::fprintf(stderr, "\r%-60s\r", step);
  };
  Results results;
  const Status measured = measure(arguments, progress, results);
  progress("");
  if (!measured) return complain(measured.error().text, 1);
  std::fputs(report(results, arguments).c_str(), stdout);
  if (arguments.plot.empty()) return 0;
  std::ofstream out(arguments.plot);
  out << roofline_svg(results);
  if (!out.flush().good()) return complain("cannot write " + arguments.plot, 1);
  return 0;
}

}  // namespace
}  // namespace dragoman::bench

int main(int argc, char** argv) {
  return dragoman::bench::main_with(argc, argv);
}
