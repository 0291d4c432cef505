// dragoman-convert when something fails or somebody stops it: the old model stays until the new one is complete, and no
// temporary is left.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <random>

#include "runtime/clock.h"
#include "tests/faults/calls.h"
#include "tests/support.h"
#include "tests/synthetic.h"

namespace dragoman::test {
namespace {

using Words = std::vector<std::string>;

const std::string kOld = "DRAGOMAN of yesterday";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A small model, where it is written to, and what a good conversion makes of it.
class Conversion {
 public:
  explicit Conversion(const Words& options) : options_(options), folder_(small()) {
    folder_.write();
    const Ran ran = run();
    REQUIRE(ran.code == 0);
    whole = read_file(out());
    REQUIRE(whole.size() > 1000);
  }
  std::string out() const { return folder_.file("m.dgm"); }
  std::string temporary() const { return out() + ".tmp"; }
  Words words() const {
    Words all = {folder_.path, out()};
    all.insert(all.end(), options_.begin(), options_.end());
    return all;
  }
  Ran run(Stage stage = {}) const {
    stage.binary = DRAGOMAN_CONVERT_BINARY;
    return run_command(words(), stage);
  }
  // As before the conversion.
  void reset() const {
    write_file(out(), kOld);
    std::filesystem::remove(temporary());  // that SIGKILL may have left
  }
  // Refused with a sentence and nothing changed, or done; true if refused.
  bool check_whole_or_nothing(const Ran& ran) const {
    CAPTURE(ran.err);
    CHECK((ran.code == 0 || ran.code == 1));
    CHECK(read_file(out()) == (ran.code == 0 ? whole : kOld));
    CHECK(!std::filesystem::exists(temporary()));
    if (ran.code == 1) {
      CHECK(has(ran.err, "dragoman-convert: "));
      CHECK(split_lines(ran.err).size() == 1);
    }
    return ran.code != 0;
  }
  SyntheticFolder& folder() { return folder_; }

  std::string whole;

