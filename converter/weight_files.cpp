#include "converter/weight_files.h"

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
  } containers[] = {{"model.safetensors", parse_safetensors}, {"pytorch_model.bin", parse_torch}};
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
  Result<TensorMap> tensors = parse(file->bytes(), path.c_str());
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

Result<std::vector<float>> WeightFiles::floats(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return fail("tensor %s is missing", name.c_str());
  return to_floats(name, found->second);
}

const char* WeightFiles::name_of(const std::string& tensor) const {
  const auto found = tensors_.find(tensor);
  const std::byte* data = found == tensors_.end() ? nullptr : found->second.data.data();
  for (const Part& part : parts_) {
    const std::span<const std::byte> bytes = part.file.bytes();
    if (std::less_equal<>()(bytes.data(), data) && std::less<>()(data, bytes.data() + bytes.size()))
      return part.name.c_str();
  }
  return name();
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

uint64_t WeightFiles::checksum() const {
  uint64_t state = kChecksumSeed;
  for (const Part& part : parts_) state = dragoman::checksum(part.file.bytes().data(), part.file.bytes().size(), state);
  return state;
}

}  // namespace dragoman
