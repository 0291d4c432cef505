// The one layout of weights (C3), for every CPU: panels of 16 output columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dragoman {

// rows (n, k) row-major, one row per output column -> [n/16][k][16]. n is padded to a multiple of 16 and k to a
// multiple of 8 with zeros.
std::vector<float> pack_f32(std::span<const float> rows, size_t n, size_t k);
// -> [n/16][k/4][16][4], padded likewise.
std::vector<int8_t> pack_s8(std::span<const int8_t> rows, size_t n, size_t k);

// Where element (column n, row k) lies in a packed matrix of padded depth k_padded.
constexpr size_t packed_index_f32(size_t n, size_t k, size_t k_padded) {
  return (n / 16 * k_padded + k) * 16 + n % 16;
}
constexpr size_t packed_index_s8(size_t n, size_t k, size_t k_padded) {
  return ((n / 16 * (k_padded / 4) + k / 4) * 16 + n % 16) * 4 + k % 4;
}

}  // namespace dragoman
