// libFuzzer: any bytes on standard input, through a small buffer, taken in parts of any size. The lines must be those
// that a plain splitting of the bytes gives.
//   data: buffer size (1 byte), what is enough to show (1 byte), number of part sizes n (1 byte), n part sizes, input
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/command/lines_in.h"

namespace {

std::vector<std::string> plain_lines(std::string_view input) {
  if (input.starts_with("\xEF\xBB\xBF")) input.remove_prefix(3);
  std::vector<std::string> lines;
  while (!input.empty()) {
    const size_t end = input.find('\n');
    std::string_view line = input.substr(0, end);
    input.remove_prefix(std::min(line.size() + 1, input.size()));
    if (end != input.npos && line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
  }
  return lines;
}

int file_of(std::string_view input) {
  static const int fd = ::memfd_create("input", 0);
  if (fd < 0 || ::ftruncate(fd, 0) != 0 || ::lseek(fd, 0, SEEK_SET) != 0) std::abort();
  if (::write(fd, input.data(), input.size()) != static_cast<ssize_t>(input.size())) std::abort();
  if (::lseek(fd, 0, SEEK_SET) != 0) std::abort();
  return fd;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3 || size - 3 < data[2]) return 0;
  const size_t buffer_bytes = size_t{16} + data[0], enough = data[1];
  const std::string_view sizes(reinterpret_cast<const char*>(data) + 3, data[2]);
  const std::string_view input(reinterpret_cast<const char*>(data) + 3 + data[2], size - 3 - data[2]);

  std::vector<char> buffer(buffer_bytes);
  dragoman::command::LineReader reader(file_of(input), buffer);
  std::vector<std::string> lines;
  std::string current;
  for (size_t turn = 0; !reader.finished(); ++turn) {
    dragoman::command::Line line;
    if (!reader.peek(enough, line)) {
      reader.wait();
      if (turn > 4 * size + 64) std::abort();  // no progress
      continue;
    }
    if (line.bytes.data() == nullptr) std::abort();
    if (!line.complete && line.bytes.empty()) std::abort();
    const size_t wanted = sizes.empty() ? SIZE_MAX : static_cast<uint8_t>(sizes[turn % sizes.size()]) + size_t{1};
    const size_t used = std::min(line.bytes.size(), wanted);
    current += line.bytes.substr(0, used);
    if (reader.number() != lines.size() + 1) std::abort();
    reader.take(used);
    if (!line.complete || used < line.bytes.size()) continue;
    reader.next();
    lines.push_back(current);
    current.clear();
  }
  if (!current.empty() || lines != plain_lines(input)) std::abort();
  return 0;
}
