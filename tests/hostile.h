// Hostile model files: changes to the bytes of a good one, with or without mended checksums, and what a program would
// do with the result. Shared by model_test.cpp and the fuzzer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checksum.h"
#include "runtime/format.h"
#include "runtime/model.h"
#include "runtime/selftest.h"
#include "runtime/translator.h"

namespace dragoman::test {

// Bytes at a multiple of 64, in an allocation of their own for a sanitizer to guard.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::span<const std::byte> from) : size_(from.size()) {
    data_.reset(static_cast<std::byte*>(::operator new (size_ + 1, std::align_val_t{64})));
    if (!from.empty()) std::memcpy(data_.get(), from.data(), from.size());
  }
  std::span<std::byte> span() { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_;
};

// Makes all checksums right again, as an attacker would, as far as the structure still holds.
// Those of tensors, which no open looks at, only when asked.
inline void mend_checksums(std::span<std::byte> file, bool tensors = false) {
  if (file.size() < sizeof(FileHeader)) return;
  FileHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  const uint64_t table_bytes = uint64_t{header.section_count} * sizeof(Section);
  if (table_bytes <= file.size() - sizeof header) {
    for (uint32_t i = 0; i < header.section_count; ++i) {
      std::byte* at = file.data() + sizeof header + i * sizeof(Section);
      Section section;
      std::memcpy(&section, at, sizeof section);
      if (section.offset > file.size() || section.bytes > file.size() - section.offset) continue;
      if (section.kind == SectionKind::kTensor && !tensors) continue;
      section.checksum = checksum(file.data() + section.offset, section.bytes);
      std::memcpy(at, &section, sizeof section);
    }
    header.table_checksum = checksum(file.data() + sizeof header, table_bytes);
  }
  header.header_checksum = checksum(&header, offsetof(FileHeader, header_checksum));
  std::memcpy(file.data(), &header, sizeof header);
}

// Opens the file and, when that succeeds, uses it as a program would: plan, translate, decode, replay. Returns whether
// it could be opened. Replaying takes by far the longest.
inline bool exercise(std::span<const std::byte> file, std::string_view text, bool replay = true) {
  auto model = std::make_unique<Model>();
  if (!open_model(file, "hostile", *model)) return false;
  const uint32_t source = model->arch.positions < 24 ? model->arch.positions : 24;
  const Result<Plan> plan = make_plan(*model, {.slots = 2, .source = source, .target = source});
  if (!plan || plan->bytes > (size_t{64} << 20)) return true;
  void* memory = ::operator new (plan->bytes, std::align_val_t{64});
  const Result<Translator*> created = Translator::create(*model, *available_kernels()[0], *plan, memory);
  if (created) {
    size_t bytes = 0;
    Input input;
    input.text = text.substr(0, plan->window_bytes);
    for (int i = 0; i < 2; ++i) {  // the second time in memory that the decoder has used
      translate_hashed(**created, input, [&](const Output& output) { bytes += output.text.size(); });
    }
    (*created)->destroy();
    if (bytes > 2 * plan->output_bytes * (text.size() + 1)) __builtin_trap();
  }
  ::operator delete (memory, std::align_val_t{64});
  if (replay) (void)replay_selftest(*model, *available_kernels()[0]);
  (void)verify_tensors(*model, "hostile");
  return true;
}

}  // namespace dragoman::test
