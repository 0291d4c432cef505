// A file as bytes in memory: mapped read-only and shared, or read once into private memory (`preload`) for cards that
// may fail: an I/O error under a mapping ends the process.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/result.h"

namespace dragoman {

struct MappedFile {
  std::span<const std::byte> bytes;  // page-aligned
};

Result<MappedFile> map_file(const char* path, bool preload = false);
void unmap_file(MappedFile& file);

}  // namespace dragoman
