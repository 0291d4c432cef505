/* Process 1 of the machine that tests/emulate/bochs boots: runs every line of /jobs and reports through port 0xE9,
 * which Bochs copies to its own standard output. A line is fields separated by tabs:
 *   name  input  [VARIABLE=value ...]  program  arguments ...
 * Each program's report is framed by lengths, so that its output may be anything:
 *   @@start NAME
 *   @@end NAME STATUS BYTES_OF_STDOUT BYTES_OF_STDERR, then these bytes
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kPort = 0xE9, kPowerPort = 0x8900, kMaxFields = 64 };

static void send(const char* bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) outb((unsigned char)bytes[i], kPort);
}

static void send_file(const char* path) {
  char buffer[4096];
  const int fd = open(path, O_RDONLY);
  for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;) send(buffer, (size_t)got);
  close(fd);
}

static long size_of(const char* path) {
  struct stat status;
  return stat(path, &status) == 0 ? (long)status.st_size : 0;
}

static void redirect(const char* path, int flags, int to) {
  const int fd = open(path, flags, 0600);
  if (fd < 0) _exit(126);
  dup2(fd, to);
  close(fd);
}

/* The exit status, or 128 + the signal that ended it. */
static int run(const char* input, char** words) {
  const pid_t child = fork();
  if (child == 0) {
    redirect(input, O_RDONLY, 0);
    redirect("/stdout", O_WRONLY | O_CREAT | O_TRUNC, 1);
    redirect("/stderr", O_WRONLY | O_CREAT | O_TRUNC, 2);
    while (*words && strchr(*words, '=')) putenv(*words++);
    if (*words) execv(*words, words);
    perror("execv");
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void run_line(char* line) {
  char *fields[kMaxFields + 1], *rest = line, head[256];
  int count = 0;
  line[strcspn(line, "\n")] = 0;
  for (char* field; count < kMaxFields && (field = strsep(&rest, "\t"));) fields[count++] = field;
  fields[count] = NULL;
  if (count < 3) return;
  send(head, (size_t)snprintf(head, sizeof head, "\n@@start %s\n", fields[0]));
  const int status = run(fields[1], fields + 2);
  send(head, (size_t)snprintf(head, sizeof head, "\n@@end %s %d %ld %ld\n", fields[0], status, size_of("/stdout"),
                              size_of("/stderr")));
  send_file("/stdout");
  send_file("/stderr");
}

int main(void) {
  mount("proc", "/proc", "proc", 0, NULL);
  mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
  if (iopl(3) != 0) return 1; /* the kernel panics, Bochs ends */
  FILE* jobs = fopen("/jobs", "r");
  for (char line[4096]; jobs && fgets(line, sizeof line, jobs);) run_line(line);
  for (const char* s = "Shutdown"; *s; ++s) outb((unsigned char)*s, kPowerPort); /* Bochs' own way to switch off */
  for (;;) pause();
}
