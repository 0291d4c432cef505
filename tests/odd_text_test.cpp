// Odd text with defined answers: what `dragoman translate` makes of it with the shipped model, to the byte. The same
// bits on every CPU make exact answers safe. tests/data/odd_text.jsonl has one case a line:
//   name, input (text) or hex (bytes); repeat: how many times; end: what follows; options of the command
//   lines: of output; output: all of it, or where it is long its bytes and hash (runtime/checksum.h)
// After a change of the model, DRAGOMAN_WRITE_ANSWERS=FILE writes the cases with new answers, to be read before use.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/checksum.h"
#include "tests/command_support.h"
#include "tests/support.h"

namespace dragoman::test {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLongest = 600;  // bytes of an answer that stand in the file

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::strtoul(hex.substr(i, 2).c_str(), nullptr, 16));
  return bytes;
}

std::string input_of(const Json& one) {
  const std::string once = one.contains("hex") ? bytes_of(one["hex"]) : one["input"].get<std::string>();
  std::string input;
  for (size_t i = one.value("repeat", size_t{1}); i > 0; --i) input += once;
  return input + one.value("end", "");
}

std::string translated(const Json& one, std::vector<std::string> more = {}) {
  std::vector<std::string> words = {"translate", "-m", DRAGOMAN_SHIPPED_MODEL, "-q"};
  for (const auto& option : one.value("options", Json::array())) words.push_back(option);
  words.insert(words.end(), more.begin(), more.end());
  const Ran ran = run_command(words, {.input = input_of(one)});
  CHECK(ran.code == 0);
  CHECK(ran.err.empty());
  return ran.out;
}

std::string hash_of(const std::string& text) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(checksum(text.data(), text.size())));
  return digits;
}

// The answer as it stands in the file.
void answer(Json& one, const std::string& output) {
  one["lines"] = std::count(output.begin(), output.end(), '\n');
  if (output.size() <= kLongest) {
    one["output"] = output;
  } else {
    one["bytes"] = output.size();
    one["hash"] = hash_of(output);
  }
}

TEST_CASE("odd text: every case of tests/data/odd_text.jsonl has its answer") {
  const char* written = std::getenv("DRAGOMAN_WRITE_ANSWERS");
  std::ofstream out;
  if (written) out.open(written);
  size_t cases = 0;
  for (const std::string& line : read_lines(data_path("odd_text.jsonl"))) {
    const Json one = Json::parse(line);
    CAPTURE(one["name"].get<std::string>());
    Json got = one;
    for (const char* key : {"lines", "output", "bytes", "hash"}) got.erase(key);
    const std::string output = translated(one);
    answer(got, output);
    if (written) out << got.dump(-1, ' ', true) << "\n";  // ASCII
    CHECK(got == one);
    CHECK((output.empty() || output.back() == '\n'));
    ++cases;
  }
  CHECK(cases >= 25);
}

// The rules behind the answers, which hold for any model.
TEST_CASE("odd text: ends of lines, byte order marks and blanks") {
  const auto lines_of = [](const std::string& input) { return translated(Json{{"input", input}}); };
  const std::string want = lines_of("Good morning.\nThank you.\n");
  CHECK(std::count(want.begin(), want.end(), '\n') == 2);
  CHECK(lines_of("Good morning.\r\nThank you.\r\n") == want);
  CHECK(lines_of("Good morning.\nThank you.") == want);
  CHECK(lines_of("\xEF\xBB\xBFGood morning.\r\nThank you.") == want);
  CHECK(lines_of("\xEF\xBB\xBF").empty());
  CHECK(lines_of("").empty());
  CHECK(lines_of("\xEF\xBB\xBF\n") == "\n");
  CHECK(lines_of("\n \n\t\r\n\n") == "\n\n\n\n");
  const std::string lone = lines_of("Good morning.\rThank you.\n");  // one line: a lone CR is a space
  CHECK(lone == lines_of("Good morning. Thank you.\n"));
}

TEST_CASE("odd text: the same answers for any batch") {
  for (const std::string& line : read_lines(data_path("odd_text.jsonl"))) {
    const Json one = Json::parse(line);
    if (!one.contains("output") || one["lines"] < 2) continue;
    CAPTURE(one["name"].get<std::string>());
    for (const char* batch : {"1", "3"}) CHECK(translated(one, {"--batch", batch}) == one["output"]);
  }
}

}  // namespace
}  // namespace dragoman::test
