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

// Where packed tensors go, one after the other.
class SectionSink {
 public:
  virtual ~SectionSink() = default;
  virtual Status begin(SectionData head) = 0;                   // its bytes are empty
  virtual Status append(std::span<const std::byte> bytes) = 0;  // a multiple of 8 of them, but for a section's last
};

class SectionsInMemory : public SectionSink {
 public:
  Status begin(SectionData head) override;
  Status append(std::span<const std::byte> bytes) override;
  std::vector<SectionData> sections;
};

// On the disk, in a file without a name: it is gone when this is, however the process ends.
class SectionsOnDisk : public SectionSink {
 public:
  SectionsOnDisk() = default;
  // In the folder of `path`, whose name messages use.
  static Result<SectionsOnDisk> create(const std::string& path);
  SectionsOnDisk(SectionsOnDisk&& other) noexcept;
  SectionsOnDisk& operator=(SectionsOnDisk&& other) noexcept;
  ~SectionsOnDisk() override;

  Status begin(SectionData head) override;
  Status append(std::span<const std::byte> bytes) override;

  struct Stored {
    SectionData head;
    uint64_t offset = 0, bytes = 0;
    uint64_t state;  // of the checksum
  };
  const std::vector<Stored>& sections() const { return sections_; }
  Status read(uint64_t offset, std::span<std::byte> to) const;

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t end_ = 0;
  std::vector<Stored> sections_;
};

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
  // A whole model. Called again, it writes the file anew.
  Status write_model(std::span<const SectionData> front, const SectionsOnDisk& tensors, const Progress& progress);
  const std::string& temporary() const { return temporary_; }
  Result<uint64_t> commit();  // bytes of the file

 private:
  Status write(std::span<const std::byte> bytes);
  std::string path_, temporary_;
  int fd_ = -1;
};

// The temporary that is being written, for a signal handler to remove; nullptr when there is none.
const char* unfinished_output() noexcept;

}  // namespace dragoman
