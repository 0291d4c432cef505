#include "converter/zip.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "converter/file.h"

namespace dragoman {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint32_t kLocalSignature = 0x04034b50, kCentralSignature = 0x02014b50, kEndSignature = 0x06054b50,
                   kEnd64Signature = 0x06064b50, kLocator64Signature = 0x07064b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr uint32_t kSaturated = 0xffffffff;  // the number is in the zip64 field
constexpr uint16_t kZip64Field = 1;

// A number at `at`, which must lie inside.
template <class T>
T number(Bytes bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

bool inside(Bytes bytes, uint64_t at, uint64_t size) {
  return at <= bytes.size() && size <= bytes.size() - at;
}

bool has_signature(Bytes file, uint64_t at, size_t size, uint32_t signature) {
  return inside(file, at, size) && number<uint32_t>(file, at) == signature;
}

struct CentralDirectory {
  uint64_t entries = 0, bytes = 0, offset = 0;
};

Result<CentralDirectory> find_directory(Bytes file, const char* name) {
  const size_t end = file.size() < kEndBytes ? 0 : file.size() - kEndBytes;
  if (!has_signature(file, end, kEndBytes, kEndSignature))
    return fail(
        "%s is cut short: the directory at the end of a zip archive is missing (%zu bytes are there); "
        "download it again",
        name, file.size());
  CentralDirectory directory{number<uint16_t>(file, end + 10), number<uint32_t>(file, end + 12),
                             number<uint32_t>(file, end + 16)};
  uint64_t directory_end = end;
  if (end >= kLocator64Bytes && has_signature(file, end - kLocator64Bytes, kLocator64Bytes, kLocator64Signature)) {
    const auto end64 = number<uint64_t>(file, end - kLocator64Bytes + 8);
    if (!has_signature(file, end64, kEnd64Bytes, kEnd64Signature))
      return fail("%s: the zip64 record at its end points nowhere: it is damaged; download it again", name);
    directory = {number<uint64_t>(file, end64 + 32), number<uint64_t>(file, end64 + 40),
                 number<uint64_t>(file, end64 + 48)};
    directory_end = end64;
  }
  if (!inside(file.first(directory_end), directory.offset, directory.bytes) ||
      directory.entries > directory.bytes / kCentralBytes)
    return fail("%s: the zip directory does not lie inside the file: it is damaged; download it again", name);
  return directory;
}

struct CentralEntry {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t compressed = 0, size = 0, header = 0;  // header: where the entry begins in the file
  uint64_t record_bytes = 0;                      // in the directory
};

// Numbers too large for 32 bits stand in a field of their own, in this order, and only those.
bool read_zip64(Bytes extra, CentralEntry& entry) {
  while (extra.size() >= 4) {
    const auto id = number<uint16_t>(extra, 0), bytes = number<uint16_t>(extra, 2);
    extra = extra.subspan(4);
    if (bytes > extra.size()) return false;
    Bytes field = extra.first(bytes);
    extra = extra.subspan(bytes);
    if (id != kZip64Field) continue;
    for (uint64_t* value : {&entry.size, &entry.compressed, &entry.header}) {
      if (*value != kSaturated) continue;
      if (field.size() < 8) return false;
      *value = number<uint64_t>(field, 0);
      field = field.subspan(8);
    }
    return true;
  }
  return entry.size != kSaturated && entry.compressed != kSaturated && entry.header != kSaturated;
}

// One record of the directory, from its first byte. False where it is malformed.
bool read_central(Bytes record, CentralEntry& entry) {
  if (!has_signature(record, 0, kCentralBytes, kCentralSignature)) return false;
  const auto name = number<uint16_t>(record, 28), extra = number<uint16_t>(record, 30);
  const auto comment = number<uint16_t>(record, 32);
  entry = {.name = {},
           .flags = number<uint16_t>(record, 8),
           .method = number<uint16_t>(record, 10),
           .crc = number<uint32_t>(record, 16),
           .compressed = number<uint32_t>(record, 20),
           .size = number<uint32_t>(record, 24),
           .header = number<uint32_t>(record, 42),
           .record_bytes = kCentralBytes + uint64_t{name} + extra + comment};
  if (entry.record_bytes > record.size()) return false;
  entry.name.assign(reinterpret_cast<const char*>(record.data()) + kCentralBytes, name);
  return read_zip64(record.subspan(kCentralBytes + name, extra), entry);
}

// The entry's bytes, found through the header before them. Its sizes are not looked at: writers that stream, as torch
// does, leave them zero. Null data where it lies.
Bytes find_data(Bytes file, const CentralEntry& entry) {
  if (!has_signature(file, entry.header, kLocalBytes, kLocalSignature)) return {};
  const auto name = number<uint16_t>(file, entry.header + 26), extra = number<uint16_t>(file, entry.header + 28);
  const uint64_t begin = entry.header + kLocalBytes + name + extra;
  if (name != entry.name.size() || !inside(file, begin, entry.compressed)) return {};
  if (std::memcmp(file.data() + entry.header + kLocalBytes, entry.name.data(), name) != 0) return {};
  return file.subspan(begin, entry.compressed);
}

struct Range {
  uint64_t begin, end;
  bool operator<(const Range& other) const { return begin < other.begin; }
};

// No byte belongs to two entries: a small file that claims to hold much would cost hours to check.
bool overlap(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end) return true;
  return false;
}

// kCrc[k][b]: the checksum of byte b followed by k zeros, so that eight bytes take eight look-ups that do not wait for
// each other.
constexpr auto kCrc = [] {
  std::array<std::array<uint32_t, 256>, 8> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    table[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      table[k][byte] = table[k - 1][byte] >> 8 ^ table[0][table[k - 1][byte] & 255];
  return table;
}();

uint32_t crc_of_piece(Bytes bytes, uint32_t crc) {
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    const uint64_t word = number<uint64_t>(bytes, i) ^ crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kCrc[7 - k][word >> (8 * k) & 255];
  }
  for (; i < bytes.size(); ++i) crc = crc >> 8 ^ kCrc[0][(crc ^ static_cast<uint32_t>(bytes[i])) & 255];
  return crc;
}

}  // namespace

