#include "converter/tensor.h"

#include <bit>
#include <cstring>

namespace dragoman {
namespace {

struct DtypeSize {
  std::string_view name;
  uint64_t bytes;
};
constexpr DtypeSize kDtypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
                                 {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
                                 {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};

// Where the elements lie, in row-major order: one after the other, or wherever the strides lead.
class ElementWalk {
 public:
  ElementWalk(const TensorView& tensor, uint64_t first) : tensor_(tensor), index_(tensor.strides.size()) {
    if (index_.empty()) at_ = first;
    for (size_t axis = index_.size(); axis-- > 0; first /= tensor.shape[axis]) {
      index_[axis] = first % tensor.shape[axis];
      at_ += index_[axis] * tensor.strides[axis];
    }
  }

  uint64_t next() {
    if (index_.empty()) return at_++;
    const uint64_t here = at_;
    for (size_t axis = index_.size(); axis-- > 0;) {
      at_ += tensor_.strides[axis];
      if (++index_[axis] < tensor_.shape[axis]) break;
      at_ -= tensor_.strides[axis] * tensor_.shape[axis];
      index_[axis] = 0;
    }
    return here;
  }

 private:
  const TensorView& tensor_;
  std::vector<uint64_t> index_;
  uint64_t at_ = 0;
};

}  // namespace

uint64_t dtype_bytes(std::string_view dtype) {
  for (const auto& [name, bytes] : kDtypes)
    if (dtype == name) return bytes;
  return 0;
}

bool count_elements(TensorView& tensor) {
  tensor.elements = 1;
  for (const uint64_t extent : tensor.shape)
    if (__builtin_mul_overflow(tensor.elements, extent, &tensor.elements)) return false;
  return true;
}

std::string shape_text(const std::vector<uint64_t>& shape) {
  std::string text = "(";
  for (const uint64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + ")";
}

Result<std::vector<float>> to_floats(const std::string& name, const TensorView& tensor) {
  return to_floats(name, tensor, 0, tensor.elements);
}

Result<std::vector<float>> to_floats(const std::string& name, const TensorView& tensor, uint64_t first,
                                     uint64_t count) {
  const bool full = tensor.dtype == "F32", half = tensor.dtype == "F16";
  if (!full && !half && tensor.dtype != "BF16")
    return fail("tensor %s is stored as %s: only F32, F16 and BF16 can be read", name.c_str(), tensor.dtype.c_str());
  if (first > tensor.elements || count > tensor.elements - first)
    return fail("tensor %s has %llu elements, not %llu", name.c_str(), static_cast<unsigned long long>(tensor.elements),
                static_cast<unsigned long long>(first + count));
  const std::byte* data = tensor.data.data();
  std::vector<float> values(count);
  if (values.empty()) return values;  // a shape with a 0 has no elements to walk over
  if (full && tensor.strides.empty()) {
    std::memcpy(values.data(), data + 4 * first, 4 * values.size());
    return values;
  }
  ElementWalk walk(tensor, first);
  for (float& value : values) {
    const uint64_t at = walk.next();
    uint16_t bits;
    if (full) {
      std::memcpy(&value, data + 4 * at, 4);
    } else {
      std::memcpy(&bits, data + 2 * at, 2);
      value = half ? half_to_float(bits) : bfloat_to_float(bits);
    }
  }
  return values;
}

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 0) {  // zero and subnormals: fraction * 2^-24, exact in a float
    const float value = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -value : value;
  }
  const uint32_t biased = exponent == 31 ? 255 : exponent + (127 - 15);
  return std::bit_cast<float>(sign | biased << 23 | fraction << 13);
}

float bfloat_to_float(uint16_t bfloat) {
  return std::bit_cast<float>(static_cast<uint32_t>(bfloat) << 16);
}

}  // namespace dragoman
