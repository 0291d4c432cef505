#include "converter/file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "runtime/utf8.h"

namespace dragoman {

Result<SourceFile> SourceFile::open(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return fail("%s cannot be opened (%s)", path.c_str(), std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return fail("%s is not a regular file", path.c_str());
  SourceFile file;
  if (info.st_size > 0) {
    const Result<MappedFile> mapped = map_file(path.c_str());
    if (!mapped) return mapped.error();
    file.mapped_ = *mapped;
  }
  if (const Status content = check_content(file.bytes(), path.c_str()); !content) return content.error();
  return file;
}

Status check_content(std::span<const std::byte> bytes, const char* name) {
  if (bytes.empty()) return fail("%s is empty: the download may have failed; fetch it again", name);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("version https://git-lfs"))
    return fail("%s is a git-lfs pointer, not the file itself: run `git lfs pull` in its folder, or download it", name);
  const size_t first = text.substr(0, 64).find_first_not_of(" \t\r\n");
  const std::string_view head = first == std::string_view::npos ? std::string_view() : text.substr(first, 9);
  const auto starts_with = [&](std::string_view tag) {
    return head.size() >= tag.size() && strncasecmp(head.data(), tag.data(), tag.size()) == 0;
  };
  if (starts_with("<!doctype") || starts_with("<html"))
    return fail("%s is a web page, not the file itself: download it again (a page of the site was saved instead)",
                name);
  return Done{};
}

void forget(std::span<const std::byte> file, std::span<const std::byte> part) {
  constexpr uintptr_t kAround = 64 << 10;  // what the system maps around a page that is asked for
  const auto begin_of = [](std::span<const std::byte> bytes) { return reinterpret_cast<uintptr_t>(bytes.data()); };
  const uintptr_t begin = std::max(begin_of(file), begin_of(part) / kAround * kAround);
  const uintptr_t end =
      std::min(begin_of(file) + file.size(), (begin_of(part) + part.size()) / kAround * kAround + kAround);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

bool file_exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

bool is_directory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string printable(std::string_view name) {
  const auto steers = [](std::string_view c) {  // a terminal: C0, DEL, C1, line separators, changes of direction
    return c < " " || c == "\x7F" || (c >= "\xC2\x80" && c < "\xC2\xA0") ||
           (c >= "\xE2\x80\xA8" && c <= "\xE2\x80\xAE") || (c >= "\xE2\x81\xA6" && c <= "\xE2\x81\xA9");
  };
  std::string text;
  size_t at = 0;
  while (at < name.size() && at < 80) {
    const size_t bytes = utf8_valid(name.data() + at, name.size() - at);
    const std::string_view character = name.substr(at, bytes);
    text += bytes == 0 || steers(character) ? "?" : character;
    at += std::max<size_t>(bytes, 1);
  }
  if (at < name.size()) text += "...";
  return text;
}

}  // namespace dragoman
