// What the tests of the whole way share: finding models and reference data, and translating many inputs at once.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/mapped_file.h"
#include "runtime/model.h"
#include "runtime/translator.h"

namespace dragoman::test {

// A path under ../shared (or $DRAGOMAN_SHARED), or "" with a clear line when it is not there: data that is not part of
// the project.
std::string shared_path(const std::string& name);
// tests/data in the source tree.
std::string data_path(const std::string& name);
// A .dgm made by the fixture `convert_models`: "tiny-none", "tiny-int8", "tiny-languages" (deu and fra), "en-de-none",
// "en-de-int8". "" where the source was not there.
std::string model_path(const std::string& name);
// More work than a quick run should do: DRAGOMAN_FULL=1.
bool full_run();

std::vector<std::string> read_lines(const std::string& path);

struct LoadedModel {
  MappedFile file;
  std::unique_ptr<Model> model = std::make_unique<Model>();
  LoadedModel() = default;
  LoadedModel(LoadedModel&& other) noexcept : file(other.file), model(std::move(other.model)) { other.file = {}; }
  ~LoadedModel() { unmap_file(file); }
  const Model& operator*() const { return *model; }
  const Model* operator->() const { return model.get(); }
};
LoadedModel load_model(const std::string& path);  // fails the test when it cannot
// A .dgm file's sections but the provenance, one after the other: what each is and its bytes.
std::string sections_of(const std::string& path);

struct Translated {
  std::string text;
  std::vector<int32_t> ids, source_ids;
  uint32_t flags = 0;
  double score = 0;
  uint64_t logits_hash = 0;  // chained over the steps
  size_t parts = 0;
  bool operator==(const Translated&) const = default;
};

struct Setup {
  Limits limits{};
  const Kernels* kernels = available_kernels()[0];
  Options options{};
  Probe probe{};  // besides the hashing
};

// A translator with memory of its own, for as long as the object lives.
class Session {
 public:
  Session(const Model& model, const Setup& setup);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // One result per line (parts joined by a space).
  std::vector<Translated> translate(std::span<const std::string> lines);
  std::vector<Translated> translate_ids(std::span<const std::vector<int32_t>> lines);
  Translator& translator() { return *translator_; }

 private:
  template <class Show>
  std::vector<Translated> run(size_t count, const Show& show);
  Setup setup_;
  std::vector<char> memory_;
  Translator* translator_ = nullptr;
};

}  // namespace dragoman::test
