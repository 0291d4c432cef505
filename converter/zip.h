// The directory of a zip archive (with zip64), as far as torch.save uses the format. Hostile: afterwards every entry's
// bytes lie inside the file, no two entries overlap and no two have the same name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "converter/file.h"
#include "runtime/result.h"

namespace dragoman {

struct ZipEntry {
  uint32_t crc = 0;
  bool stored = false;              // as it is: neither compressed nor encrypted
  std::span<const std::byte> data;  // in the file
};

using ZipDirectory = std::map<std::string, ZipEntry>;

// The bytes must outlive the result. `name` is used in messages. Only the directory is looked at, not the data.
Result<ZipDirectory> parse_zip(std::span<const std::byte> file, const char* name);

bool starts_like_zip(std::span<const std::byte> file);

// The entry's bytes, found undamaged; else why not. `entry` is its name, for messages.
Status check_entry(const ZipEntry& zipped, const std::string& entry, const char* name, const Seen& seen = {});

// The checksum of zip archives (reflected polynomial 0xedb88320).
uint32_t crc32(std::span<const std::byte> bytes, const Seen& seen = {});

}  // namespace dragoman
