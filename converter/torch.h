// Reader of what torch.save writes (pytorch_model.bin): a dict of tensors, pickled, and their storages as raw data.
//   since torch 1.6: a zip archive of stored entries: NAME/data.pkl, NAME/data/KEY for each storage
//   before:          a stream of five pickles (magic number, version, system, dict, list of storage keys), then for
//   each
//                    key int64 count of elements and the data. It has no checksums.
// Nothing in the file is ever run (converter/pickle.h).
#pragma once

#include <cstddef>
#include <span>

#include "converter/file.h"
#include "converter/tensor.h"
#include "runtime/result.h"

namespace dragoman {

// The file is hostile: afterwards every element of every tensor lies inside its storage, and that inside the file.
// The checksums of a zip archive have been compared. Tensors may share storages: torch saves tied ones so.
// The bytes must outlive the result. `name` is used in messages.
Result<TensorMap> parse_torch(std::span<const std::byte> file, const char* name, const Seen& seen = {});

}  // namespace dragoman
