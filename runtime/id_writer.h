// The last step of encoding: pieces in the order of the text become ids. Neighbouring unknown pieces are one unknown,
// as in SentencePiece; with byte fallback each becomes its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/trie.h"

namespace dragoman {

inline constexpr uint32_t kUnknownPiece = (1u << 22) - 1;  // above every piece number

class IdWriter {
 public:
  struct Tables {
    const uint32_t* piece_ids = nullptr;
    const uint32_t* byte_ids = nullptr;  // null: no byte fallback
    Trie surfaces;
    uint32_t unk_id = 0;
  };
  IdWriter(const Tables& tables, const char* text, std::span<int32_t> ids) : tables_(tables), text_(text), ids_(ids) {}

  // The next `size` bytes of the text are piece `number` (or kUnknownPiece).
  void add(size_t size, uint32_t number) {
    if (number != kUnknownPiece) {
      end_run();
      put(tables_.piece_ids[number]);
    } else if (tables_.byte_ids != nullptr) {
      for (size_t i = 0; i < size; ++i) put(tables_.byte_ids[uint8_t(text_[position_ + i])]);
    } else {
      run_ += size;
    }
    position_ += size;
  }
  // To be called once, after the last piece.
  void end_run() {
    if (run_ == 0) return;
    uint32_t id = kNoValue;
    if (!tables_.surfaces.empty()) id = tables_.surfaces.find(text_ + position_ - run_, run_);
    put(id == kNoValue ? tables_.unk_id : id);
    run_ = 0;
  }

  size_t count() const { return count_; }
  bool fits() const { return fits_; }
  bool unknown() const { return unknown_; }

 private:
  void put(uint32_t id) {
    unknown_ |= id == tables_.unk_id;
    if (count_ < ids_.size()) {
      ids_[count_++] = int32_t(id);
    } else {
      fits_ = false;
    }
  }

  const Tables& tables_;
  const char* text_;
  std::span<int32_t> ids_;
  size_t position_ = 0;  // in the text
  size_t run_ = 0;       // bytes of unknown pieces that end at position_
  size_t count_ = 0;
  bool fits_ = true;
  bool unknown_ = false;
};

}  // namespace dragoman
