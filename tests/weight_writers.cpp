#include "tests/weight_writers.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "converter/zip.h"

namespace dragoman::test {
namespace {

constexpr size_t kTorchAlignment = 64;

std::string bytes_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const char* storage_type(const std::string& dtype) {
  const struct {
    const char *dtype, *type;
  } types[] = {{"F16", "HalfStorage"}, {"BF16", "BFloat16Storage"}, {"F64", "DoubleStorage"}, {"I64", "LongStorage"}};
  for (const auto& one : types)
    if (dtype == one.dtype) return one.type;
  return "FloatStorage";
}

// The dict of a module with its attribute {"_metadata": OrderedDict()}.
std::string pickled_state(const TorchState& state, bool in_stream) {
  std::string pickle = "\x80\x02" + pickle::ordered_dict() + "(";
  for (const TorchTensor& tensor : state.tensors)
    pickle += pickle::text(tensor.name) + tensor.pickled(state.storages[tensor.storage], in_stream);
  return pickle + "u}" + pickle::text("_metadata") + pickle::ordered_dict() + "sb.";
}

// Header of one entry; what lies in the directory is the same with a few fields more.
std::string zip_header(const ZipFile& file, uint64_t offset, bool directory, bool zip64) {
  const auto bytes = std::as_bytes(std::span(file.bytes));
  const std::string large = little(file.bytes.size(), 8) + little(file.bytes.size(), 8) + little(offset, 8);
  const std::string field = zip64 && directory ? little(1, 2) + little(large.size(), 2) + large : "";
  const uint64_t size = zip64 && directory ? 0xffffffff : file.bytes.size();
  std::string extra = field;
  if (!directory) {  // padding in a field of its own, as torch does
    const size_t unpadded = offset + 30 + file.name.size() + 4;
    const size_t padding = (kTorchAlignment - unpadded % kTorchAlignment) % kTorchAlignment;
    extra = "FB" + little(padding, 2) + std::string(padding, 'Z');
  }
  std::string header = directory ? "PK\x01\x02" + little(0, 2) : "PK\x03\x04";
  header += little(0, 2) + little(0, 2) + little(file.method, 2) + little(0, 4) + little(crc32(bytes), 4) +
            little(size, 4) + little(size, 4) + little(file.name.size(), 2) + little(extra.size(), 2);
  if (directory)
    header += little(0, 2) + little(0, 2) + little(0, 2) + little(0, 4) + little(zip64 ? ~0ull : offset, 4);
  return header + file.name + extra;
}

}  // namespace

std::string little(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(i < sizeof value ? value >> (8 * i) : 0);
  return text;
}

std::string safetensors_bytes(const TensorMap& tensors) {
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const size_t begin = data.size();
    data += bytes_of(tensor.data);
    header[name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  return little(text.size(), 8) + text + data;
}

namespace pickle {

std::string text(const std::string& value) {
  return "X" + little(value.size(), 4) + value;
}

std::string number(int64_t value) {
  return "\x8a\x08" + little(static_cast<uint64_t>(value), 8);
}

std::string tuple(const std::vector<int64_t>& numbers) {
  std::string items = "(";
  for (const int64_t value : numbers) items += number(value);
  return items + "t";
}

std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}

std::string ordered_dict() {
  return global("collections", "OrderedDict") + ")R";
}

std::string dict_of_x(const std::string& value) {
  return "\x80\x02}" + text("x") + value + "s.";
}

}  // namespace pickle

std::string TorchStorage::pickled(bool in_stream) const {
  return "(" + pickle::text("storage") + pickle::global("torch", type) + pickle::text(key) + pickle::text("cpu") +
         pickle::number(elements) + (in_stream ? "N" : "") + "tQ";
}

std::string TorchTensor::pickled(const TorchStorage& of, bool in_stream) const {
  return pickle::global("torch._utils", "_rebuild_tensor_v2") + "(" + of.pickled(in_stream) + pickle::number(offset) +
         pickle::tuple(shape) + pickle::tuple(strides) + "\x89" + pickle::ordered_dict() + "tR";
}

TorchState torch_state(const TensorMap& tensors) {
  TorchState state;
  for (const auto& [name, tensor] : tensors) {
    TorchTensor saved{name, state.storages.size(), 0, {}, std::vector<int64_t>(tensor.shape.size(), 1)};
    saved.shape.assign(tensor.shape.begin(), tensor.shape.end());
    for (size_t axis = saved.shape.size(); axis-- > 1;)
      saved.strides[axis - 1] = saved.strides[axis] * saved.shape[axis];
    state.tensors.push_back(saved);
    state.storages.push_back({std::to_string(state.storages.size()), storage_type(tensor.dtype),
                              static_cast<int64_t>(tensor.elements), bytes_of(tensor.data)});
  }
  return state;
}

std::string torch_archive(const TorchState& state, bool zip64) {
  return torch_archive(pickled_state(state, false), state.storages, zip64);
}

std::string torch_stream(const TorchState& state) {
  return torch_stream(pickled_state(state, true), state.storages);
}

std::string torch_archive(const std::string& pickle, const std::vector<TorchStorage>& storages, bool zip64) {
  std::vector<ZipFile> files{{"archive/data.pkl", pickle}};
  files.push_back({"archive/byteorder", "little"});
  for (const TorchStorage& storage : storages) files.push_back({"archive/data/" + storage.key, storage.bytes});
  files.push_back({"archive/version", "3\n"});
  return zip_bytes(files, zip64);
}

std::string torch_stream(const std::string& pickle, const std::vector<TorchStorage>& storages) {
  std::string file("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.", 21);
  file += "\x80\x02}(" + pickle::text("protocol_version") + pickle::number(1001) + pickle::text("little_endian") +
          "\x88" + pickle::text("type_sizes") + "}" + pickle::text("long") + pickle::number(4) + "su.";
  file += pickle + "\x80\x02](";
  for (const TorchStorage& storage : storages) file += pickle::text(storage.key);
  file += "e.";
  for (const TorchStorage& storage : storages)
    file += little(static_cast<uint64_t>(storage.elements), 8) + storage.bytes;
  return file;
}

std::string zip_bytes(const std::vector<ZipFile>& files, bool zip64) {
  std::string archive, directory;
  for (const ZipFile& file : files) {
    const uint64_t offset = archive.size();
    archive += zip_header(file, offset, false, zip64) + file.bytes;
    directory += zip_header(file, offset, true, zip64);
  }
  const uint64_t begin = archive.size(), end = begin + directory.size(), count = files.size();
  archive += directory;
  if (zip64) {
    archive += "PK\x06\x06" + little(44, 8) + little(0, 4) + little(0, 8) + little(count, 8) + little(count, 8) +
               little(directory.size(), 8) + little(begin, 8);
    archive += "PK\x06\x07" + little(0, 4) + little(end, 8) + little(1, 4);
  }
  return archive + "PK\x05\x06" + little(0, 4) + little(zip64 ? 0xffff : count, 2) + little(zip64 ? 0xffff : count, 2) +
         little(zip64 ? 0xffffffff : directory.size(), 4) + little(zip64 ? 0xffffffff : begin, 4) + little(0, 2);
}

void mend_crcs(std::span<std::byte> file) {
  const auto number = [&](uint64_t at, size_t bytes) {
    uint64_t value = 0;
    if (at <= file.size() && bytes <= file.size() - at) std::memcpy(&value, file.data() + at, bytes);
    return value;
  };
  for (size_t at = 0; at + 46 <= file.size(); ++at) {
    if (number(at, 4) != 0x02014b50) continue;
    uint64_t size = number(at + 20, 4), offset = number(at + 42, 4);
    const uint64_t large = at + 46 + number(at + 28, 2) + 4;  // where zip_bytes() puts the large numbers
    if (size == 0xffffffff) size = number(large + 8, 8);
    if (offset == 0xffffffff) offset = number(large + 16, 8);
    if (offset > file.size()) continue;
    const uint64_t begin = offset + 30 + number(offset + 26, 2) + number(offset + 28, 2);
    if (begin > file.size() || size > file.size() - begin) continue;
    const uint32_t crc = crc32(file.subspan(begin, size));
    std::memcpy(file.data() + at + 16, &crc, sizeof crc);
  }
}

}  // namespace dragoman::test
