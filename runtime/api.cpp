// The C API: handles around Model and Translator, and nothing else.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "kernels/kernels.h"
#include "runtime/arena.h"
#include "runtime/dragoman.h"
#include "runtime/languages.h"
#include "runtime/mapped_file.h"
#include "runtime/model.h"
#include "runtime/selftest.h"
#include "runtime/translator.h"

using namespace dragoman;

struct dragoman_model {
  Model model;
  MappedFile file;  // empty for a model in the caller's memory
};

struct dragoman_translator {
  Translator* translator;
  ArenaMemory* owned;  // nullptr: the caller brought it
};

namespace {

static_assert(sizeof(dragoman_error::text) == sizeof(Error::text));

int report(const Error& from, dragoman_error* to) {
  if (to) std::memcpy(to->text, from.text, sizeof to->text);
  return 1;
}

// Small objects made at open and start; zero-initialised by their constructors.
template <class T>
T* make() {
  void* memory = std::malloc(sizeof(T));
  return memory ? new (memory) T{} : nullptr;
}

template <class T>
void unmake(T* object) {
  object->~T();
  std::free(object);
}

// A caller's structs must be ours.
Status check_abi(uint32_t abi) {
  if (abi == DRAGOMAN_ABI_VERSION) return Done{};
  return fail(
      "this program was compiled for ABI %u of dragoman.h and runs with a library of ABI %u (version %s): "
      "compile it again with the library's own header",
      abi, DRAGOMAN_ABI_VERSION, DRAGOMAN_VERSION);
}

int open_bytes(MappedFile file, std::span<const std::byte> bytes, const char* name, dragoman_model** out,
               dragoman_error* error) {
  dragoman_model* handle = make<dragoman_model>();
  Status opened = handle ? open_model(bytes, name, handle->model) : fail("%s: out of memory", name);
  if (!opened) {
    if (handle) unmake(handle);
    unmap_file(file);
    return report(opened.error(), error);
  }
  handle->file = file;
  *out = handle;
  return 0;
}

Result<const Kernels*> choose(const char* isa) {
  const Kernels* kernels = isa ? find_kernels(isa) : available_kernels()[0];
  if (kernels) return kernels;
  return fail("this machine cannot run the \"%s\" kernels, or there are none of that name: see `dragoman cpu`", isa);
}

Limits limits_of(const dragoman_limits& l) {
  return {l.slots, l.source, l.target, l.positions, l.threads};
}

// Numbers of languages outside are ids plus one: 0 is none.
Options options_of(const dragoman_options* o, const Tokenizer& tokenizer) {
  if (!o) return {};
  Options options;
  const auto language = static_cast<int32_t>(std::min<uint32_t>(o->target_language, INT32_MAX)) - 1;
  if (!tokenizer.language(language).empty()) options.target_language = language;
  options.cut_loops = o->cut_loops != 0;
  options.scores = o->scores != 0;
  if (o->token) {
    options.token = [](void* user, uint64_t part, int32_t id) {
      const auto* from = static_cast<const dragoman_options*>(user);
      return from->token(from->token_user, part, id) != 0;
    };
    options.token_user = const_cast<dragoman_options*>(o);
  }
  return options;
}

// One text into one buffer: parts joined by a space.
struct Single {
  std::string_view rest;
  bool taken = false;
  char* out = nullptr;
  size_t capacity = 0;
  dragoman_result result{};

  void append(std::string_view text) {
    if (result.bytes < capacity) {
      std::memcpy(out + result.bytes, text.data(), std::min(capacity - result.bytes, text.size()));
    }
    result.bytes += text.size();
  }
};

void take_single(void* user, size_t used) {
  Single& s = *static_cast<Single*>(user);
  s.rest.remove_prefix(used);
  s.taken = s.rest.empty();
}

void add_part(void* user, const Output& output) {
  Single& s = *static_cast<Single*>(user);
  if (s.result.bytes > 0 && !output.text.empty()) s.append(" ");
  if (!output.text.empty()) s.append(output.text);
  s.result.flags |= output.flags;
  s.result.source_ids += output.source_ids.size();
  s.result.target_ids += output.ids.size();
  s.result.score += output.score;
}

}  // namespace

