// Where time goes, without a change in the runtime: a table of kernels that times each call, counts its bytes and
// products, and forwards to the real one. A product is known by its weights, which lie in a named section of the file;
// attention by the product before it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/model.h"

namespace dragoman::bench {

enum class Kind { kProduct, kAttention, kOther };

struct Counters {
  uint64_t calls = 0;
  uint64_t bytes = 0;        // read. Products: weights; attention: K and V; others: their input
  uint64_t largest = 0;      // bytes of one call
  uint64_t s8 = 0, f32 = 0;  // multiply-adds
  double seconds = 0;

  void add(const Counters& other);
};

// A part of the model, all layers together: "decoder ffn in".
struct ProfilePart {
  std::string name;
  bool encoder = false;  // the encoder's side: once per sentence. Cross-attention's K and V belong to it
  Kind kind = Kind::kOther;
  Counters total;  // seconds: of the thread that spent the most, which is what the others wait for
};

struct Profile {
  std::vector<ProfilePart> parts;                     // those that were called, the slowest first
  uint64_t steps = 0;                                 // of the decoder
  uint64_t encoder_weights = 0, decoder_weights = 0;  // bytes of the tensors that products met
};

// One at a time: kernels carry no user data, so the table finds its profiler through a global.
class Profiler {
 public:
  Profiler(const Model& model, const Kernels& real);
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  const Kernels& table() const { return table_; }
  void source_read() { in_encoder_.store(true, std::memory_order_relaxed); }  // a sentence comes in
  void reset();
  Profile collect() const;

 private:
  friend struct Timed;  // the kernels of table_
  struct Tensor {
    const std::byte *begin, *end;
    size_t part;
  };
  using Thread = std::vector<Counters>;  // by part

  size_t add_part(const std::string& name, bool encoder, Kind kind);
  void add_tensors(const Model& model);
  size_t part_of(const void* weights) const;
  size_t product(const void* weights);
  Thread& mine();

  const Kernels& real_;
  Kernels table_;
  std::vector<ProfilePart> parts_;
  std::vector<Tensor> tensors_;          // by address
  std::array<size_t, 2> other_[8] = {};  // parts that are no product: [what][decoder, encoder]
  size_t encoder_attention_ = 0, self_attention_ = 0, cross_attention_ = 0;
  size_t self_qkv_ = 0, cross_kv_ = 0, output_ = 0;
  uint64_t output_bytes_ = 0;  // that a step reads
  std::atomic<size_t> last_product_{0};
  std::atomic<bool> in_encoder_{true};
  const uint64_t number_;  // of this profiler: tells threads that their counters are of an older one
  std::mutex mutex_;
  std::deque<Thread> threads_;  // stays in place as it grows
};

}  // namespace dragoman::bench
