#include "runtime/normalizer.h"

#include <algorithm>
#include <cstring>

namespace dragoman {
namespace {

// Appends to a fixed buffer; once something did not fit, nothing more is written.
class Writer {
 public:
  Writer(std::span<char> out, std::string_view space) : out_(out), space_(space) {}
  bool fits() const { return fits_; }
  size_t size() const { return size_; }

  void put(char c) {
    if (size_ < out_.size()) {
      out_[size_++] = c;
    } else {
      fits_ = false;
    }
  }
  void put_space() {
    for (const char c : space_) put(c);
  }
  // Spaces become the space symbol of the model.
  void put_text(std::string_view text) {
    for (const char c : text) {
      if (c == ' ') {
        put_space();
      } else {
        put(c);
      }
    }
  }
  void remove_trailing_spaces() {
    while (size_ >= space_.size() && std::memcmp(&out_[size_ - space_.size()], space_.data(), space_.size()) == 0) {
      size_ -= space_.size();
    }
  }

 private:
  std::span<char> out_;
  std::string_view space_;
  size_t size_ = 0;
  bool fits_ = true;
};

}  // namespace

std::string_view Normalizer::replacement(uint32_t offset) const {
  if (offset >= replacements_.size()) return {};
  const size_t size = replacements_[offset];
  if (size > replacements_.size() - offset - 1) return {};
  return {reinterpret_cast<const char*>(replacements_.data()) + offset + 1, size};
}

Normalizer::Step Normalizer::step(const char* text, size_t size) const {
  if (!symbols_.empty()) {
    const auto symbol = symbols_.longest_prefix(text, std::min<size_t>(size, header_->longest_symbol));
    if (symbol.size != 0) return {{text, symbol.size}, symbol.size, false};
  }
  if (!rules_.empty()) {
    const auto rule = rules_.longest_prefix(text, std::min<size_t>(size, header_->longest_rule));
    if (rule.size != 0) return {replacement(rule.value), rule.size, false};
  }
  const size_t valid = utf8_valid(text, size);
  if (valid == 0) return {"\xEF\xBF\xBD", 1, true};
  return {{text, valid}, valid, false};
}

Normalizer::Output Normalizer::run(std::string_view text, std::span<char> out) const {
  const uint32_t flags = header_->flags;
  const bool squeeze = (flags & kRemoveExtraWhitespace) != 0;
  const bool suffix = (flags & kWhitespaceIsSuffix) != 0;
  const std::string_view space =
      (flags & kEscapeWhitespace) != 0 ? std::string_view(kSpaceSymbol, kSpaceSymbolBytes) : std::string_view(" ");
  Writer writer(out, space);
  bool invalid = false;

  const char* in = text.data();
  const char* const end = in + text.size();
  while (squeeze && in != end) {
    const Step next = step(in, size_t(end - in));
    if (next.text != " ") break;
    in += next.consumed;
  }
  if (in == end) return {};

  if ((flags & kAddDummyPrefix) != 0 && !suffix) writer.put_space();
  bool after_space = squeeze;
  while (in != end && writer.fits()) {
    const auto byte = uint8_t(*in);
    const bool plain = byte < 128 && header_->plain[byte] != 0 && (in + 1 == end || uint8_t(in[1]) < 128);
    const Step next = plain ? Step{{in, 1}, 1, false} : step(in, size_t(end - in));
    std::string_view piece = next.text;
    while (after_space && !piece.empty() && piece.front() == ' ') piece.remove_prefix(1);
    if (!piece.empty()) {
      writer.put_text(piece);
      after_space = squeeze && piece.back() == ' ';
    }
    invalid |= next.invalid;
    in += next.consumed;
  }
  if (squeeze) writer.remove_trailing_spaces();
  if ((flags & kAddDummyPrefix) != 0 && suffix) writer.put_space();
  return {writer.size(), writer.fits(), invalid};
}

}  // namespace dragoman
