// What the user of dragoman-bench asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/result.h"

namespace dragoman::bench {

enum class Format { kTable, kMarkdown, kJson, kCsv };

struct Arguments {
  std::string model;                   // a .dgm file; empty: synthetic ones
  std::vector<std::string> synthetic;  // names of shapes
  std::vector<uint32_t> batch = {1, 8, 32};
  std::vector<uint32_t> threads = {1};
  std::vector<std::string> isa;  // empty: the best this machine runs
  std::vector<std::string> quantize = {"int8"};
  std::string input;                              // lines of text
  uint32_t source_length = 0, target_length = 0;  // 0: natural, which only a file can have
  uint32_t repeat = 5;
  uint32_t sentences = 0;  // in a run; 0: as many as slots, at least 8
  Format output = Format::kTable;
  bool profile = false;
  bool preload = false;
  std::string plot, growth;  // files to draw

  bool forced() const { return source_length > 0; }
};

// What stopped parse(): help was printed (code 0), or the command line is wrong (code 2) and this says how.
struct Stop {
  int code = 2;
  std::string text;
};

// True: go on. The checks need neither a model nor a measurement.
bool parse(int argc, const char* const* argv, Arguments& arguments, Stop& stop);

}  // namespace dragoman::bench
