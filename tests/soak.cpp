// dragoman-soak DRAGOMAN MODEL FAULTS-LIBRARY: lines without end through `dragoman translate`, as many as
// DRAGOMAN_SOAK_LINES says. A block of different lines is repeated; every answer must be, to the byte, the one that the
// line gets alone; resident memory must not grow by a page; and the allocator must be called as often for a block as
// for all of them.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/clock.h"

namespace {

constexpr size_t kDistinct = 1000;

using Words = std::vector<std::string>;

[[noreturn]] void fail(const std::string& sentence) {
  std::fprintf(stderr, "soak: %s\n", sentence.c_str());
  std::exit(1);
}

// Mixed lengths, empty lines, what is not UTF-8, other scripts, control characters, lines that are split in parts.
std::string make_line(size_t number, std::mt19937& random) {
  static const char* const kWords[] = {"a",
                                       "man",
                                       "riding",
                                       "bicycle",
                                       "in the snow,",
                                       "Two dogs.",
                                       "1,234.5",
                                       "--",
                                       "\xff\xfe",
                                       "\xe6\x97\xa5\xe6\x9c\xac",
                                       "\xf0\x9f\x98\x80",
                                       "\t",
                                       "A\xcc\x8a",
                                       "x\x01y"};
  if (number % 17 == 5) return "";
  if (number % 17 == 11) return std::string(random() % 9, ' ');
  std::string line = std::to_string(number);
  const size_t words = number % 250 == 50 ? 150 : random() % (number % 20 == 0 ? 30 : 5);
  for (size_t i = 0; i < words; ++i) line += std::string(" ") + kWords[random() % std::size(kWords)];
  if (number % 37 == 3) line.push_back('\0');
  if (number % 41 == 7) line.push_back('\r');
  return line;
}

std::string make_block() {
  std::mt19937 random(42);
  std::string block;
  for (size_t i = 0; i < kDistinct; ++i) block += make_line(i, random) + "\n";
  return block;
}

// A text that goes round: byte i is text[i % size]. What is left of it from `at`, in one piece.
std::pair<const char*, size_t> piece(const std::string& text, size_t at, size_t end) {
  const size_t inside = at % text.size();
  return {text.data() + inside, std::min(text.size() - inside, end - at)};
}

// The end of line `lines` in a text of kDistinct lines that goes round.
size_t end_of(const std::string& text, size_t lines) {
  size_t end = lines / kDistinct * text.size(), at = 0;
  for (size_t i = 0; i < lines % kDistinct; ++i) at = text.find('\n', at) + 1;
  return end + at;
}

struct Process {
  pid_t id = -1;
  int to = -1, from = -1;
};

Process start(const Words& words, const Words& environment) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) fail("no pipes");
  const pid_t id = fork();
  if (id == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    for (const std::string& entry : environment) putenv(strdup(entry.c_str()));
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  fcntl(in[1], F_SETFL, O_NONBLOCK);
  return {id, in[1], out[0]};
}

// In kilobytes, from smaps_rollup, which counts pages; /proc/PID/status is off by some for each thread.
struct Resident {
  size_t all = 0;
  size_t own = 0;  // not of a file
};

Resident resident(pid_t id) {
  std::ifstream file("/proc/" + std::to_string(id) + "/smaps_rollup");
  Resident found;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Rss:")) found.all = std::stoul(line.substr(4));
    if (line.starts_with("Anonymous:")) found.own = std::stoul(line.substr(10));
  }
  return found;
}

// The process's own memory must not grow by a page. Pages of files are the system's: it may map more of the program
// when a rare path is taken first, and take some away.
class Memory {
 public:
  explicit Memory(pid_t id) : id_(id) {}
  // Ten times a second at most.
  void look(double now) {
    if (now - looked_ < 0.1) return;
    looked_ = now;
    const Resident found = resident(id_);
    if (found.own == 0) return;  // it has just ended
    if (samples++ == 0) first = found;
    most = {std::max(most.all, found.all), std::max(most.own, found.own)};
    last = found;
  }
  Resident first, most, last;
  size_t samples = 0;

 private:
  pid_t id_;
  double looked_ = 0;
};

// Feeds and reads until the process closes its output. `answers` empty: they are collected there; otherwise compared.
class Conversation {
 public:
  Conversation(const Process& process, const std::string& block, size_t lines)
      : process_(process), block_(block), end_(end_of(block, lines)), memory(process.id) {}

  void run(std::string& answers) {
    const bool compare = !answers.empty();
    while (process_.from >= 0) {
      pollfd entries[2] = {{process_.from, POLLIN, 0}, {process_.to, POLLOUT, 0}};
      if (poll(entries, process_.to >= 0 ? 2 : 1, 60000) < 1) fail("no answer for a minute");
      if (process_.to >= 0 && entries[1].revents) feed();
      if (!entries[0].revents) continue;
      if (!compare) {
        collect(answers);
      } else {
        check(answers);
      }
    }
  }
  size_t bytes() const { return got_; }

