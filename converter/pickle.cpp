#include "converter/pickle.h"

#include <cstring>
#include <span>

namespace dragoman {
namespace {

// A tensor takes some 50 steps: this is enough for 20,000 of them.
constexpr size_t kMaxSteps = 1 << 20;

struct Opcode {
  uint8_t code;
  const char* name;
  bool (*run)(Unpickler& u) = nullptr;  // nullptr: refused
};

}  // namespace

// What the machine does at each opcode.
struct Opcodes {
  using U = Unpickler;
  using Value = PickleValue;
  using Items = std::vector<PickleId>;

  static bool skip(U& u, size_t bytes) {
    std::string_view skipped;
    return u.take(bytes, skipped);
  }
  static bool put(U& u, size_t key_bytes) {
    uint64_t key = 0;
    return u.take_number(key_bytes, key) && u.remember(key);
  }
  static bool get(U& u, size_t key_bytes) {
    uint64_t key = 0;
    return u.take_number(key_bytes, key) && u.recall(key);
  }
  static bool whole(U& u, size_t bytes) {
    uint64_t number = 0;
    if (!u.take_number(bytes, number)) return false;
    return u.push(Value::kInt, bytes == 4 ? static_cast<int32_t>(number) : static_cast<int64_t>(number));
  }
  static bool append(U& u, Value::Kind kind, size_t count) {
    Items items(count);
    return u.pop(items) && u.extend(kind, items);
  }
  static bool append_marked(U& u, Value::Kind kind) {
    Items items;
    return u.pop_to_mark(items) && u.extend(kind, items);
  }
  static bool mark(U& u) {
    u.marks_.push_back(u.stack_.size());
    return true;
  }
  static bool tuple(U& u) {
    Value value{Value::kTuple, 0, {}, {}};
    return u.pop_to_mark(value.items) && u.push(std::move(value));
  }

  static constexpr Opcode kKnown[] = {
      {0x80, "PROTO", [](U& u) { return skip(u, 1); }},
      {0x95, "FRAME", [](U& u) { return skip(u, 8); }},
      {'.', "STOP", [](U& u) { return u.stopped_ = true; }},
      {'(', "MARK", mark},
      // Plain values. No number of a tensor's description is a fraction.
      {'N', "NONE", [](U& u) { return u.push(Value::kNone); }},
      {0x88, "NEWTRUE", [](U& u) { return u.push(Value::kBool, 1); }},
      {0x89, "NEWFALSE", [](U& u) { return u.push(Value::kBool, 0); }},
      {'K', "BININT1", [](U& u) { return whole(u, 1); }},
      {'M', "BININT2", [](U& u) { return whole(u, 2); }},
      {'J', "BININT", [](U& u) { return whole(u, 4); }},
      {0x8a, "LONG1", [](U& u) { return u.take_long(1); }},
      {0x8b, "LONG4", [](U& u) { return u.take_long(4); }},
      {'G', "BINFLOAT", [](U& u) { return skip(u, 8) && u.push(Value::kFloat); }},
      {'X', "BINUNICODE", [](U& u) { return u.take_text(4); }},
      {0x8c, "SHORT_BINUNICODE", [](U& u) { return u.take_text(1); }},
      {0x8d, "BINUNICODE8", [](U& u) { return u.take_text(8); }},
      {'U', "SHORT_BINSTRING", [](U& u) { return u.take_text(1); }},
      {'T', "BINSTRING", [](U& u) { return u.take_text(4); }},
      // Containers.
      {')', "EMPTY_TUPLE", [](U& u) { return u.push_tuple(0); }},
      {0x85, "TUPLE1", [](U& u) { return u.push_tuple(1); }},
      {0x86, "TUPLE2", [](U& u) { return u.push_tuple(2); }},
      {0x87, "TUPLE3", [](U& u) { return u.push_tuple(3); }},
      {'t', "TUPLE", tuple},
      {']', "EMPTY_LIST", [](U& u) { return u.push(Value::kList); }},
      {'a', "APPEND", [](U& u) { return append(u, Value::kList, 1); }},
      {'e', "APPENDS", [](U& u) { return append_marked(u, Value::kList); }},
      {'}', "EMPTY_DICT", [](U& u) { return u.push(Value::kDict); }},
      {'s', "SETITEM", [](U& u) { return append(u, Value::kDict, 2); }},
      {'u', "SETITEMS", [](U& u) { return append_marked(u, Value::kDict); }},
      // The memo.
      {'q', "BINPUT", [](U& u) { return put(u, 1); }},
      {'r', "LONG_BINPUT", [](U& u) { return put(u, 4); }},
      {0x94, "MEMOIZE", [](U& u) { return u.remember(u.memo_.size()); }},
      {'h', "BINGET", [](U& u) { return get(u, 1); }},
      {'j', "LONG_BINGET", [](U& u) { return get(u, 4); }},
      // Names, and what is made with them.
      {'c', "GLOBAL", [](U& u) { return u.global(); }},
      {0x93, "STACK_GLOBAL", [](U& u) { return u.stack_global(); }},
      {'Q', "BINPERSID", [](U& u) { return u.persistent(); }},
      {'R', "REDUCE", [](U& u) { return u.reduce(); }},
      {'b', "BUILD", [](U& u) { return u.build(); }},
  };

