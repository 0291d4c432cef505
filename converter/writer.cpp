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
#include <cstdlib>
#include <cstring>
#include <utility>

#include "converter/file.h"
#include "kernels/kernels.h"
#include "runtime/checksum.h"
#include "runtime/format.h"

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

// A link is followed: what it leads to is replaced, not the link.
Result<std::string> follow_link(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return path;
  char* real = realpath(path.c_str(), nullptr);
  if (!real) return fail("%s is a link that leads nowhere (%s): give another name", path.c_str(), std::strerror(errno));
  const std::string followed = real;
  std::free(real);
  return followed;
}

// What has the name already may be an older model, or nothing: somebody's weights would be lost.
Status check_replaceable(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return Done{};
  if (fd < 0) return fail("%s is there and cannot be read (%s): give another name", path.c_str(), std::strerror(errno));
  char begin[sizeof kMagic];
  size_t have = 0;
  ssize_t got = 0;
  do {
    got = read(fd, begin + have, sizeof begin - have);
    if (got > 0) have += static_cast<size_t>(got);
  } while ((got > 0 && have < sizeof begin) || (got < 0 && errno == EINTR));
  const int error = errno;
  close(fd);
  if (got < 0)
    return fail("%s is there and cannot be read (%s): give another name", path.c_str(), std::strerror(error));
  if (have == 0 || (have == sizeof begin && std::memcmp(begin, kMagic, sizeof begin) == 0)) return Done{};
  return fail("%s is there already and is not a .dgm file: it would be lost; give another name, or remove it first",
              path.c_str());
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

namespace {

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(wrote));
  }
  return true;
}

// The table of sections that follow each other, and the header in front of it.
class Layouter {
 public:
  explicit Layouter(size_t count) : end_(sizeof(FileHeader) + count * sizeof(Section)) {}

  void add(const SectionData& head, uint64_t bytes, uint64_t sum) {
    Section section{};
    head.name.copy(section.name, sizeof section.name - 1);
    section.kind = head.kind;
    section.layout = head.layout;
    section.offset = round_up(end_, kAlignment);
    section.bytes = bytes;
    section.checksum = sum;
    section.rows = head.rows;
    section.cols = head.cols;
    end_ = section.offset + section.bytes;
    table.push_back(section);
  }
  void add(const SectionData& data) { add(data, data.bytes.size(), checksum(data.bytes.data(), data.bytes.size())); }

  FileHeader header() const {
    FileHeader header{};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.version = kFormatVersion;
    header.endian_mark = kEndianMark;
    header.file_bytes = end_;
    header.section_count = static_cast<uint32_t>(table.size());
    header.table_checksum = checksum(table.data(), table.size() * sizeof(Section));
    header.header_checksum = checksum(&header, offsetof(FileHeader, header_checksum));
    return header;
  }

  std::vector<Section> table;

 private:
  uint64_t end_;
};

std::span<const std::byte> bytes_of(const void* data, size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}

}  // namespace

FileImage assemble(std::span<const SectionData> sections) {
  Layouter layout(sections.size());
  for (const SectionData& data : sections) layout.add(data);
  const FileHeader header = layout.header();
  FileImage image(header.file_bytes);
  std::byte* to = image.bytes().data();
  std::memcpy(to, &header, sizeof header);
  std::memcpy(to + sizeof header, layout.table.data(), layout.table.size() * sizeof(Section));
  for (size_t i = 0; i < sections.size(); ++i)
    std::copy(sections[i].bytes.begin(), sections[i].bytes.end(), to + layout.table[i].offset);
  return image;
}

Status SectionsInMemory::begin(SectionData head) {
  sections.push_back(std::move(head));
  return Done{};
}

Status SectionsInMemory::append(std::span<const std::byte> bytes) {
  std::vector<std::byte>& to = sections.back().bytes;
  to.insert(to.end(), bytes.begin(), bytes.end());
  return Done{};
}

Result<SectionsOnDisk> SectionsOnDisk::create(const std::string& path) {
  SectionsOnDisk sections;
  sections.path_ = path;
  std::string name = path + ".XXXXXX";
  const HeldSignals held;  // until the name is gone again
  sections.fd_ = mkostemp(name.data(), O_CLOEXEC);
  if (sections.fd_ < 0)
    return fail("cannot write beside %s: %s; choose another place for the model", path.c_str(), std::strerror(errno));
  unlink(name.c_str());
  return sections;
}

SectionsOnDisk::SectionsOnDisk(SectionsOnDisk&& other) noexcept {
  *this = std::move(other);
}

