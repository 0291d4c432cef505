#include "bench/profile.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "runtime/clock.h"

namespace dragoman::bench {
namespace {

enum Other { kEmbedding, kLayerNorm, kQuantise, kAdd, kActivation, kArgmax, kLogSumExp, kSoftmax };
constexpr const char* kOtherNames[] = {"embedding",  "layer norm", "quantise",    "add",
                                       "activation", "argmax",     "log-sum-exp", "softmax"};

Profiler* profiler = nullptr;

std::atomic<uint64_t> profilers{0};

// "decoder.3.ffn.in.weight" -> "decoder ffn in": all layers are one part.
std::string label(const Model& model, std::string_view section) {
  if (section == (model.has(kTiedOutput) ? "target_embedding.weight" : "output.weight")) return "output projection";
  std::string text;
  for (size_t at = 0; at < section.size();) {
    const size_t end = std::min(section.find('.', at), section.size());
    const std::string_view word = section.substr(at, end - at);
    const bool number = word.find_first_not_of("0123456789") == word.npos;
    if (!number && word != "weight") text.append(text.empty() ? "" : " ").append(word);
    at = end + 1;
  }
  return text;
}

constexpr uint64_t kLong = 500000;  // bytes and products: more than a few microseconds

// CPU time of this thread, or wall time: the first is blind to what other programs take, but asking costs 0.3
// microseconds of a system call, too much for short calls. A short call that takes long was interrupted.
class Stopwatch {
 public:
  explicit Stopwatch(bool long_call) : long_(long_call), begin_(now()) {}
  double seconds() const {
    const double took = now() - begin_;
    return long_ || took < kInterrupted ? took : 0;
  }

 private:
  static constexpr double kInterrupted = 200e-6;
  double now() const {
    if (!long_) return seconds_now();
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  bool long_;
  double begin_;
};

}  // namespace

void Counters::add(const Counters& other) {
  calls += other.calls;
  bytes += other.bytes;
  largest = std::max(largest, other.largest);
  s8 += other.s8;
  f32 += other.f32;
  seconds = std::max(seconds, other.seconds);
}

namespace {

// What a product reads: weights and bias; with int8 the scales and sums, too.
uint64_t bytes_of(const PanelsF32& w) {
  return 4 * (w.k + 1) * w.panels * kPanel;
}
uint64_t bytes_of(const PanelsS8& w) {
  return (w.k + 12) * w.panels * kPanel;
}

}  // namespace

// The kernels of the table.
struct Timed {
  template <class F>
  static auto timed(size_t part, uint64_t bytes, uint64_t s8, uint64_t f32, const F& call) {
    struct Stop {
      size_t part;
      uint64_t bytes, s8, f32;
      Stopwatch watch{bytes + s8 + f32 > kLong};
      ~Stop() {
        const double seconds = watch.seconds();
        Counters& c = profiler->mine()[part];
        ++c.calls;
        c.bytes += bytes;
        c.largest = std::max(c.largest, bytes);
        c.s8 += s8;
        c.f32 += f32;
        c.seconds += seconds;
      }
    } stop{part, bytes, s8, f32};
    return call();
  }
  static size_t other(Other what) { return profiler->other_[what][profiler->in_encoder_.load()]; }