 private:
  static SyntheticModel small() {
    SyntheticModel model;
    model.d_model = model.encoder_ffn = model.decoder_ffn = 16;
    model.positions = 16;
    return model;
  }
  Words options_;
  SyntheticFolder folder_;
};

const Words kQuick = {"--quiet", "--quantize", "none"};

// Small writes, so that there are many to fail.
const std::string kChunk = "DRAGOMAN_CHUNK=3000";

Ran run_with_fault(const Conversion& conversion, const std::string& call, int n, int error) {
  conversion.reset();
  std::vector<std::string> environment = failing(call, n, error);
  environment.push_back(kChunk);
  return conversion.run({.environment = environment});
}

}  // namespace

TEST_CASE("faults: whichever call fails while converting, the old file stays or the new one is whole") {
  const Conversion conversion(kQuick);
  auto counts = count_calls(conversion.words(), {.environment = {kChunk}, .binary = DRAGOMAN_CONVERT_BINARY});
  const std::pair<const char*, int> faults[] = {{"write", ENOSPC}, {"fsync", EIO},     {"rename", EACCES},
                                                {"close", EIO},    {"open", EMFILE},   {"flock", ENOLCK},
                                                {"mmap", ENOMEM},  {"truncate", EFBIG}};
  std::map<std::string, int> refused;
  for (const auto& [call, error] : faults) {
    for (int n = 1; n <= counts[call]; ++n) {
      CAPTURE(std::string(call));
      CAPTURE(n);
      refused[call] += conversion.check_whole_or_nothing(run_with_fault(conversion, call, n, error));
    }
    MESSAGE(std::string(call) << ": " << refused[call] << " of " << counts[call] << " refused");
  }
  CHECK(counts["write"] > 20);
  CHECK(refused["write"] == counts["write"]);
  CHECK(refused["fsync"] == 1);  // the second is of the folder, after the file is whole
  CHECK(refused["rename"] == 1);
  CHECK(refused["truncate"] == counts["truncate"]);
  CHECK(refused["open"] > 0);
  CHECK(refused["mmap"] > 0);
  CHECK(refused["close"] == 0);  // what is synced is on the disk
  CHECK(refused["flock"] == 0);  // some file systems have no locks
}

TEST_CASE("faults: no memory at any point of a conversion is a sentence") {
  const Conversion conversion({"--quiet", "--rounding", "calibrated"});
  auto counts = count_calls(conversion.words(), {.environment = {kChunk}, .binary = DRAGOMAN_CONVERT_BINARY});
  MESSAGE("a conversion allocates " << counts["malloc"] << " times");
  size_t refused = 0, tried = 0;
  // A full run fails each one until the file is open and being written.
  const auto next = [](double n) { return !full_run() ? n * 1.6 + 1 : n < 400 ? n + 1 : n * 1.05; };
  for (double n = 1; n <= counts["malloc"]; n = next(n), ++tried) {
    CAPTURE(n);
    const Ran ran = run_with_fault(conversion, "malloc", static_cast<int>(n), ENOMEM);
    if (ran.code == 127) continue;  // the loader's own, before our program begins
    refused += conversion.check_whole_or_nothing(ran);
  }
  CHECK(refused > tried / 2);
  for (int n = 1; n <= counts["thread"]; ++n) {  // without a thread it takes longer, that is all
    CHECK(run_with_fault(conversion, "thread", n, EAGAIN).code == 0);
    CHECK(read_file(conversion.out()) == conversion.whole);
  }
  CHECK(counts["thread"] > 0);
}

TEST_CASE("faults: interrupted and partial writes of a model change nothing") {
  const Conversion conversion(kQuick);
  auto counts = count_calls(conversion.words(), {.environment = {kChunk}, .binary = DRAGOMAN_CONVERT_BINARY});
  for (const char* call : {"write", "fsync", "close"}) {
    for (int n = 1; n <= counts[call]; ++n) {
      CHECK(run_with_fault(conversion, call, n, EINTR).code == 0);
      CHECK(read_file(conversion.out()) == conversion.whole);
    }
  }
}

TEST_CASE("faults: a conversion beyond a limit on the size of files leaves the old one") {
  const Conversion conversion(kQuick);
  for (const size_t bytes : {size_t{1000}, size_t{4096}, conversion.whole.size() - 1}) {  // the sentence needs some
    conversion.reset();
    const Ran ran = conversion.run({.limits = {{RLIMIT_FSIZE, bytes}}});
    CHECK(conversion.check_whole_or_nothing(ran));
    CHECK(has(ran.err, "File too large"));
  }
  CHECK_FALSE(conversion.check_whole_or_nothing(conversion.run({.limits = {{RLIMIT_FSIZE, conversion.whole.size()}}})));
}

TEST_CASE("faults: what is no regular file is not replaced, and one conversion at a time writes a file") {
  Conversion conversion(kQuick);
  const auto check_refused = [&](const std::string& sentence) {
    const Ran ran = conversion.run({.seconds = 20});
    CAPTURE(ran.err);
    CHECK(ran.code == 1);
    CHECK(has(ran.err, sentence));
  };
  std::filesystem::remove(conversion.out());
  REQUIRE(mkfifo(conversion.out().c_str(), 0600) == 0);
  check_refused("m.dgm is not a regular file");
  CHECK(std::filesystem::is_fifo(conversion.out()));
  std::filesystem::remove(conversion.out());

  REQUIRE(mkfifo(conversion.temporary().c_str(), 0600) == 0);
  check_refused("cannot write");
  CHECK(std::filesystem::is_fifo(conversion.temporary()));
  std::filesystem::remove(conversion.temporary());

  write_file(conversion.temporary(), "somebody is at it");
  const int fd = open(conversion.temporary().c_str(), O_RDONLY);
  REQUIRE(flock(fd, LOCK_EX) == 0);
  check_refused("is being written by another conversion");
  CHECK(read_file(conversion.temporary()) == "somebody is at it");
  close(fd);
  CHECK_FALSE(conversion.check_whole_or_nothing(conversion.run()));
}

TEST_CASE("faults: a report that cannot be written does not cost the model") {
  const Conversion conversion({"--quantize", "none"});
  for (const char* out_file : {"/dev/full", ""}) {
    conversion.reset();
    const Ran ran = conversion.run({.out_file = out_file});
    CHECK(ran.code == 1);
    CAPTURE(ran.err);
    CHECK(has(ran.err, "is complete, but standard output cannot be written"));
    CHECK(read_file(conversion.out()) == conversion.whole);
  }
  conversion.reset();
  Coprocess gone(conversion.words(), {.binary = DRAGOMAN_CONVERT_BINARY});
  gone.close_output();
  CHECK(gone.wait() == 1);
  CHECK(gone.errors().empty());
  CHECK(read_file(conversion.out()) == conversion.whole);

  // With every standard stream closed the model's file must not get one of their numbers.
  conversion.reset();
  const std::string script = "exec \"$0\" \"$@\" <&- >&- 2>&-";
  Words words = {"-c", script, DRAGOMAN_CONVERT_BINARY};
  for (const std::string& word : conversion.words()) words.push_back(word);
  CHECK(run_command(words, {.binary = "/bin/bash"}).code == 1);
  CHECK(read_file(conversion.out()) == conversion.whole);
  CHECK(run_command({"--help"}, {.out_file = "/dev/full", .binary = DRAGOMAN_CONVERT_BINARY}).code == 1);
}

TEST_CASE("faults: a source that is cut short while it is read") {
  Conversion conversion({"--quiet"});
  // Before it is mapped: found by the parser.
  const std::string weights = conversion.folder().file("model.safetensors");
  const std::string bytes = read_file(weights);
  conversion.reset();
  write_file(weights, bytes.substr(0, bytes.size() / 2));
  CHECK(conversion.check_whole_or_nothing(conversion.run()));
  write_file(weights, bytes);

  // After it is mapped: found by touching it.
  conversion.reset();
  Coprocess command(conversion.words(),
                    {.environment = {kInterpose, "DRAGOMAN_CUT=" + weights}, .binary = DRAGOMAN_CONVERT_BINARY});
  CHECK(command.wait() == 1);
  CHECK(has(command.errors(), "became shorter or unreadable while in use"));
  CHECK(read_file(conversion.out()) == kOld);
  CHECK(!std::filesystem::exists(conversion.temporary()));
}

TEST_CASE("faults: a conversion that is stopped leaves the old file or the whole new one, and no temporary") {
  const Conversion conversion(kQuick);
  const double begin = seconds_now();
  CHECK(conversion.run().code == 0);
  const double seconds = seconds_now() - begin;
  std::mt19937 random(42);
  size_t stopped = 0;
  const int rounds = full_run() ? 400 : 30;
  for (int round = 0; round < rounds; ++round) {
    const int number = std::array{SIGINT, SIGTERM, SIGHUP, SIGKILL}[static_cast<size_t>(round) % 4];
    conversion.reset();
    Coprocess command(conversion.words(), {.binary = DRAGOMAN_CONVERT_BINARY});
    usleep(static_cast<useconds_t>(static_cast<double>(random() % 1200) * 1e3 * seconds));
    kill(command.process(), number);
    const int code = command.wait();
    CAPTURE(number);
    CHECK((code == 0 || code == -number));
    stopped += code != 0;
    const std::string left = read_file(conversion.out());
    CHECK((left == conversion.whole || (left == kOld && code != 0)));
    if (number != SIGKILL) CHECK(!std::filesystem::exists(conversion.temporary()));
  }
  MESSAGE(stopped << " of " << rounds << " conversions were stopped");
  CHECK(stopped > 0);
  conversion.reset();
  write_file(conversion.temporary(), std::string(2 * conversion.whole.size(), 'x'));  // what SIGKILL may leave
  CHECK_FALSE(conversion.check_whole_or_nothing(conversion.run()));
}

TEST_CASE("faults: each signal that stops a conversion removes the temporary; under nohup it goes on") {
  const TemporaryFolder folder;
  const std::string out = folder.path() + "/m.dgm";
  const auto started = [&](Words words, const std::string& binary) {
    auto command = std::make_unique<Coprocess>(words, Stage{.binary = binary});
    for (int i = 0; i < 2000 && !std::filesystem::exists(out + ".tmp"); ++i) usleep(1000);
    CHECK(std::filesystem::exists(out + ".tmp"));
    return command;
  };
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    CAPTURE(number);
    const auto command = started({data_path("tiny"), out, "--quiet"}, DRAGOMAN_CONVERT_BINARY);
    kill(command->process(), number);
    CHECK(command->wait() == -number);
    CHECK(std::filesystem::is_empty(folder.path()));
  }
  const auto deaf = started({"-c", "trap '' HUP; exec \"$0\" \"$@\"", DRAGOMAN_CONVERT_BINARY, data_path("tiny"), out,
                             "--quiet", "--rounding", "nearest"},
                            "/bin/bash");
  kill(deaf->process(), SIGHUP);
  CHECK(deaf->wait() == 0);
  CHECK(std::filesystem::exists(out));
}

}  // namespace dragoman::test
