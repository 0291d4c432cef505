// torch.save's files: good ones of both forms, and such as nobody should be hurt by.
#include "converter/torch.h"

#include <doctest/doctest.h>

#include <cstring>

#include "converter/zip.h"
#include "tests/synthetic.h"
#include "tests/weight_writers.h"

namespace dragoman {
namespace {

using test::little;
using test::torch_archive;
using test::torch_stream;
using test::TorchState;
using test::TorchStorage;
using test::TorchTensor;
using namespace test::pickle;

using Floats = std::vector<float>;

Result<TensorMap> parse(const std::string& file) {
  return parse_torch(std::as_bytes(std::span(file)), "f.bin");
}

std::string raw(const Floats& values) {
  return {reinterpret_cast<const char*>(values.data()), 4 * values.size()};
}

const TorchStorage kSix{"0", "FloatStorage", 6, raw({1, 2, 3, 4, 5, 6})};

// Two tensors share a storage; a third is of another type.
TorchState good_state() {
  return {{kSix, {"k1", "LongStorage", 2, little(7, 8) + little(8, 8)}},
          {{"whole", 0, 0, {2, 3}, {3, 1}}, {"tail", 0, 4, {2}, {1}}, {"ids", 1, 0, {2}, {1}}}};
}

Floats floats_of(const TensorMap& tensors, const char* name) {
  REQUIRE(tensors.contains(name));
  const Result<Floats> values = to_floats(name, tensors.at(name));
  REQUIRE_MESSAGE(values, values.error().text);
  return *values;
}

// Each file must be refused, with a sentence that has this in it.
struct Bad {
  std::string file;
  const char* sentence;
};

void check_refused(const std::vector<Bad>& cases) {
  for (const Bad& bad : cases) {
    CAPTURE(bad.sentence);
    const Result<TensorMap> read = parse(bad.file);
    CHECK_FALSE(read);
    CAPTURE(std::string(read.error().text));
    CHECK(std::strstr(read.error().text, bad.sentence) != nullptr);
  }
}

// One tensor named x of the storage kSix, as this pickle describes it, in both forms.
void check_refused_pickles(const std::vector<Bad>& cases) {
  std::vector<Bad> files;
  for (const Bad& bad : cases) {
    files.push_back({torch_archive(bad.file, {kSix}), bad.sentence});
    files.push_back({torch_stream(bad.file, {kSix}), bad.sentence});
  }
  check_refused(files);
}

std::string pickled(const TorchTensor& tensor, const TorchStorage& storage = kSix) {
  return dict_of_x(tensor.pickled(storage));
}

TEST_CASE("torch: archives, with zip64 or without, and streams are read") {
  const TorchState state = good_state();
  for (const std::string& file : {torch_archive(state), torch_archive(state, true), torch_stream(state)}) {
    const Result<TensorMap> read = parse(file);
    REQUIRE_MESSAGE(read, read.error().text);
    CHECK(read->size() == 3);
    CHECK(read->at("whole").shape == std::vector<uint64_t>{2, 3});
    CHECK(floats_of(*read, "whole") == Floats{1, 2, 3, 4, 5, 6});
    CHECK(floats_of(*read, "tail") == Floats{5, 6});
    // Where it lies: nothing was copied.
    const auto at = reinterpret_cast<const char*>(read->at("tail").data.data());
    CHECK((at >= file.data() && at + 8 <= file.data() + file.size()));
    CHECK(read->at("ids").dtype == "I64");
    const Result<Floats> ids = to_floats("ids", read->at("ids"));
    CHECK_FALSE(ids);
    CHECK(std::strstr(ids.error().text, "tensor ids is stored as I64") != nullptr);
  }
}

TEST_CASE("torch: tensors that lie with gaps, transposed, repeated or empty") {
  const TorchState state{{kSix},
                         {{"transposed", 0, 0, {3, 2}, {1, 3}},
                          {"column", 0, 1, {2, 1}, {3, 1}},
                          {"odd stride of one", 0, 0, {1, 6}, {999, 1}},
                          {"repeated", 0, 2, {2, 2}, {0, 1}},
                          {"scalar", 0, 5, {}, {}},
                          {"empty", 0, 6, {0, 9}, {9, 1}}}};
  const std::string file = torch_archive(state);
  const Result<TensorMap> read = parse(file);
  REQUIRE_MESSAGE(read, read.error().text);
  CHECK(floats_of(*read, "transposed") == Floats{1, 4, 2, 5, 3, 6});
  CHECK(floats_of(*read, "column") == Floats{2, 5});
  CHECK(floats_of(*read, "odd stride of one") == Floats{1, 2, 3, 4, 5, 6});
  CHECK(read->at("odd stride of one").strides.empty());
  CHECK(floats_of(*read, "repeated") == Floats{3, 4, 3, 4});
  CHECK(floats_of(*read, "scalar") == Floats{6});
  CHECK(floats_of(*read, "empty").empty());
}

TEST_CASE("torch: half and bfloat tensors, also with gaps; doubles are refused when asked for") {
  const auto words = [](std::initializer_list<uint16_t> list) {
    std::string bytes;
    for (const uint16_t word : list) bytes += little(word, 2);
    return bytes;
  };
  const TorchState state{{{"h", "HalfStorage", 3, words({0x3c00, 0xc000, 0x7bff})},
                          {"b", "BFloat16Storage", 3, words({0x3f80, 0xc040, 0})},
                          {"d", "DoubleStorage", 1, std::string(8, 0)}},
                         {{"half", 0, 0, {3}, {1}}, {"every second", 1, 0, {2}, {2}}, {"double", 2, 0, {1}, {1}}}};
  const std::string file = torch_stream(state);
  const Result<TensorMap> read = parse(file);
  REQUIRE_MESSAGE(read, read.error().text);
  CHECK(floats_of(*read, "half") == Floats{1, -2, 65504});
  CHECK(floats_of(*read, "every second") == Floats{1, 0});
  const Result<Floats> values = to_floats("double", read->at("double"));
  CHECK_FALSE(values);
  CHECK(std::strstr(values.error().text, "tensor double is stored as F64: only F32, F16 and BF16") != nullptr);
}

TEST_CASE("torch: parameters, tensors of old files, and newer protocols") {
  const TorchTensor tensor{"", 0, 1, {2}, {1}};
  const std::string parameter =
      global("torch._utils", "_rebuild_parameter") + "(" + tensor.pickled(kSix) + "\x88" + ordered_dict() + "tR";
  const std::string old =
      global("torch._utils", "_rebuild_tensor") + "(" + kSix.pickled() + number(1) + tuple({2}) + tuple({1}) + "tR";
  const auto short_text = [](const std::string& value) { return "\x8c" + little(value.size(), 1) + value; };
  const auto stack_global = [&](const char* module, const char* name) {
    return short_text(module) + "\x94" + short_text(name) + "\x94\x93\x94";
  };
  // As protocol 4 writes it: framed, memoized, and the name from the stack.
  const std::string newer = "\x80\x04\x95" + little(1, 8) + "}\x94" + short_text("x") + "\x94" +
                            stack_global("torch._utils", "_rebuild_tensor_v2") + "((" + short_text("storage") +
                            stack_global("torch", "FloatStorage") + short_text("0") + short_text("cpu") + "K\x06tQ" +
                            "K\x01K\x02\x85K\x01\x85\x89" + stack_global("collections", "OrderedDict") + ")R\x94tR" +
                            "\x94s.";
  for (const std::string& pickle : {dict_of_x(parameter), dict_of_x(old), newer}) {
    for (const std::string& file : {torch_archive(pickle, {kSix}), torch_stream(pickle, {kSix})}) {
      const Result<TensorMap> read = parse(file);
      REQUIRE_MESSAGE(read, read.error().text);
      CHECK(floats_of(*read, "x") == Floats{2, 3});
    }
  }
}

TEST_CASE("torch: what torch itself wrote, in every form") {
  for (const char* name : {"archive.bin", "stream.bin", "protocol4.bin"}) {
    CAPTURE(name);
    const std::string file = test::read_bytes(DRAGOMAN_TEST_DATA "/torch/" + std::string(name));
    const Result<TensorMap> read = parse(file);
    REQUIRE_MESSAGE(read, read.error().text);
    CHECK(read->size() == 11);
    CHECK(read->at("shared.weight").shape == std::vector<uint64_t>{3, 2});
    CHECK(floats_of(*read, "shared.weight") == Floats{0, 0.25, 0.5, 0.75, 1, 1.25});
    CHECK(read->at("head.weight").data.data() == read->at("shared.weight").data.data());  // tied
    CHECK(floats_of(*read, "head.bias") == Floats{1, -2, 0.5});
    CHECK(floats_of(*read, "half") == Floats{1, -2, 65504});
    CHECK(floats_of(*read, "bfloat") == Floats{1, -3});
    CHECK(read->at("transposed").shape == std::vector<uint64_t>{3, 2});
    CHECK(floats_of(*read, "transposed") == Floats{0, 3, 1, 4, 2, 5});
    CHECK(floats_of(*read, "tail") == Floats{4, 5});
    CHECK(floats_of(*read, "parameter") == Floats{7});
    CHECK(read->at("double").dtype == "F64");
    CHECK(read->at("mask").dtype == "BOOL");
    CHECK(read->at("position_ids").dtype == "I64");
    for (size_t size = 0; size < file.size(); ++size) CHECK_FALSE(parse(file.substr(0, size)));
  }
}

TEST_CASE("torch: every truncation is refused") {
  for (const std::string& file :
       {torch_archive(good_state()), torch_archive(good_state(), true), torch_stream(good_state())}) {
    REQUIRE(parse(file));
    for (size_t size = 0; size < file.size(); ++size) {
      CAPTURE(size);
      CHECK_FALSE(parse(file.substr(0, size)));
    }
  }
  check_refused({{torch_archive(good_state()).substr(0, 500), "f.bin is cut short: the directory at the end"},
                 {torch_stream(good_state()).substr(0, 500), "the pickle is cut short at byte 500; download"},
                 {torch_stream(good_state()).substr(0, torch_stream(good_state()).size() - 1),
                  "f.bin is cut short inside storage k1; download it again"}});
}

// A zip archive has a checksum of everything we use; what else may change is what nobody looks at.
TEST_CASE("torch: a changed byte of an archive is noticed, or changes nothing") {
  for (const bool zip64 : {false, true}) {
    const std::string good = torch_archive(good_state(), zip64);
    size_t noticed = 0;
    for (size_t at = 0; at < good.size(); ++at) {
      std::string file = good;
      file[at] = static_cast<char>(file[at] ^ 0x10);
      CAPTURE(at);
      const Result<TensorMap> read = parse(file);
      if (!read && ++noticed) continue;
      REQUIRE(read->size() == 3);
      CHECK(floats_of(*read, "whole") == Floats{1, 2, 3, 4, 5, 6});
      CHECK(floats_of(*read, "tail") == Floats{5, 6});
    }
    CHECK(noticed > good.size() / 2);
  }
  std::string file = torch_archive(good_state());
  file[file.find(raw({3}))] ^= 1;
  check_refused({{file, "f.bin: archive/data/0 is damaged (its checksum is "}});
}

TEST_CASE("torch: what is not torch's is refused, each with its sentence") {
  const std::string other = test::zip_bytes({{"word/document.xml", "<w>"}});
  const std::string script =
      test::zip_bytes({{"m/data.pkl", "\x80\x02}."}, {"m/constants.pkl", "\x80\x02)."}, {"m/code/m.py", "pass"}});
  check_refused({
      {"", "is empty"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "f.bin is a git-lfs pointer"},
      {"<!DOCTYPE html><html>", "f.bin is a web page"},
      {"\x89HDF\r\n", "f.bin is neither a zip archive nor a pickle"},
      {"PK", "f.bin is neither a zip archive nor a pickle"},
      {"PK\x03\x04", "f.bin is cut short: the directory at the end of a zip archive is missing (4 bytes are there)"},
      {other, "f.bin is a zip archive, but not one of torch.save: it has no data.pkl"},
      {script, "f.bin is a TorchScript archive, which is a program"},
      {"\x80\x02}.", "f.bin is a pickle, but not one of torch.save"},
      {"\x80\x02K\x07.", "f.bin is a pickle, but not one of torch.save"},
      {test::zip_bytes({{"a/data.pkl", "\x80\x02}."}, {"a/byteorder", "big"}}), "machine of another byte order"},
      {test::zip_bytes({{"a/data.pkl", "\x80\x02}.", 8}}), "a/data.pkl is compressed or encrypted"},
      {test::zip_bytes({{"a/data.pkl", pickled({"", 0, 0, {1}, {1}})}, {"a/data/0", kSix.bytes, 8}}),
       "a/data/0 is compressed or encrypted, but torch.save stores it as it is"},
  });
}

// `good` with the bytes at `at` behind the last `signature` replaced.
std::string with(std::string good, const char* signature, size_t at, const std::string& bytes) {
  return good.replace(good.rfind(signature) + at, bytes.size(), bytes);
}

TEST_CASE("torch: zip directories that lie are refused") {
  constexpr const char *kEnd = "PK\x05\x06", *kEnd64 = "PK\x06\x06", *kLocator64 = "PK\x06\x07",
                       *kCentral = "PK\x01\x02", *kLocal = "PK\x03\x04";
  const std::string good = torch_archive(good_state()), good64 = torch_archive(good_state(), true);
  const test::ZipFile pickle{"a/data.pkl", "\x80\x02}."};
  std::string inner = test::zip_bytes({{"a/inner", "inner"}});
  inner.resize(inner.find("PK\x01\x02"));  // a whole entry inside another entry's data
  const std::string outer = test::zip_bytes({{"a/outer", inner}, {"a/inner", "inner"}, pickle});
  const size_t second = outer.find(kCentral, outer.find(kCentral) + 1);
  std::string overlapping = outer;
  overlapping.replace(second + 42, 4, little(outer.find("PK\x03\x04", 4), 4));
  check_refused({
      {with(good, kEnd, 10, little(9999, 2)), "the zip directory does not lie inside the file"},
      {with(good, kEnd, 12, little(0xfffffff0, 4)), "the zip directory does not lie inside the file"},
      {with(good, kEnd, 16, little(0xfffffff0, 4)), "the zip directory does not lie inside the file"},
      {with(good, kEnd, 16, little(3, 4)), "record 0 of the zip directory is malformed"},
      {with(good, kCentral, 28, little(0xffff, 2)), "of the zip directory is malformed"},
      {with(good, kCentral, 42, little(0xfffffff0, 4)), "entry archive/version is not where the zip directory says"},
      {with(good, kCentral, 20, little(0xfffffff0, 4)), "entry archive/version is not where the zip directory says"},
      {with(good, kCentral, 42, little(0xffffffff, 4)), "of the zip directory is malformed"},
      {with(good, kLocal, 30, "x"), "entry archive/version is not where the zip directory says"},
      {with(good64, kLocator64, 8, little(~0ull - 9, 8)), "the zip64 record at its end points nowhere"},
      {with(good64, kEnd64, 32, little(1ull << 60, 8)), "the zip directory does not lie inside the file"},
      {with(good64, kEnd64, 40, little(~0ull, 8)), "the zip directory does not lie inside the file"},
      {with(good64, kEnd64, 48, little(~0ull - 99, 8)), "the zip directory does not lie inside the file"},
      {with(good64, "archive/version", 15 + 4 + 8, little(~0ull - 99, 8)), "archive/version is not where"},
      {with(good64, "archive/version", 15 + 2, little(7, 2)), "of the zip directory is malformed"},
      {test::zip_bytes({pickle, pickle}), "the zip directory lists a/data.pkl twice"},
      {overlapping, "entries of the zip archive overlap"},
  });
}

TEST_CASE("torch: a pickle that wants to run something is refused by name, and nothing is run") {
  const std::string call = "(" + text("touch /tmp/dragoman-was-here") + "tR";
  check_refused_pickles({
      {dict_of_x(global("posix", "system") + call), "f.bin asks to run posix.system, which no weights need: refused"},
      {dict_of_x(global("builtins", "eval") + call), "asks to run builtins.eval"},
      {"\x80\x04" + text("os") + text("system") + "\x93" + call + ".", "asks to run os.system"},
      {"\x80\x02(" + text("true") + "iposix\nsystem\n.", "asks to run posix.system"},
      {"\x80\x02" + global("collections", "OrderedDict\x1b[2J") + ".", "asks to run collections.OrderedDict?[2J"},
      {dict_of_x(global("transformers.models.marian.modeling_marian", "MarianMTModel") + ")R"),
       "f.bin holds a transformers.models.marian.modeling_marian.MarianMTModel, which is more than plain weights"},
      {dict_of_x(global("torch._utils", "_rebuild_qtensor") + ")R"), "holds a torch._utils._rebuild_qtensor"},
      {dict_of_x(global("torch", "ComplexFloatStorage")), "holds a torch.ComplexFloatStorage"},
      {"\x80\x02}icollections\nOrderedDict\n.", "has the opcode INST"},
      {"\x80\x02)\x81.", "has the opcode NEWOBJ (byte"},
      {"\x80\x02\x82\x01.", "has the opcode EXT1"},
      {"\x80\x02I7\n.", "has the opcode INT"},
      {"\x80\x02\xff.", "is 0xff, which is no opcode"},
  });
  check_refused({{"\x80\x02" + global("posix", "system") + call + ".", "f.bin asks to run posix.system"}});
}

TEST_CASE("torch: pickles that break the machine's rules are refused") {
  std::string deep = "\x80\x02" + std::string(100000, ']') + std::string(99999, 'a') + ".";
  std::string deeper = "\x80\x02)";
  for (int i = 0; i < 200000; ++i) deeper += '\x85';
  check_refused_pickles({
      {"\x80\x02.", "takes more from its stack than it has put there (STOP at"},
      {"\x80\x02\x87.", "takes more from its stack than it has put there (TUPLE3 at"},
      {"\x80\x02}(a.", "takes more from its stack than it has put there (APPEND at"},
      {"\x80\x02R.", "takes more from its stack"},
      {"\x80\x02t.", "ends a group that it has not begun (TUPLE at"},
      {"\x80\x02}(" + text("x") + "u.", "a key without a value"},
      {"\x80\x02)K\x01" + text("x") + "s.", "adds to something that holds nothing (SETITEM"},
      {"\x80\x02}K\x01"
       "a.",
       "adds to something that holds nothing (APPEND"},
      {"\x80\x02h\x05.", "asks for a memo that it has not set (BINGET"},
      {"\x80\x02j\xff\xff\xff\xff.", "asks for a memo that it has not set (LONG_BINGET"},
      {"\x80\x02q\x01.", "takes more from its stack than it has put there (BINPUT"},
      {"\x80\x02))R.", "calls something that cannot be called"},
      {"\x80\x02" + global("torch", "FloatStorage") + ")R.", "calls torch.FloatStorage in a way"},
      {"\x80\x02" + global("collections", "OrderedDict") + "]\x85R.", "calls collections.OrderedDict in a way"},
      {"\x80\x02" + global("torch._utils", "_rebuild_parameter") + "N\x85R.", "_rebuild_parameter in a way"},
      {"\x80\x02)}b.", "gives attributes to something that has none"},
      {"\x80\x04K\x01K\x02\x93.", "names something that is not a name"},
      {"\x80\x02" + std::string((1 << 20) + 1, 'N') + ".", "takes more than 1048576 steps"},
      {deep, "holds no dict of tensors"},
      {deeper + ".", "holds no dict of tensors"},
      {"\x80\x02]q\x01h\x01"
       "a.",
       "holds no dict of tensors"},  // a list in itself
  });
  // A length beyond the end, on every opcode that has one. In a stream the data that follows is part of what is there.
  const std::string far = little(1ull << 40, 8);
  check_refused({{torch_archive("\x80\x02X\xff\xff\xff\xff"
                                "a",
                                {}),
                  "the pickle is cut short at byte"},
                 {torch_archive("\x80\x02\x8b\xff\xff\xff\x7f"
                                "a",
                                {}),
                  "the pickle is cut short at byte"},
                 {torch_archive("\x80\x02\x8a\xff"
                                "a",
                                {}),
                  "the pickle is cut short at byte"},
                 {torch_archive("\x80\x04\x8d" + far, {}), "the pickle is cut short at byte"},
                 {torch_archive("\x80\x04\x8d" + little(~0ull, 8), {}), "the pickle is cut short at byte"},
                 {torch_archive("\x80\x04\x95\x01", {}), "the pickle is cut short at byte"},
                 {torch_archive("\x80\x02"
                                "cposix",
                                {}),
                  "the pickle is cut short at byte"},
                 {torch_archive("\x80\x02}", {}), "the pickle is cut short at byte"}});
}

TEST_CASE("torch: memos of any number, and a dict that holds itself, cost nothing") {
  const std::string x = TorchTensor{"", 0, 0, {6}, {1}}.pickled(kSix);
  const std::string huge_memo =
      "\x80\x02}" + text("x") + x + "r\xff\xff\xff\xff" + "s" + text("y") + "j\xff\xff\xff\xff" + "s.";
  const std::string file = torch_archive(huge_memo, {kSix});
  const Result<TensorMap> read = parse(file);
  REQUIRE_MESSAGE(read, read.error().text);
  CHECK(floats_of(*read, "y") == Floats{1, 2, 3, 4, 5, 6});
  check_refused_pickles({{"\x80\x02}q\x01" + text("x") + "h\x01s.", "f.bin: entry x is not a tensor"}});
}

TEST_CASE("torch: tensors and storages that do not fit are refused") {
  constexpr int64_t kHuge = int64_t{1} << 62;
  const auto storage = [](int64_t elements) { return TorchStorage{"0", "FloatStorage", elements, kSix.bytes}; };
  const TorchTensor one{"", 0, 0, {1}, {1}};
  check_refused_pickles({
      {pickled({"", 0, 0, {7}, {1}}), "f.bin: tensor x (7) reaches beyond its storage of 6 elements"},
      {pickled({"", 0, 1, {6}, {1}}), "reaches beyond its storage"},
      {pickled({"", 0, 7, {1}, {1}}), "reaches beyond its storage"},
      {pickled({"", 0, kHuge, {1}, {1}}), "reaches beyond its storage"},
      {pickled({"", 0, 0, {2, 2}, {5, 1}}), "reaches beyond its storage"},
      {pickled({"", 0, 0, {2, 2}, {kHuge, kHuge}}), "reaches beyond its storage"},
      {pickled({"", 0, 0, {3, 3}, {kHuge, kHuge}}), "reaches beyond its storage"},
      {pickled({"", 0, 0, {kHuge, 4}, {0, 0}}), "reaches beyond its storage"},
      {pickled({"", 0, 0, {kHuge, kHuge}, {0, 0}}), "reaches beyond its storage"},
      {pickled({"", 0, 0, {7, 1}, {0, 0}}), "reaches beyond its storage"},
      {pickled({"", 0, -1, {1}, {1}}), "describes a tensor in a way this reader does not know"},
      {pickled({"", 0, 0, {-1}, {1}}), "describes a tensor in a way"},
      {pickled({"", 0, 0, {2}, {-1}}), "describes a tensor in a way"},
      {pickled({"", 0, 0, {2}, {1, 1}}), "describes a tensor in a way"},
      {pickled({"", 0, 0, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}}), "describes a tensor in a way"},
      {dict_of_x(global("torch._utils", "_rebuild_tensor_v2") + ")R"), "describes a tensor in a way"},
      {dict_of_x(global("torch._utils", "_rebuild_tensor_v2") + "(" + kSix.pickled() + "\x8a\x09" + little(1, 9) +
                 tuple({1}) + tuple({1}) + "\x89NtR"),
       "describes a tensor in a way"},
      {dict_of_x(global("torch._utils", "_rebuild_tensor_v2") + "(" + kSix.pickled() + number(0) + tuple({1}) +
                 tuple({1}) + "\x89N}" + text("neg") + "\x88s" + "tR"),
       "describes a tensor in a way"},
      {pickled(one, storage(-6)), "describes a storage in a way this reader does not know"},
      {dict_of_x("NQ"), "describes a storage in a way"},
      {dict_of_x("(" + text("storage") + global("collections", "OrderedDict") + text("0") + text("cpu") + number(6) +
                 "tQ"),
       "describes a storage in a way"},
      {dict_of_x("(" + text("module") + text("a") + text("0") + text("cpu") + number(6) + "tQ"),
       "describes a storage in a way"},
      {dict_of_x("(" + kSix.pickled() + storage(5).pickled() + "t"), "describes a storage in two ways"},
      {dict_of_x("N"), "f.bin: entry x is not a tensor: save the model's state_dict() alone"},
      {dict_of_x(kSix.pickled()), "entry x is not a tensor"},
      {"\x80\x02}N" + one.pickled(kSix) + "s.", "a name of a tensor is no text"},
      {"\x80\x02}" + text("x") + one.pickled(kSix) + "s" + text("x") + one.pickled(kSix) + "s.", "x is listed twice"},
      {"\x80\x02N.", "f.bin holds no dict of tensors"},
  });
  const std::string big = pickled(one, storage(kHuge)), seven = pickled(one, storage(7));
  check_refused({
      {torch_archive(big, {kSix}), "archive/data/0 has 24 bytes, but data.pkl says 4611686018427387904 elements"},
      {torch_archive(seven, {kSix}), "archive/data/0 has 24 bytes, but data.pkl says 7 elements of type F32"},
      {torch_archive(pickled(one), {}), "f.bin has no entry archive/data/0, which its data.pkl asks for"},
      {torch_stream(big, {kSix}), "f.bin is cut short inside storage 0"},
      {torch_stream(seven, {kSix}), "f.bin is cut short inside storage 0"},
      {torch_stream(pickled(one, storage(5)), {kSix}), "storage 0 has 6 elements, but the pickle says 5"},
      {torch_stream(pickled(one), {}), "f.bin lists 0 storages, but its tensors use 1"},
      {torch_stream(pickled(one), {kSix, kSix}), "f.bin lists storage 0, which its tensors do not use, or twice"},
      {torch_stream("\x80\x02}.", {kSix}), "f.bin lists storage 0, which its tensors do not use"},
      {torch_stream(pickled(one), {kSix}) + "more", "4 bytes at its end belong to no storage"},
  });
}

TEST_CASE("torch: streams of other versions and machines are refused") {
  const std::string good = torch_stream(good_state());
  std::string version = good, order = good, keys = good;
  version[18] = '\x01';
  order[good.find("little_endian") + 13] = '\x89';
  keys[good.rfind("\x80\x02](") + 2] = '}';
  check_refused({{version, "is of a version of torch.save this reader does not know"},
                 {order, "machine of another byte order"},
                 {keys, "adds to something that holds nothing"},
                 {good.substr(0, good.rfind("\x80\x02](")) + "\x80\x02N.", "has no list of its storages"}});
}

TEST_CASE("crc32 as everybody's") {
  const auto crc = [](const std::string& text) { return crc32(std::as_bytes(std::span(text))); };
  CHECK(crc("") == 0);
  CHECK(crc("123456789") == 0xcbf43926);
  CHECK(crc("The quick brown fox jumps over the lazy dog") == 0x414fa339);
}

}  // namespace
}  // namespace dragoman
