#include "converter/safetensors.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "tests/synthetic.h"

namespace dragoman {
namespace {

using test::safetensors_bytes;

Result<TensorMap> parse(const std::string& file) {
  return parse_safetensors({reinterpret_cast<const std::byte*>(file.data()), file.size()}, "f.safetensors");
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

TEST_CASE("safetensors: a good file is read") {
  const std::string file = safetensors_bytes(
      "{\"__metadata__\":{\"format\":\"pt\"}," + entry("b", "F16", "[2]", "[12,16]") + "," +
          entry("a", "F32", "[3,1]", "[0,12]") + "," + entry("empty", "F32", "[0,5]", "[12,12]") + "}  ",
      16);
  const Result<TensorMap> read = parse(file);
  REQUIRE_MESSAGE(read, read.error().text);
  CHECK(read->size() == 3);
  CHECK(read->at("a").shape == std::vector<uint64_t>{3, 1});
  const Result<std::vector<float>> b = to_floats("b", read->at("b"));
  REQUIRE(b);
  CHECK(*b == std::vector<float>{0, 0});
}

TEST_CASE("safetensors: hostile and damaged files are refused, each with its sentence") {
  const auto one = [](const std::string& tensor) { return safetensors_bytes("{" + tensor + "}", 16); };
  std::string huge = safetensors_bytes("{}", 0);
  std::memset(huge.data(), 0xff, 8);
  const std::string good = entry("a", "F32", "[4]", "[0,16]");
  const struct {
    std::string file, sentence;
  } cases[] = {
      {"", "is empty"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git-lfs pointer"},
      {"\n<!DOCTYPE html><html>", "web page"},
      {"<html><body>404", "web page"},
      {"abc", "only 3 bytes"},
      {huge, "no safetensors file"},
      {one(good).substr(0, 20), "cut short inside its header"},
      {one(good).substr(0, one(good).size() - 1), "cut short"},
      {safetensors_bytes("[1,2]", 0), "not a JSON object"},
      {safetensors_bytes("{\"a\":", 0), "not a JSON object"},
      {safetensors_bytes("{\"\xff\":1}", 0), "not a JSON object"},
      {safetensors_bytes(std::string(100000, '['), 0), "not a JSON object"},
      {one(good + "," + entry("a", "F32", "[4]", "[0,16]")), "a is listed twice"},
      {one("\"a\":7"), "lacks dtype"},
      {one("\"a\":{\"dtype\":\"F32\",\"shape\":[4]}"), "lacks dtype, shape or data_offsets"},
      {one(entry("a", "Q4", "[4]", "[0,16]")), "unknown type Q4"},
      {one(entry("a", "F32", "[-4]", "[0,16]")), "impossible shape"},
      {one(entry("a", "F32", "[4.5]", "[0,16]")), "impossible shape"},
      {one(entry("a", "F32", "[1,1,1,1,1,1,1,1,4]", "[0,16]")), "impossible shape"},
      {one(entry("a", "F32", "[4294967296,4294967296]", "[0,16]")), "impossible shape"},
      {one(entry("a", "F32", "[4611686018427387905,4]", "[0,16]")), "impossible shape"},
      {one(entry("a", "F32", "[4611686018427387905]", "[0,4]")), "do not fit its shape"},
      {one(entry("a", "F32", "[5]", "[0,16]")), "do not fit its shape"},
      {one(entry("a", "F32", "[4]", "[0,16,20]")), "impossible data_offsets"},
      {one(entry("a", "F32", "[4]", "[-1,15]")), "impossible data_offsets"},
      {one(entry("a", "F32", "[4]", "[16,0]")), "cut short"},
      {one(entry("a", "F32", "[4]", "[4,20]")), "cut short"},
      {one(entry("a", "F32", "[4]", "[18446744073709551600,18446744073709551616]")), "impossible data_offsets"},
      {one(entry("a", "F32", "[4]", "[18446744073709551599,18446744073709551615]")), "cut short"},
      {one(entry("a", "F32", "[3]", "[0,12]") + "," + entry("b", "F32", "[2]", "[8,16]")), "b overlaps"},
      {one(entry("a", "F32", "[1]", "[0,4]") + "," + entry("b", "F32", "[2]", "[8,16]")), "before tensor b"},
      {one(entry("a", "F32", "[3]", "[0,12]")), "4 bytes at its end"},
      {one("\"\\u001b[2J\":7"), "tensor ?[2J lacks"},
  };
  for (const auto& bad : cases) {
    CAPTURE(bad.sentence);
    const Result<TensorMap> read = parse(bad.file);
    CHECK_FALSE(read);
    CAPTURE(std::string(read.error().text));
    CHECK(std::strstr(read.error().text, bad.sentence.c_str()) != nullptr);
  }
}

TEST_CASE("safetensors: every truncation of a good file is refused") {
  test::SyntheticTensor tensor{{2, 2}, {1, 2, 3, 4}};
  const std::string file = safetensors_bytes({{"x", tensor}, {"y", tensor}}, "F32");
  REQUIRE(parse(file));
  for (size_t size = 0; size < file.size(); ++size) CHECK_FALSE(parse(file.substr(0, size)));
}

TEST_CASE("half and bfloat to float") {
  CHECK(half_to_float(0x3c00) == 1.0f);
  CHECK(half_to_float(0xc000) == -2.0f);
  CHECK(half_to_float(0x7bff) == 65504.0f);
  CHECK(half_to_float(0x0001) == 0x1p-24f);
  CHECK(half_to_float(0x83ff) == -1023 * 0x1p-24f);
  CHECK(half_to_float(0x0400) == 0x1p-14f);
  CHECK(std::signbit(half_to_float(0x8000)));
  CHECK(half_to_float(0x7c00) == INFINITY);
  CHECK(half_to_float(0xfc00) == -INFINITY);
  CHECK(std::isnan(half_to_float(0x7e00)));
  CHECK(bfloat_to_float(0x3f80) == 1.0f);
  CHECK(bfloat_to_float(0xc040) == -3.0f);
}

TEST_CASE("safetensors: types that are not floats can be listed but not read") {
  const std::string file = safetensors_bytes("{" + entry("a", "I64", "[2]", "[0,16]") + "}", 16);
  const Result<TensorMap> read = parse(file);
  REQUIRE(read);
  const Result<std::vector<float>> values = to_floats("a", read->at("a"));
  CHECK_FALSE(values);
  CHECK(std::strstr(values.error().text, "stored as I64") != nullptr);
}

}  // namespace
}  // namespace dragoman
