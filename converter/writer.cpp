#include "converter/writer.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "converter/file.h"
#include "kernels/kernels.h"
#include "runtime/checksum.h"

namespace dragoman {
namespace {

// A signal may come at any time: the path first, then the flag that says it counts.
char unfinished_path[PATH_MAX];
std::atomic<bool> unfinished{false};

void note_unfinished(const std::string& path) {
  unfinished = false;
  if (path.empty() || path.size() >= sizeof unfinished_path) return;
  std::memcpy(unfinished_path, path.c_str(), path.size() + 1);
  unfinished = true;
}

// No signal between what happens to the temporary and the note of it.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_;
};

// Is `fd` the file that has this name now? The conversion that held the lock before may have renamed it.
bool is_named(int fd, const char* path) {
  struct stat ours, named;
  return fstat(fd, &ours) == 0 && lstat(path, &named) == 0 && ours.st_dev == named.st_dev &&
         ours.st_ino == named.st_ino;
}

// The temporary, locked and still with whatever was in it. O_NONBLOCK: a FIFO of that name must not hold us up.
Result<int> open_locked(const char* path) {
  while (true) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0) return fail("cannot write %s: %s; choose another place for the model", path, std::strerror(errno));
    struct stat info;
    const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    const bool taken = regular && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;  // else: no locks there
    if (regular && !taken && is_named(fd, path)) return fd;
    close(fd);
    if (!regular) return fail("cannot write %s: it is there and not a regular file; remove it first", path);
    if (taken) return fail("%s is being written by another conversion: wait for it, or choose another name", path);
  }
}

}  // namespace

const char* unfinished_output() noexcept {
  return unfinished ? unfinished_path : nullptr;
}

SectionData text_section(const char* name, const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {name, SectionKind::kText, Layout::kNone, 0, 0, {begin, begin + text.size()}};
}

FileImage::FileImage(size_t bytes)
    : memory_(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment}))), size_(bytes) {
  std::memset(memory_.get(), 0, bytes);
}

FileImage assemble(std::span<const SectionData> sections) {
  std::vector<Section> table;
  uint64_t end = sizeof(FileHeader) + sections.size() * sizeof(Section);
  for (const SectionData& data : sections) {
    Section section{};
    data.name.copy(section.name, sizeof section.name - 1);
    section.kind = data.kind;
    section.layout = data.layout;
    section.offset = round_up(end, kAlignment);
    section.bytes = data.bytes.size();
    section.checksum = checksum(data.bytes.data(), data.bytes.size());
    section.rows = data.rows;
    section.cols = data.cols;
    end = section.offset + section.bytes;
    table.push_back(section);
  }

  FileHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kFormatVersion;
  header.endian_mark = kEndianMark;
  header.file_bytes = end;
  header.section_count = static_cast<uint32_t>(table.size());
  header.table_checksum = checksum(table.data(), table.size() * sizeof(Section));
  header.header_checksum = checksum(&header, offsetof(FileHeader, header_checksum));

  FileImage image(end);
  std::byte* to = image.bytes().data();
  std::memcpy(to, &header, sizeof header);
  std::memcpy(to + sizeof header, table.data(), table.size() * sizeof(Section));
  for (size_t i = 0; i < table.size(); ++i)
    std::copy(sections[i].bytes.begin(), sections[i].bytes.end(), to + table[i].offset);
  return image;
}

OutputFile::OutputFile(OutputFile&& other) noexcept {
  *this = std::move(other);
}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(fd_, other.fd_);
  return *this;
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) {  // first: once closed, it is no longer locked and may be another's
    unlink(temporary_.c_str());
    note_unfinished("");
  }
  if (fd_ >= 0) close(fd_);
}

Result<OutputFile> OutputFile::create(const std::string& path) {
  if (is_directory(path)) return fail("%s is a folder: give the name of a file", path.c_str());
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return fail("%s is not a regular file and would be replaced by one: give another name", path.c_str());
  const std::string temporary = path + ".tmp";
  const HeldSignals held;
  const Result<int> fd = open_locked(temporary.c_str());
  if (!fd) return fd.error();
  OutputFile file;
  file.path_ = path;
  file.fd_ = *fd;
  file.temporary_ = temporary;
  note_unfinished(temporary);
  if (ftruncate(file.fd_, 0) != 0) return fail("cannot write %s: %s", temporary.c_str(), std::strerror(errno));
  return file;
}

Status OutputFile::write(std::span<const std::byte> bytes, const Progress& progress) {
  constexpr size_t kChunk = 4 << 20;
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t wrote = ::write(fd_, bytes.data() + at, std::min(kChunk, bytes.size() - at));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0)
      return fail("cannot write %s: %s (%zu of %zu bytes were written); nothing is left of it", temporary_.c_str(),
                  std::strerror(errno), at, bytes.size());
    at += static_cast<size_t>(wrote);
    if (progress) progress("writing", static_cast<double>(at) / static_cast<double>(bytes.size()));
  }
  return Done{};
}

Status OutputFile::commit() {
  // A full disk may show only here. What is synced is on the disk, whatever close() says later; until then the lock is
  // held.
  int synced;
  do {
    synced = fsync(fd_);
  } while (synced != 0 && errno == EINTR);
  if (synced != 0) return fail("cannot write %s: %s; nothing is left of it", temporary_.c_str(), std::strerror(errno));
  {
    const HeldSignals held;
    if (rename(temporary_.c_str(), path_.c_str()) != 0)
      return fail("cannot rename %s to %s: %s", temporary_.c_str(), path_.c_str(), std::strerror(errno));
    note_unfinished("");
  }
  temporary_.clear();
  close(std::exchange(fd_, -1));

  const size_t slash = path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  if (const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); fd >= 0) {
    fsync(fd);  // so that the new name survives a power cut; the file itself is safe
    close(fd);
  }
  return Done{};
}

}  // namespace dragoman
