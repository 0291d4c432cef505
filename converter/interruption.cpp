#include "converter/interruption.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <new>
#include <string_view>

#include "converter/writer.h"

namespace dragoman {
namespace {

// All of this runs at any point of the program: system calls only.
void remove_unfinished() {
  if (const char* path = unfinished_output()) unlink(path);
}

[[noreturn]] void end_with(std::string_view sentence) {
  remove_unfinished();
  [[maybe_unused]] const ssize_t wrote = write(STDERR_FILENO, sentence.data(), sentence.size());
  _exit(1);
}

void end_by_signal(int number) {
  remove_unfinished();
  raise(number);  // its handler is the system's again (SA_RESETHAND): whoever started us sees what ended us
}

// Sources are mapped: one that was cut short, or a disk that fails, shows at the first touch of a page.
void end_by_bus_error(int, siginfo_t* info, void*) {
  if (info->si_code != BUS_ADRERR) return end_by_signal(SIGBUS);
  end_with("dragoman-convert: a source file became shorter or unreadable while in use; nothing was written\n");
}

void end_without_memory() {
  end_with("dragoman-convert: there is not enough memory for this model; nothing was written\n");
}

void arrange_signals() {
  signal(SIGPIPE, SIG_IGN);  // writing to a reader that went away fails instead
  signal(SIGXFSZ, SIG_IGN);  // and so does writing beyond a limit on the size of files
  struct sigaction action = {}, before = {};
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  action.sa_handler = end_by_signal;
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU}) {
    if (sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    sigaction(number, &action, nullptr);
  }
  action.sa_flags |= SA_SIGINFO;
  action.sa_sigaction = end_by_bus_error;
  sigaction(SIGBUS, &action, nullptr);
}

// A file of ours must not get the number of a closed standard stream and then be written to as such. Opened for the
// wrong direction, so that using the stream still fails.
void keep_standard_numbers() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) return;
  }
}

// The first to allocate are static objects of libraries, before main().
[[gnu::constructor(101)]] void arrange_memory() {
  std::set_new_handler(end_without_memory);
}

}  // namespace

void arrange_interruptions() {
  keep_standard_numbers();
  arrange_signals();
}

}  // namespace dragoman