  static void gemm_f32(const float* x, size_t m, const PanelsF32& w, float* y, size_t ldy) {
    const size_t n = w.panels * kPanel;
    timed(profiler->product(w.w), bytes_of(w), 0, m * w.k * n, [&] { profiler->real_.gemm_f32(x, m, w, y, ldy); });
  }
  static void gemm_s8(const int8_t* x, const RowQuant* rows, size_t m, const PanelsS8& w, float* y, size_t ldy) {
    const size_t n = w.panels * kPanel;
    timed(profiler->product(w.w), bytes_of(w), m * w.k * n, 0, [&] { profiler->real_.gemm_s8(x, rows, m, w, y, ldy); });
  }
  static void quantize_rows(const float* x, size_t m, size_t k, int8_t* q, RowQuant* rows) {
    timed(other(kQuantise), 4 * m * k, 0, 0, [&] { profiler->real_.quantize_rows(x, m, k, q, rows); });
  }
  static void embed_f32(const PanelsF32& table, size_t id, float scale, const float* position, float* x) {
    timed(other(kEmbedding), 8 * table.k, 0, 0, [&] { profiler->real_.embed_f32(table, id, scale, position, x); });
  }
  static void embed_s8(const PanelsS8& table, size_t id, float scale, const float* position, float* x) {
    timed(other(kEmbedding), 5 * table.k, 0, 0, [&] { profiler->real_.embed_s8(table, id, scale, position, x); });
  }
  static void attention(const float* q, size_t ldq, size_t rows, const KeyValues& kv, size_t heads, size_t d_head,
                        float* scores, float* out) {
    const Profiler& p = *profiler;
    const size_t last = p.last_product_.load(), d = heads * d_head;
    const size_t part = p.in_encoder_.load()  ? p.encoder_attention_
                        : last == p.self_qkv_ ? p.self_attention_
                                              : p.cross_attention_;
    timed(part, 8 * kv.positions * d, 0, 2 * rows * kv.positions * d,
          [&] { p.real_.attention(q, ldq, rows, kv, heads, d_head, scores, out); });
  }
  static void softmax(float* x, size_t rows, size_t cols) {
    timed(other(kSoftmax), 4 * rows * cols, 0, 0, [&] { profiler->real_.softmax(x, rows, cols); });
  }
  static void layer_norm(const float* x, const float* gamma, const float* beta, float epsilon, size_t rows, size_t cols,
                         float* y) {
    timed(other(kLayerNorm), 4 * rows * cols, 0, 0,
          [&] { profiler->real_.layer_norm(x, gamma, beta, epsilon, rows, cols, y); });
  }
  static void add(float* x, const float* y, size_t n) {
    timed(other(kAdd), 8 * n, 0, 0, [&] { profiler->real_.add(x, y, n); });
  }
  template <void (*Kernels::*Function)(float*, size_t)>
  static void activation(float* x, size_t n) {
    timed(other(kActivation), 4 * n, 0, 0, [&] { (profiler->real_.*Function)(x, n); });
  }
  static void argmax(const float* x, size_t n, size_t first, ArgMax& best) {
    timed(other(kArgmax), 4 * n, 0, 0, [&] { profiler->real_.argmax(x, n, first, best); });
  }
  static float log_sum_exp(const float* x, size_t n) {
    return timed(other(kLogSumExp), 4 * n, 0, 0, [&] { return profiler->real_.log_sum_exp(x, n); });
  }