const char* dragoman_version(void) {
  return DRAGOMAN_VERSION;
}

uint32_t dragoman_abi_version(void) {
  return DRAGOMAN_ABI_VERSION;
}

// In brackets, the names are not those of the header's macros.
int(dragoman_open)(const char* path, int preload, dragoman_model** model, dragoman_error* error) {
  return dragoman_open_abi(DRAGOMAN_ABI_VERSION, path, preload, model, error);
}

int(dragoman_open_memory)(const void* data, size_t bytes, dragoman_model** model, dragoman_error* error) {
  return dragoman_open_memory_abi(DRAGOMAN_ABI_VERSION, data, bytes, model, error);
}

int dragoman_open_abi(uint32_t abi, const char* path, int preload, dragoman_model** model, dragoman_error* error) {
  if (!model) return report(fail("dragoman_open: nowhere to put the model (NULL)"), error);
  *model = nullptr;
  if (const Status same = check_abi(abi); !same) return report(same.error(), error);
  if (!path) return report(fail("dragoman_open: no path (NULL)"), error);
  Result<MappedFile> file = map_file(path, preload != 0);
  if (!file) return report(file.error(), error);
  return open_bytes(*file, file->bytes, path, model, error);
}

int dragoman_open_memory_abi(uint32_t abi, const void* data, size_t bytes, dragoman_model** model,
                             dragoman_error* error) {
  if (!model) return report(fail("dragoman_open_memory: nowhere to put the model (NULL)"), error);
  *model = nullptr;
  if (const Status same = check_abi(abi); !same) return report(same.error(), error);
  if (!data) return report(fail("dragoman_open_memory: no model (NULL)"), error);
  return open_bytes({}, {static_cast<const std::byte*>(data), bytes}, "the model in memory", model, error);
}

void dragoman_close(dragoman_model* model) {
  if (!model) return;
  unmap_file(model->file);
  unmake(model);
}

int dragoman_verify(const dragoman_model* model, const char* isa, dragoman_error* error) {
  if (!model) return report(fail("dragoman_verify: no model (NULL)"), error);
  const Result<const Kernels*> kernels = choose(isa);
  if (!kernels) return report(kernels.error(), error);
  const Status tensors = verify_tensors(model->model, "the model");
  if (!tensors) return report(tensors.error(), error);
  const Result<SelfTestReport> replayed = replay_selftest(model->model, **kernels);
  if (!replayed) return report(replayed.error(), error);
  if (replayed->failed == 0) return 0;
  return report(fail("%zu of %zu self-test sentences differ on this machine (first: %s): please report it",
                     replayed->failed, replayed->cases, replayed->first_failure),
                error);
}

int dragoman_find_language(const dragoman_model* model, const char* name, uint32_t* language, dragoman_error* error) {
  if (!model || !name || !language)
    return report(fail("dragoman_find_language: no %s (NULL)", !model ? "model" : !name ? "name" : "language"), error);
  *language = 0;
  const Result<int32_t> id = find_language(model->model, name);
  if (!id) return report(id.error(), error);
  *language = static_cast<uint32_t>(*id) + 1;
  return 0;
}

uint32_t dragoman_next_language(const dragoman_model* model, uint32_t after, const char** name, size_t* bytes) {
  if (!model || !name || !bytes) return 0;
  const Tokenizer& tokenizer = model->model.source;
  const int32_t id = tokenizer.next_language(static_cast<int32_t>(std::min<uint32_t>(after, INT32_MAX)) - 1);
  if (id < 0) return 0;
  *name = tokenizer.language(id).data();
  *bytes = tokenizer.language(id).size();
  return static_cast<uint32_t>(id) + 1;
}

int dragoman_make_plan(const dragoman_model* model, const dragoman_limits* limits, dragoman_plan* plan,
                       dragoman_error* error) {
  if (!model || !plan) return report(fail("dragoman_make_plan: no %s (NULL)", model ? "plan" : "model"), error);
  const Result<Plan> made = make_plan(model->model, limits ? limits_of(*limits) : Limits{});
  if (!made) return report(made.error(), error);
  const Limits& l = made->limits;
  *plan = {{l.slots, l.source, l.target, l.positions, l.threads}, made->bytes, made->output_bytes, made->window_bytes};
  return 0;
}

