// Values of a JSON object, read with a sticky error: ask for everything, then look at error() once.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/result.h"

namespace dragoman {

// What is nested deeper than this is left out: printing and comparing JSON recurse.
inline constexpr int kDeepestJson = 16;

// The whole file, or text that is already in memory, as a JSON object. `name` is used in the sentence.
Result<nlohmann::json> read_json(const std::string& path);
Result<nlohmann::json> parse_json(std::string_view text, const char* name);

class JsonFields {
 public:
  // `file` is the name used in messages. The object must outlive this.
  JsonFields(const nlohmann::json& object, std::string file) : object_(object), file_(std::move(file)) {}

  // Absent and null are the same.
  bool has(const char* key) const;
  const nlohmann::json& at(const char* key) const;  // null where absent

  // With `otherwise`, a missing key is that value; without, it is an error.
  uint32_t integer(const char* key, uint32_t low, uint32_t high, std::optional<uint32_t> otherwise = {});
  bool boolean(const char* key, bool otherwise);
  std::string text(const char* key);

  // Keeps the first error only.
  void refuse(const Error& error) {
    if (!error_) error_ = error;
  }
  const std::optional<Error>& error() const { return error_; }
  const char* file() const { return file_.c_str(); }

 private:
  const nlohmann::json& object_;
  std::string file_;
  std::optional<Error> error_;
};

}  // namespace dragoman
