#include "runtime/bpe.h"

#include <algorithm>

namespace dragoman {
namespace {

constexpr uint16_t kFrozen = 1u << 15;  // a user-defined symbol: never merged
constexpr uint16_t kLengthMask = kFrozen - 1;

// A pair of neighbours that form a piece. Sorted by rank, then from left to right, as one number:
// rank << 34 | first byte << 10 | bytes of both. The right symbol is the one that follows the left.
constexpr uint32_t kSizeBits = 10, kLeftBits = 24;
static_assert(kMaxPieceBytes < 1u << kSizeBits && kMaxNormalizedBytes <= 1u << kLeftBits);

class Agenda {
 public:
  explicit Agenda(uint64_t* heap) : heap_(heap) {}
  bool empty() const { return size_ == 0; }

  void push(uint64_t key) {
    size_t i = size_++;
    for (; i > 0 && key < heap_[(i - 1) / 2]; i = (i - 1) / 2) heap_[i] = heap_[(i - 1) / 2];
    heap_[i] = key;
  }
  uint64_t pop() {
    const uint64_t top = heap_[0], key = heap_[--size_];
    size_t i = 0;
    for (size_t child = 1; child < size_; child = 2 * i + 1) {
      if (child + 1 < size_ && heap_[child + 1] < heap_[child]) ++child;
      if (heap_[child] >= key) break;
      heap_[i] = heap_[child];
      i = child;
    }
    heap_[i] = key;
    return top;
  }

 private:
  uint64_t* heap_;
  size_t size_ = 0;
};

class Merger {
 public:
  Merger(const BpeTables& tables, const char* text, size_t size, const BpeBuffers& buffers)
      : tables_(tables), text_(text), size_(size), b_(buffers), agenda_(buffers.agenda) {
    std::fill_n(b_.splits, tables_.unused.size(), uint16_t(0));
  }

  // Characters and user-defined symbols.
  void split() {
    for (size_t at = 0; at < size_;) {
      size_t length = 0;
      if (!tables_.symbols.empty()) {
        const size_t limit = std::min<size_t>(size_ - at, tables_.longest_symbol);
        length = tables_.symbols.longest_prefix(text_ + at, limit).size;
      }
      const uint16_t frozen = length != 0 ? kFrozen : 0;
      if (length == 0) length = std::min(utf8_length(text_[at]), size_ - at);
      b_.starts[at] = b_.ends[at + length - 1] = uint16_t(length | frozen);
      at += length;
    }
  }

  void merge() {
    for (size_t at = b_.starts[0] & kLengthMask; at < size_; at += b_.starts[at] & kLengthMask) add_pair_ending_at(at);
    while (!agenda_.empty()) {
      const uint64_t key = agenda_.pop();
      const size_t left = size_t(key >> kSizeBits) & ((1u << kLeftBits) - 1);
      const size_t both = size_t(key) & ((1u << kSizeBits) - 1);
      // Lengths only grow, so a pair whose symbols were merged otherwise no longer has the length it had.
      const size_t first = b_.starts[left];
      const size_t right = left + first;
      if (first == 0 || right >= size_ || first + b_.starts[right] != both) continue;
      b_.starts[right] = 0;
      b_.starts[left] = b_.ends[left + both - 1] = uint16_t(both);
      add_pair_ending_at(left);
      add_pair_ending_at(left + both);
    }
  }

  void write(IdWriter& ids) const {
    for (size_t at = 0; at < size_ && ids.fits(); at += b_.starts[at] & kLengthMask) {
      write_symbol(at, at + (b_.starts[at] & kLengthMask), ids);
    }
  }

 private:
  // The pair whose right symbol starts at `right`: both must exist, be free to merge and form a piece.
  void add_pair_ending_at(size_t right) {
    if (right == 0 || right >= size_) return;
    const size_t first = b_.ends[right - 1], second = b_.starts[right];
    const size_t both = first + second;
    if (both > tables_.longest_piece) return;  // also when one is frozen
    const size_t left = right - first;
    const uint32_t value = tables_.pieces.find(text_ + left, both);
    if (value == kNoValue) return;
    if ((value & kUnusedMark) != 0) {
      if (uint16_t* split = find_split(value)) *split = uint16_t(first);
    }
    agenda_.push(uint64_t(tables_.ranks[value & kPieceMask]) << (kSizeBits + kLeftBits) | uint64_t(left) << kSizeBits |
                 both);
  }

  uint16_t* find_split(uint32_t value) const {
    const auto& unused = tables_.unused;
    const auto it = std::lower_bound(unused.begin(), unused.end(), value & kPieceMask);
    if (it == unused.end() || *it != (value & kPieceMask)) return nullptr;
    return b_.splits + (it - unused.begin());
  }

  // An unused piece is written as the two it was last made from anywhere in the text, and these likewise.
  void write_symbol(size_t start, size_t end, IdWriter& ids) const {
    uint16_t pending[kMaxPieceBytes];  // lengths still to write after [start, end); each split leaves less
    size_t depth = 0;
    size_t length = end - start;
    for (;;) {
      const uint32_t value = tables_.pieces.find(text_ + start, length);
      const uint16_t* split = value != kNoValue && (value & kUnusedMark) != 0 ? find_split(value) : nullptr;
      if (split != nullptr && *split != 0 && *split < length && depth < kMaxPieceBytes) {
        pending[depth++] = uint16_t(length - *split);
        length = *split;
        continue;
      }
      ids.add(length, value == kNoValue ? kUnknownPiece : value & kPieceMask);
      if (depth == 0) return;
      start += length;
      length = pending[--depth];
    }
  }

  const BpeTables& tables_;
  const char* text_;
  size_t size_;
  const BpeBuffers& b_;
  Agenda agenda_;
};

}  // namespace

void bpe_encode(const BpeTables& tables, const char* text, size_t size, const BpeBuffers& buffers, IdWriter& ids) {
  Merger merger(tables, text, size, buffers);
  merger.split();
  merger.merge();
  merger.write(ids);
}

}  // namespace dragoman
