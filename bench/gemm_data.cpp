#include "bench/gemm_data.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "kernels/float_env.h"
#include "quant/pack.h"

namespace dragoman::bench {
namespace {

// The standard fixes mt19937's numbers, but not what its distributions make of them.
class Numbers {
 public:
  float unit() { return static_cast<float>(bits_() >> 8) * 0x1p-23f - 1; }  // [-1, 1)
  int byte() { return static_cast<int>(bits_() % 255) - 127; }

  std::vector<float> floats(size_t n) {
    std::vector<float> x(n);
    for (float& v : x) v = unit();
    return x;
  }
  std::vector<int8_t> bytes(size_t n) {
    std::vector<int8_t> x(n);
    for (int8_t& v : x) v = static_cast<int8_t>(byte());
    return x;
  }

 private:
  std::mt19937 bits_{42};
};

void limit_pairs(std::vector<int8_t>& w) {
  for (size_t i = 1; i < w.size(); i += 2)
    w[i] = static_cast<int8_t>(std::clamp<int>(w[i], -kPairLimit - w[i - 1], kPairLimit - w[i - 1]));
}

}  // namespace

GemmData::GemmData(const GemmShape& shape, bool int8) : m(0), k(shape.k), n(shape.n), s8(int8) {
  Numbers random;
  bias = random.floats(n);
  if (!s8) {
    w_f32 = random.floats(n * k);
    return;
  }
  w_s8 = random.bytes(n * k);
  limit_pairs(w_s8);
  for (size_t column = 0; column < n; ++column) {
    w_scale.push_back(0.01f * (1.5f + random.unit()));
    int32_t sum = 0;
    for (size_t i = 0; i < k; ++i) sum += w_s8[column * k + i];
    w_sum.push_back(sum);
  }
}

void GemmData::set_rows(size_t rows) {
  m = rows;
  Numbers random;
  if (s8) {
    x_s8 = random.bytes(m * k);
  } else {
    x_f32 = random.floats(m * k);
  }
}

Copies::Copies(size_t bytes, size_t count)
    : bytes_(bytes), stride_(round_up(bytes, 64)), count_(count), memory_(stride_ * count) {
  if (memory_.data()) return;
  std::fprintf(stderr, "dragoman-bench: %zu bytes for copies of a matrix are not to be had\n", stride_ * count);
  std::exit(1);
}

void Copies::repeat_first() {
  for (size_t copy = 1; copy < count_; ++copy) std::memcpy(at(copy), at(0), bytes_);
}

size_t copies_of(const GemmShape& shape, bool s8) {
  const size_t size = s8 ? 1 : sizeof(float), bytes = std::min(size * shape.weights, kMostBytes);
  return std::max<size_t>(1, bytes / (size * shape.k * shape.n));
}

OurGemm::OurGemm(const Kernels& kernels, const GemmData& data, size_t copies)
    : kernels_(kernels), data_(data), weights_(data.weight_bytes(), copies), y_(data.m * data.n) {
  if (data.s8) {
    const std::vector<int8_t> packed = pack_s8(data.w_s8, data.n, data.k);
    std::memcpy(weights_.at(0), packed.data(), packed.size());
    for (const int8_t q : data.x_s8) x_.push_back(static_cast<int8_t>(q + kernels.offset));
    rows_.assign(data.m, {kRowScale, 0});
  } else {
    const std::vector<float> packed = pack_f32(data.w_f32, data.n, data.k);
    std::memcpy(weights_.at(0), packed.data(), packed.size() * sizeof(float));
  }
  weights_.repeat_first();
}

void OurGemm::run(size_t copy) {
  const FloatEnv env;
  const size_t panels = data_.n / kPanel;
  if (data_.s8) {
    const PanelsS8 w{reinterpret_cast<const int8_t*>(weights_.at(copy)),
                     data_.w_scale.data(),
                     data_.w_sum.data(),
                     data_.bias.data(),
                     data_.k,
                     panels};
    kernels_.gemm_s8(x_.data(), rows_.data(), data_.m, w, y_.data(), data_.n);
  } else {
    const PanelsF32 w{reinterpret_cast<const float*>(weights_.at(copy)), data_.bias.data(), data_.k, panels};
    kernels_.gemm_f32(data_.x_f32.data(), data_.m, w, y_.data(), data_.n);
  }
}

}  // namespace dragoman::bench
