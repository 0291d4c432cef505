// Zero allocation (C5): this program replaces the allocator, and any call to it while a text is translated is counted
// and named. Its own main, so that nothing of a test framework runs meanwhile.
#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "runtime/dragoman.h"

namespace {

std::atomic<bool> armed{false};
std::atomic<unsigned> calls{0};
std::atomic<const char*> first{nullptr};

void count(const char* what) {
  if (!armed) return;
  ++calls;
  const char* none = nullptr;
  first.compare_exchange_strong(none, what);
}

}  // namespace

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

void* malloc(size_t n) {
  count("malloc");
  return __libc_malloc(n);
}
void* calloc(size_t n, size_t size) {
  count("calloc");
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t n) {
  count("realloc");
  return __libc_realloc(p, n);
}
void free(void* p) {
  if (p) count("free");
  __libc_free(p);
}
int posix_memalign(void** out, size_t alignment, size_t n) {
  count("posix_memalign");
  *out = __libc_memalign(alignment, n);
  return *out ? 0 : ENOMEM;
}
void* aligned_alloc(size_t alignment, size_t n) {
  count("aligned_alloc");
  return __libc_memalign(alignment, n);
}
void* memalign(size_t alignment, size_t n) {
  count("memalign");
  return __libc_memalign(alignment, n);
}
void* mmap(void* at, size_t n, int protection, int flags, int fd, off_t offset) {
  count("mmap");
  using Mmap = void* (*)(void*, size_t, int, int, int, off_t);
  static const Mmap real = reinterpret_cast<Mmap>(dlsym(RTLD_NEXT, "mmap"));
  return real(at, n, protection, flags, fd, offset);
}
int brk(void*) {
  count("brk");
  return -1;
}
void* sbrk(intptr_t) {
  count("sbrk");
  return nullptr;
}
}

void* operator new(size_t n) {
  count("operator new");
  return __libc_malloc(n);
}
void operator delete(void* p) noexcept {
  if (p) count("operator delete");
  __libc_free(p);
}
void operator delete(void* p, size_t) noexcept {
  if (p) count("operator delete");
  __libc_free(p);
}

namespace {

struct Lines {
  const char* const* texts;
  size_t count, line = 0, used = 0, delivered = 0, bytes = 0;
};

int peek(void* user, dragoman_input* input) {
  const Lines& lines = *static_cast<Lines*>(user);
  if (lines.line == lines.count) return 0;
  input->text = lines.texts[lines.line % 6] + lines.used;
  input->bytes = std::strlen(input->text);
  input->complete = 1;
  return 1;
}
void take(void* user, size_t used) {
  Lines& lines = *static_cast<Lines*>(user);
  lines.used += used;
  if (lines.texts[lines.line % 6][lines.used] == 0) ++lines.line, lines.used = 0;
}
void part(void* user, const dragoman_output* output) {
  Lines& lines = *static_cast<Lines*>(user);
  lines.delivered += output->line_end != 0;
  lines.bytes += output->bytes;
}

// Text to text, one by one and in batches; everything armed from the first translation on.
bool run(const char* path, const char* isa, uint32_t slots, uint32_t threads) {
  static char long_text[1000];
  for (size_t i = 0; i + 1 < sizeof long_text; ++i) long_text[i] = i % 60 == 59 ? '.' : i % 6 ? 'a' : ' ';
  const char* texts[6] = {
      "Good morning.", "",       ">>fra<< A man is riding a bicycle.", "\xff\xfe odd \xf0\x9f\x98\x80 text",
      long_text,       "1, 2, 3"};
  dragoman_model* model = nullptr;
  dragoman_translator* translator = nullptr;
  dragoman_plan plan;
  dragoman_error error;
  const dragoman_limits limits{slots, 64, 0, 0, threads};
  if (dragoman_open(path, 0, &model, &error) || dragoman_make_plan(model, &limits, &plan, &error) ||
      dragoman_start(model, &plan, isa, nullptr, &translator, &error)) {
    std::fprintf(stderr, "%s\n", error.text);
    return false;
  }
  static char out[1 << 20];
  dragoman_options options{1, 1, nullptr, nullptr, 0};
  const char* name = nullptr;
  size_t bytes = 0;
  options.target_language = dragoman_next_language(model, 0, &name, &bytes);  // none but in the model with languages
  Lines lines{texts, 60};
  const dragoman_lines io{peek, take, part, &lines};

  calls = 0;
  first = nullptr;
  armed = true;
  for (const char* text : texts)
    dragoman_translate(translator, text, std::strlen(text), &options, out, sizeof out, nullptr);
  dragoman_translate_lines(translator, &io, &options);
  armed = false;

  std::printf("allocation: %s, %s, %u slots, %u threads, %zu bytes planned: %zu lines, %u calls%s%s\n", path,
              dragoman_isa(translator), slots, threads, plan.bytes, lines.delivered, calls.load(),
              first ? ", first: " : "", first ? first.load() : "");
  const bool ok = calls == 0 && lines.delivered == 60 && lines.bytes > 0;
  dragoman_stop(translator);
  dragoman_close(model);
  return ok;
}

// The trap must work, or the zero above means nothing.
bool trap_works() {
  calls = 0;
  armed = true;
  void* volatile p = std::malloc(10);
  std::free(p);
  int* volatile q = new int(3);
  delete q;
  void* volatile m = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  armed = false;
  munmap(m, 4096);
  return calls == 5;
}

}  // namespace

int main(int argc, char** argv) {
  if (!trap_works()) return std::fprintf(stderr, "the allocator could not be replaced\n"), 1;
  int failed = 0;
  for (int i = 1; i < argc; ++i) {
    for (const char* isa : {static_cast<const char*>(nullptr), "portable"}) {
      failed += !run(argv[i], isa, 1, 1);
      failed += !run(argv[i], isa, 4, 2);
    }
  }
  std::printf("%d passed, %d failed\n", (argc - 1) * 4 - failed, failed);
  return failed || argc < 2;
}
