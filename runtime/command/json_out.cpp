#include "runtime/command/json_out.h"

#include <cstring>

#include "runtime/utf8.h"

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

template <class Sink>
void put_json_text(Sink& sink, std::string_view text) {
  char escape[6];
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && is_plain(static_cast<unsigned char>(text[plain]))) ++plain;
    sink.put(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    const size_t length = utf8_valid(text.data(), text.size());
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