  // What is not wrapped here goes straight to the real kernel, and its time to no part.
  static Kernels wrap(const Kernels& real) {
    Kernels t = real;
    t.gemm_f32 = gemm_f32;
    t.gemm_s8 = gemm_s8;
    t.quantize_rows = quantize_rows;
    t.embed_f32 = embed_f32;
    t.embed_s8 = embed_s8;
    t.attention = attention;
    t.softmax = softmax;
    t.layer_norm = layer_norm;
    t.add = add;
    t.relu = activation<&Kernels::relu>;
    t.silu = activation<&Kernels::silu>;
    t.gelu = activation<&Kernels::gelu>;
    t.gelu_tanh = activation<&Kernels::gelu_tanh>;
    t.argmax = argmax;
    t.log_sum_exp = log_sum_exp;
    return t;
  }
};

Profiler::Profiler(const Model& model, const Kernels& real)
    : real_(real), table_(Timed::wrap(real)), number_(++profilers) {
  profiler = this;
  for (size_t what = 0; what < std::size(kOtherNames); ++what) {
    const std::string name = kOtherNames[what];
    other_[what] = {add_part("decoder " + name, false, Kind::kOther), add_part("encoder " + name, true, Kind::kOther)};
  }
  add_tensors(model);
  encoder_attention_ = add_part("encoder attention", true, Kind::kAttention);
  self_attention_ = add_part("decoder self attention", false, Kind::kAttention);
  cross_attention_ = add_part("decoder cross attention", false, Kind::kAttention);
  self_qkv_ = add_part("decoder self qkv", false, Kind::kProduct);
  cross_kv_ = add_part("decoder cross kv", true, Kind::kProduct);
  output_ = add_part("output projection", false, Kind::kProduct);
  output_bytes_ = bytes_of(model.output.f32) + bytes_of(model.output.s8);
}

Profiler::~Profiler() {
  profiler = nullptr;
}

// The part of that name, new or old.
size_t Profiler::add_part(const std::string& name, bool encoder, Kind kind) {
  const auto same = [&](const ProfilePart& part) { return part.name == name; };
  const auto found = std::find_if(parts_.begin(), parts_.end(), same);
  if (found != parts_.end()) return static_cast<size_t>(found - parts_.begin());
  parts_.push_back({name, encoder, kind, {}});
  return parts_.size() - 1;
}

void Profiler::add_tensors(const Model& model) {
  for (const Section& section : model.sections) {
    if (section.layout != Layout::kPanelsS8 && section.layout != Layout::kPanelsF32) continue;
    const std::string name = label(model, section.name);
    const bool encoder = name.starts_with("encoder") || name == "decoder cross kv";
    const std::byte* begin = model.file.data() + section.offset;
    tensors_.push_back({begin, begin + section.bytes, add_part(name, encoder, Kind::kProduct)});
  }
  std::sort(tensors_.begin(), tensors_.end(), [](const Tensor& a, const Tensor& b) { return a.begin < b.begin; });
}

size_t Profiler::part_of(const void* weights) const {
  const auto after = std::upper_bound(tensors_.begin(), tensors_.end(), static_cast<const std::byte*>(weights),
                                      [](const std::byte* at, const Tensor& t) { return at < t.begin; });
  return (after - 1)->part;
}

// Remembers where in a sentence we are, for the kernels that follow.
size_t Profiler::product(const void* weights) {
  const size_t part = part_of(weights);
  last_product_.store(part, std::memory_order_relaxed);
  in_encoder_.store(parts_[part].encoder && part != cross_kv_, std::memory_order_relaxed);
  return part;
}

Profiler::Thread& Profiler::mine() {
  thread_local Thread* counters = nullptr;
  thread_local uint64_t number = 0;
  if (number != number_) {
    const std::lock_guard lock(mutex_);
    counters = &threads_.emplace_back(parts_.size());
    number = number_;
  }
  return *counters;
}

void Profiler::reset() {
  const std::lock_guard lock(mutex_);
  for (Thread& thread : threads_) std::fill(thread.begin(), thread.end(), Counters{});
}

Profile Profiler::collect() const {
  Profile profile;
  std::vector<ProfilePart> parts = parts_;
  for (const Thread& thread : threads_) {
    for (size_t i = 0; i < parts.size(); ++i) parts[i].total.add(thread[i]);
  }
  profile.steps = parts[output_].total.bytes / output_bytes_;  // it is called for a piece at a time
  for (const Tensor& tensor : tensors_) {
    if (parts[tensor.part].total.calls == 0) continue;
    const uint64_t bytes = static_cast<uint64_t>(tensor.end - tensor.begin);
    (parts[tensor.part].encoder ? profile.encoder_weights : profile.decoder_weights) += bytes;
  }
  std::erase_if(parts, [](const ProfilePart& part) { return part.total.calls == 0; });
  std::stable_sort(parts.begin(), parts.end(),
                   [](const ProfilePart& a, const ProfilePart& b) { return a.total.seconds > b.total.seconds; });
  profile.parts = std::move(parts);
  return profile;
}

}  // namespace dragoman::bench
