// `dragoman translate` and `dragoman tokenize`: lines in, lines out, whatever the lines are.
#include <nlohmann/json.hpp>
#include <random>

#include "tests/command_support.h"
#include "tests/support.h"

namespace dragoman::test {
namespace {

using Words = std::vector<std::string>;

std::string tiny() {
  return model_path("tiny-int8");
}

// Everything the tests do is quick with short translations.
Words translate(Words more = {}) {
  Words words = {"translate", "-m", tiny(), "-q"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string joined(const Words& lines, const char* end) {
  std::string text;
  for (const std::string& line : lines) text += line + end;
  return text;
}

const Words kOddLines = {"Good morning.",
                         "",
                         "A man is riding a bicycle in the snow.",
                         std::string("NUL \0 inside", 12),
                         "not UTF-8: \xFF\xFE\xC3",
                         "   ",
                         "\xE6\x97\xA5\xE6\x9C\xAC \xE2\x98\x83",
                         "tab\tand \x01 control",
                         "--help",
                         "Two dogs."};

std::string long_line(size_t bytes) {
  std::string line;
  std::mt19937 random(42);
  const char* sentences[] = {"Two dogs run in the snow. ", "A man, riding a bicycle, looks at a red car ", "Yes! "};
  while (line.size() < bytes) line += sentences[random() % 3];
  return line + "end";
}

// What the library itself makes of the lines.
Words expected(const Words& lines) {
  const LoadedModel model = load_model(tiny());
  Session session(*model, {.limits = {.slots = 3}});
  Words texts;
  for (const Translated& line : session.translate(lines)) texts.push_back(line.text);
  return texts;
}

TEST_CASE("one line in, one line out, in order, whatever is in the lines") {
  const Words want = expected(kOddLines);
  const Ran ran = run_command(translate(), {.input = joined(kOddLines, "\n")});
  CHECK(ran.code == 0);
  CHECK(split_lines(ran.out) == want);
  CHECK(want[1].empty());

  SUBCASE("CRLF, and no newline at the end") {
    std::string text = joined(kOddLines, "\r\n");
    text.resize(text.size() - 2);
    CHECK(run_command(translate(), {.input = text}).out == ran.out);
  }
  SUBCASE("as words of the command line") {
    Words words = translate({"--"});
    Words lines = kOddLines;
    lines.erase(lines.begin() + 3);  // a word cannot hold NUL
    words.insert(words.end(), lines.begin(), lines.end());
    CHECK(split_lines(run_command(words).out) == expected(lines));
  }
  SUBCASE("for any batch, threads, kernels") {
    for (const Words& options : {Words{"--batch=1"}, Words{"--batch", "2", "--threads", "3"},
                                 Words{"-b", "64", "--isa", "portable"}, Words{"--preload"}}) {
      CHECK(run_command(translate(options), {.input = joined(kOddLines, "\n")}).out == ran.out);
    }
  }
  SUBCASE("no input, no output") {
    CHECK(run_command(translate()).out.empty());
    CHECK(run_command(translate(), {.input = "\n"}).out == "\n");
  }
}

TEST_CASE("a line of any length is one line, the same however its bytes arrive") {
  for (const std::string& line : {long_line(80000), std::string(70000, 'x'), long_line(8200) + "\r"}) {
    const std::string input = "First.\n" + line + "\r\nLast.\n";
    const Ran whole = run_command(translate({"--max-length", "4"}), {.input = input});
    CHECK(split_lines(whole.out).size() == 3);

    Coprocess pieces(translate({"--max-length", "4"}));
    std::mt19937 random(7);
    for (size_t at = 0; at < input.size();) {
      const size_t bytes = std::min<size_t>(input.size() - at, 1 + random() % 9000);
      pieces.write(input.substr(at, bytes));
      at += bytes;
    }
    pieces.close_input();
    CHECK(pieces.read_rest() == whole.out);
    CHECK(pieces.wait() == 0);
  }
}

#ifndef DRAGOMAN_SANITIZED  // sanitizers bring memory of their own
TEST_CASE("memory does not grow with the number of lines or their length") {
  const auto peak = [](const std::string& input) {
    const Ran ran = run_command(translate({"--max-length", "4"}), {.input = input});
    CHECK(ran.code == 0);
    return ran.peak_kilobytes;
  };
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "Good morning.\n";
  const long small = peak("Good morning.\n" + long_line(10000) + "\n");
  CHECK(peak(many + long_line(100000) + "\n") <= small + 256);  // what the kernel counts varies by some pages
}
#endif

TEST_CASE("a co-process answers each line when the input pauses") {
  for (const char* batch : {"1", "16"}) {
    Coprocess command(translate({"--batch", batch}));
    const Words want = expected({"Good morning.", "Two dogs."});
    for (int i = 0; i < 3; ++i) {
      command.write("Good morning.\n");
      CHECK(command.read_line() == want[0] + "\n");
      command.write("\n");
      CHECK(command.read_line() == "\n");
      command.write("Good morning.\nTwo do");
      CHECK(command.read_line() == want[0] + "\n");
      command.write("gs.\n");
      CHECK(command.read_line() == want[1] + "\n");
    }
    command.close_input();
    CHECK(command.wait() == 0);
  }
}

TEST_CASE("--json: one valid object a line, the same text and ids") {
  Words lines = kOddLines;
  lines.push_back(long_line(20000));
  const Words want = expected(lines);
  const Ran ran = run_command(translate({"--json", "--scores"}), {.input = joined(lines, "\n")});
  const Words objects = split_lines(ran.out);
  REQUIRE(objects.size() == want.size());
  const LoadedModel model = load_model(tiny());
  for (size_t i = 0; i < objects.size(); ++i) {
    CAPTURE(objects[i]);
    const auto object = nlohmann::json::parse(objects[i]);  // refuses what is not UTF-8
    CHECK(object["text"] == want[i]);
    CHECK(object["ids"].size() == object["target_tokens"]);
    CHECK(object["ms"] >= 0);
    CHECK(object["score"].is_null() == want[i].empty());
    CHECK(!object["status"].empty());
  }
  CHECK(nlohmann::json::parse(objects[1])["status"] == nlohmann::json{"ok"});
  CHECK(objects[4].find("invalid_utf8") != std::string::npos);
  CHECK(objects.back().find("split") != std::string::npos);
}

TEST_CASE("--json keeps its memory: ids that do not fit are null, the text is whole") {
  const std::string line = long_line(60000);
  const Ran plain = run_command(translate({"--max-source", "32"}), {.input = line});
  const Ran json = run_command(translate({"--max-source", "32", "--json"}), {.input = line});
  const auto object = nlohmann::json::parse(json.out);
  CHECK(object["ids"].is_null());
  CHECK(object["text"].get<std::string>() + "\n" == plain.out);
}

TEST_CASE("--scores: text, a tab, the mean log-probability") {
  const Words lines = split_lines(run_command(translate({"--scores"}), {.input = "Good morning.\n\n"}).out);
  REQUIRE(lines.size() == 2);
  const size_t tab = lines[0].find('\t');
  REQUIRE(tab != std::string::npos);
  CHECK(lines[0].substr(0, tab) == expected({"Good morning."})[0]);
  CHECK(std::stod(lines[0].substr(tab + 1)) < 0);
  CHECK(lines[1] == "\t");  // two columns in every line
}

TEST_CASE("--ids: ids in, ids out") {
  const std::string input = "Good morning.\n\nTwo dogs.\n" + long_line(30000) + "\n";
  const Ran ids = run_command({"tokenize", "-m", tiny(), "-q"}, {.input = input});
  CHECK(ids.code == 0);
  const Ran out = run_command(translate({"--ids"}), {.input = ids.out});
  CHECK(out.code == 0);
  const Words want = split_lines(run_command(translate({"--json"}), {.input = "Good morning.\n\nTwo dogs.\n"}).out);
  const Words got = split_lines(out.out);
  REQUIRE(got.size() == 4);
  for (size_t i = 0; i < want.size(); ++i) {
    std::string numbers;
    const auto object = nlohmann::json::parse(want[i]);
    for (const int id : object["ids"]) {
      numbers += (numbers.empty() ? "" : " ") + std::to_string(id);
    }
    CHECK(got[i] == numbers);
  }
  CHECK(!got[3].empty());
}

TEST_CASE("--ids: a word that is no id is reported with its line, which stays empty") {
  const std::string digits(70000, '7');
  for (const std::string& bad : {std::string("5 x 6"), std::string("-1"), std::string("99999999999999999999 3"),
                                 std::string("3.5"), digits, "1 2 " + digits}) {
    const Ran ran = run_command(translate({"--ids"}), {.input = "5 6\n" + bad + "\n \t \n6 5 \t7\r\n"});
    CHECK(ran.code == 3);
    const Words lines = split_lines(ran.out);
    REQUIRE(lines.size() == 4);
    CHECK(!lines[0].empty());
    CHECK((lines[1].empty() || bad.size() > 70000));
    CHECK(lines[2].empty());
    CHECK(!lines[3].empty());
    CHECK(ran.err.find("line 2: ") != std::string::npos);
  }
  const Ran json = run_command(translate({"--ids", "--json"}), {.input = "5 x\n\n"});
  const Words objects = split_lines(json.out);
  CHECK(nlohmann::json::parse(objects.at(0))["status"] == nlohmann::json{"bad_ids"});
  CHECK(nlohmann::json::parse(objects.at(1))["status"] == nlohmann::json{"ok"});
}

TEST_CASE("the summary says what happened, on standard error only, and --quiet keeps silent") {
  const std::string input = "Good morning.\n\xFF\n";
  const Ran ran = run_command({"translate", "-m", tiny()}, {.input = input});
  CHECK(ran.err.find(" of 2 lines: ") != std::string::npos);
  CHECK(ran.err.find("1 not UTF-8") != std::string::npos);
  CHECK(ran.out == run_command(translate(), {.input = input}).out);
  CHECK(run_command(translate(), {.input = input}).err.empty());
  CHECK(run_command(translate({"--progress"}), {.input = input}).err.empty());  // no terminal
}

TEST_CASE("tokenize agrees with the model's tokenizer and decodes what it made") {
  const LoadedModel model = load_model(tiny());
  const Ran ids = run_command({"tokenize", "-m", tiny()}, {.input = joined(kOddLines, "\n")});
  const Ran pieces = run_command({"tokenize", "--pieces", "-m", tiny()}, {.input = joined(kOddLines, "\n")});
  const Words lines = split_lines(ids.out), piece_lines = split_lines(pieces.out);
  REQUIRE(lines.size() == kOddLines.size());
  std::string decoded;
  for (size_t i = 0; i < kOddLines.size(); ++i) {
    std::vector<std::byte> scratch(model->source.scratch_bytes(1000));
    std::vector<int32_t> want(1000);
    want.resize(model->source.encode(kOddLines[i], scratch, want).count);
    std::string numbers, names;
    for (const int32_t id : want) {
      numbers += (numbers.empty() ? "" : " ") + std::to_string(id);
      names += (names.empty() ? "" : " ") + std::string(model->source.piece(id));
    }
    CHECK(lines[i] == numbers);
    CHECK(piece_lines[i] == names);
    std::vector<char> text(want.size() * model->source.max_piece_bytes() + 1);
    decoded += std::string(text.data(), model->source.decode(want, text)) + "\n";
  }
  CHECK(run_command({"tokenize", "--decode", "-m", tiny()}, {.input = ids.out}).out == decoded);

  const std::string line = long_line(100000) + "\n";
  const Ran many = run_command({"tokenize", "-m", tiny()}, {.input = line});
  CHECK(many.err.find("in parts") != std::string::npos);
  CHECK(run_command({"tokenize", "--decode", "-m", tiny()}, {.input = many.out}).out == line);
}

}  // namespace
}  // namespace dragoman::test
