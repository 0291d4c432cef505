// What the command costs: resident memory, libraries, bytes on disk, time to the first sentence, allocations.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "runtime/clock.h"
#include "tests/command_support.h"
#include "tests/support.h"

namespace dragoman::test {
namespace {

size_t file_bytes(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? static_cast<size_t>(info.st_size) : 0;
}

// The first number behind `key` in `text`, commas left out.
size_t number_after(const std::string& text, const std::string& key) {
  const size_t at = text.rfind(key);
  std::string digits;
  for (size_t i = at == std::string::npos ? text.size() : at + key.size(); i < text.size(); ++i) {
    if (text[i] >= '0' && text[i] <= '9') {
      digits += text[i];
    } else if (!digits.empty() && text[i] != ',') {
      break;
    }
  }
  return digits.empty() ? 0 : std::stoul(digits);
}

std::string run_tool(const std::string& command) {
  TemporaryFolder folder;
  const std::string log = folder.path() + "/log";
  return std::system((command + " > " + log + " 2>&1").c_str()) == 0 ? read_file(log) : "";
}

bool have(const char* tool) {
  if (std::system((std::string("command -v ") + tool + " > /dev/null").c_str()) == 0) return true;
  MESSAGE("skipped: " << std::string(tool) << " is not installed");
  return false;
}

struct Cost {
  double wall, cpu;  // seconds
};

double cpu_of_children() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Cost cost_of_one_sentence() {
  const double start = seconds_now(), cpu = cpu_of_children();
  const Ran ran = run_command({"translate", "-m", DRAGOMAN_SHIPPED_MODEL, "Good morning."});
  REQUIRE(ran.code == 0);
  return {seconds_now() - start, cpu_of_children() - cpu};
}

void drop_from_page_cache(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const int fd = open(path.c_str(), O_RDONLY);
    REQUIRE(fd >= 0);
    fsync(fd);  // pages not yet written stay
    CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
    close(fd);
  }
}

}  // namespace

TEST_CASE("footprint: peak resident memory is within the file, the plan and 6 MB") {
  for (const std::string& model : {model_path("tiny-int8"), std::string(DRAGOMAN_SHIPPED_MODEL)}) {
    for (const char* batch : {"1", "16"}) {
      const Ran inspected = run_command({"inspect", model, "--batch", batch});
      const size_t plan = number_after(inspected.out, "arena: ");
      Coprocess translate({"translate", "-m", model, "--batch", batch, "--threads", "2", "--quiet"});
      std::string line = "It is a very long sentence, ";
      while (line.size() < 1000) line += "and it goes on and on, ";
      for (int i = 0; i < 40; ++i) translate.write(line + "\n");
      for (int i = 0; i < 40; ++i) CHECK(!translate.read_line().empty());
      const std::string status = read_file("/proc/" + std::to_string(translate.process()) + "/status");
      const size_t peak = 1024 * number_after(status, "VmHWM:");
      const size_t allowed = file_bytes(model) + plan + (size_t{6} << 20);
      MESSAGE(model.substr(model.rfind('/') + 1) << ", batch " << std::string(batch) << ": file " << file_bytes(model)
                                                 << " + plan " << plan << " bytes, peak " << peak);
      CHECK(plan > 0);
      CHECK(peak > 0);
      CHECK(peak <= allowed);
      translate.close_input();
      CHECK(translate.wait() == 0);
    }
  }
}

TEST_CASE("footprint: the command needs libc and at most libm, libstdc++ and libgcc, and is under 600 KB") {
  if (have("ldd")) {
    const std::string libraries = run_tool(std::string("ldd ") + DRAGOMAN_BINARY);
    MESSAGE(libraries);
    for (const std::string& line : split_lines(libraries)) {
      const bool allowed = std::ranges::any_of(
          std::vector<std::string>{"linux-vdso", "ld-linux", "libc.so", "libm.so", "libstdc++.so", "libgcc_s.so"},
          [&](const std::string& name) { return line.find(name) != std::string::npos; });
      CHECK_MESSAGE(allowed, line);
    }
  }
  if (have("strip")) {
    TemporaryFolder folder;
    run_tool(std::string("strip -o ") + folder.path() + "/dragoman " + DRAGOMAN_BINARY);
    const size_t bytes = file_bytes(folder.path() + "/dragoman");
    MESSAGE("stripped: " << bytes << " bytes");
    CHECK(bytes > 0);
    CHECK(bytes < 600'000);
  }
}

TEST_CASE("footprint: from start to the first short sentence in less than 15 ms, with a warm page cache") {
  const auto best_of = [](int runs, bool cold) {
    Cost best{1, 1};
    for (int i = 0; i < runs; ++i) {
      if (cold) drop_from_page_cache({DRAGOMAN_SHIPPED_MODEL, DRAGOMAN_BINARY});
      const Cost cost = cost_of_one_sentence();
      best = {std::min(best.wall, cost.wall), std::min(best.cpu, cost.cpu)};
    }
    return best;
  };
  const Cost warm = best_of(15, false), cold = best_of(5, true);
  MESSAGE("best of 15: " << 1000 * warm.wall << " ms, " << 1000 * warm.cpu << " ms of CPU; best of 5 with model and "
                         << "command dropped from the page cache: " << 1000 * cold.wall << " ms");
  CHECK(warm.cpu < 0.015);  // of CPU: other tests run at the same time
}

TEST_CASE("footprint: as many allocations for few lines as for many (valgrind)") {
  if (!have("valgrind")) return;
  size_t counts[2];
  const int lines[2] = {10, full_run() ? 2000 : 100};
  for (int i = 0; i < 2; ++i) {
    TemporaryFolder folder;
    std::string input;
    for (int line = 0; line < lines[i]; ++line) input += "Good morning number " + std::to_string(line) + ".\n";
    write_file(folder.path() + "/in", input);
    const std::string report =
        run_tool("valgrind " DRAGOMAN_BINARY " translate -m " DRAGOMAN_TEST_MODEL " --max-length 16 --quiet < " +
                 folder.path() + "/in");
    counts[i] = number_after(report, "total heap usage:");
    CHECK(report.find("ERROR SUMMARY: 0 errors") != std::string::npos);
    CHECK(report.find("total heap usage:") != std::string::npos);
  }
  MESSAGE(lines[0] << " lines: " << counts[0] << " allocations; " << lines[1] << " lines: " << counts[1]);
  CHECK(counts[0] == counts[1]);
}

}  // namespace dragoman::test
