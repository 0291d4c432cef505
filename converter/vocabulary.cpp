#include "converter/vocabulary.h"

#include <set>
#include <unordered_map>

#include "converter/file.h"
#include "converter/json_fields.h"
#include "runtime/format.h"

namespace dragoman {
namespace {

using Json = nlohmann::json;

// The pieces of a fast tokenizer with what is known about them.
class FastTokenizer {
 public:
  explicit FastTokenizer(const char* name) : name_(name) {}

  Status add_model(const Json& model) {
    const Json type = model.is_object() ? model.value("type", Json()) : Json();
    if (type != "Unigram")
      return fail(
          "%s: model.type is %s: only \"Unigram\" can be converted; put the model's own vocab.json beside source.spm",
          name_, printable(type.dump()).c_str());
    const Json vocab = model.value("vocab", Json());
    if (!vocab.is_array() || vocab.size() > kMaxVocabulary)
      return fail("%s: model.vocab is not a list of at most %u pieces", name_, kMaxVocabulary);
    for (const Json& entry : vocab) {
      if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string())
        return fail("%s: number %zu of model.vocab is not of the form [piece, score]", name_, vocabulary_.size());
      const Status added = add(entry[0].get_ref<const std::string&>(), vocabulary_.size());
      if (!added) return added;
    }
    return Done{};
  }

  // A token that the model has too must have the same id there: otherwise the list is not in the order of ids.
  Status add_token(const Json& token) {
    const Json content = token.is_object() ? token.value("content", Json()) : Json();
    const Json id = token.is_object() ? token.value("id", Json()) : Json();
    if (content.is_string() && id.is_null()) return Done{};  // a name without an id
    if (!content.is_string() || !id.is_number_unsigned() || id.get<uint64_t>() >= kMaxVocabulary)
      return fail("%s: added_tokens has %s, which is not of the form {\"id\": number, \"content\": text}", name_,
                  printable(token.dump()).c_str());
    const auto& text = content.get_ref<const std::string&>();
    const auto number = static_cast<size_t>(id.get<uint64_t>());
    const auto known = places_.find(text);
    if (known == places_.end()) return add(text, number);
    if (known->second == number) return Done{};
    return fail(
        "%s: \"%s\" has id %zu in added_tokens but is number %zu of model.vocab, so that no id can be trusted: put the "
        "model's own vocab.json beside it",
        name_, printable(text).c_str(), number, known->second);
  }

  Vocabulary take() { return std::move(vocabulary_); }

 private:
  Status add(const std::string& piece, size_t id) {
    const auto [known, is_new] = places_.emplace(piece, id);
    if (!is_new)
      return fail(
          "%s: piece \"%s\" has the ids %zu and %zu (some exports fill what one language lacks so): put the model's "
          "own "
          "vocab.json beside it",
          name_, printable(piece).c_str(), known->second, id);
    vocabulary_.emplace_back(piece, static_cast<int32_t>(id));
    return Done{};
  }

  const char* name_;
  Vocabulary vocabulary_;
  std::unordered_map<std::string, size_t> places_;
};

}  // namespace

Result<Vocabulary> parse_vocabulary(std::string_view text, const char* name) {
  Vocabulary vocabulary;
  std::set<std::string> pieces;
  std::string piece, twice, odd;
  const auto collect = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::key && depth == 1) {
      piece = value.get_ref<std::string&>();
      if (!pieces.insert(piece).second) twice = piece;
    } else if (event == Json::parse_event_t::value && depth == 1) {
      const bool id = value.is_number_unsigned() && value.get<uint64_t>() < kMaxVocabulary;
      if (!id) odd = piece;
      if (id) vocabulary.emplace_back(piece, static_cast<int32_t>(value.get<uint64_t>()));
    } else if (depth > 1) {
      odd = piece;
    }
    return depth <= kDeepestJson;
  };
  const Json json = Json::parse(text.begin(), text.end(), collect, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object())
    return fail("%s is not a JSON object: it may be cut short or damaged", name);
  if (!odd.empty()) return fail("%s: the id of piece \"%s\" is not a whole number", name, printable(odd).c_str());
  if (!twice.empty()) return fail("%s: piece \"%s\" is listed twice", name, printable(twice).c_str());
  return vocabulary;
}

Result<Vocabulary> parse_fast_tokenizer(std::string_view text, const char* name) {
  const Result<Json> json = parse_json(text, name);
  if (!json) return json.error();
  FastTokenizer tokenizer(name);
  if (const Status added = tokenizer.add_model(json->value("model", Json())); !added) return added.error();
  const Json tokens = json->value("added_tokens", Json::array());
  if (!tokens.is_array() && !tokens.is_null()) return fail("%s: added_tokens is not a list", name);
  for (const Json& token : tokens) {
    if (const Status added = tokenizer.add_token(token); !added) return added.error();
  }
  return tokenizer.take();
}

}  // namespace dragoman