bool starts_like_zip(Bytes file) {
  return has_signature(file, 0, 4, kLocalSignature);
}

Result<ZipDirectory> parse_zip(Bytes file, const char* name) {
  const Result<CentralDirectory> found = find_directory(file, name);
  if (!found) return found.error();
  Bytes records = file.subspan(found->offset, found->bytes);
  const Bytes before = file.first(found->offset);  // where all entries lie
  ZipDirectory directory;
  std::vector<Range> ranges;
  for (uint64_t i = 0; i < found->entries; ++i) {
    CentralEntry entry;
    if (!read_central(records, entry))
      return fail("%s: record %llu of the zip directory is malformed: the file is damaged; download it again", name,
                  static_cast<unsigned long long>(i));
    records = records.subspan(entry.record_bytes);
    const Bytes data = find_data(before, entry);
    const std::string label = printable(entry.name);
    if (data.data() == nullptr)
      return fail("%s: entry %s is not where the zip directory says: the file is damaged; download it again", name,
                  label.c_str());
    const bool stored = entry.method == 0 && entry.compressed == entry.size && (entry.flags & 1) == 0;
    ranges.push_back({entry.header, static_cast<uint64_t>(data.data() - file.data()) + data.size()});
    if (!directory.emplace(std::move(entry.name), ZipEntry{entry.crc, stored, data}).second)
      return fail("%s: the zip directory lists %s twice", name, label.c_str());
  }
  if (overlap(ranges)) return fail("%s: entries of the zip archive overlap: no program writes such a file", name);
  return directory;
}

Status check_entry(const ZipEntry& zipped, const std::string& entry, const char* name, const Seen& seen) {
  const std::string label = printable(entry);
  if (!zipped.stored)
    return fail(
        "%s: %s is compressed or encrypted, but torch.save stores it as it is: somebody packed this archive "
        "again; fetch the original",
        name, label.c_str());
  const uint32_t crc = crc32(zipped.data, seen);
  if (crc != zipped.crc)
    return fail("%s: %s is damaged (its checksum is %08x, the archive says %08x); download the file again", name,
                label.c_str(), crc, zipped.crc);
  return Done{};
}

uint32_t crc32(Bytes bytes, const Seen& seen) {
  constexpr size_t kPiece = 16 << 20;
  uint32_t crc = ~uint32_t{0};
  for (; bytes.size() > kPiece; bytes = bytes.subspan(kPiece)) {
    crc = crc_of_piece(bytes.first(kPiece), crc);
    if (seen) seen(bytes.first(kPiece));
  }
  crc = crc_of_piece(bytes, crc);
  if (seen) seen(bytes);
  return ~crc;
}

}  // namespace dragoman
