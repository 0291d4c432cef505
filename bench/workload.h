// What is translated, and one run over it: who was translated when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/session.h"
#include "runtime/result.h"

namespace dragoman::bench {

// Lines of text, or lines of ids (with eos) when lengths are forced.
struct Workload {
  std::vector<std::string> lines;
  std::vector<std::vector<int32_t>> ids;
  size_t size() const { return ids.empty() ? lines.size() : ids.size(); }
};

// `count` sources of exactly `length` ids, eos included: the same on every machine.
Workload forced_sources(const Architecture& arch, size_t count, uint32_t length);
Result<Workload> text_sources(const std::string& path);  // empty: the built-in sentences

// One call of translate(). Times are in seconds.
struct Run {
  double wall = 0, cpu = 0;
  uint64_t source_tokens = 0, target_tokens = 0;
  std::vector<double> first_token;  // per part: from its ids being read to its first id
  std::vector<double> sentence;     // per part: to its last id
  double tokenize = 0;              // text to ids
  double detokenize = 0;            // ids to text, done a second time to be timed; not part of wall and cpu
};

// Lines [0, count) of the workload. Only a profiled session takes time to time the tokenizer too.
Run run_once(Session& session, const Workload& work, size_t count);

double cpu_seconds();  // of all threads of this process

}  // namespace dragoman::bench
