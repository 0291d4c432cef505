// The names torch.save puts into a pickle, and what they make.
#include <string>

#include "converter/file.h"
#include "converter/pickle.h"
#include "converter/tensor.h"

namespace dragoman {
namespace {

using Value = PickleValue;

enum class Known { kOrderedDict, kTensor, kTensorV2, kParameter, kStorage };

struct KnownGlobal {
  const char *module, *name;
  Known known;
  const char* dtype = "";
};

constexpr KnownGlobal kGlobals[] = {
    {"collections", "OrderedDict", Known::kOrderedDict},      {"torch._utils", "_rebuild_tensor", Known::kTensor},
    {"torch._utils", "_rebuild_tensor_v2", Known::kTensorV2}, {"torch._utils", "_rebuild_parameter", Known::kParameter},
    {"torch", "FloatStorage", Known::kStorage, "F32"},        {"torch", "HalfStorage", Known::kStorage, "F16"},
    {"torch", "BFloat16Storage", Known::kStorage, "BF16"},    {"torch", "DoubleStorage", Known::kStorage, "F64"},
    {"torch", "LongStorage", Known::kStorage, "I64"},         {"torch", "IntStorage", Known::kStorage, "I32"},
    {"torch", "ShortStorage", Known::kStorage, "I16"},        {"torch", "CharStorage", Known::kStorage, "I8"},
    {"torch", "ByteStorage", Known::kStorage, "U8"},          {"torch", "BoolStorage", Known::kStorage, "BOOL"},
};

// Names of the libraries that train models: a whole model was saved, not only its weights.
bool of_training(std::string_view module) {
  const std::string_view package = module.substr(0, module.find('.'));
  return package == "torch" || package == "transformers" || package == "numpy";
}

}  // namespace

bool Unpickler::find_global(std::string_view module, std::string_view name) {
  for (size_t i = 0; i < std::size(kGlobals); ++i)
    if (kGlobals[i].module == module && kGlobals[i].name == name) return push(Value::kGlobal, static_cast<int64_t>(i));
  const std::string label = printable(std::string(module) + "." + std::string(name));
  if (of_training(module))
    return refuse(
        fail("%s holds a %s, which is more than plain weights: refused, nothing was run; save the model's "
             "state_dict() with torch.save, or fetch model.safetensors",
             name_, label.c_str()));
  return refuse(
      fail("%s asks to run %s, which no weights need: refused, nothing was run; do not open this file with "
           "other programs, fetch model.safetensors instead",
           name_, label.c_str()));
}

bool Unpickler::global() {
  std::string_view module, name;
  return take_line(module) && take_line(name) && find_global(module, name);
}

bool Unpickler::stack_global() {
  PickleId name = 0, module = 0;
  if (!pop(name) || !pop(module)) return false;
  if (values_[module].kind != Value::kText || values_[name].kind != Value::kText)
    return refuse_damaged("the pickle names something that is not a name");
  return find_global(values_[module].text, values_[name].text);
}

// ("storage", type, key, location, elements), in old files also a view of another storage, which is None.
bool Unpickler::persistent() {
  PickleId id = 0;
  if (!pop(id)) return false;
  const std::vector<PickleId>& items = values_[id].items;
  const auto item = [&](size_t i) -> const Value& { return values_[items[i]]; };
  const bool plain = values_[id].kind == Value::kTuple && (items.size() == 5 || items.size() == 6) &&
                     item(0).kind == Value::kText && item(0).text == "storage" && item(1).kind == Value::kGlobal &&
                     kGlobals[item(1).number].known == Known::kStorage && item(2).kind == Value::kText &&
                     item(4).kind == Value::kInt && item(4).number >= 0 &&
                     (items.size() == 5 || item(5).kind == Value::kNone);
  if (!plain)
    return refuse(
        fail("%s: the pickle describes a storage in a way this reader does not know (byte %zu): save the "
             "model's state_dict() again with a newer torch, or fetch model.safetensors",
             name_, opcode_at_));
  const std::string_view key = item(2).text;
  const PickledStorage storage{kGlobals[item(1).number].dtype, static_cast<uint64_t>(item(4).number)};
  if (storages_.emplace(key, storage).first->second != storage)
    return refuse_damaged("the pickle describes a storage in two ways");
  return push({Value::kStorage, 0, key, {}});
}

// The only calls there are, and each makes one of our own values.
bool Unpickler::reduce() {
  PickleId tuple = 0, callee = 0;
  if (!pop(tuple) || !pop(callee)) return false;
  if (values_[callee].kind != Value::kGlobal || values_[tuple].kind != Value::kTuple)
    return refuse_damaged("the pickle calls something that cannot be called");
  const KnownGlobal& global = kGlobals[values_[callee].number];
  const std::vector<PickleId>& arguments = values_[tuple].items;
  if (global.known == Known::kOrderedDict && arguments.empty()) return push(Value::kDict);
  if (global.known == Known::kTensor || global.known == Known::kTensorV2)
    return rebuild_tensor(arguments, global.known == Known::kTensorV2);
  if (global.known == Known::kParameter && arguments.size() == 3 && values_[arguments[0]].kind == Value::kTensor) {
    stack_.push_back(arguments[0]);  // a parameter is its tensor
    return true;
  }
  return refuse(
      fail("%s: the pickle calls %s.%s in a way this reader does not know (byte %zu): save the model's "
           "state_dict() again with a newer torch, or fetch model.safetensors",
           name_, global.module, global.name, opcode_at_));
}

// (storage, offset, shape, strides), v2: also requires_grad, hooks and, seldom, metadata. Gradients and hooks matter in
// training only; metadata may say that all signs are to be flipped.
bool Unpickler::rebuild_tensor(const std::vector<PickleId>& arguments, bool v2) {
  const auto argument = [&](size_t i) -> const Value& { return values_[arguments[i]]; };
  const bool complete = v2 ? arguments.size() == 6 || arguments.size() == 7 : arguments.size() == 4;
  const bool plain = complete && argument(0).kind == Value::kStorage && argument(1).kind == Value::kInt &&
                     argument(1).number >= 0 &&
                     (arguments.size() < 7 || argument(6).kind == Value::kNone ||
                      (argument(6).kind == Value::kDict && argument(6).items.empty()));
  PickledTensor tensor;
  if (plain) tensor = {argument(0).text, static_cast<uint64_t>(argument(1).number), {}, {}};
  if (!plain || !read_extents(arguments[2], tensor.shape) || !read_extents(arguments[3], tensor.strides) ||
      tensor.shape.size() != tensor.strides.size())
    return refuse(
        fail("%s: the pickle describes a tensor in a way this reader does not know (byte %zu): save the "
             "model's state_dict() again with a newer torch, or fetch model.safetensors",
             name_, opcode_at_));
  tensors_.push_back(std::move(tensor));
  return push(Value::kTensor, static_cast<int64_t>(tensors_.size() - 1));
}

bool Unpickler::read_extents(PickleId id, std::vector<uint64_t>& extents) const {
  const Value& tuple = values_[id];
  if (tuple.kind != Value::kTuple || tuple.items.size() > kMaxRank) return false;
  for (const PickleId item : tuple.items) {
    if (values_[item].kind != Value::kInt || values_[item].number < 0) return false;
    extents.push_back(static_cast<uint64_t>(values_[item].number));
  }
  return true;
}

// Attributes of a dict: torch's _metadata, which matters to code that trains.
bool Unpickler::build() {
  PickleId state = 0, id = 0;
  if (!pop(state) || !top(id)) return false;
  return values_[id].kind == Value::kDict || refuse_damaged("the pickle gives attributes to something that has none");
}

}  // namespace dragoman