  // Known to Python, never in saved weights. The first two call what they name.
  static constexpr Opcode kRefused[] = {{'i', "INST"},
                                        {'o', "OBJ"},
                                        {'0', "POP"},
                                        {'1', "POP_MARK"},
                                        {'2', "DUP"},
                                        {'F', "FLOAT"},
                                        {'I', "INT"},
                                        {'L', "LONG"},
                                        {'S', "STRING"},
                                        {'V', "UNICODE"},
                                        {'P', "PERSID"},
                                        {'p', "PUT"},
                                        {'g', "GET"},
                                        {'l', "LIST"},
                                        {'d', "DICT"},
                                        {'B', "BINBYTES"},
                                        {'C', "SHORT_BINBYTES"},
                                        {0x81, "NEWOBJ"},
                                        {0x82, "EXT1"},
                                        {0x83, "EXT2"},
                                        {0x84, "EXT4"},
                                        {0x8e, "BINBYTES8"},
                                        {0x8f, "EMPTY_SET"},
                                        {0x90, "ADDITEMS"},
                                        {0x91, "FROZENSET"},
                                        {0x92, "NEWOBJ_EX"},
                                        {0x96, "BYTEARRAY8"},
                                        {0x97, "NEXT_BUFFER"},
                                        {0x98, "READONLY_BUFFER"}};

