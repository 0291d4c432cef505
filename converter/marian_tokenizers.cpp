// source.spm, target.spm and vocab.json of a MarianMT folder. Ids come from vocab.json, not from the .spm.
#include <algorithm>
#include <set>

#include "converter/file.h"
#include "converter/json_fields.h"
#include "converter/marian.h"
#include "converter/sentencepiece.h"

namespace dragoman {
namespace {

using Json = nlohmann::json;

// Pieces and ids in the order of the file, which decides when two pieces share an id.
Result<Vocabulary> read_vocabulary(const std::string& folder, const char* name) {
  const Result<SourceFile> file = SourceFile::open(folder + "/" + name);
  if (!file) return file.error();
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
  const std::string_view text = file->text();
  const Json json = Json::parse(text.begin(), text.end(), collect, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object())
    return fail("%s is not a JSON object: it may be cut short or damaged", name);
  if (!odd.empty()) return fail("%s: the id of piece \"%s\" is not a whole number", name, printable(odd).c_str());
  if (!twice.empty()) return fail("%s: piece \"%s\" is listed twice", name, printable(twice).c_str());
  return vocabulary;
}

// Every id below `size` has a piece, and no other id is there.
Status check_vocabulary(const Vocabulary& vocabulary, uint32_t size, const char* name, const char* size_key) {
  std::vector<bool> present(size);
  for (const auto& [piece, id] : vocabulary) {
    if (static_cast<uint32_t>(id) >= size)
      return fail("%s: piece \"%s\" has id %d, but config.json says %s is %u: the files do not belong together", name,
                  printable(piece).c_str(), id, size_key, size);
    present[static_cast<size_t>(id)] = true;
  }
  const auto missing = std::count(present.begin(), present.end(), false);
  if (missing == 0) return Done{};
  const auto first = std::find(present.begin(), present.end(), false) - present.begin();
  return fail(
      "%s has no piece for id %td (%td of %u ids lack one; config.json says %s is %u): add a piece for each, so "
      "that whatever the model produces has a text",
      name, first, missing, size, size_key, size);
}

// How the special pieces are spelt: tokenizer_config.json may say so, as a text or as {"content": text}.
struct SpecialNames {
  std::string eos = "</s>", unk = "<unk>", pad = "<pad>";
  bool separate_vocabularies = false;
};

Result<SpecialNames> read_special_names(const std::string& folder) {
  SpecialNames names;
  const std::string path = folder + "/tokenizer_config.json";
  if (!file_exists(path)) return names;
  const Result<Json> json = read_json(path);
  if (!json) return json.error();
  JsonFields fields(*json, "tokenizer_config.json");
  for (const auto& [key, name] :
       {std::pair{"eos_token", &names.eos}, std::pair{"unk_token", &names.unk}, std::pair{"pad_token", &names.pad}}) {
    const Json& value = fields.at(key);
    if (value.is_string()) *name = value.get_ref<const std::string&>();
    if (value.is_object() && value.contains("content") && value["content"].is_string())
      *name = value["content"].get_ref<const std::string&>();
  }
  names.separate_vocabularies = fields.boolean("separate_vocabs", false);
  if (fields.error()) return *fields.error();
  return names;
}

int32_t find_id(const Vocabulary& vocabulary, const std::string& piece) {
  for (const auto& [text, id] : vocabulary)
    if (text == piece) return id;
  return -1;
}

// One side: the ids of its special pieces, checked against what the configuration says.
Result<SpecialIds> find_specials(const Vocabulary& vocabulary, const SpecialNames& names, const Architecture& arch,
                                 const char* file) {
  const SpecialIds ids{find_id(vocabulary, names.unk), find_id(vocabulary, names.eos), find_id(vocabulary, names.pad)};
  if (ids.unk < 0)
    return fail("%s has no piece %s: unknown characters could not be written; add it", file,
                printable(names.unk).c_str());
  if (ids.eos < 0)
    return fail("%s has no piece %s: sentences could not be ended; add it", file, printable(names.eos).c_str());
  if (ids.eos != static_cast<int32_t>(arch.eos))
    return fail("%s gives %s the id %d, but config.json says eos_token_id is %u: make them agree", file,
                printable(names.eos).c_str(), ids.eos, arch.eos);
  return ids;
}

Result<std::vector<std::byte>> compile(const std::string& folder, const char* name, const Vocabulary& vocabulary,
                                       const SpecialIds& special) {
  const Result<SourceFile> file = SourceFile::open(folder + "/" + name);
  if (!file) return file.error();
  const Result<SentencePieceModel> model = read_spm(file->bytes(), name);
  if (!model) return model.error();
  return compile_tokenizer(*model, &vocabulary, special);
}

}  // namespace

Status read_marian_tokenizers(const std::string& folder, Checkpoint& checkpoint) {
  Architecture& arch = checkpoint.arch;
  const Result<SpecialNames> names = read_special_names(folder);
  if (!names) return names.error();
  const bool separate = names->separate_vocabularies;
  const char* target_file = separate ? "target_vocab.json" : "vocab.json";
  const Result<Vocabulary> source = read_vocabulary(folder, "vocab.json");
  if (!source) return source.error();
  const Result<Vocabulary> target = separate ? read_vocabulary(folder, target_file) : source;
  if (!target) return target.error();
  if (const Status ok = check_vocabulary(*source, arch.source_vocabulary, "vocab.json", "vocab_size"); !ok) return ok;
  if (const Status ok = check_vocabulary(*target, arch.target_vocabulary, target_file, "decoder_vocab_size"); !ok)
    return ok;

  const Result<SpecialIds> source_ids = find_specials(*source, *names, arch, "vocab.json");
  if (!source_ids) return source_ids.error();
  const Result<SpecialIds> target_ids = find_specials(*target, *names, arch, target_file);
  if (!target_ids) return target_ids.error();
  if (source_ids->unk != target_ids->unk)
    return fail("vocab.json and target_vocab.json give %s different ids, %d and %d: the runtime needs one",
                printable(names->unk).c_str(), source_ids->unk, target_ids->unk);
  if (target_ids->pad != static_cast<int32_t>(arch.pad))
    return fail("%s gives %s the id %d (-1: none), but config.json says pad_token_id is %u: make them agree",
                target_file, printable(names->pad).c_str(), target_ids->pad, arch.pad);
  arch.unk = static_cast<uint32_t>(target_ids->unk);

  Result<std::vector<std::byte>> blob = compile(folder, "source.spm", *source, *source_ids);
  if (!blob) return blob.error();
  checkpoint.source_tokenizer = std::move(*blob);
  blob = compile(folder, "target.spm", *target, *target_ids);
  if (!blob) return blob.error();
  checkpoint.target_tokenizer = std::move(*blob);
  if (checkpoint.source_tokenizer == checkpoint.target_tokenizer) {
    arch.flags |= kSharedTokenizer;
    checkpoint.target_tokenizer.clear();
  }
  return Done{};
}

}  // namespace dragoman
