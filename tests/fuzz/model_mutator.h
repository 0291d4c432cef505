// Changes to a .dgm that know its structure: a section's content, its shape, which sections there are. The file is put
// together again with checksums that match, so that every change is looked at by what lies behind them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "converter/writer.h"
#include "tests/hostile.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace dragoman::test {

class ModelMutator {
 public:
  explicit ModelMutator(unsigned seed) : random_(seed) {}

  // The new size, or 0 where the file cannot be taken apart or the result does not fit.
  size_t mutate(uint8_t* data, size_t size, size_t max_size) {
    if (!take_apart({reinterpret_cast<const std::byte*>(data), size})) return 0;
    for (size_t edits = 1 + pick(3); edits > 0; --edits) change();
    FileImage image = assemble(sections_);
    const std::span<std::byte> bytes = image.bytes();
    if (pick(8) == 0) change_table(bytes);
    if (bytes.size() > max_size) return 0;
    std::memcpy(data, bytes.data(), bytes.size());
    return bytes.size();
  }

 private:
  size_t pick(size_t below) { return random_() % below; }
  SectionData& any() { return sections_[pick(sections_.size())]; }

  bool take_apart(std::span<const std::byte> file) {
    FileHeader header;
    if (file.size() < sizeof header) return false;
    std::memcpy(&header, file.data(), sizeof header);
    const size_t room = (file.size() - sizeof header) / sizeof(Section);
    if (header.section_count == 0 || header.section_count > std::min<size_t>(room, kMaxSections)) return false;
    for (uint32_t i = 0; i < header.section_count; ++i) {
      Section s;
      std::memcpy(&s, file.data() + sizeof header + i * sizeof s, sizeof s);
      if (s.offset > file.size() || s.bytes > file.size() - s.offset) return false;
      const auto content = file.subspan(s.offset, s.bytes);
      const size_t length = strnlen(s.name, sizeof s.name);
      sections_.push_back({{s.name, length}, s.kind, s.layout, s.rows, s.cols, {content.begin(), content.end()}});
    }
    return true;
  }

  void change() {
    switch (pick(8)) {
      case 0:
      case 1:
        return change_word(first_of(SectionKind::kArchitecture));
      case 2:
      case 3:
        return change_bytes(first_of(pick(3) ? SectionKind::kTokenizer : SectionKind::kSelfTest));
      case 4:
        return change_word(first_of(pick(3) ? SectionKind::kTokenizer : SectionKind::kSelfTest));
      case 5:
        return change_word(any());
      case 6:
        return change_shape(any());
      default:
        return rearrange();
    }
  }

  // From a random one on, so that the second tokenizer has its turn; any section where there is none of the kind.
  SectionData& first_of(SectionKind kind) {
    const size_t start = pick(sections_.size());
    for (size_t i = 0; i < sections_.size(); ++i) {
      SectionData& section = sections_[(start + i) % sections_.size()];
      if (section.kind == kind) return section;
    }
    return sections_[start];
  }

  // One aligned 32-bit number: counts, offsets, ids, floats. Small steps and the ends of ranges.
  void change_word(SectionData& section) {
    if (section.bytes.size() < 4) return;
    std::byte* at = section.bytes.data() + 4 * pick(section.bytes.size() / 4);
    uint32_t word;
    std::memcpy(&word, at, sizeof word);
    const std::array<uint32_t, 14> values = {
        word + 1,   word - 1,   word * 2,   word / 2,   word ^ (1u << pick(32)),         0, 1, 0x7fffffff, 0x80000000,
        0xffffffff, 0x7f800000, 0x7fc00000, 0x7f7fffff, static_cast<uint32_t>(random_())};
    word = values[pick(values.size())];
    std::memcpy(at, &word, sizeof word);
  }

  // libFuzzer's own changes, inside one section, which may grow or shrink.
  void change_bytes(SectionData& section) {
    const size_t size = section.bytes.size();
    section.bytes.resize(size + 256);
    section.bytes.resize(
        LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(section.bytes.data()), size, section.bytes.size()));
  }

  void change_shape(SectionData& section) {
    uint32_t* const fields[] = {&section.rows, &section.cols, reinterpret_cast<uint32_t*>(&section.kind),
                                reinterpret_cast<uint32_t*>(&section.layout)};
    uint32_t& field = *fields[pick(4)];
    field = std::array{field + 1, field - 1, field * 2, field / 2, 0u, 0xffffffffu}[pick(6)];
  }

  void rearrange() {
    switch (pick(4)) {
      case 0:
        return std::swap(any().name, any().name);
      case 1:
        return std::swap(any().bytes, any().bytes);
      case 2:
        if (sections_.size() > 1) sections_.erase(sections_.begin() + static_cast<ptrdiff_t>(pick(sections_.size())));
        return;
      default:
        SectionData copy = any();
        sections_.insert(sections_.begin() + static_cast<ptrdiff_t>(pick(sections_.size())), std::move(copy));
    }
  }

  // What assemble() would never write: places and sizes that contradict each other.
  void change_table(std::span<std::byte> file) {
    std::byte* at = file.data() + sizeof(FileHeader) + pick(sections_.size()) * sizeof(Section);
    Section section;
    std::memcpy(&section, at, sizeof section);
    uint64_t& field = pick(2) ? section.offset : section.bytes;
    field = std::array<uint64_t, 6>{field + 64, field - 64, field + 1, 0, uint64_t{1} << 63, ~uint64_t{0}}[pick(6)];
    std::memcpy(at, &section, sizeof section);
    mend_checksums(file);
  }

  std::minstd_rand random_;
  std::vector<SectionData> sections_;
};

}  // namespace dragoman::test