 private:
  void feed() {
    const auto [data, bytes] = piece(block_, sent_, end_);
    const ssize_t wrote = bytes ? write(process_.to, data, bytes) : 0;
    if (wrote > 0) sent_ += static_cast<size_t>(wrote);
    if (sent_ < end_) return;
    close(process_.to);
    process_.to = -1;
  }
  size_t receive() {
    const ssize_t got = read(process_.from, buffer_, sizeof buffer_);
    if (got > 0) return static_cast<size_t>(got);
    close(process_.from);
    process_.from = -1;
    return 0;
  }
  void collect(std::string& answers) {
    answers.append(buffer_, receive());
    got_ = answers.size();
  }
  void check(const std::string& answers) {
    const size_t end = got_ + receive();
    for (const char* at = buffer_; got_ < end;) {
      const auto [data, bytes] = piece(answers, got_, end);
      if (std::memcmp(at, data, bytes) != 0) {
        const auto line = std::count(answers.begin(), answers.begin() + (data - answers.data()), '\n');
        fail("another answer in round " + std::to_string(got_ / answers.size()) + ", from line " +
             std::to_string(line) + " of the block on");
      }
      at += bytes;
      got_ += bytes;
    }
    if (got_ > 2 * answers.size()) memory.look(dragoman::seconds_now());  // everything was touched once
  }

  Process process_;
  const std::string& block_;
  size_t end_, sent_ = 0, got_ = 0;
  char buffer_[65536];

 public:
  Memory memory;
};

void must_end_well(const Process& process) {
  int status = 0;
  waitpid(process.id, &status, 0);
  if (status != 0) fail("dragoman ended with status " + std::to_string(status));
}

// "malloc 23, ..." of the calls that get memory.
std::string allocations(const std::string& path) {
  std::ifstream file(path);
  std::string found, name, count;
  while (file >> name >> count) {
    if (name == "malloc" || name == "free" || name == "mmap") found += (found.empty() ? "" : ", ") + name + " " + count;
  }
  return found;
}

size_t wanted_lines() {
  const char* text = std::getenv("DRAGOMAN_SOAK_LINES");
  return std::max<size_t>(text ? std::strtoul(text, nullptr, 10) : 20000, 3 * kDistinct);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: dragoman-soak DRAGOMAN MODEL FAULTS-LIBRARY\n"), 2;
  signal(SIGPIPE, SIG_IGN);
  const Words command = {argv[1], "translate", "-m", argv[2], "-q", "--max-source", "32", "--max-length", "4"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), command.begin(), command.end());
    return more;
  };
  const std::string block = make_block();
  std::string answers;  // of each line alone
  const Process alone = start(with({"--batch", "1", "--threads", "1"}), {});
  Conversation(alone, block, kDistinct).run(answers);
  must_end_well(alone);
  if (std::count(answers.begin(), answers.end(), '\n') != kDistinct) fail("a line in is not a line out");
  std::set<std::string> different;
  std::istringstream lines_of_answers(answers);
  for (std::string line; std::getline(lines_of_answers, line);) different.insert(line);

  char counts[] = "/tmp/dragoman-soak-XXXXXX";
  close(mkstemp(counts));
  const Words environment = {std::string("LD_PRELOAD=") + argv[3], std::string("DRAGOMAN_CALLS=") + counts};
  std::string made[2];
  const size_t lines[2] = {kDistinct, wanted_lines()};
  for (int i = 0; i < 2; ++i) {
    const double begin = dragoman::seconds_now();
    const Process process = start(with({"--batch", "32", "--threads", "2"}), environment);
    Conversation conversation(process, block, lines[i]);
    conversation.run(answers);
    must_end_well(process);
    if (conversation.bytes() != end_of(answers, lines[i])) fail("some answers are missing");
    made[i] = allocations(counts);
    if (i == 0) continue;
    const double seconds = dragoman::seconds_now() - begin;
    const Memory& memory = conversation.memory;
    std::printf(
        "soak: %zu lines in %.1f s, %.0f a second, each answered as alone (%zu different answers); own memory "
        "%zu KB, at most %zu, at last %zu (with pages of files %zu, %zu, %zu) in %zu looks; %s; for %zu lines: %s\n",
        lines[i], seconds, static_cast<double>(lines[i]) / seconds, different.size(), memory.first.own, memory.most.own,
        memory.last.own, memory.first.all, memory.most.all, memory.last.all, memory.samples, made[1].c_str(), lines[0],
        made[0].c_str());
    if (memory.samples < 2) fail("too short to see whether memory grows: more lines");
    if (memory.most.own > memory.first.own) fail("the process's own memory grew");
  }
  unlink(counts);
  if (made[0].empty() || made[0] != made[1]) fail("the allocator is called more often for more lines");
  return 0;
}