SectionsOnDisk& SectionsOnDisk::operator=(SectionsOnDisk&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(end_, other.end_);
  std::swap(sections_, other.sections_);
  return *this;
}

SectionsOnDisk::~SectionsOnDisk() {
  if (fd_ >= 0) close(fd_);
}

Status SectionsOnDisk::begin(SectionData head) {
  sections_.push_back({std::move(head), end_, 0, kChecksumSeed});
  return Done{};
}

Status SectionsOnDisk::append(std::span<const std::byte> bytes) {
  if (!write_all(fd_, bytes))
    return fail("cannot write beside %s: %s; nothing is left of it", path_.c_str(), std::strerror(errno));
  Stored& section = sections_.back();
  section.bytes += bytes.size();
  section.state = checksum_words(bytes.data(), bytes.size(), section.state);
  end_ += bytes.size();
  return Done{};
}

Status SectionsOnDisk::read(uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t got = pread(fd_, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return fail("what was written beside %s cannot be read again (%s)", path_.c_str(),
                  got < 0 ? std::strerror(errno) : "it became shorter");
    to = to.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return Done{};
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

Result<OutputFile> OutputFile::create(const std::string& name) {
  if (name.empty()) return fail("the name of the file to write is empty: give one");
  const Result<std::string> followed = follow_link(name);
  if (!followed) return followed.error();
  const std::string& path = *followed;
  if (is_directory(path)) return fail("%s is a folder: give the name of a file", path.c_str());
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return fail("%s is not a regular file and would be replaced by one: give another name", path.c_str());
  if (const Status replaceable = check_replaceable(path); !replaceable) return replaceable.error();
  OutputFile file;
  file.path_ = path;
  std::string temporary = path + ".tmp";
  const HeldSignals held;
  const Result<int> fd = open_locked(temporary.c_str());
  if (!fd) return fd.error();
  file.fd_ = *fd;
  file.temporary_ = std::move(temporary);  // not a copy: without memory for it, the file would stay behind
  note_unfinished(file.temporary_);
  if (ftruncate(file.fd_, 0) != 0) return fail("cannot write %s: %s", file.temporary_.c_str(), std::strerror(errno));
  return file;
}

Status OutputFile::write(std::span<const std::byte> bytes) {
  if (!write_all(fd_, bytes))
    return fail("cannot write %s: %s; nothing is left of it", temporary_.c_str(), std::strerror(errno));
  return Done{};
}

Status OutputFile::write_model(std::span<const SectionData> front, const SectionsOnDisk& tensors,
                               const Progress& progress) {
  if (ftruncate(fd_, 0) != 0 || lseek(fd_, 0, SEEK_SET) != 0)
    return fail("cannot write %s: %s", temporary_.c_str(), std::strerror(errno));
  Layouter layout(front.size() + tensors.sections().size());
  for (const SectionData& data : front) layout.add(data);
  for (const SectionsOnDisk::Stored& stored : tensors.sections())
    layout.add(stored.head, stored.bytes, checksum_word(stored.state, stored.bytes));
  const FileHeader header = layout.header();

  uint64_t written = 0;
  const auto put = [&](std::span<const std::byte> bytes) {
    written += bytes.size();
    if (progress) progress("writing", static_cast<double>(written) / static_cast<double>(header.file_bytes));
    return write(bytes);
  };
  const auto align = [&](uint64_t offset) {
    constexpr std::byte kZeros[kAlignment] = {};
    return put({kZeros, static_cast<size_t>(offset - written)});
  };
  if (const Status done = put(bytes_of(&header, sizeof header)); !done) return done;
  if (const Status done = put(bytes_of(layout.table.data(), layout.table.size() * sizeof(Section))); !done) return done;
  for (size_t i = 0; i < front.size(); ++i) {
    if (const Status done = align(layout.table[i].offset); !done) return done;
    if (const Status done = put(front[i].bytes); !done) return done;
  }
  std::vector<std::byte> chunk;
  for (size_t i = 0; i < tensors.sections().size(); ++i) {
    const SectionsOnDisk::Stored& stored = tensors.sections()[i];
    if (const Status done = align(layout.table[front.size() + i].offset); !done) return done;
    for (uint64_t at = 0; at < stored.bytes; at += chunk.size()) {
      chunk.resize(std::min<uint64_t>(4 << 20, stored.bytes - at));
      if (const Status done = tensors.read(stored.offset + at, chunk); !done) return done;
      if (const Status done = put(chunk); !done) return done;
    }
  }
  return Done{};
}

Result<uint64_t> OutputFile::commit() {
  const auto bytes = static_cast<uint64_t>(lseek(fd_, 0, SEEK_END));
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
  return bytes;
}

}  // namespace dragoman
