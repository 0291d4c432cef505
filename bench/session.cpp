#include "bench/session.h"

#include <cstdio>
#include <fstream>

#include "runtime/clock.h"

namespace dragoman::bench {

Status Session::start(const std::string& path, const Kernels& kernels, const Limits& limits, bool profiled,
                      bool preload) {
  const double begin = seconds_now();
  Result<MappedFile> file = map_file(path.c_str(), preload);
  if (!file) return file.error();
  file_ = *file;
  if (const Status opened = open_model(file_.bytes, path.c_str(), *model_); !opened) return opened;
  const Result<Plan> plan = make_plan(*model_, limits);
  if (!plan) return plan.error();
  memory_.emplace(plan->bytes);
  if (!memory_->data()) return fail("an arena of %zu bytes is not to be had", plan->bytes);
  if (profiled) profiler_.emplace(*model_, kernels);
  const Result<Translator*> translator =
      Translator::create(*model_, profiled ? profiler_->table() : kernels, *plan, memory_->data());
  if (!translator) return translator.error();
  translator_ = *translator;
  load_seconds_ = seconds_now() - begin;
  return Done{};
}

Result<std::unique_ptr<Session>> Session::open(const std::string& path, const Kernels& kernels, const Limits& limits,
                                               bool profiled, bool preload) {
  std::unique_ptr<Session> session(new Session);
  if (const Status started = session->start(path, kernels, limits, profiled, preload); !started) return started.error();
  return session;
}

Session::~Session() {
  if (translator_) translator_->destroy();
  unmap_file(file_);
}

bool reset_peak() {
  std::ofstream out("/proc/self/clear_refs");
  out << "5" << std::flush;
  return out.good();
}

size_t peak_bytes() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    size_t kilobytes = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %zu kB", &kilobytes) == 1) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace dragoman::bench
