#include "tests/command_support.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace dragoman::test {
namespace {

// In the child: becomes the command. Descriptors of -1 are closed.
[[noreturn]] void become(const std::vector<std::string>& arguments, const Stage& stage, int in, int out, int err) {
  const int wanted[] = {in, out, err};
  int moved[3];
  for (int i = 0; i < 3; ++i) moved[i] = wanted[i] < 0 ? -1 : fcntl(wanted[i], F_DUPFD, 10);
  for (int i = 0; i < 3; ++i) {
    if (moved[i] < 0) {
      close(i);
    } else {
      dup2(moved[i], i);
    }
  }
  for (int fd = 3; fd < 64; ++fd) close(fd);
  unsetenv("DRAGOMAN_MODEL");
  unsetenv("DRAGOMAN_ISA");
  for (const std::string& entry : stage.environment) putenv(strdup(entry.c_str()));
  alarm(stage.seconds);
  for (const auto& [what, bytes] : stage.limits) {
    const rlimit limit{bytes, bytes};
    setrlimit(what, &limit);
  }
  std::vector<char*> argv = {const_cast<char*>("dragoman")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(stage.binary.c_str(), argv.data());
  _exit(127);
}

// Nothing of ours runs in the child when a signal comes before it has become the command.
int fork_without_handlers() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int process = fork();
  for (int number = 1; process == 0 && number < NSIG; ++number) signal(number, SIG_DFL);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return process;
}

int exit_code(int process, rusage& usage) {
  int status = 0;
  wait4(process, &status, 0, &usage);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::string contents(std::FILE* file) {
  std::string text;
  char buffer[65536];
  std::rewind(file);
  while (const size_t got = std::fread(buffer, 1, sizeof buffer, file)) text.append(buffer, got);
  std::fclose(file);
  return text;
}

}  // namespace

Ran run_command(const std::vector<std::string>& arguments, const Stage& stage) {
  std::FILE *in = std::tmpfile(), *out = std::tmpfile(), *err = std::tmpfile();
  REQUIRE((in && out && err));
  std::fwrite(stage.input.data(), 1, stage.input.size(), in);
  std::rewind(in);  // flushes
  int out_fd = fileno(out);
  if (stage.out_file) out_fd = *stage.out_file ? open(stage.out_file, O_WRONLY) : -1;
  const int process = fork_without_handlers();
  REQUIRE(process >= 0);
  if (process == 0) become(arguments, stage, stage.close_input ? -1 : fileno(in), out_fd, fileno(err));
  Ran ran;
  rusage usage{};
  ran.code = exit_code(process, usage);
  ran.peak_kilobytes = usage.ru_maxrss;
  if (stage.out_file && out_fd >= 0) close(out_fd);
  std::fclose(in);
  ran.out = contents(out);
  ran.err = contents(err);
  return ran;
}

Coprocess::Coprocess(const std::vector<std::string>& arguments, const Stage& stage) {
  int in[2], out[2];
  REQUIRE(pipe(in) == 0);
  REQUIRE(pipe(out) == 0);
  errors_ = std::tmpfile();
  REQUIRE(errors_);
  process_ = fork_without_handlers();
  REQUIRE(process_ >= 0);
  if (process_ == 0) become(arguments, stage, in[0], out[1], fileno(errors_));
  close(in[0]);
  close(out[1]);
  to_ = in[1];
  from_ = out[0];
}

Coprocess::~Coprocess() {
  close_input();
  close_output();
  if (process_ > 0) wait();
  if (errors_) std::fclose(errors_);
}

void Coprocess::write(const std::string& bytes) {
  REQUIRE(::write(to_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
}

std::string Coprocess::read_line() {
  std::string line;
  pollfd entry{from_, POLLIN, 0};
  char c = 0;
  while (c != '\n' && poll(&entry, 1, 20000) == 1 && read(from_, &c, 1) == 1) line += c;
  return c == '\n' ? line : "";
}

std::string Coprocess::read_rest() {
  std::string rest;
  char buffer[65536];
  for (ssize_t got; (got = read(from_, buffer, sizeof buffer)) > 0;) rest.append(buffer, static_cast<size_t>(got));
  return rest;
}

void Coprocess::close_input() {
  if (to_ >= 0) close(to_);
  to_ = -1;
}

void Coprocess::close_output() {
  if (from_ >= 0) close(from_);
  from_ = -1;
}

int Coprocess::wait() {
  rusage usage{};
  const int code = exit_code(process_, usage);
  process_ = -1;
  return code;
}

std::string Coprocess::errors() {
  return contents(std::exchange(errors_, nullptr));
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "dragoman-test-XXXXXX").string();
  REQUIRE(mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(text.substr(begin, end - begin));
  }
  CHECK(begin == text.size());
  return lines;
}

}  // namespace dragoman::test
