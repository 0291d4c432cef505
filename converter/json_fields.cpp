#include "converter/json_fields.h"

#include "converter/file.h"

namespace dragoman {

using Json = nlohmann::json;

Result<Json> read_json(const std::string& path) {
  const Result<SourceFile> file = SourceFile::open(path);
  if (!file) return file.error();
  return parse_json(file->text(), path.c_str());
}

Result<Json> parse_json(std::string_view text, const char* name) {
  const auto shallow = [](int depth, Json::parse_event_t, Json&) { return depth <= kDeepestJson; };
  Json json = Json::parse(text.begin(), text.end(), shallow, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object())
    return fail("%s is not a JSON object: it may be cut short or damaged", name);
  return json;
}

const Json& JsonFields::at(const char* key) const {
  static const Json kNull;
  const auto found = object_.find(key);
  return found == object_.end() ? kNull : *found;
}

bool JsonFields::has(const char* key) const {
  return !at(key).is_null();
}

uint32_t JsonFields::integer(const char* key, uint32_t low, uint32_t high, std::optional<uint32_t> otherwise) {
  const Json& value = at(key);
  if (value.is_null()) {
    if (!otherwise) refuse(fail("%s lacks %s: add it with the value the model was trained with", file(), key));
    return otherwise.value_or(low);
  }
  if (!value.is_number_unsigned() || value.get<uint64_t>() < low || value.get<uint64_t>() > high) {
    refuse(fail("%s: %s is %s, but must be a whole number from %u to %u", file(), key, printable(value.dump()).c_str(),
                low, high));
    return low;
  }
  return static_cast<uint32_t>(value.get<uint64_t>());
}

bool JsonFields::boolean(const char* key, bool otherwise) {
  const Json& value = at(key);
  if (value.is_null()) return otherwise;
  if (!value.is_boolean())
    refuse(fail("%s: %s is %s, but must be true or false", file(), key, printable(value.dump()).c_str()));
  return value.is_boolean() && value.get<bool>();
}

std::string JsonFields::text(const char* key) {
  const Json& value = at(key);
  if (value.is_string()) return value.get_ref<const std::string&>();
  if (value.is_null()) {
    refuse(fail("%s lacks %s: add it with the value the model was trained with", file(), key));
  } else {
    refuse(fail("%s: %s is %s, but must be a text", file(), key, printable(value.dump()).c_str()));
  }
  return "";
}

}  // namespace dragoman
