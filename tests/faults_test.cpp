// What happens when something fails: files, disks, memory, threads, readers that go away. Every case ends by itself
// with the code and the sentence it should, and nothing half-written has the name of a model.
// tests/faults/interpose.cpp makes the calls fail.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "runtime/command/buffers.h"
#include "tests/faults/calls.h"
#include "tests/support.h"

namespace dragoman::test {
namespace {

using Words = std::vector<std::string>;

const std::string kInput = "Good morning.\n\nA man is riding a bicycle.\nTwo dogs.\n";

std::string tiny() {
  return model_path("tiny-int8");
}

Words translate(const std::string& model, const Words& more = {}) {
  Words words = {"translate", "-m", model, "-q", "--max-length", "8"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string good_output() {
  const Ran ran = run_command(translate(tiny()), {.input = kInput});
  REQUIRE(ran.code == 0);
  REQUIRE(split_lines(ran.out).size() == 4);
  return ran.out;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void check_sentence(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CHECK(has(text, "dragoman: "));
  CHECK(split_lines(text).size() == 1);
  CHECK(has(text, part));
}

void check_refused(const Ran& ran, const std::string& part) {
  CHECK(ran.code == 1);
  check_sentence(ran.err, part);
}

}  // namespace

TEST_CASE("faults: a model that cannot be opened is named, by every command and at once") {
  const TemporaryFolder folder;
  const std::string& here = folder.path();
  write_file(here + "/empty.dgm", "");
  REQUIRE(mkfifo((here + "/pipe.dgm").c_str(), 0600) == 0);
  std::filesystem::create_symlink("loop.dgm", here + "/loop.dgm");
  const std::pair<std::string, const char*> cases[] = {
      {here, "is a folder"},
      {here + "/empty.dgm", "is empty"},
      {here + "/pipe.dgm", "not a regular file"},
      {here + "/loop.dgm", "symbolic links"},
      {here + "/absent.dgm", "No such file"},
      {"/dev/zero", "not a regular file"},
      {DRAGOMAN_BINARY, "not a dragoman model"},
  };
  for (const auto& [path, sentence] : cases) {
    CAPTURE(path);
    for (const char* command : {"translate", "tokenize", "inspect"}) {
      for (const bool preload : {false, true}) {
        if (preload && std::string(command) == "inspect") continue;
        Words words = {command, "-m", path};
        if (preload) words.push_back("--preload");
        const Ran ran = run_command(words, {.input = kInput, .seconds = 10});
        check_refused(ran, sentence);
        CHECK(ran.out.empty());
      }
    }
    const Ran verified = run_command({"verify", path}, {.seconds = 10});
    CHECK((verified.code == 1 || verified.code == 3));
    CHECK(has(verified.out + verified.err, sentence));
  }
  // Modes mean nothing to root, who may run this.
  const Ran forbidden = run_command(translate(tiny()), {.environment = failing("open", 1, EACCES)});
  check_refused(forbidden, "Permission denied");
}

TEST_CASE("faults: a model that is cut short while in use ends the command with a sentence; --preload goes on") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/model.dgm";
  for (const char* threads : {"1", "4"}) {
    for (const bool preload : {false, true}) {
      write_file(path, read_file(tiny()));
      Words words = translate(path, {"--batch", "32", "--threads", threads});
      if (preload) words.push_back("--preload");
      Coprocess command(words);
      command.write("Good morning.\n");
      const std::string line = command.read_line();
      CHECK(!line.empty());
      REQUIRE(truncate(path.c_str(), 4096) == 0);
      std::string more;  // in one write: it may end at the first of them
      for (int i = 0; i < 40; ++i) more += "Good morning.\n";
      command.write(more);
      if (preload) CHECK(command.read_line() == line);
      command.close_input();
      const int code = command.wait();
      CHECK(code == (preload ? 0 : 1));
      if (!preload) check_sentence(command.errors(), "became shorter or unreadable while in use");
    }
  }
}

TEST_CASE("faults: whichever call fails while translating, there is a sentence or the right answer") {
  const std::string good = good_output();
  const Words words = translate(tiny(), {"--threads", "4", "--preload"});
  const auto counts = count_calls(words, {.input = kInput});
  const struct {
    const char* call;
    int error;
    const char* sentence;
  } faults[] = {{"open", EMFILE, "cannot be opened (Too many open files)"},
                {"mmap", ENOMEM, ""},
                {"thread", EAGAIN, "could not start 4 threads"},
                {"read", EIO, "cannot be read (Input/output error)"},
                {"write", ENOSPC, "standard output cannot be written (No space left on device)"},
                {"close", EIO, "standard output cannot be written (Input/output error)"},
                {"malloc", ENOMEM, ""}};
  for (const auto& [call, error, sentence] : faults) {
    CAPTURE(std::string(call));
    int refused = 0;
    for (int n = 1; n <= counts.at(call); ++n) {
      const Ran ran = run_command(words, {.input = kInput, .environment = failing(call, n, error)});
      CAPTURE(n);
      CAPTURE(ran.err);
      refused += ran.code == 1;
      if (ran.code == 0) {
        CHECK(ran.out == good);
        CHECK(ran.err.empty());
      } else {
        check_refused(ran, sentence);
      }
    }
    MESSAGE(std::string(call) << ": " << refused << " of " << counts.at(call) << " calls refused with a sentence");
    CHECK(refused > 0);
  }
}

TEST_CASE("faults: interrupted and partial reads and writes change nothing") {
  const std::string good = good_output();
  const Words words = translate(tiny(), {"--preload", "--batch", "1"});
  const auto counts = count_calls(words, {.input = kInput});
  const auto check_same = [&](const Words& environment) {
    CAPTURE(environment.back());
    const Ran ran = run_command(words, {.input = kInput, .environment = environment});
    CHECK(ran.code == 0);
    CHECK(ran.out == good);
  };
  for (const char* chunk : {"DRAGOMAN_CHUNK=1", "DRAGOMAN_CHUNK=7"}) check_same({kInterpose, chunk});
  for (const char* call : {"read", "write"}) {
    for (int n = 1; n <= counts.at(call); ++n) {
      check_same(failing(call, n, EINTR));
      // The first to be read is the model: only a broken system says EAGAIN for a file.
      if (n > 1 || call == std::string("write")) check_same(failing(call, n, EAGAIN));
    }
  }
}

TEST_CASE("faults: a reader that goes away ends an endless input quietly") {
  const std::string script =
      "yes 'Good morning.' | \"$0\" translate -m \"$1\" --threads 2 | head -n 1; echo \"${PIPESTATUS[1]}\"";
  const Ran ran = run_command({"-c", script, DRAGOMAN_BINARY, tiny()}, {.binary = "/bin/bash", .seconds = 20});
  CHECK(ran.code == 0);
  const Words lines = split_lines(ran.out);
  REQUIRE(lines.size() == 2);
  CHECK(!lines[0].empty());
  CHECK(lines[1] == "1");
  CHECK(ran.err.empty());
}

TEST_CASE("faults: output beyond a limit or a full disk, input that is a folder") {
  std::string many;
  for (int i = 0; i < 2000; ++i) many += kInput;
  const Ran limited = run_command(translate(tiny()), {.input = many, .limits = {{RLIMIT_FSIZE, 1000}}});
  check_refused(limited, "standard output cannot be written (File too large)");
  CHECK(limited.out.size() == 1000);
  check_refused(run_command(translate(tiny()), {.input = many, .out_file = "/dev/full"}), "No space left on device");
  const Ran folder =
      run_command({"-c", "exec \"$0\" translate -m \"$1\" < /", DRAGOMAN_BINARY, tiny()}, {.binary = "/bin/bash"});
  check_refused(folder, "standard input cannot be read (Is a directory)");
}

TEST_CASE("faults: more threads than cores give the same answer; threads that are not to be had, a sentence") {
  const std::string good = good_output();
  for (const char* threads : {"2", "16", "64"}) {
    const Ran ran = run_command(translate(tiny(), {"--threads", threads, "--batch", "4"}), {.input = kInput});
    CHECK(ran.code == 0);
    CHECK(ran.out == good);
  }
  const Ran many = run_command(translate(tiny(), {"--threads", "65"}), {.input = kInput});
  CHECK(many.code == 2);
  check_sentence(many.err, "65 threads asked for; at most 64");
  for (const int nth : {1, 2, 7, 63}) {
    const Ran ran = run_command(translate(tiny(), {"--threads", "64"}),
                                {.input = kInput, .environment = failing("thread", nth, EAGAIN, "+")});
    check_refused(ran, "could not start 64 threads");
  }
}

// The least address space, to a page, with which the command succeeds; whatever is less must be refused with a
// sentence. Below `base` not even the C library can be loaded.
size_t least_memory(const Words& words, size_t base, size_t enough) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t low = base / page, high = enough / page;
  const auto succeeds = [&](size_t pages) {
    const Ran ran = run_command(words, {.input = kInput, .limits = {{RLIMIT_AS, pages * page}}});
    CHECK((ran.code == 0 || ran.code == 1));
    if (ran.code == 1) check_sentence(ran.err, "");
    return ran.code == 0;
  };
  REQUIRE(succeeds(high));
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (succeeds(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  for (size_t step = 1; step <= 20; ++step) CHECK_FALSE(succeeds(high - 1 - (high - 1 - base / page) * step / 20));
  return high * page;
}

TEST_CASE("faults: the address space of the program, the file and the plan is enough, and less is a sentence") {
  const size_t base = [] {  // what the program itself takes
    size_t bytes = size_t{1} << 20;
    while (run_command({"--version"}, {.limits = {{RLIMIT_AS, bytes}}}).code != 0) bytes += 16384;
    return bytes;
  }();
  const LoadedModel model = load_model(tiny());
  for (const uint32_t threads : {1u, 3u}) {
    const Result<Plan> plan = make_plan(*model, {.slots = 16, .target = 8, .threads = threads});
    REQUIRE(plan);
    const size_t stacks = (threads - 1) * (256 + 4) * 1024;
    const size_t planned = plan->bytes + command::buffer_bytes(*plan) + model->file.size() + stacks;
    const size_t least =
        least_memory(translate(tiny(), {"--threads", std::to_string(threads)}), base, base + planned + (1 << 20));
    MESSAGE(threads << " threads: program " << base << " + planned " << planned << " bytes, least " << least);
    CHECK(least > planned);
    CHECK(least <= base + planned + 128 * 1024);  // rounding, the stack's growth
  }
}

}  // namespace dragoman::test
