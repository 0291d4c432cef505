// One arena, carved once. A Carver without memory only counts, so planning and handing out are the same lines of code;
// mark() and rewind() let buffers that are never alive together share their bytes.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace dragoman {

class Carver {
 public:
  explicit Carver(void* memory = nullptr) : memory_(static_cast<char*>(memory)) {}

  // Uninitialised, 64-byte aligned; nullptr while counting.
  template <class T>
  T* array(uint64_t count) {
    const uint64_t at = (used_ + 63) / 64 * 64;
    used_ = at + count * sizeof(T);
    if (used_ > peak_) peak_ = used_;
    return memory_ ? reinterpret_cast<T*>(memory_ + at) : nullptr;
  }

  uint64_t mark() const { return used_; }
  void rewind(uint64_t mark) { used_ = mark; }
  uint64_t bytes() const { return (peak_ + 63) / 64 * 64; }

 private:
  char* memory_;
  uint64_t used_ = 0;
  uint64_t peak_ = 0;
};

// Where the system has them: not more memory, but fewer faults and look-ups.
inline void ask_for_huge_pages([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#if defined(MADV_HUGEPAGE)
  madvise(data, bytes, MADV_HUGEPAGE);
#endif
}

// Memory for an arena whose owner did not bring any.
class ArenaMemory {
 public:
  explicit ArenaMemory(size_t bytes) : bytes_(bytes) {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    data_ = at == MAP_FAILED ? nullptr : at;
    if (data_) ask_for_huge_pages(data_, bytes);  // base at 32 sentences starts in 0.03 s instead of 0.12
  }
  ~ArenaMemory() {
    if (data_) munmap(data_, bytes_);
  }
  ArenaMemory(const ArenaMemory&) = delete;
  ArenaMemory& operator=(const ArenaMemory&) = delete;
  void* data() const { return data_; }  // nullptr: not to be had

 private:
  void* data_;
  size_t bytes_;
};

}  // namespace dragoman
