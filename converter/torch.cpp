#include "converter/torch.h"

#include <cstring>
#include <map>
#include <string_view>

#include "converter/file.h"
#include "converter/pickle.h"
#include "converter/zip.h"

namespace dragoman {
namespace {

using Bytes = std::span<const std::byte>;
using Value = PickleValue;
using Storages = std::map<std::string_view, Bytes>;  // by key

constexpr std::string_view kMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19",
                                  10);  // of the stream, the lowest byte first
constexpr int64_t kStreamVersion = 1001;

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// False where the product does not fit.
bool storage_bytes(const PickledStorage& storage, uint64_t& bytes) {
  return !__builtin_mul_overflow(storage.elements, dtype_bytes(storage.dtype), &bytes);
}

bool is_contiguous(const TensorView& tensor) {
  uint64_t stride = 1;
  for (size_t axis = tensor.shape.size(); axis-- > 0;) {
    if (tensor.shape[axis] > 1 && tensor.strides[axis] != stride) return false;
    stride *= tensor.shape[axis];
  }
  return true;
}

// How many elements of the storage the tensor spans, from its first to its last. False where the number does not fit.
bool span_of(const TensorView& tensor, uint64_t& span) {
  span = tensor.elements == 0 ? 0 : 1;
  for (size_t axis = 0; axis < tensor.shape.size() && span > 0; ++axis) {
    uint64_t reach = 0;
    if (__builtin_mul_overflow(tensor.shape[axis] - 1, tensor.strides[axis], &reach) ||
        __builtin_add_overflow(span, reach, &span))
      return false;
  }
  return true;
}

// A tensor may repeat elements (stride 0), but not be larger than what it is made of: sizes bound the memory.
Result<TensorView> place(const PickledTensor& pickled, const PickledStorage& storage, Bytes data,
                         const std::string& label, const char* name) {
  TensorView tensor{storage.dtype, pickled.shape, pickled.strides, 0, {}};
  const uint64_t room = storage.elements < pickled.offset ? 0 : storage.elements - pickled.offset;
  uint64_t span = 0;
  if (!count_elements(tensor) || !span_of(tensor, span) || tensor.elements > room || span > room)
    return fail("%s: tensor %s %s reaches beyond its storage of %llu elements: the file is damaged; download it again",
                name, label.c_str(), shape_text(tensor.shape).c_str(),
                static_cast<unsigned long long>(storage.elements));
  const uint64_t size = dtype_bytes(storage.dtype);
  if (span > 0) tensor.data = data.subspan(pickled.offset * size, span * size);
  if (is_contiguous(tensor)) tensor.strides.clear();
  return tensor;
}

// The next pickle, which must be a dict of tensors by name.
Result<PickleId> load_state(Unpickler& pickle, const char* name) {
  const Result<PickleId> state = pickle.load();
  if (!state) return state;
  const Value& dict = pickle.value(*state);
  if (dict.kind != Value::kDict)
    return fail("%s holds no dict of tensors: save the model's state_dict() with torch.save", name);
  for (size_t i = 0; i < dict.items.size(); i += 2) {
    const Value& key = pickle.value(dict.items[i]);
    if (key.kind != Value::kText)
      return fail("%s: a name of a tensor is no text: the file is damaged; download it again", name);
    if (pickle.value(dict.items[i + 1]).kind != Value::kTensor)
      return fail(
          "%s: entry %s is not a tensor: save the model's state_dict() alone, without what else a training "
          "script keeps",
          name, printable(key.text).c_str());
  }
  return state;
}

// The tensors of that dict, each where it lies.
Result<TensorMap> place_all(const Unpickler& pickle, PickleId state, const Storages& storages, const char* name) {
  const std::vector<PickleId>& items = pickle.value(state).items;
  TensorMap tensors;
  for (size_t i = 0; i < items.size(); i += 2) {
    const std::string_view key = pickle.value(items[i]).text;
    const std::string label = printable(key);
    const PickledTensor& pickled = pickle.tensors()[static_cast<size_t>(pickle.value(items[i + 1]).number)];
    Result<TensorView> tensor =
        place(pickled, pickle.storages().at(pickled.storage), storages.at(pickled.storage), label, name);
    if (!tensor) return tensor.error();
    if (!tensors.emplace(key, std::move(*tensor)).second)
      return fail("%s: tensor %s is listed twice", name, label.c_str());
  }
  return tensors;
}

// NAME/ of the archive that holds NAME/data.pkl.
Result<std::string> archive_prefix(const ZipDirectory& directory, const char* name) {
  constexpr std::string_view kPickle = "/data.pkl";
  std::string prefix;
  for (const auto& [entry, zipped] : directory) {
    if (entry.ends_with("/constants.pkl"))
      return fail(
          "%s is a TorchScript archive, which is a program and not weights: save the model's state_dict() with "
          "torch.save",
          name);
    if (entry.ends_with(kPickle)) prefix = entry.substr(0, entry.size() - kPickle.size() + 1);
  }
  if (prefix.empty()) return fail("%s is a zip archive, but not one of torch.save: it has no data.pkl", name);
  return prefix;
}

Result<Storages> storages_of_zip(const Unpickler& pickle, const ZipDirectory& directory, const std::string& prefix,
                                 const char* name, const Seen& seen) {
  Storages storages;
  for (const auto& [key, storage] : pickle.storages()) {
    const std::string entry = prefix + "data/" + std::string(key);
    const auto found = directory.find(entry);
    if (found == directory.end())
      return fail("%s has no entry %s, which its data.pkl asks for: the file is damaged; download it again", name,
                  printable(entry).c_str());
    if (const Status good = check_entry(found->second, entry, name, seen); !good) return good.error();
    uint64_t bytes = 0;
    if (!storage_bytes(storage, bytes) || bytes != found->second.data.size())
      return fail(
          "%s: %s has %zu bytes, but data.pkl says %llu elements of type %s: the file is damaged; download it "
          "again",
          name, printable(entry).c_str(), found->second.data.size(), static_cast<unsigned long long>(storage.elements),
          storage.dtype);
    storages[key] = found->second.data;
  }
  return storages;
}

Result<TensorMap> parse_archive(Bytes file, const char* name, const Seen& seen) {
  const Result<ZipDirectory> directory = parse_zip(file, name);
  if (!directory) return directory.error();
  const Result<std::string> prefix = archive_prefix(*directory, name);
  if (!prefix) return prefix.error();
  const ZipEntry& zipped = directory->at(*prefix + "data.pkl");
  if (const Status good = check_entry(zipped, *prefix + "data.pkl", name); !good) return good.error();
  const auto order = directory->find(*prefix + "byteorder");
  if (order != directory->end() && text_of(order->second.data) != "little")
    return fail("%s was written on a machine of another byte order: save the model as model.safetensors", name);

  Unpickler pickle(text_of(zipped.data), name);
  const Result<PickleId> state = load_state(pickle, name);
  if (!state) return state.error();
  const Result<Storages> storages = storages_of_zip(pickle, *directory, *prefix, name, seen);
  if (!storages) return storages.error();
  return place_all(pickle, *state, *storages, name);
}

// Magic number, version and a dict about the machine that wrote the stream.
Status read_stream_head(Unpickler& pickle, const char* name) {
  PickleId head[3] = {};
  for (PickleId& id : head) {
    const Result<PickleId> value = pickle.load();
    if (!value) return value.error();
    id = *value;
    if (pickle.value(head[0]).text != kMagic)
      return fail("%s is a pickle, but not one of torch.save: it holds no weights this reader knows", name);
  }
  const Value& version = pickle.value(head[1]);
  if (version.kind != Value::kInt || version.number != kStreamVersion)
    return fail("%s is of a version of torch.save this reader does not know: save the model as model.safetensors",
                name);
  const std::vector<PickleId>& system = pickle.value(head[2]).items;
  for (size_t i = 0; i + 1 < system.size(); i += 2) {
    const Value &key = pickle.value(system[i]), &value = pickle.value(system[i + 1]);
    if (key.text == "little_endian" && value.number != 1)
      return fail("%s was written on a machine of another byte order: save the model as model.safetensors", name);
  }
  return Done{};
}

// What follows the pickles: for each key of the list its count and its data.
Result<Storages> storages_of_stream(const Unpickler& pickle, PickleId keys, Bytes data, const char* name) {
  Storages storages;
  if (pickle.value(keys).kind != Value::kList)
    return fail("%s has no list of its storages: the file is damaged; download it again", name);
  for (const PickleId id : pickle.value(keys).items) {
    const std::string_view key = pickle.value(id).text;
    const auto known = pickle.storages().find(key);
    if (known == pickle.storages().end() || storages.contains(key))
      return fail("%s lists storage %s, which its tensors do not use, or twice: the file is damaged; download it again",
                  name, printable(key).c_str());
    uint64_t count = 0, bytes = 0;
    if (data.size() < sizeof count || !storage_bytes(known->second, bytes) || bytes > data.size() - sizeof count)
      return fail("%s is cut short inside storage %s; download it again", name, printable(key).c_str());
    std::memcpy(&count, data.data(), sizeof count);
    if (count != known->second.elements)
      return fail("%s: storage %s has %llu elements, but the pickle says %llu: the file is damaged; download it again",
                  name, printable(key).c_str(), static_cast<unsigned long long>(count),
                  static_cast<unsigned long long>(known->second.elements));
    storages[key] = data.subspan(sizeof count, bytes);
    data = data.subspan(sizeof count + bytes);
  }
  if (storages.size() != pickle.storages().size())
    return fail("%s lists %zu storages, but its tensors use %zu: the file is damaged; download it again", name,
                storages.size(), pickle.storages().size());
  if (!data.empty())
    return fail("%s: %zu bytes at its end belong to no storage: the file is damaged; download it again", name,
                data.size());
  return storages;
}

Result<TensorMap> parse_stream(Bytes file, const char* name) {
  Unpickler pickle(text_of(file), name);
  if (const Status head = read_stream_head(pickle, name); !head) return head.error();
  const Result<PickleId> state = load_state(pickle, name);
  if (!state) return state.error();
  const Result<PickleId> keys = pickle.load();
  if (!keys) return keys.error();
  const Result<Storages> storages = storages_of_stream(pickle, *keys, file.subspan(pickle.position()), name);
  if (!storages) return storages.error();
  return place_all(pickle, *state, *storages, name);
}

}  // namespace

Result<TensorMap> parse_torch(Bytes file, const char* name, const Seen& seen) {
  if (const Status content = check_content(file, name); !content) return content.error();
  if (starts_like_zip(file)) return parse_archive(file, name, seen);
  constexpr std::byte kProto{0x80};  // what every pickle since protocol 2 begins with
  if (file[0] == kProto) return parse_stream(file, name);
  return fail("%s is neither a zip archive nor a pickle: torch.save did not write it; download it again", name);
}

}  // namespace dragoman
