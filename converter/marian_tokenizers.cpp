// source.spm, target.spm and vocab.json of a MarianMT folder. Ids come from vocab.json, not from the .spm.
#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "converter/file.h"
#include "converter/json_fields.h"
#include "converter/marian.h"
#include "converter/sentencepiece.h"
#include "converter/vocabulary.h"

namespace dragoman {
namespace {

using Json = nlohmann::json;

// The folder's vocabulary, and the file it came from: vocab.json, or tokenizer.json where there is none.
struct NamedVocabulary {
  const char* file = nullptr;
  Vocabulary pieces;
};

Result<NamedVocabulary> read_vocabulary(const std::string& folder, const char* name) {
  const bool fast = std::strcmp(name, "tokenizer.json") == 0;
  const Result<SourceFile> file = SourceFile::open(folder + "/" + name);
  if (!file) return file.error();
  Result<Vocabulary> pieces = fast ? parse_fast_tokenizer(file->text(), name) : parse_vocabulary(file->text(), name);
  if (!pieces) return pieces.error();
  return NamedVocabulary{name, std::move(*pieces)};
}

Result<NamedVocabulary> read_source_vocabulary(const std::string& folder, bool separate) {
  if (file_exists(folder + "/vocab.json")) return read_vocabulary(folder, "vocab.json");
  if (!file_exists(folder + "/tokenizer.json"))
    return fail(
        "%s has neither vocab.json nor tokenizer.json, which say what id a piece has: copy vocab.json from where "
        "the model comes from",
        folder.c_str());
  if (separate)
    return fail(
        "%s has no vocab.json, and tokenizer.json cannot stand for it: tokenizer_config.json says that source and "
        "target have separate vocabularies (separate_vocabs); copy vocab.json and target_vocab.json",
        folder.c_str());
  return read_vocabulary(folder, "tokenizer.json");
}

// Every id below `size`, the rows of the model's table, has a piece, and no other id is there.
Status check_vocabulary(const NamedVocabulary& vocabulary, uint32_t size, const char* size_key) {
  const char* name = vocabulary.file;
  std::vector<bool> present(size);
  for (const auto& [piece, id] : vocabulary.pieces) {
    if (static_cast<uint32_t>(id) >= size)
      return fail(
          "%s has %zu pieces, and \"%s\" has id %d, but the model has rows for %u ids (%s): pieces were added to a "
          "model that was not resized, or the file is another model's; take the one the model was trained with",
          name, vocabulary.pieces.size(), printable(piece).c_str(), id, size, size_key);
    if (present[static_cast<size_t>(id)])
      return fail("%s gives the id %d to two pieces, \"%s\" and another: it was edited or damaged; download it again",
                  name, id, printable(piece).c_str());
    present[static_cast<size_t>(id)] = true;
  }
  const auto missing = std::count(present.begin(), present.end(), false);
  if (missing == 0) return Done{};
  const auto first = std::find(present.begin(), present.end(), false) - present.begin();
  const bool at_end = first + missing == static_cast<ptrdiff_t>(size);
  return fail(
      "%s has no piece for id %td (%td of the %u ids of %s lack one)%s: add a piece for each, such as \"<unused%td>\", "
      "so that whatever the model produces has a text",
      name, first, missing, size, size_key, at_end ? ": the model was resized or padded after training" : "", first);
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

// Real folders lack ids for a few pieces (161 of 32,000 at most in those seen); most of them missing means that the
// files are of two models, and nearly everything would be unknown.
Status check_pair(const SentencePieceModel& model, const NamedVocabulary& vocabulary) {
  std::unordered_set<std::string_view> known;
  for (const auto& [piece, id] : vocabulary.pieces) known.insert(piece);
  size_t pieces = 0, with_id = 0;
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type != PieceType::kNormal) continue;
    ++pieces;
    with_id += known.contains(piece.text);
  }
  if (2 * with_id >= pieces) return Done{};
  return fail("%s and %s are not of one model: only %zu of %zu pieces have an id; take both from the same folder",
              model.name.c_str(), vocabulary.file, with_id, pieces);
}

Result<std::vector<std::byte>> compile(const std::string& folder, const char* name, const NamedVocabulary& vocabulary,
                                       const SpecialIds& special) {
  const Result<SourceFile> file = SourceFile::open(folder + "/" + name);
  if (!file) return file.error();
  const Result<SentencePieceModel> model = read_spm(file->bytes(), name);
  if (!model) return model.error();
  if (const Status pair = check_pair(*model, vocabulary); !pair) return pair.error();
  return compile_tokenizer(*model, &vocabulary.pieces, special);
}

}  // namespace

Status read_marian_tokenizers(const std::string& folder, Checkpoint& checkpoint) {
  Architecture& arch = checkpoint.arch;
  const Result<SpecialNames> names = read_special_names(folder);
  if (!names) return names.error();
  const bool separate = names->separate_vocabularies;
  const Result<NamedVocabulary> source = read_source_vocabulary(folder, separate);
  if (!source) return source.error();
  const Result<NamedVocabulary> target = separate ? read_vocabulary(folder, "target_vocab.json") : source;
  if (!target) return target.error();
  if (const Status ok = check_vocabulary(*source, arch.source_vocabulary, "vocab_size"); !ok) return ok;
  if (const Status ok = check_vocabulary(*target, arch.target_vocabulary, "decoder_vocab_size"); !ok) return ok;

  const Result<SpecialIds> source_ids = find_specials(source->pieces, *names, arch, source->file);
  if (!source_ids) return source_ids.error();
  const Result<SpecialIds> target_ids = find_specials(target->pieces, *names, arch, target->file);
  if (!target_ids) return target_ids.error();
  if (source_ids->unk != target_ids->unk)
    return fail("vocab.json and target_vocab.json give %s different ids, %d and %d: the runtime needs one",
                printable(names->unk).c_str(), source_ids->unk, target_ids->unk);
  if (target_ids->pad != static_cast<int32_t>(arch.pad))
    return fail("%s gives %s the id %d (-1: none), but config.json says pad_token_id is %u: make them agree",
                target->file, printable(names->pad).c_str(), target_ids->pad, arch.pad);
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
