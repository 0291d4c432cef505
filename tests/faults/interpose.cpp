// Calls of the C library that fail when a test says so: a library for LD_PRELOAD.
//   DRAGOMAN_FAULT="write 3 28"    the third write() fails with errno 28
//   DRAGOMAN_FAULT="write 3+ 28"   so does every one after it
//   DRAGOMAN_CHUNK=100             write() and read() move at most 100 bytes
//   DRAGOMAN_CUT=FILE              FILE is cut to a page as soon as it is mapped
//   DRAGOMAN_CALLS=FILE            how often each was called, one a line, written when the process exits
// What the C library calls inside itself, printf() for one, does not come through here.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum Call { kWrite, kRead, kOpen, kClose, kSync, kRename, kLock, kTruncate, kMap, kThread, kMalloc, kFree, kCalls };
constexpr const char* kNames[kCalls] = {"write", "read",     "open", "close",  "fsync",  "rename",
                                        "flock", "truncate", "mmap", "thread", "malloc", "free"};

std::atomic<long> counts[kCalls];
int chosen = -1;
long from = 0, to = 0;
int error = 0;
size_t chunk = SIZE_MAX;

// No allocation here: malloc() is one of the calls.
__attribute__((constructor)) void read_wish() {
  if (const char* bytes = std::getenv("DRAGOMAN_CHUNK")) chunk = std::strtoul(bytes, nullptr, 10);
  const char* wish = std::getenv("DRAGOMAN_FAULT");
  if (!wish) return;
  const char* space = std::strchr(wish, ' ');
  for (int i = 0; i < kCalls && space; ++i) {
    const size_t length = static_cast<size_t>(space - wish);
    if (std::strlen(kNames[i]) == length && std::strncmp(kNames[i], wish, length) == 0) chosen = i;
  }
  if (chosen < 0) _exit(99);  // a test that asks for what is not there
  char* end = nullptr;
  from = to = std::strtol(space, &end, 10);
  if (*end == '+') {
    to = __LONG_MAX__;
    ++end;
  }
  error = static_cast<int>(std::strtol(end, nullptr, 10));
}

__attribute__((destructor)) void write_counts() {
  const char* path = std::getenv("DRAGOMAN_CALLS");
  if (!path) return;
  char text[400] = "";
  size_t used = 0;
  for (int i = 0; i < kCalls; ++i) {
    used +=
        static_cast<size_t>(std::snprintf(text + used, sizeof text - used, "%s %ld\n", kNames[i], counts[i].load()));
  }
  const long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  syscall(SYS_write, fd, text, used);
}

bool fails(Call call) {
  const long number = ++counts[call];
  if (call != chosen || number < from || number > to) return false;
  errno = error;
  return true;
}

size_t part_of(size_t bytes) {
  return bytes < chunk ? bytes : chunk;
}

void cut_if_asked(int fd) {
  const char* path = std::getenv("DRAGOMAN_CUT");
  struct stat mapped, named;
  if (!path || fstat(fd, &mapped) != 0 || stat(path, &named) != 0 || mapped.st_ino != named.st_ino) return;
  if (truncate(path, 4096) != 0) _exit(99);
}

}  // namespace

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

ssize_t write(int fd, const void* data, size_t bytes) {
  return fails(kWrite) ? -1 : syscall(SYS_write, fd, data, part_of(bytes));
}
ssize_t read(int fd, void* data, size_t bytes) {
  return fails(kRead) ? -1 : syscall(SYS_read, fd, data, part_of(bytes));
}
int open(const char* path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  const unsigned mode = flags & O_CREAT ? va_arg(args, unsigned) : 0;
  va_end(args);
  return fails(kOpen) ? -1 : static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int open64(const char* path, int flags, ...) __attribute__((alias("open")));
int close(int fd) {
  const long closed = syscall(SYS_close, fd);  // also when it then "fails": so does Linux
  return fails(kClose) ? -1 : static_cast<int>(closed);
}
int fsync(int fd) {
  return fails(kSync) ? -1 : static_cast<int>(syscall(SYS_fsync, fd));
}
int rename(const char* before, const char* after) {
  return fails(kRename) ? -1 : static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, before, AT_FDCWD, after, 0));
}
int flock(int fd, int operation) {
  return fails(kLock) ? -1 : static_cast<int>(syscall(SYS_flock, fd, operation));
}
int ftruncate(int fd, off_t bytes) {
  return fails(kTruncate) ? -1 : static_cast<int>(syscall(SYS_ftruncate, fd, bytes));
}
int ftruncate64(int fd, off_t bytes) __attribute__((alias("ftruncate")));
void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (fails(kMap)) return MAP_FAILED;
  void* mapped = reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, fd, offset));
  if (fd >= 0) cut_if_asked(fd);
  return mapped;
}
void* mmap64(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) __attribute__((alias("mmap")));
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* user) {
  if (fails(kThread)) return error;
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const Create real = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, body, user);
}

void* malloc(size_t bytes) {
  return fails(kMalloc) ? nullptr : __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  return fails(kMalloc) ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  return fails(kMalloc) ? nullptr : __libc_realloc(old, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return fails(kMalloc) ? nullptr : __libc_memalign(alignment, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  return fails(kMalloc) ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (fails(kMalloc)) return ENOMEM;
  *out = __libc_memalign(alignment, bytes);
  return *out ? 0 : ENOMEM;
}
void free(void* memory) {
  if (memory) ++counts[kFree];
  __libc_free(memory);
}
}
