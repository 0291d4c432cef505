#include "converter/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "converter/file.h"
#include "kernels/kernels.h"
#include "runtime/checksum.h"

namespace dragoman {

SectionData text_section(const char* name, const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {name, SectionKind::kText, Layout::kNone, 0, 0, {begin, begin + text.size()}};
}

FileImage::FileImage(size_t bytes)
    : memory_(static_cast<std::byte*>(std::aligned_alloc(kAlignment, round_up(bytes, kAlignment)))), size_(bytes) {
  if (!memory_) std::abort();  // as operator new would end the converter
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
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Result<OutputFile> OutputFile::create(const std::string& path) {
  if (is_directory(path)) return fail("%s is a folder: give the name of a file", path.c_str());
  OutputFile file;
  file.path_ = path;
  const std::string temporary = path + ".tmp";
  file.fd_ = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file.fd_ < 0)
    return fail("cannot write %s: %s; choose another place for the model", temporary.c_str(), std::strerror(errno));
  file.temporary_ = temporary;
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
  // A full disk may show only here.
  const bool synced = fsync(fd_) == 0;
  const int reason = errno;
  const bool closed = close(std::exchange(fd_, -1)) == 0;
  if (!synced || !closed)
    return fail("cannot write %s: %s", temporary_.c_str(), std::strerror(synced ? errno : reason));
  if (rename(temporary_.c_str(), path_.c_str()) != 0)
    return fail("cannot rename %s to %s: %s", temporary_.c_str(), path_.c_str(), std::strerror(errno));
  temporary_.clear();

  const size_t slash = path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  if (const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); fd >= 0) {
    fsync(fd);  // so that the new name survives a power cut; the file itself is safe
    close(fd);
  }
  return bytes;
}

}  // namespace dragoman
