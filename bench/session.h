// A model opened and a translator started as a program would: map, check, plan, start. Timed.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "bench/profile.h"
#include "runtime/mapped_file.h"
#include "runtime/translator.h"

namespace dragoman::bench {

class Session {
 public:
  // profiled: through a table that times every kernel.
  static Result<std::unique_ptr<Session>> open(const std::string& path, const Kernels& kernels, const Limits& limits,
                                               bool profiled, bool preload = false);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Translator& translator() { return *translator_; }
  Profiler* profiler() { return profiler_ ? &*profiler_ : nullptr; }
  const Model& model() const { return *model_; }
  double load_seconds() const { return load_seconds_; }

 private:
  Session() = default;
  Status start(const std::string& path, const Kernels& kernels, const Limits& limits, bool profiled, bool preload);

  MappedFile file_;
  std::unique_ptr<Model> model_ = std::make_unique<Model>();
  std::optional<Profiler> profiler_;
  std::optional<ArenaMemory> memory_;
  Translator* translator_ = nullptr;
  double load_seconds_ = 0;
};

// Peak resident bytes of this process since reset_peak(); 0 where the system does not tell.
bool reset_peak();
size_t peak_bytes();

}  // namespace dragoman::bench
