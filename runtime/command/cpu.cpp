// `dragoman cpu`: the kernels this build has, and which of them this machine runs.
#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "kernels/kernels.h"
#include "runtime/command/commands.h"
#include "runtime/command/locate.h"
#include "runtime/command/text_out.h"
#include "runtime/text_split.h"

namespace dragoman::command {
namespace {

// Up to `room` bytes of a small file; nothing where it cannot be read.
std::string_view read_start(const char* path, std::span<char> room) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t got = ::read(fd, room.data(), room.size());
  ::close(fd);
  return {room.data(), got > 0 ? static_cast<size_t>(got) : 0};
}

// "model name : X" of /proc/cpuinfo (x86) or the board's name from its device tree (ARM).
std::string_view machine_name(std::span<char> room) {
  const std::string_view info = read_start("/proc/cpuinfo", room);
  const size_t key = info.find("model name");
  if (key != std::string_view::npos) {
    std::string_view line = info;
    line.remove_prefix(key);
    line = beginning_of(line, line.find('\n'));
    const size_t value = line.find(": ");
    if (value != std::string_view::npos) {
      line.remove_prefix(std::min(value + 2, line.size()));
      return line;
    }
  }
  const std::string_view board = read_start("/proc/device-tree/model", room);
  return board.substr(0, board.find('\0'));
}

void print_machine(TextOut& out) {
  char room[2048];
  const std::string_view name = machine_name(room);
  utsname system{};
  uname(&system);
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  out.format("machine    %.*s%s%s, %ld core%s\n", static_cast<int>(name.size()), name.data(), name.empty() ? "" : ", ",
             system.machine, cores, cores == 1 ? "" : "s");
}

}  // namespace

int run_cpu(const Settings& settings) {
  TextOut& out = standard_output();
  print_machine(out);
  for (const KernelChoice& choice : all_kernels()) {
    out.format("%-10s %s (%s)\n", choice.name, choice.kernels ? "runs here" : "does not run here", choice.needs);
  }
  const Result<KernelSelection> selection = select_kernels(settings);
  if (!selection) {
    finish_output(out, kOk);
    say("%s", selection.error().text);
    return kUsageError;
  }
  out.format("chosen     %s: %s\n", selection->kernels->name, selection->why);
  return finish_output(out, kOk);
}

}  // namespace dragoman::command