int dragoman_start(const dragoman_model* model, const dragoman_plan* plan, const char* isa, void* memory,
                   dragoman_translator** out, dragoman_error* error) {
  if (!out) return report(fail("dragoman_start: nowhere to put the translator (NULL)"), error);
  *out = nullptr;
  if (!model || !plan) return report(fail("dragoman_start: no %s (NULL)", model ? "plan" : "model"), error);
  const Result<const Kernels*> kernels = choose(isa);
  if (!kernels) return report(kernels.error(), error);
  const Result<Plan> made = make_plan(model->model, limits_of(plan->limits));
  if (!made) return report(made.error(), error);
  if (made->bytes != plan->bytes) return report(fail("this plan was made for another model: make it again"), error);
  dragoman_translator* handle = make<dragoman_translator>();
  if (!handle) return report(fail("out of memory"), error);
  if (!memory) {
    void* at = std::malloc(sizeof(ArenaMemory));
    handle->owned = at ? new (at) ArenaMemory(made->bytes) : nullptr;
    memory = handle->owned ? handle->owned->data() : nullptr;
  }
  Result<Translator*> started = memory ? Translator::create(model->model, **kernels, *made, memory)
                                       : fail("%zu bytes of memory are not to be had", made->bytes);
  if (!started) {
    if (handle->owned) unmake(handle->owned);
    unmake(handle);
    return report(started.error(), error);
  }
  handle->translator = *started;
  *out = handle;
  return 0;
}

void dragoman_stop(dragoman_translator* translator) {
  if (!translator) return;
  translator->translator->destroy();
  if (translator->owned) unmake(translator->owned);
  unmake(translator);
}

int dragoman_translate(dragoman_translator* translator, const char* text, size_t bytes, const dragoman_options* options,
                       char* out, size_t out_bytes, dragoman_result* result) {
  if (!translator || (!text && bytes) || (!out && out_bytes)) {
    if (out && out_bytes) *out = 0;
    if (result) *result = {};
    return 1;
  }
  Single single;
  single.rest = {bytes ? text : "", bytes};
  single.out = out;
  single.capacity = out_bytes ? out_bytes - 1 : 0;
  const Source source{[](void* user, Input& input) {
                        const Single& s = *static_cast<Single*>(user);
                        input.text = s.rest;
                        return !s.taken;
                      },
                      take_single, &single};
  translator->translator->start_line();
  translator->translator->translate(source, {add_part, &single},
                                    options_of(options, translator->translator->model().source));
  if (single.result.target_ids) single.result.score /= static_cast<double>(single.result.target_ids);
  if (single.result.bytes > single.capacity) single.result.flags |= DRAGOMAN_TRUNCATED;
  if (out_bytes) out[std::min(single.result.bytes, single.capacity)] = 0;
  if (result) *result = single.result;
  return 0;
}

int dragoman_translate_lines(dragoman_translator* translator, const dragoman_lines* lines,
                             const dragoman_options* options) {
  if (!translator || !lines || !lines->peek || !lines->take || !lines->part) return 1;
  void* user = const_cast<dragoman_lines*>(lines);
  const Source source{[](void* u, Input& input) {
                        const auto* from = static_cast<const dragoman_lines*>(u);
                        dragoman_input shown{"", 0, 1};
                        if (!from->peek(from->user, &shown)) return false;
                        input.text = {shown.text ? shown.text : "", shown.bytes};
                        input.complete = shown.complete != 0;
                        return true;
                      },
                      [](void* u, size_t used) {
                        const auto* from = static_cast<const dragoman_lines*>(u);
                        from->take(from->user, used);
                      },
                      user};
  const Sink sink{[](void* u, const Output& o) {
                    const auto* to = static_cast<const dragoman_lines*>(u);
                    const dragoman_output output{o.text.data(), o.text.size(),       o.ids.data(),
                                                 o.ids.size(),  o.source_ids.size(), o.flags,
                                                 o.part,        o.line_end,          o.score};
                    to->part(to->user, &output);
                  },
                  user};
  translator->translator->translate(source, sink, options_of(options, translator->translator->model().source));
  return 0;
}

const char* dragoman_isa(const dragoman_translator* translator) {
  return translator ? translator->translator->kernels().name : "";
}
