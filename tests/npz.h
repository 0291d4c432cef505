// Reads float32, int32 and int64 arrays from an uncompressed .npz (a zip of .npy files), as numpy.savez writes it:
// enough for our reference data, nothing more.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace dragoman::test {

struct Array {
  std::vector<size_t> shape;
  std::vector<float> values;  // integers are converted
};

inline Array parse_npy(const char* p, size_t bytes) {
  const size_t header_bytes = static_cast<unsigned char>(p[8]) + 256u * static_cast<unsigned char>(p[9]);
  const std::string header(p + 10, header_bytes);
  Array array;
  const size_t open = header.find('(', header.find("'shape'")), close = header.find(')', open);
  size_t count = 1;
  for (size_t at = open + 1; at < close;) {
    if (header[at] < '0' || header[at] > '9') {
      ++at;
      continue;
    }
    size_t used;
    array.shape.push_back(std::stoul(header.substr(at), &used));
    count *= array.shape.back();
    at += used;
  }
  const char* data = p + 10 + header_bytes;
  const bool is_float = header.find("<f4") != std::string::npos, is_long = header.find("<i8") != std::string::npos;
  const size_t width = is_long ? 8 : 4;
  if (10 + header_bytes + count * width > bytes) return {};
  array.values.resize(count);
  for (size_t i = 0; i < count; ++i) {
    int32_t integer;  // the low half of an int64: ids are small
    std::memcpy(is_float ? static_cast<void*>(&array.values[i]) : &integer, data + width * i, 4);
    if (!is_float) array.values[i] = static_cast<float>(integer);
  }
  return array;
}

inline std::map<std::string, Array> read_npz(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string zip((std::istreambuf_iterator<char>(in)), {});
  const auto number = [&](size_t at, size_t bytes) {
    uint64_t value = 0;
    std::memcpy(&value, zip.data() + at, bytes);
    return value;
  };
  std::map<std::string, Array> arrays;
  for (size_t at = 0; at + 30 <= zip.size() && number(at, 4) == 0x04034b50;) {
    const size_t name_bytes = number(at + 26, 2), extra_bytes = number(at + 28, 2);
    const std::string name = zip.substr(at + 30, name_bytes);
    uint64_t size = number(at + 22, 4);
    if (size == 0xffffffff) size = number(at + 30 + name_bytes + 4, 8);  // the zip64 field comes first
    const size_t data = at + 30 + name_bytes + extra_bytes;
    arrays[name.substr(0, name.rfind(".npy"))] = parse_npy(zip.data() + data, size);
    at = data + size;
  }
  return arrays;
}

}  // namespace dragoman::test
