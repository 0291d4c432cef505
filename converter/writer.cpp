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
  return Done{};
}

}  // namespace dragoman
