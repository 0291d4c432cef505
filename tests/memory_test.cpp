// The arena: the plan's bytes are what is used, no more and no less (C5).
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "runtime/dragoman.h"
#include "tests/support.h"

namespace dragoman::test {
namespace {

// plan.bytes that end right before a page that must not be touched.
struct Guarded {
  char* map;
  size_t map_bytes;
  char* memory;
  explicit Guarded(size_t bytes) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    map_bytes = (bytes + page - 1) / page * page + page;
    map = static_cast<char*>(mmap(nullptr, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(map + map_bytes - page, page, PROT_NONE);
    memory = map + map_bytes - page - bytes;
  }
  ~Guarded() { munmap(map, map_bytes); }
};

// `count` sources of exactly `length` ids.
struct Lines {
  size_t count, length;
  std::vector<int32_t> ids;
  static bool peek(void* user, Input& input) {
    Lines& lines = *static_cast<Lines*>(user);
    input.ids = lines.ids;
    return lines.count > 0;
  }
  static void take(void* user, size_t) { --static_cast<Lines*>(user)->count; }
};

}  // namespace

TEST_CASE("memory: a worst-case batch fills the plan to its last byte and stays inside") {
  for (const char* name : {"tiny-none", "tiny-int8"}) {
    const LoadedModel model = load_model(model_path(name));
    for (const Limits& limits : {Limits{.slots = 1, .source = 64}, Limits{.slots = 5, .source = 40, .threads = 2},
                                 Limits{.slots = 7, .source = 128, .target = 128, .positions = 7 * 256}}) {
      const Result<Plan> plan = make_plan(*model, limits);
      REQUIRE(plan);
      Guarded guarded(plan->bytes);
      const Result<Translator*> translator = Translator::create(*model, *available_kernels()[0], *plan, guarded.memory);
      REQUIRE(translator);
      const uint32_t slots = plan->limits.slots;
      Lines lines{slots * 3, plan->limits.source, std::vector<int32_t>(plan->limits.source - 1, 42)};
      (*translator)->translate({Lines::peek, Lines::take, &lines}, {[](void*, const Output&) {}, nullptr});
      // K/V blocks are taken in whole sentences: as many as fit together were in use at once.
      const size_t worst =
          (plan->limits.source + 15) / 16 + (std::min(2 * plan->limits.source + 10, plan->limits.target) + 15) / 16;
      const size_t together = std::min<size_t>(slots, plan->kv_blocks / worst);
      CHECK((*translator)->peak_kv_blocks() == together * worst);
      if (limits.positions == 0) CHECK(plan->kv_blocks - together * worst < worst);
      (*translator)->destroy();
    }
  }
}

TEST_CASE("memory: an arena that is too small is refused, or noticed at the start and not in a sentence") {
  dragoman_model* model = nullptr;
  dragoman_translator* translator = nullptr;
  dragoman_plan plan;
  dragoman_error error;
  REQUIRE(dragoman_open(model_path("tiny-int8").c_str(), 0, &model, &error) == 0);
  REQUIRE(dragoman_make_plan(model, nullptr, &plan, &error) == 0);
  for (const int more : {-64, -1, 1}) {  // of a plan that says something else than it needs
    dragoman_plan wrong = plan;
    wrong.bytes += static_cast<size_t>(more);
    CHECK(dragoman_start(model, &wrong, nullptr, nullptr, &translator, &error) == 1);
    CHECK(std::string(error.text).find("make it again") != std::string::npos);
    CHECK(translator == nullptr);
  }
  // Of memory that is smaller than the plan says: all of it is touched at the start, and no sentence comes that far.
  for (const size_t missing : {size_t{0}, kAlignment}) {
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGSEGV, SIG_DFL);
      const Guarded guarded(plan.bytes - missing);
      _exit(dragoman_start(model, &plan, nullptr, guarded.memory, &translator, &error));
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(status == (missing ? SIGSEGV : 0));
  }
  dragoman_close(model);
}

TEST_CASE("memory: the plan grows with its limits and never with the input") {
  const LoadedModel model = load_model(model_path("tiny-int8"));
  size_t last = 0;
  for (const uint32_t slots : {1u, 2u, 8u, 32u}) {
    const Result<Plan> plan = make_plan(*model, {.slots = slots});
    REQUIRE(plan);
    CHECK(plan->bytes > last);
    last = plan->bytes;
  }
}

}  // namespace dragoman::test
