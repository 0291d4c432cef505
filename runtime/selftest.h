// The self-test that lies in every model file: sentences, their ids and a hash of their logits, recorded by the
// converter with the portable kernels. Replaying it on another CPU must give the same bits (C6).
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/checksum.h"
#include "runtime/model.h"
#include "runtime/result.h"
#include "runtime/translator.h"

namespace dragoman {

struct SelfTestReport {
  size_t cases = 0, failed = 0;
  const char* first_failure = "";  // what differed first: "source ids", "target ids" or "logits"
};

// The error says why it could not run at all: no self-test in the file, no memory.
Result<SelfTestReport> replay_selftest(const Model& model, const Kernels& kernels);

// Translates one input (complete, one part) and calls on_output(const Output&); returns the hash of its logits.
template <class F>
uint64_t translate_hashed(Translator& translator, const Input& input, const F& on_output) {
  struct State {
    const Input& input;
    const F& on_output;
    bool taken = false;
    uint64_t hash = kChecksumSeed;
  } state{input, on_output};
  const Source source{[](void* user, Input& in) {
                        const State& s = *static_cast<State*>(user);
                        if (!s.taken) in = s.input;
                        return !s.taken;
                      },
                      [](void* user, size_t) { static_cast<State*>(user)->taken = true; }, &state};
  const Sink sink{[](void* user, const Output& output) { static_cast<State*>(user)->on_output(output); }, &state};
  Probe probe;
  probe.user = &state;
  probe.logits = [](void* user, uint64_t, size_t, const float* row, size_t n) {
    State& s = *static_cast<State*>(user);
    s.hash = checksum(row, n * sizeof(float), s.hash);
  };
  translator.translate(source, sink, {}, probe);
  return state.hash;
}

}  // namespace dragoman