  static const Opcode* find(uint8_t code) {
    for (const std::span<const Opcode> table : {std::span<const Opcode>(kKnown), std::span<const Opcode>(kRefused)})
      for (const Opcode& opcode : table)
        if (opcode.code == code) return &opcode;
    return nullptr;
  }
};

Result<PickleId> Unpickler::load() {
  stack_.clear();
  marks_.clear();
  memo_.clear();
  stopped_ = false;
  while (!stopped_)
    if (!step()) return *error_;
  PickleId value = 0;
  if (!top(value)) return *error_;
  return value;
}

bool Unpickler::step() {
  if (at_ >= bytes_.size())
    return refuse(fail("%s: the pickle is cut short at byte %zu; download the file again", name_, at_));
  if (++steps_ > kMaxSteps)
    return refuse(fail("%s: the pickle takes more than %zu steps: it is no model's", name_, kMaxSteps));
  opcode_at_ = at_;
  const auto code = static_cast<uint8_t>(bytes_[at_++]);
  const Opcode* opcode = Opcodes::find(code);
  if (!opcode)
    return refuse(
        fail("%s: byte %zu of the pickle is 0x%02x, which is no opcode: the file is damaged; download it "
             "again",
             name_, opcode_at_, code));
  opcode_ = opcode->name;
  if (code == 'i' && !global()) return false;  // names what it would have called
  if (!opcode->run)
    return refuse(
        fail("%s: the pickle has the opcode %s (byte %zu), which no weights need: refused, nothing was run; "
             "save the model's state_dict() with torch.save, or fetch model.safetensors",
             name_, opcode_, opcode_at_));
  return opcode->run(*this);
}

bool Unpickler::refuse(const Error& error) {
  if (!error_) error_ = error;
  return false;
}

bool Unpickler::refuse_damaged(const char* what) {
  return refuse(fail("%s: %s (%s at byte %zu of the pickle): the file is damaged; download it again", name_, what,
                     opcode_, opcode_at_));
}

bool Unpickler::take(size_t count, std::string_view& bytes) {
  if (count > bytes_.size() - at_)
    return refuse(fail("%s: the pickle is cut short at byte %zu; download the file again", name_, bytes_.size()));
  bytes = bytes_.substr(at_, count);
  at_ += count;
  return true;
}

bool Unpickler::take_number(size_t bytes, uint64_t& number) {
  std::string_view raw;
  if (!take(bytes, raw)) return false;
  number = 0;
  std::memcpy(&number, raw.data(), bytes);  // little-endian, as this whole project
  return true;
}

bool Unpickler::take_text(size_t length_bytes) {
  uint64_t length = 0;
  PickleValue text{PickleValue::kText, 0, {}, {}};
  return take_number(length_bytes, length) && take(length, text.text) && push(std::move(text));
}

bool Unpickler::take_line(std::string_view& line) {
  const size_t end = bytes_.find('\n', at_);
  if (end == std::string_view::npos) return take(bytes_.size(), line);  // says that it is cut short
  line = bytes_.substr(at_, end - at_);
  at_ = end + 1;
  return true;
}

// Two's complement. What does not fit 64 bits stays bytes: torch's magic number is such a one.
bool Unpickler::take_long(size_t length_bytes) {
  uint64_t length = 0;
  PickleValue value{PickleValue::kLong, 0, {}, {}};
  if (!take_number(length_bytes, length) || !take(length, value.text)) return false;
  if (length > 8) return push(std::move(value));
  const bool negative = length > 0 && (value.text.back() & 0x80) != 0;
  uint64_t number = negative ? ~uint64_t{0} : 0;
  std::memcpy(&number, value.text.data(), length);
  return push(PickleValue::kInt, static_cast<int64_t>(number));
}

bool Unpickler::push(PickleValue value) {
  stack_.push_back(static_cast<PickleId>(values_.size()));
  values_.push_back(std::move(value));
  return true;
}

bool Unpickler::push_tuple(size_t count) {
  PickleValue tuple{PickleValue::kTuple, 0, {}, std::vector<PickleId>(count)};
  return pop(tuple.items) && push(std::move(tuple));
}

bool Unpickler::pop(PickleId& id) {
  if (!top(id)) return false;
  stack_.pop_back();
  return true;
}

bool Unpickler::pop(std::vector<PickleId>& items) {
  for (size_t i = items.size(); i-- > 0;)
    if (!pop(items[i])) return false;
  return true;
}

bool Unpickler::pop_to_mark(std::vector<PickleId>& items) {
  if (marks_.empty()) return refuse_damaged("the pickle ends a group that it has not begun");
  items.assign(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
  stack_.resize(marks_.back());
  marks_.pop_back();
  return true;
}

bool Unpickler::top(PickleId& id) {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()))
    return refuse_damaged("the pickle takes more from its stack than it has put there");
  id = stack_.back();
  return true;
}

// Adds to the list or dict on top of the stack.
bool Unpickler::extend(PickleValue::Kind kind, const std::vector<PickleId>& items) {
  PickleId id = 0;
  if (!top(id)) return false;
  if (values_[id].kind != kind) return refuse_damaged("the pickle adds to something that holds nothing");
  if (kind == PickleValue::kDict && items.size() % 2 != 0)
    return refuse_damaged("the pickle has a key without a value");
  std::vector<PickleId>& into = values_[id].items;
  into.insert(into.end(), items.begin(), items.end());
  return true;
}

bool Unpickler::remember(uint64_t key) {
  PickleId id = 0;
  if (!top(id)) return false;
  memo_[key] = id;
  return true;
}

bool Unpickler::recall(uint64_t key) {
  const auto found = memo_.find(key);
  if (found == memo_.end()) return refuse_damaged("the pickle asks for a memo that it has not set");
  stack_.push_back(found->second);
  return true;
}

}  // namespace dragoman
