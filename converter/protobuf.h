// Just enough of the protobuf wire format to read a message field by field. Input is hostile: every length is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace dragoman {

struct ProtoField {
  uint32_t number = 0;
  enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 } wire = kVarint;
  uint64_t value = 0;      // varint or fixed
  std::string_view bytes;  // kBytes

  float as_float() const {
    const uint32_t bits = uint32_t(value);
    float f;
    std::memcpy(&f, &bits, sizeof f);
    return f;
  }
};

class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : rest_(message) {}

  // False at the end of the message, or where it is malformed: then ok() is false too.
  bool next(ProtoField& field) {
    if (rest_.empty()) return false;
    uint64_t key = 0;
    ok_ = varint(key) && key >> 3 != 0 && key >> 32 == 0 && read(field, uint32_t(key));
    return ok_;
  }
  bool ok() const { return ok_; }

 private:
  bool read(ProtoField& field, uint32_t key) {
    field = {key >> 3, ProtoField::Wire(key & 7), 0, {}};
    uint64_t size = 0;
    switch (key & 7) {
      case ProtoField::kVarint:
        return varint(field.value);
      case ProtoField::kFixed64:
        return fixed(field.value, 8);
      case ProtoField::kFixed32:
        return fixed(field.value, 4);
      case ProtoField::kBytes:
        if (!varint(size) || size > rest_.size()) return false;
        field.bytes = rest_.substr(0, size_t(size));
        rest_.remove_prefix(size_t(size));
        return true;
      default:
        return false;  // groups: not in this format
    }
  }
  bool varint(uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = uint8_t(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t(byte & 127) << shift;
      if (byte < 128) return true;
    }
    return false;
  }
  bool fixed(uint64_t& value, size_t size) {
    if (rest_.size() < size) return false;
    value = 0;
    std::memcpy(&value, rest_.data(), size);  // little-endian, as this whole project
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace dragoman
