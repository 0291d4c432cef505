#include "quant/pack.h"

#include "kernels/kernels.h"

namespace dragoman {

namespace {

template <class T, class Index>
std::vector<T> pack(std::span<const T> rows, size_t n, size_t k, Index index) {
  const size_t depth = round_up(k, 8);
  std::vector<T> packed(round_up(n, kPanel) * depth);
  for (size_t r = 0; r < n; ++r) {
    for (size_t i = 0; i < k; ++i) packed[index(r, i, depth)] = rows[r * k + i];
  }
  return packed;
}

}  // namespace

std::vector<float> pack_f32(std::span<const float> rows, size_t n, size_t k) {
  return pack(rows, n, k, packed_index_f32);
}

std::vector<int8_t> pack_s8(std::span<const int8_t> rows, size_t n, size_t k) {
  return pack(rows, n, k, packed_index_s8);
}

}  // namespace dragoman
