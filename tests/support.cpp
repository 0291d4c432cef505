#include "tests/support.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "runtime/checksum.h"

namespace dragoman::test {
namespace {

std::string existing(const std::string& path, const std::string& what) {
  if (std::filesystem::exists(path)) return path;
  MESSAGE("skipped: " << path << " is not here (" << what << ")");
  return "";
}

}  // namespace

std::string shared_path(const std::string& name) {
  const char* from_environment = std::getenv("DRAGOMAN_SHARED");
  const std::string folder = from_environment ? from_environment : DRAGOMAN_SHARED_DIR;
  return existing(folder + "/" + name, "reference data kept beside the project");
}

std::string data_path(const std::string& name) {
  return std::string(DRAGOMAN_TEST_DATA) + "/" + name;
}

std::string model_path(const std::string& name) {
  return existing(std::string(DRAGOMAN_TEST_MODELS) + "/" + name + ".dgm", "its checkpoint is kept beside the project");
}

bool full_run() {
  const char* value = std::getenv("DRAGOMAN_FULL");
  return value && *value == '1';
}

std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

LoadedModel load_model(const std::string& path) {
  LoadedModel loaded;
  Result<MappedFile> file = map_file(path.c_str());
  REQUIRE_MESSAGE(file, file.error().text);
  loaded.file = *file;
  const Status opened = open_model(file->bytes, path.c_str(), *loaded.model);
  REQUIRE_MESSAGE(opened, opened.error().text);
  return loaded;
}

std::string sections_of(const std::string& path) {
  const LoadedModel loaded = load_model(path);
  std::string all;
  for (Section section : loaded->sections) {
    const char* bytes = reinterpret_cast<const char*>(loaded.file.bytes.data()) + section.offset;
    section.offset = 0;  // moves with the provenance's length
    if (std::string(section.name) == "provenance") continue;
    all.append(reinterpret_cast<const char*>(&section), sizeof section).append(bytes, section.bytes);
  }
  return all;
}

Session::Session(const Model& model, const Setup& setup) : setup_(setup) {
  const Result<Plan> plan = make_plan(model, setup.limits);
  REQUIRE_MESSAGE(plan, plan.error().text);
  memory_.resize(plan->bytes + kAlignment);
  char* aligned = memory_.data() + (-reinterpret_cast<uintptr_t>(memory_.data()) & (kAlignment - 1));
  const Result<Translator*> created = Translator::create(model, *setup.kernels, *plan, aligned);
  REQUIRE_MESSAGE(created, created.error().text);
  translator_ = *created;
}

Session::~Session() {
  translator_->destroy();
}

template <class Show>
std::vector<Translated> Session::run(size_t count, const Show& show) {
  struct State {
    const Show& show;
    const Probe& outer;
    size_t count, line = 0, used = 0, done = 0;
    std::vector<Translated> results;
    std::map<uint64_t, uint64_t> hashes;  // of parts in flight
  } state{show, setup_.probe, count, 0, 0, 0, std::vector<Translated>(count), {}};
  const Source source{[](void* user, Input& input) {
                        State& s = *static_cast<State*>(user);
                        if (s.line == s.count) return false;
                        s.show(s.line, s.used, input);
                        return true;
                      },
                      [](void* user, size_t used) {
                        State& s = *static_cast<State*>(user);
                        s.used += used;
                        Input rest;
                        s.show(s.line, s.used, rest);
                        if (rest.text.empty() && rest.ids.empty()) ++s.line, s.used = 0;
                      },
                      &state};
  const Sink sink{[](void* user, const Output& output) {
                    State& s = *static_cast<State*>(user);
                    Translated& t = s.results[s.done];
                    if (!t.text.empty() && !output.text.empty()) t.text += ' ';
                    t.text += output.text;
                    t.ids.insert(t.ids.end(), output.ids.begin(), output.ids.end());
                    t.source_ids.insert(t.source_ids.end(), output.source_ids.begin(), output.source_ids.end());
                    t.flags |= output.flags;
                    t.score += output.score;
                    t.logits_hash = checksum_word(t.logits_hash, s.hashes[output.part]);
                    s.hashes.erase(output.part);
                    ++t.parts;
                    if (output.line_end) ++s.done;
                  },
                  &state};
  Probe probe;
  probe.user = &state;
  probe.memory = [](void* user, uint64_t part, const float* x, size_t rows, size_t cols) {
    const Probe& outer = static_cast<State*>(user)->outer;
    if (outer.memory) outer.memory(outer.user, part, x, rows, cols);
  };
  probe.logits = [](void* user, uint64_t part, size_t step, const float* row, size_t n) {
    State& s = *static_cast<State*>(user);
    uint64_t& hash = s.hashes.try_emplace(part, kChecksumSeed).first->second;
    hash = checksum(row, n * sizeof(float), hash);
    if (s.outer.logits) s.outer.logits(s.outer.user, part, step, row, n);
  };
  translator_->translate(source, sink, setup_.options, probe);
  REQUIRE(state.done == count);
  return state.results;
}

std::vector<Translated> Session::translate(std::span<const std::string> lines) {
  return run(lines.size(),
             [&](size_t line, size_t used, Input& input) { input.text = std::string_view(lines[line]).substr(used); });
}

std::vector<Translated> Session::translate_ids(std::span<const std::vector<int32_t>> lines) {
  return run(lines.size(),
             [&](size_t line, size_t used, Input& input) { input.ids = std::span(lines[line]).subspan(used); });
}

}  // namespace dragoman::test
