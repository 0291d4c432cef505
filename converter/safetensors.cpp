#include "converter/safetensors.h"

#include "converter/json_fields.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

namespace dragoman {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;  // as in the reference implementation of the format
constexpr size_t kMaxRank = 8;

struct DtypeSize {
  const char* name;
  uint64_t bytes;
};
constexpr DtypeSize kDtypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
                                 {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
                                 {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};

// 0 for a type this reader does not know.
uint64_t dtype_bytes(const std::string& dtype) {
  for (const auto& [name, bytes] : kDtypes)
    if (dtype == name) return bytes;
  return 0;
}

// The JSON header, with every tensor named once: a parser that lets the last of two equal names win would hide one.
Result<Json> parse_header(std::string_view text, const char* name) {
  std::set<std::string> names;
  std::string twice;
  const auto watch_keys = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::key && depth == 1 && !names.insert(value.get_ref<std::string&>()).second)
      twice = value.get_ref<std::string&>();
    return depth <= kDeepestJson;
  };
  Json header = Json::parse(text.begin(), text.end(), watch_keys, /*allow_exceptions=*/false);
  if (header.is_discarded() || !header.is_object())
    return fail("%s: the header is not a JSON object: the file is damaged or is no safetensors file", name);
  if (!twice.empty()) return fail("%s: tensor %s is listed twice", name, printable(twice).c_str());
  return header;
}

bool read_shape(const Json& json, TensorInfo& info) {
  if (!json.is_array() || json.size() > kMaxRank) return false;
  info.elements = 1;
  for (const Json& extent : json) {
    if (!extent.is_number_unsigned()) return false;
    info.shape.push_back(extent.get<uint64_t>());
    if (__builtin_mul_overflow(info.elements, info.shape.back(), &info.elements)) return false;
  }
  return true;
}

// One entry of the header. Offsets count from data_begin, the first byte after the header.
Result<TensorInfo> read_entry(const std::string& tensor, const Json& entry, uint64_t data_begin, uint64_t data_bytes,
                              const char* name) {
  const std::string label = printable(tensor);
  TensorInfo info;
  const bool complete = entry.is_object() && entry.contains("dtype") && entry.contains("shape") &&
                        entry.contains("data_offsets") && entry["dtype"].is_string();
  if (!complete) return fail("%s: tensor %s lacks dtype, shape or data_offsets", name, label.c_str());
  info.dtype = entry["dtype"].get_ref<const std::string&>();
  const uint64_t size = dtype_bytes(info.dtype);
  if (size == 0)
    return fail("%s: tensor %s has the unknown type %s", name, label.c_str(), printable(info.dtype).c_str());
  if (!read_shape(entry["shape"], info)) return fail("%s: tensor %s has an impossible shape", name, label.c_str());
  const Json& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    return fail("%s: tensor %s has impossible data_offsets", name, label.c_str());
  const uint64_t begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  if (begin > end || end > data_bytes)
    return fail(
        "%s: tensor %s ends at byte %llu of the data, but only %llu are there: the file is cut short; "
        "download it again",
        name, label.c_str(), static_cast<unsigned long long>(end), static_cast<unsigned long long>(data_bytes));
  if (__builtin_mul_overflow(info.elements, size, &info.bytes) || info.bytes != end - begin)
    return fail("%s: tensor %s has %llu bytes, which do not fit its shape and type %s", name, label.c_str(),
                static_cast<unsigned long long>(end - begin), info.dtype.c_str());
  info.offset = data_begin + begin;
  return info;
}

// Tensors lie end to end: no byte belongs to two of them or to none.
Status check_coverage(const std::map<std::string, TensorInfo>& tensors, uint64_t data_begin, uint64_t file_bytes,
                      const char* name) {
  struct Range {
    uint64_t begin, end;
    const std::string* tensor;
  };
  std::vector<Range> ranges;
  for (const auto& [tensor, info] : tensors) ranges.push_back({info.offset, info.offset + info.bytes, &tensor});
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
  uint64_t covered = data_begin;
  for (const Range& range : ranges) {
    if (range.begin < covered)
      return fail("%s: tensor %s overlaps another one", name, printable(*range.tensor).c_str());
    if (range.begin > covered)
      return fail("%s: the bytes before tensor %s belong to no tensor", name, printable(*range.tensor).c_str());
    covered = range.end;
  }
  if (covered != file_bytes)
    return fail("%s: %llu bytes at its end belong to no tensor", name,
                static_cast<unsigned long long>(file_bytes - covered));
  return Done{};
}

}  // namespace

Result<SafeTensors> SafeTensors::open(const std::string& path) {
  Result<SourceFile> mapping = SourceFile::open(path);
  if (!mapping) return mapping.error();
  Result<SafeTensors> file = parse(mapping->bytes(), path.c_str());
  if (file) file->mapping_ = std::move(*mapping);
  return file;
}

Result<SafeTensors> SafeTensors::parse(std::span<const std::byte> file, const char* name) {
  if (const Status content = check_content(file, name); !content) return content.error();
  uint64_t header_bytes = 0;
  if (file.size() < sizeof header_bytes)
    return fail("%s has only %zu bytes: it is cut short; download it again", name, file.size());
  std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
  if (header_bytes > kMaxHeader)
    return fail("%s is no safetensors file: its header would have %llu bytes", name,
                static_cast<unsigned long long>(header_bytes));
  if (header_bytes > file.size() - sizeof header_bytes)
    return fail("%s is cut short inside its header (%zu bytes are there); download it again", name, file.size());

  const uint64_t data_begin = sizeof header_bytes + header_bytes;
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + sizeof header_bytes, header_bytes);
  const Result<Json> header = parse_header(text, name);
  if (!header) return header.error();

  SafeTensors result;
  result.file_ = file;
  for (const auto& [tensor, entry] : header->items()) {
    if (tensor == "__metadata__") continue;
    Result<TensorInfo> info = read_entry(tensor, entry, data_begin, file.size() - data_begin, name);
    if (!info) return info.error();
    result.tensors_.emplace(tensor, std::move(*info));
  }
  if (const Status covered = check_coverage(result.tensors_, data_begin, file.size(), name); !covered)
    return covered.error();
  return result;
}

Result<std::vector<float>> SafeTensors::floats(const std::string& name) const {
  const auto found = tensors_.find(name);
  return floats(name, 0, found == tensors_.end() ? 0 : found->second.elements);
}

Result<std::vector<float>> SafeTensors::floats(const std::string& name, uint64_t first, uint64_t count) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return fail("tensor %s is missing", name.c_str());
  const TensorInfo& info = found->second;
  const bool single = info.dtype == "F32", half = info.dtype == "F16";
  if (!single && !half && info.dtype != "BF16")
    return fail("tensor %s is stored as %s: only F32, F16 and BF16 can be read", name.c_str(), info.dtype.c_str());
  if (first > info.elements || count > info.elements - first)
    return fail("tensor %s has no elements %llu to %llu", name.c_str(), static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(first + count));
  const size_t size = single ? 4 : 2;
  const std::span<const std::byte> data = file_.subspan(info.offset + first * size, count * size);
  std::vector<float> values(count);
  for (size_t i = 0; i < (single ? 0 : count); ++i) {
    uint16_t bits;
    std::memcpy(&bits, data.data() + 2 * i, 2);
    values[i] = half ? half_to_float(bits) : bfloat_to_float(bits);
  }
  if (single && count > 0) std::memcpy(values.data(), data.data(), data.size());
  if (!mapping_.bytes().empty()) forget(mapping_.bytes(), data);  // a large file is read piece by piece
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
