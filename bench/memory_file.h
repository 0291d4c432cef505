// A file that lives in memory and has a path like any other. A benchmark maps it anew for every run, as `dragoman`
// maps a model on disk: load time, page size and peak memory are those of a user.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "runtime/result.h"

namespace dragoman::bench {

class MemoryFile {
 public:
  MemoryFile() = default;
  MemoryFile(MemoryFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)), bytes_(other.bytes_) {}
  MemoryFile& operator=(MemoryFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryFile() {
    if (fd_ >= 0) close(fd_);
  }

  static Result<MemoryFile> create(std::span<const std::byte> bytes) {
    MemoryFile file;
    file.fd_ = memfd_create("dragoman-bench", MFD_CLOEXEC);
    for (size_t done = 0; file.fd_ >= 0 && done < bytes.size();) {
      const ssize_t wrote = write(file.fd_, bytes.data() + done, bytes.size() - done);
      if (wrote < 0) return fail("a model of %zu bytes does not fit in memory (%s)", bytes.size(), strerror(errno));
      done += static_cast<size_t>(wrote);
    }
    file.bytes_ = bytes.size();
    if (file.fd_ < 0) return fail("no file in memory can be made (%s)", strerror(errno));
    return file;
  }

  size_t bytes() const { return bytes_; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_ = -1;
  size_t bytes_ = 0;
};

}  // namespace dragoman::bench
