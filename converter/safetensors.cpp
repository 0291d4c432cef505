#include "converter/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "converter/file.h"
#include "converter/json_fields.h"

namespace dragoman {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;  // as in the reference implementation of the format

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

bool read_shape(const Json& json, TensorView& tensor) {
  if (!json.is_array() || json.size() > kMaxRank) return false;
  for (const Json& extent : json) {
    if (!extent.is_number_unsigned()) return false;
    tensor.shape.push_back(extent.get<uint64_t>());
  }
  return count_elements(tensor);
}

// One entry of the header. `data` is what follows the header.
Result<TensorView> read_entry(const std::string& tensor, const Json& entry, std::span<const std::byte> data,
                              const char* name) {
  const std::string label = printable(tensor);
  TensorView info;
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
  if (begin > end || end > data.size())
    return fail(
        "%s: tensor %s ends at byte %llu of the data, but only %llu are there: the file is cut short; "
        "download it again",
        name, label.c_str(), static_cast<unsigned long long>(end), static_cast<unsigned long long>(data.size()));
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(info.elements, size, &bytes) || bytes != end - begin)
    return fail("%s: tensor %s has %llu bytes, which do not fit its shape and type %s", name, label.c_str(),
                static_cast<unsigned long long>(end - begin), info.dtype.c_str());
  info.data = data.subspan(begin, bytes);
  return info;
}

// Tensors lie end to end: no byte belongs to two of them or to none.
Status check_coverage(const TensorMap& tensors, std::span<const std::byte> data, const char* name) {
  struct Range {
    const std::byte *begin, *end;
    const std::string* tensor;
  };
  std::vector<Range> ranges;
  for (const auto& [tensor, info] : tensors)
    ranges.push_back({info.data.data(), info.data.data() + info.data.size(), &tensor});
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
  const std::byte *covered = data.data(), *data_end = data.data() + data.size();
  for (const Range& range : ranges) {
    if (range.begin < covered)
      return fail("%s: tensor %s overlaps another one", name, printable(*range.tensor).c_str());
    if (range.begin > covered)
      return fail("%s: the bytes before tensor %s belong to no tensor", name, printable(*range.tensor).c_str());
    covered = range.end;
  }
  if (covered != data_end) return fail("%s: %td bytes at its end belong to no tensor", name, data_end - covered);
  return Done{};
}

}  // namespace

Result<TensorMap> parse_safetensors(std::span<const std::byte> file, const char* name) {
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

  const std::string_view text(reinterpret_cast<const char*>(file.data()) + sizeof header_bytes, header_bytes);
  const Result<Json> header = parse_header(text, name);
  if (!header) return header.error();

  const std::span<const std::byte> data = file.subspan(sizeof header_bytes + header_bytes);
  TensorMap tensors;
  for (const auto& [tensor, entry] : header->items()) {
    if (tensor == "__metadata__") continue;
    Result<TensorView> view = read_entry(tensor, entry, data, name);
    if (!view) return view.error();
    tensors.emplace(tensor, std::move(*view));
  }
  if (const Status covered = check_coverage(tensors, data, name); !covered) return covered.error();
  return tensors;
}

}  // namespace dragoman
