// dragoman-bench-gemm: our products beside oneDNN's, on the shapes of real models.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "bench/arguments.h"
#include "bench/gemm_table.h"

namespace dragoman::bench {
namespace {

constexpr const char* kDescription =
    "Multiplies matrices of the shapes translation models have, with our kernels and with oneDNN's, on one thread, "
    "and\n"
    "says how fast each was and how fast this machine would allow it to be. All shapes take some minutes.\n";

constexpr const char* kFooter =
    "\nExamples:\n"
    "  dragoman-bench-gemm --filter gemm_s8\n"
    "  dragoman-bench-gemm --filter 'tiny.*/m:(1|8|32)$' --output markdown\n"
    "\n"
    "bench/README.md says what the columns mean.\n"
    "Exit codes: 0 measured; 1 failed; 2 wrong use of this command.";

struct GemmArguments {
  std::string filter;
  std::vector<std::string> isa;
  size_t repeat = 5;
  bool hot = false;
  Format output = Format::kTable;
  std::vector<const Kernels*> tables{};
};

int complain(const std::string& text, int code) {
  std::fprintf(stderr, "dragoman-bench-gemm: %s\n", text.c_str());
  return code;
}

// Fills arguments and rows; -1: go on, else the exit code.
int parse_gemm(int argc, char** argv, GemmArguments& o, std::vector<GemmRow>& rows) {
  CLI::App app(kDescription, "dragoman-bench-gemm");
  const std::map<std::string, Format> formats = {
      {"table", Format::kTable}, {"markdown", Format::kMarkdown}, {"json", Format::kJson}};
  app.footer(kFooter);
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.add_option("--filter", o.filter, "Rows like gemm_s8/avx2/tiny-qkv/k:256/n:768/m:1 that match (default: all)")
      ->option_text("REGEX");
  app.add_option("--isa", o.isa, "Our instruction sets, as `dragoman cpu` names them (default: the best)")
      ->delimiter(',')
      ->option_text("NAME,...");
  app.add_flag("--hot", o.hot, "Weights in the nearest cache that holds the matrix, not where a decoder finds them");
  app.add_option("--repeat", o.repeat, "Timings of each, in turns (default: 5)")
      ->check(CLI::Range(1, 1000))
      ->option_text("N");
  app.add_option("--output", o.output, "table, markdown or json")
      ->transform(CLI::CheckedTransformer(formats))
      ->option_text("FORMAT");
  try {
    app.parse(argc, argv);
    for (const std::string& isa : o.isa) {
      o.tables.push_back(find_kernels(isa.c_str()));
      if (!o.tables.back()) return complain("this machine has no instruction set '" + isa + "'", 2);
    }
    if (o.tables.empty()) o.tables.push_back(available_kernels()[0]);
    rows = gemm_rows(o.tables, std::regex(o.filter), o.hot);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : complain(error.what(), 2);
  } catch (const std::regex_error&) {
    return complain("--filter '" + o.filter + "' is no regular expression", 2);
  }
  return rows.empty() ? complain("no product is named like '" + o.filter + "'", 2) : -1;
}

int main_with(int argc, char** argv) {
  GemmArguments arguments;
  std::vector<GemmRow> rows;
  if (const int code = parse_gemm(argc, argv, arguments, rows); code >= 0) return code;
  const bool terminal = isatty(STDERR_FILENO);
  const auto progress = [&](const char* step) {
    if (terminal) std::fprintf(stderr, "\r%-60s\r", step);
  };
  std::vector<MachineLimits> limits;
  for (const bool first : {true, false}) {  // before and after: a neighbour may have been busy
    progress("measuring this machine");
    for (size_t i = 0; i < arguments.tables.size(); ++i) {
      const Result<MachineLimits> measured = measure_limits(*arguments.tables[i], 1);
      if (!measured) return complain(measured.error().text, 1);
      if (first) limits.push_back(*measured);
      limits[i].improve(*measured);
    }
    if (first) measure_gemms(rows, arguments.repeat, progress);
  }
  progress("");
  for (GemmRow& row : rows) {
    for (const MachineLimits& one : limits) {
      if (one.isa == row.kernels->name) row.bound = gemm_bound(row, one);
    }
  }
  const std::string text = arguments.output == Format::kJson
                               ? gemm_json(rows, limits)
                               : gemm_text(rows, limits, arguments.output == Format::kMarkdown);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace dragoman::bench

int main(int argc, char** argv) {
  return dragoman::bench::main_with(argc, argv);
}
