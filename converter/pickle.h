// A reader of Python pickles that rebuilds what torch.save writes and nothing else: numbers, texts, tuples, lists,
// dicts, storages and tensors. A pickle is a program for a small stack machine; this machine has nothing to call. Every
// opcode and every name it does not know is refused, by name.
//
// Values lie in one flat list and refer to each other by index: nothing here recurses, however deep or circular the
// pickle is. The number of steps is bounded, and with it the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"

namespace dragoman {

using PickleId = uint32_t;  // index of a value

struct PickleValue {
  enum Kind : uint8_t { kNone, kBool, kInt, kLong, kFloat, kText, kTuple, kList, kDict, kGlobal, kStorage, kTensor };
  Kind kind = kNone;
  int64_t number = 0;           // kBool, kInt; kGlobal: which of the known ones; kTensor: index into tensors()
  std::string_view text;        // kText; kLong: its bytes, the lowest first; kStorage: its key
  std::vector<PickleId> items;  // kTuple, kList; kDict: key, value, key, value, ...
};

struct PickledStorage {
  const char* dtype = "";  // as safetensors names it
  uint64_t elements = 0;
  bool operator==(const PickledStorage&) const = default;  // dtype is one of a table's
};

// A tensor as the pickle describes it. Not yet compared with the storage's size.
struct PickledTensor {
  std::string_view storage;
  uint64_t offset = 0;  // in elements
  std::vector<uint64_t> shape, strides;
};

class Unpickler {
 public:
  // The bytes must outlive this. `name` is the file's, for messages.
  Unpickler(std::string_view bytes, const char* name) : bytes_(bytes), name_(name) {}

  // Runs the pickle that begins at position(). Its value.
  Result<PickleId> load();
  size_t position() const { return at_; }

  const PickleValue& value(PickleId id) const { return values_[id]; }
  const std::vector<PickledTensor>& tensors() const { return tensors_; }
  const std::map<std::string_view, PickledStorage>& storages() const { return storages_; }  // by key

 private:
  friend struct Opcodes;

  bool step();
  // All of these return false after refuse().
  bool refuse(const Error& error);
  bool refuse_damaged(const char* what);  // with the opcode and its place
  bool take(size_t count, std::string_view& bytes);
  bool take_number(size_t bytes, uint64_t& number);
  bool take_text(size_t length_bytes);
  bool take_line(std::string_view& line);
  bool take_long(size_t length_bytes);
  bool push(PickleValue value);
  bool push(PickleValue::Kind kind, int64_t number = 0) { return push({kind, number, {}, {}}); }
  bool push_tuple(size_t count);
  bool pop(PickleId& id);
  bool pop(std::vector<PickleId>& items);  // as many as there is room for
  bool pop_to_mark(std::vector<PickleId>& items);
  bool top(PickleId& id);
  bool extend(PickleValue::Kind kind, const std::vector<PickleId>& items);
  bool remember(uint64_t key);
  bool recall(uint64_t key);
  // What torch puts on the machine (pickle_torch.cpp).
  bool find_global(std::string_view module, std::string_view name);
  bool global();
  bool stack_global();
  bool persistent();
  bool reduce();
  bool rebuild_tensor(const std::vector<PickleId>& arguments, bool v2);
  bool read_extents(PickleId id, std::vector<uint64_t>& extents) const;
  bool build();

  std::string_view bytes_;
  const char* name_;
  size_t at_ = 0;
  size_t opcode_at_ = 0;
  const char* opcode_ = "";  // the one that is running
  size_t steps_ = 0;
  bool stopped_ = false;
  std::vector<PickleValue> values_;
  std::vector<PickleId> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::map<uint64_t, PickleId> memo_;
  std::vector<PickledTensor> tensors_;
  std::map<std::string_view, PickledStorage> storages_;
  std::optional<Error> error_;
};

}  // namespace dragoman
