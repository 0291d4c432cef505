// Writer of .dgm files (runtime/format.h). The same sections give the same bytes: no time, no host, no randomness.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "runtime/format.h"
#include "runtime/result.h"

namespace dragoman {

// Called now and then: a step of the conversion and how far it is, from 0 to 1. May be empty.
using Progress = std::function<void(const char* step, double done)>;

struct SectionData {
  std::string name;
  SectionKind kind = SectionKind::kTensor;
  Layout layout = Layout::kNone;
  uint32_t rows = 0, cols = 0;
  std::vector<std::byte> bytes;
};

SectionData text_section(const char* name, const std::string& text);

// A whole file in memory, at a multiple of 64 as open_model() wants it.
class FileImage {
 public:
  explicit FileImage(size_t bytes);  // zeros
  std::span<std::byte> bytes() { return {memory_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{kAlignment}); }
  };
  std::unique_ptr<std::byte[], Free> memory_;
  size_t size_;
};

// Header, section table and sections, with their checksums.
FileImage assemble(std::span<const SectionData> sections);

// OUT.tmp, which becomes OUT only when all of it is on the disk. Whatever fails before, nothing is left behind; what a
// power cut or SIGKILL leaves of OUT.tmp, the next conversion overwrites. Two conversions at once are told apart by a
// lock: the second is refused.
class OutputFile {
 public:
  OutputFile() = default;
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();  // removes the temporary unless committed

  static Result<OutputFile> create(const std::string& path);
  Status write(std::span<const std::byte> bytes, const Progress& progress);
  Status commit();

 private:
  std::string path_, temporary_;
  int fd_ = -1;
};

// The temporary that is being written, for a signal handler to remove; nullptr when there is none.
const char* unfinished_output() noexcept;

}  // namespace dragoman
