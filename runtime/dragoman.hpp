// The C++ face of dragoman.h: the same calls with RAII. Header only, C++20; nothing throws, nothing is copied. The
// rules on ownership and threads are the same. Calls on an empty Model or Translator fail with a sentence or give an
// empty text.
//
//   dragoman::v1::Error error;
//   auto model = dragoman::v1::Model::open("en-de.dgm", error);
//   auto translator = dragoman::v1::Translator::start(model, {.slots = 1}, error);
//   if (!translator) return puts(error.text), 1;
//   std::vector<char> buffer(translator.plan().output_bytes);
//   std::string_view german = translator.translate("Good morning.", buffer).text;
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "dragoman.h"

namespace dragoman::v1 {

struct Error : dragoman_error {
  Error() { text[0] = 0; }
};
using Plan = dragoman_plan;
using Options = dragoman_options;

struct Limits {  // zero means "choose for me": see dragoman_limits
  uint32_t slots = 0, source = 0, target = 0, positions = 0, threads = 0;
};

class Model {
 public:
  // An empty model and a sentence in `error` when it cannot be opened.
  static Model open(const char* path, Error& error, bool preload = false) {
    Model model;
    dragoman_open(path, preload, &model.handle_, &error);
    return model;
  }
  static Model open_memory(std::span<const std::byte> bytes, Error& error) {
    Model model;
    dragoman_open_memory(bytes.data(), bytes.size(), &model.handle_, &error);
    return model;
  }
  Model(Model&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Model& operator=(Model&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Model() { dragoman_close(handle_); }

  explicit operator bool() const { return handle_; }
  const dragoman_model* get() const { return handle_; }
  bool verify(Error& error, const char* isa = nullptr) const { return dragoman_verify(handle_, isa, &error) == 0; }
  // For Options::target_language: "deu" or ">>deu<<". 0, and a sentence that lists them, where the model has it not.
  uint32_t find_language(const char* name, Error& error) const {
    uint32_t language = 0;
    dragoman_find_language(handle_, name, &language, &error);
    return language;
  }
  // Calls visit(std::string_view name) for each target language.
  template <class Visit>
  void each_language(const Visit& visit) const {
    const char* name = nullptr;
    size_t bytes = 0;
    for (uint32_t at = 0; (at = dragoman_next_language(handle_, at, &name, &bytes)) != 0;) {
      visit(std::string_view(name, bytes));
    }
  }
  bool plan(const Limits& limits, Plan& plan, Error& error) const {
    const dragoman_limits plain{limits.slots, limits.source, limits.target, limits.positions, limits.threads};
    return dragoman_make_plan(handle_, &plain, &plan, &error) == 0;
  }

 private:
  Model() = default;
  dragoman_model* handle_ = nullptr;
};

struct Translation {
  std::string_view text;  // in the caller's buffer
  dragoman_result result;
};

// Must not outlive its model. One thread at a time.
class Translator {
 public:
  // An empty translator when the model is empty (`error` keeps what open said) or when it cannot start.
  static Translator start(const Model& model, const Limits& limits, Error& error, const char* isa = nullptr,
                          void* memory = nullptr) {
    Translator t;
    if (model && model.plan(limits, t.plan_, error)) {
      dragoman_start(model.get(), &t.plan_, isa, memory, &t.handle_, &error);
    }
    return t;
  }
  Translator(Translator&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)), plan_(other.plan_) {}
  Translator& operator=(Translator&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(plan_, other.plan_);
    return *this;
  }
  ~Translator() { dragoman_stop(handle_); }

  explicit operator bool() const { return handle_; }
  dragoman_translator* get() const { return handle_; }
  const Plan& plan() const { return plan_; }

  Translation translate(std::string_view text, std::span<char> buffer, const Options* options = nullptr) {
    Translation t{};
    dragoman_translate(handle_, text.data(), text.size(), options, buffer.data(), buffer.size(), &t.result);
    const size_t room = buffer.empty() ? 0 : buffer.size() - 1;
    t.text = {buffer.data(), t.result.bytes < room ? t.result.bytes : room};
    return t;
  }
  // False when the translator is empty or a callback is missing.
  bool translate_lines(const dragoman_lines& lines, const Options* options = nullptr) {
    return dragoman_translate_lines(handle_, &lines, options) == 0;
  }
  const char* isa() const { return dragoman_isa(handle_); }

 private:
  Translator() = default;
  dragoman_translator* handle_ = nullptr;
  Plan plan_{};
};

}  // namespace dragoman::v1
