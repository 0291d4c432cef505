// The rest of the `dragoman` command: what it says and the codes it exits with.
#include <sys/stat.h>

#include <filesystem>

#include "tests/command_support.h"
#include "tests/support.h"

namespace dragoman::test {
namespace {

std::string tiny() {
  return model_path("tiny-int8");
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// One sentence on standard error, nothing on standard output.
void check_refused(const Ran& ran, int code, const std::string& part) {
  CAPTURE(ran.err);
  CHECK(ran.code == code);
  CHECK(ran.out.empty());
  CHECK(ran.err.substr(0, 10) == "dragoman: ");
  CHECK(split_lines(ran.err).size() == 1);
  CHECK(has(ran.err, part));
}

TEST_CASE("help, for the program and for each command") {
  CHECK(run_command({"--help"}).out == run_command({"help"}).out);
  CHECK(has(run_command({"--help"}).out, "exit codes"));
  for (const char* command : {"translate", "tokenize", "inspect", "verify", "cpu"}) {
    const Ran ran = run_command({command, "--help"});
    CHECK(ran.code == 0);
    CHECK(has(ran.out, std::string("usage: dragoman ") + command));
    CHECK(run_command({"help", command}).out == ran.out);
    CHECK(has(run_command({"-h"}).out, command));
  }
  CHECK(run_command({}).code == 2);
  CHECK(has(run_command({"--version"}).out, "dragoman "));
}

TEST_CASE("a command line that asks for what is not there") {
  check_refused(run_command({"Good morning."}), 2, "dragoman translate");
  check_refused(run_command({"help", "me"}), 2, "'me'");
  check_refused(run_command({"--frobnicate"}), 2, "--frobnicate");
  check_refused(run_command({"translate", "--frobnicate=3"}), 2, "--frobnicate");
  check_refused(run_command({"translate", "-x"}), 2, "-x");
  check_refused(run_command({"cpu", "--json"}), 2, "--json");
  check_refused(run_command({"translate", "--threads"}), 2, "--threads");
  check_refused(run_command({"translate", "--json=yes"}), 2, "--json");
  for (const char* number : {"0", "-1", "many", "4x", "99999999999999999999", ""}) {
    check_refused(run_command({"translate", "--batch", number}), 2, "--batch");
  }
  check_refused(run_command({"translate", "-m", tiny(), "--batch", "1000000", "a"}), 2, "1000000");
  check_refused(run_command({"translate", "-m", tiny(), "--max-source", "100000", "a"}), 2, "100000");
  check_refused(run_command({"translate", "-m", tiny(), "--isa", "abacus", "a"}), 2, "portable");
  check_refused(run_command({"translate", "-m", tiny(), "a"}, {.environment = {"DRAGOMAN_ISA=abacus"}}), 2, "abacus");
  check_refused(run_command({"tokenize", "-m", tiny(), "--pieces", "--decode"}), 2, "--decode");
  check_refused(run_command({"verify", tiny(), tiny()}), 2, "one file");
}

TEST_CASE("output that cannot be written, input that cannot be read") {
  const std::vector<std::string> command = {"translate", "-m", tiny(), "-q"};
  check_refused(run_command(command, {.input = "Good morning.\n", .out_file = "/dev/full"}), 1, "standard output");
  check_refused(run_command(command, {.input = "Good morning.\n", .out_file = ""}), 1, "standard output");
  check_refused(run_command(command, {.close_input = true}), 1, "standard input");
  check_refused(run_command({"cpu"}, {.out_file = "/dev/full"}), 1, "standard output");

  Coprocess gone(command);
  gone.close_output();
  for (int i = 0; i < 100; ++i) gone.write("Good morning.\n");
  gone.close_input();
  CHECK(gone.wait() == 1);
}

TEST_CASE("verify: one line a check, code 3 for a damaged file") {
  const Ran good = run_command({"verify", tiny(), "--all-isas"});
  CHECK(good.code == 0);
  CHECK(split_lines(good.out).size() == 2 + available_kernels().size());
  CHECK(!has(good.out, "FAILED"));
  CHECK(split_lines(run_command({"verify", "-m", tiny(), "--isa=portable"}).out).size() == 3);

  const TemporaryFolder folder;
  const std::string path = folder.path() + "/damaged.dgm";
  const std::string bytes = read_file(tiny());
  const auto verify_with = [&](const std::string& changed) {
    write_file(path, changed);
    return run_command({"verify", path});
  };
  const LoadedModel model = load_model(tiny());
  std::string changed = bytes;
  for (const Section& section : model->sections) {
    if (section.layout == Layout::kPanelsS8) changed[section.offset + 3] ^= 0x10;
  }
  const Ran tensors = verify_with(changed);
  CHECK(tensors.code == 3);
  CHECK(has(tensors.out, "FAILED  tensors"));
  CHECK(has(tensors.out, "FAILED  self-test"));

  const Ran cut = verify_with(bytes.substr(0, bytes.size() / 2));
  CHECK(cut.code == 3);
  CHECK(has(cut.out, "FAILED  structure"));
  check_refused(run_command({"verify", folder.path() + "/absent.dgm"}), 1, "absent.dgm");
  check_refused(run_command({"verify", folder.path()}), 1, "folder");
}

TEST_CASE("inspect ends with the bytes of the plan") {
  const LoadedModel model = load_model(tiny());
  const auto last_line = [](const Ran& ran) { return split_lines(ran.out).back(); };
  const auto arena = [&](const Limits& limits) {
    return "arena: " + std::to_string(make_plan(*model, limits)->bytes) + " bytes";
  };
  const Ran ran = run_command({"inspect", tiny()});
  CHECK(ran.code == 0);
  CHECK(last_line(ran) == arena({.slots = 16}));
  for (const char* part : {"Architecture", "Tokenizer", "int8", "Provenance", "Licence", "tokenizer.source", "Plan"}) {
    CHECK(has(ran.out, part));
  }
  CHECK(last_line(run_command({"inspect", "--batch=2", tiny(), "--max-source", "20", "--threads", "2"})) ==
        arena({.slots = 2, .source = 20, .threads = 2}));
}

TEST_CASE("where the model is looked for") {
  const TemporaryFolder prefix;
  const std::string bin = prefix.path() + "/bin", share = prefix.path() + "/share/dragoman";
  std::filesystem::create_directories(bin);
  std::filesystem::create_directories(share);
  std::filesystem::copy_file(DRAGOMAN_BINARY, bin + "/dragoman");
  const std::string model = read_file(tiny());
  const auto run_there = [&](std::vector<std::string> environment = {}) {
    return run_command({"tokenize", "Good morning."}, {.environment = environment, .binary = bin + "/dragoman"});
  };
  const std::string ids = run_command({"tokenize", "-m", tiny(), "Good morning."}).out;

  check_refused(run_there(), 1, share);
  CHECK(run_there({"DRAGOMAN_MODEL=" + tiny()}).out == ids);
  write_file(share + "/one.dgm", model);
  CHECK(run_there().out == ids);
  write_file(share + "/two.dgm", model);
  check_refused(run_there(), 1, "two.dgm");
  write_file(bin + "/beside.dgm", model);
  CHECK(run_there().out == ids);
  check_refused(run_there({"DRAGOMAN_MODEL=/absent.dgm"}), 1, "/absent.dgm");
}

TEST_CASE("cpu lists the kernels and the choice") {
  const Ran ran = run_command({"cpu"});
  CHECK(ran.code == 0);
  for (const KernelChoice& choice : all_kernels()) CHECK(has(ran.out, choice.name));
  CHECK(has(ran.out, std::string("chosen     ") + available_kernels().front()->name));
  const Ran forced = run_command({"cpu"}, {.environment = {"DRAGOMAN_ISA=portable"}});
  CHECK(has(forced.out, "chosen     portable: asked for in DRAGOMAN_ISA"));
}

}  // namespace
}  // namespace dragoman::test
