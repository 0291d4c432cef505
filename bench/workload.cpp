#include "bench/workload.h"

#include <sys/resource.h>

#include <fstream>

#include "converter/arbitrary_ids.h"
#include "runtime/clock.h"

namespace dragoman::bench {
namespace {

constexpr const char* kSentences[] = {
    "Good morning.",
    "The train to the coast leaves at half past nine from platform four.",
    "Could you tell me where the nearest pharmacy is, please?",
    "She has worked in this hospital for almost twenty years, and she still likes it.",
    "It rained all night, so the river was higher than anyone had expected.",
    "I would like a table for two people by the window.",
    "We missed the last bus and walked home along the canal, talking about the film.",
    "The new bridge will be opened by the mayor next Saturday if the weather allows it.",
    "My brother repairs old clocks.",
    "Please keep this door closed at all times.",
    "He said that he had never seen such a beautiful garden in the middle of a city.",
    "How much does a ticket cost for a child under six years of age?",
    "The committee decided to postpone the vote because several members were ill.",
    "If you take this medicine, do not drive a car for at least eight hours.",
    "There is a small market behind the church where farmers sell apples, honey and cheese.",
    "Nobody knew the answer to the last question.",
};

// The user data of all callbacks of one call.
struct Watch {
  const Workload& work;
  Session& session;
  size_t count;
  size_t next = 0;                         // line to show
  size_t used = 0;                         // of a line that is longer than a part
  double shown = 0;                        // when it was shown
  std::vector<double> read{}, first_id{};  // by part
  std::vector<char> text{};
  Run run{};
};

bool peek(void* user, Input& input) {
  Watch& w = *static_cast<Watch*>(user);
  if (w.next == w.count) return false;
  if (w.work.ids.empty()) {
    input.text = std::string_view(w.work.lines[w.next]).substr(w.used);
  } else {
    input.ids = std::span(w.work.ids[w.next]).subspan(w.used);
  }
  if (w.session.profiler()) w.shown = seconds_now();
  return true;
}

void take(void* user, size_t used) {
  Watch& w = *static_cast<Watch*>(user);
  w.read.push_back(seconds_now());
  w.first_id.push_back(0);
  if (Profiler* profiler = w.session.profiler()) {
    w.run.tokenize += w.read.back() - w.shown;
    profiler->source_read();
  }
  w.used += used;
  const size_t size = w.work.ids.empty() ? w.work.lines[w.next].size() : w.work.ids[w.next].size();
  if (w.used < size) return;
  ++w.next;
  w.used = 0;
}

bool token(void* user, uint64_t part, int32_t) {
  Watch& w = *static_cast<Watch*>(user);
  if (w.first_id[part] == 0) w.first_id[part] = seconds_now();
  return true;
}

void deliver(void* user, const Output& output) {
  Watch& w = *static_cast<Watch*>(user);
  w.run.source_tokens += output.source_ids.size();
  w.run.target_tokens += output.ids.size();
  if (output.ids.empty()) return;
  w.run.first_token.push_back(w.first_id[output.part] - w.read[output.part]);
  w.run.sentence.push_back(output.encode_seconds + output.decode_seconds);
  if (!w.session.profiler()) return;
  const double begin = seconds_now();
  w.session.model().target.decode(output.ids, w.text);
  w.run.detokenize += seconds_now() - begin;
}

}  // namespace

Workload forced_sources(const Architecture& arch, size_t count, uint32_t length) {
  Workload work;
  for (size_t i = 0; i < count; ++i) {
    work.ids.push_back(arbitrary_ids(arch, arch.source_vocabulary, length - 1, i));
    work.ids.back().push_back(static_cast<int32_t>(arch.eos));
  }
  return work;
}

Result<Workload> text_sources(const std::string& path) {
  Workload work;
  if (path.empty()) {
    work.lines.assign(std::begin(kSentences), std::end(kSentences));
    return work;
  }
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) work.lines.push_back(line);
  }
  if (work.lines.empty()) return fail("%s has no lines, or cannot be read", path.c_str());
  return work;
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Run run_once(Session& session, const Workload& work, size_t count) {
  Watch watch{.work = work, .session = session, .count = count};
  watch.read.reserve(count);
  watch.first_id.reserve(count);
  watch.text.resize(session.translator().plan().output_bytes);
  Options options;
  options.token = token;
  options.token_user = &watch;
  const double wall = seconds_now(), cpu = cpu_seconds();
  session.translator().translate({peek, take, &watch}, {deliver, &watch}, options);
  watch.run.cpu = cpu_seconds() - cpu - watch.run.detokenize;
  watch.run.wall = seconds_now() - wall - watch.run.detokenize;
  return std::move(watch.run);
}

}  // namespace dragoman::bench
