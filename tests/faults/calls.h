// Asking tests/faults/interpose.cpp for calls that fail, and how many there are to fail.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <sstream>
#include <string>

#include "tests/command_support.h"

namespace dragoman::test {

inline const std::string kInterpose = "LD_PRELOAD=" DRAGOMAN_FAULTS_LIBRARY;

// The environment in which the n-th call (say "write") fails with this errno.
inline std::vector<std::string> failing(const std::string& call, int n, int error, const char* more = "") {
  return {kInterpose, "DRAGOMAN_FAULT=" + call + " " + std::to_string(n) + more + " " + std::to_string(error)};
}

// How often each call is made when none fails.
inline std::map<std::string, int> count_calls(const std::vector<std::string>& words, Stage stage) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/calls";
  for (const std::string& entry : {kInterpose, "DRAGOMAN_CALLS=" + path}) stage.environment.push_back(entry);
  CHECK(run_command(words, stage).code == 0);
  std::map<std::string, int> counts;
  std::istringstream text(read_file(path));
  for (std::string name; text >> name;) text >> counts[name];
  CHECK(counts["open"] > 0);  // else the library is not there, and nothing would fail
  return counts;
}

}  // namespace dragoman::test
