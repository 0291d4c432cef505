#include "converter/weight_files.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "converter/json_fields.h"
#include "converter/safetensors.h"
#include "converter/torch.h"
#include "runtime/checksum.h"

namespace dragoman {
namespace {

// A file of the folder itself: an index must not lead anywhere else.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find_first_of("/\\") == std::string::npos && name == printable(name);
}

Result<TensorMap> parse_header_only(std::span<const std::byte> file, const char* name, const Seen&) {
  return parse_safetensors(file, name);
}

// {"weight_map": {tensor: file}}, by file.
Result<std::map<std::string, std::set<std::string>>> read_index(const std::string& path) {
  const Result<nlohmann::json> json = read_json(path);
  if (!json) return json.error();
  const auto map = json->find("weight_map");
  if (map == json->end() || !map->is_object() || map->empty())
    return fail("%s has no weight_map, which says where each tensor is: it is damaged; download it again",
                path.c_str());
  std::map<std::string, std::set<std::string>> files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !is_plain_name(file.get_ref<const std::string&>()))
      return fail("%s: tensor %s is said to be in %s, which is not the name of a file beside it", path.c_str(),
                  printable(tensor).c_str(), printable(file.dump()).c_str());
    files[file.get_ref<const std::string&>()].insert(tensor);
  }
  return files;
}

}  // namespace

Result<WeightFiles> WeightFiles::open(const std::string& folder) {
  const struct {
    const char* name;
    Parser parse;
  } containers[] = {{"model.safetensors", parse_header_only}, {"pytorch_model.bin", parse_torch}};
  WeightFiles files;
  for (const auto& [name, parse] : containers) {
    const std::string index = std::string(name) + ".index.json";
    const bool whole = file_exists(folder + "/" + name);
    if (!whole && !file_exists(folder + "/" + index)) continue;
    files.name_ = whole ? name : index;
    const Status read = whole ? files.add(folder, name, parse) : files.add_indexed(folder, index, parse);
    if (!read) return read.error();
    return files;
  }
  return fail("%s has no model.safetensors and no pytorch_model.bin: download one of them into it", folder.c_str());
}

Status WeightFiles::add(const std::string& folder, const std::string& name, Parser parse) {
  const std::string path = folder + "/" + name;
  Result<SourceFile> file = SourceFile::open(path);
  if (!file) return file.error();
  Result<TensorMap> tensors =
      parse(file->bytes(), path.c_str(), [&](std::span<const std::byte> part) { forget(file->bytes(), part); });
  if (!tensors) return tensors.error();
  parts_.push_back({name, std::move(*file)});
  tensors_.merge(*tensors);
  if (!tensors->empty())
    return fail(
        "%s: tensor %s is in another part, too: the files belong to different downloads; fetch all of them again",
        path.c_str(), printable(tensors->begin()->first).c_str());
  return Done{};
}

// The index and the files must say the same.
Status WeightFiles::add_indexed(const std::string& folder, const std::string& index, Parser parse) {
  const std::string path = folder + "/" + index;
  const Result<std::map<std::string, std::set<std::string>>> files = read_index(path);
  if (!files) return files.error();
  for (const auto& [file, names] : *files) {
    if (!file_exists(folder + "/" + file))
      return fail("%s names %s, which is not in the folder: download it, too", path.c_str(), file.c_str());
    const size_t before = tensors_.size();
    if (const Status added = add(folder, file, parse); !added) return added;
    for (const std::string& name : names)
      if (!tensors_.contains(name))
        return fail(
            "%s says that %s has tensor %s, but it has not: the files belong to different downloads; fetch all "
            "of them again",
            path.c_str(), file.c_str(), printable(name).c_str());
    if (tensors_.size() - before != names.size())
      return fail(
          "%s lists %zu tensors of %s, but it has %zu: the files belong to different downloads; fetch all of "
          "them again",
          path.c_str(), names.size(), file.c_str(), tensors_.size() - before);
  }
  return Done{};
}

Result<std::vector<float>> WeightFiles::floats(const std::string& name, uint64_t first, uint64_t count) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return fail("tensor %s is missing", name.c_str());
  const TensorView& tensor = found->second;
  Result<std::vector<float>> values = to_floats(name, tensor, first, count);
  const Part* part = part_of(tensor);
  if (!values || !part || count == 0) return values;
  if (!tensor.strides.empty()) {  // its elements may lie anywhere
    forget(part->file.bytes(), tensor.data);
  } else {
    const uint64_t size = dtype_bytes(tensor.dtype);
    forget(part->file.bytes(), tensor.data.subspan(first * size, count * size));
  }
  return values;
}

const WeightFiles::Part* WeightFiles::part_of(const TensorView& tensor) const {
  const std::byte* data = tensor.data.data();
  for (const Part& part : parts_) {
    const std::span<const std::byte> bytes = part.file.bytes();
    if (std::less_equal<>()(bytes.data(), data) && std::less<>()(data, bytes.data() + bytes.size())) return &part;
  }
  return nullptr;
}

const char* WeightFiles::name_of(const std::string& tensor) const {
  const auto found = tensors_.find(tensor);
  const Part* part = found == tensors_.end() ? nullptr : part_of(found->second);
  return part ? part->name.c_str() : name();
}

std::string WeightFiles::names() const {
  if (parts_.size() == 1) return parts_[0].name;
  return std::to_string(parts_.size()) + " files from " + parts_.front().name + " to " + parts_.back().name;
}

uint64_t WeightFiles::bytes() const {
  uint64_t sum = 0;
  for (const Part& part : parts_) sum += part.file.bytes().size();
  return sum;
}

// Piece by piece, so that no file need be in memory at once.
uint64_t WeightFiles::checksum() const {
  constexpr size_t kPiece = 16 << 20;
  uint64_t state = kChecksumSeed;
  for (const Part& part : parts_) {
    const std::span<const std::byte> bytes = part.file.bytes();
    for (size_t at = 0; at < bytes.size(); at += kPiece) {
      const auto piece = bytes.subspan(at, std::min(kPiece, bytes.size() - at));
      state = checksum_words(piece.data(), piece.size(), state);
      forget(bytes, piece);
    }
    state = checksum_word(state, bytes.size());
  }
  return state;
}

}  // namespace dragoman
