// Writers of weight files as other programs write them: safetensors, and both forms of torch.save. And the pieces of
// pickles and zip archives, to write such as no program would.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "converter/tensor.h"

namespace dragoman::test {

std::string safetensors_bytes(const TensorMap& tensors);

// The lowest byte first.
std::string little(uint64_t value, size_t bytes);

// Each is a few opcodes that leave one value on the stack.
namespace pickle {
std::string text(const std::string& value);
std::string number(int64_t value);
std::string tuple(const std::vector<int64_t>& numbers);
std::string global(const std::string& module, const std::string& name);
std::string ordered_dict();
// A whole pickle that leaves {"x": value}.
std::string dict_of_x(const std::string& value);
}  // namespace pickle

struct TorchStorage {
  std::string key, type;  // "0", "FloatStorage"
  int64_t elements = 0;
  std::string bytes;
  std::string pickled(bool in_stream = false) const;
};

struct TorchTensor {
  std::string name;
  size_t storage = 0;  // index
  int64_t offset = 0;
  std::vector<int64_t> shape, strides;
  std::string pickled(const TorchStorage& storage, bool in_stream = false) const;
};

struct TorchState {
  std::vector<TorchStorage> storages;
  std::vector<TorchTensor> tensors;
};

// Each tensor in a storage of its own.
TorchState torch_state(const TensorMap& tensors);
// Both with _metadata, as a module's state_dict() has it.
std::string torch_archive(const TorchState& state, bool zip64 = false);
std::string torch_stream(const TorchState& state);
// A zip archive with this data.pkl and these storages; a stream with this pickle in place of the dict's.
std::string torch_archive(const std::string& pickle, const std::vector<TorchStorage>& storages, bool zip64 = false);
std::string torch_stream(const std::string& pickle, const std::vector<TorchStorage>& storages);

struct ZipFile {
  std::string name, bytes;
  uint16_t method = 0;  // what the archive says; the bytes are written as they are
};
// zip64: all numbers that can be are in zip64 fields.
std::string zip_bytes(const std::vector<ZipFile>& files, bool zip64 = false);
// Makes the checksums right again, as an attacker would, as far as the structure still holds.
void mend_crcs(std::span<std::byte> file);

}  // namespace dragoman::test
