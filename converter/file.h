// Files of other people, mapped for reading. Everything in them is hostile until a parser has looked at it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/mapped_file.h"
#include "runtime/result.h"

namespace dragoman {

class SourceFile {
 public:
  SourceFile() = default;
  SourceFile(SourceFile&& other) noexcept { swap(other); }
  SourceFile& operator=(SourceFile&& other) noexcept {
    swap(other);
    return *this;
  }
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;
  ~SourceFile() { unmap_file(mapped_); }

  // Refuses, each with its own sentence: what is missing, unreadable, not a file, empty, a git-lfs pointer that stands
  // for the real file, or a web page that was saved in its place.
  static Result<SourceFile> open(const std::string& path);

  std::span<const std::byte> bytes() const { return mapped_.bytes; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes().data()), bytes().size()}; }

 private:
  void swap(SourceFile& other) noexcept { std::swap(mapped_, other.mapped_); }
  MappedFile mapped_;
};

// The same refusals for bytes that are already in memory. `name` is used in the sentence.
Status check_content(std::span<const std::byte> bytes, const char* name);

// A part of a mapped file will not be needed soon: it stays readable, but takes no memory of this process meanwhile.
void forget(std::span<const std::byte> file, std::span<const std::byte> part);

// Told which bytes were looked through, and may be forgotten meanwhile. May be empty.
using Seen = std::function<void(std::span<const std::byte> part)>;

bool file_exists(const std::string& path);
bool is_directory(const std::string& path);

// `name` as it may stand in a message: characters that only show themselves, about 80 bytes of them.
std::string printable(std::string_view name);

}  // namespace dragoman
