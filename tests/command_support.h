// Running the `dragoman` command as a user would: a process with its input, output and exit code.
#pragma once

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace dragoman::test {

struct Ran {
  std::string out, err;
  int code = -1;            // below 0: ended by that signal
  long peak_kilobytes = 0;  // of resident memory
};

struct Stage {
  std::string input = "";
  const char* out_file = nullptr;  // instead of collecting the output; "" closes it
  bool close_input = false;
  std::vector<std::string> environment = {};  // "NAME=value"; all DRAGOMAN_ variables are unset
  std::string binary = DRAGOMAN_BINARY;
  std::vector<std::pair<int, size_t>> limits = {};  // of setrlimit()
  unsigned seconds = 100;                           // then SIGALRM ends it: nothing may hang
};

// Runs to the end; input, output and errors are files, so nothing can block.
Ran run_command(const std::vector<std::string>& arguments, const Stage& stage = {});

// A running command behind two pipes.
class Coprocess {
 public:
  explicit Coprocess(const std::vector<std::string>& arguments, const Stage& stage = {});
  ~Coprocess();
  Coprocess(const Coprocess&) = delete;
  Coprocess& operator=(const Coprocess&) = delete;

  void write(const std::string& bytes);
  std::string read_line();  // with its newline; "" when none came within 20 seconds
  std::string read_rest();  // after finish(): to the end
  void close_input();
  void close_output();
  int wait();            // the exit code
  std::string errors();  // after wait(): what it said on standard error; once
  int process() const { return process_; }

 private:
  int to_ = -1, from_ = -1, process_ = -1;
  std::FILE* errors_ = nullptr;
};

// A folder that is removed with what is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& bytes);
std::vector<std::string> split_lines(const std::string& text);  // the last one must end in a newline too

}  // namespace dragoman::test
