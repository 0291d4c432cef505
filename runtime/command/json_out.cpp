#include "runtime/command/json_out.h"

#include <cstring>

namespace dragoman::command {
namespace {

// A character that cannot stand in a JSON string as it is. `escape` has room for 6 bytes.
std::string_view escape_character(unsigned char c, char* escape) {
  static constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      std::memcpy(escape, "\\u00", 4);
      escape[4] = kHex[c >> 4];
      escape[5] = kHex[c & 15];
      return {escape, 6};
  }
}

bool is_plain(unsigned char c) {
  return c >= ' ' && c < 0x7F && c != '"' && c != '\\';
}

}  // namespace

void Keep::put(std::string_view text) {
  overflow_ |= text.size() > buffer_.size() - used_;
  if (overflow_) return;
  std::memcpy(buffer_.data() + used_, text.data(), text.size());
  used_ += text.size();
}

size_t utf8_sequence(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0), second = byte(1);
  if (text.empty()) return 0;
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && second < 0xA0, surrogate = first == 0xED && second > 0x9F;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && second < 0x90, beyond = first == 0xF4 && second > 0x8F;
    return follows(1) && follows(2) && follows(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

template <class Sink>
void put_json_text(Sink& sink, std::string_view text) {
  char escape[6];
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && is_plain(static_cast<unsigned char>(text[plain]))) ++plain;
    sink.put(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    const size_t length = utf8_sequence(text);
    if (length == 1) {
      sink.put(escape_character(static_cast<unsigned char>(text[0]), escape));
    } else {
      sink.put(length ? text.substr(0, length) : std::string_view("\xEF\xBF\xBD"));
    }
    text.remove_prefix(length ? length : 1);
  }
}

template void put_json_text(TextOut& sink, std::string_view text);
template void put_json_text(Keep& sink, std::string_view text);

std::span<const FlagName> flag_names() {
  static constexpr FlagName kNames[] = {
      {"length_cap", "length cap"},
      {"loop", "repetition loop"},
      {"loop_cut", "loop cut"},
      {"split", "split into parts"},
      {"unknown", "unknown characters"},
      {"invalid_utf8", "not UTF-8"},
      {"stopped", "stopped"},
      {"numeric", "no finite score (damaged model: run dragoman verify)"},
  };
  return kNames;
}

}  // namespace dragoman::command
