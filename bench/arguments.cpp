#include "bench/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "bench/synthetic_model.h"
#include "kernels/kernels.h"
#include "runtime/search.h"

namespace dragoman::bench {
namespace {

constexpr const char* kDescription =
    "Translates as fast as it can and says how fast that was, and how fast this machine would allow it to be.\n"
    "\n"
    "Without a model it makes its own, with random weights and forced lengths: nothing to download, and token counts\n"
    "that can be compared. Options that take a list measure every combination; repeats go round all of them in turn,\n"
    "and medians are shown, so that a busy moment of the machine hurts all alike.\n";

constexpr const char* kFooter =
    "\nExamples:\n"
    "  dragoman-bench --synthetic base --batch 1,32\n"
    "  dragoman-bench --synthetic tiny,base --quantize int8,none --threads 1,2 --output markdown\n"
    "  dragoman-bench -m en-de.dgm --input lines.txt --batch 1,32 --profile\n"
    "  dragoman-bench --synthetic tiny --growth growth.svg\n"
    "\n"
    "bench/README.md says what the columns mean and how to compare honestly.\n"
    "Exit codes: 0 measured; 1 failed, with a sentence that says why; 2 wrong use of this command.";

constexpr uint32_t kDefaultSource = 25, kDefaultTarget = 30;

void describe(CLI::App& app, Arguments& o) {
  const std::map<std::string, Format> formats = {
      {"table", Format::kTable}, {"markdown", Format::kMarkdown}, {"json", Format::kJson}, {"csv", Format::kCsv}};
  std::vector<std::string> names;
  for (const Shape& shape : shapes()) names.emplace_back(shape.name);

  app.footer(kFooter);
  app.set_version_flag("--version", "dragoman-bench " DRAGOMAN_VERSION, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  CLI::Option* model = app.add_option("-m,--model", o.model, "A .dgm file")->option_text("FILE");
  app.add_option("--synthetic", o.synthetic, "Models made here: tiny, base-memory, base, big (default: tiny)")
      ->delimiter(',')
      ->check(CLI::IsMember(names))
      ->excludes(model)
      ->option_text("NAME,...");
  app.add_option("--quantize", o.quantize, "Weights of synthetic models: int8, none (default: int8)")
      ->delimiter(',')
      ->check(CLI::IsMember({"int8", "none"}))
      ->excludes(model)
      ->option_text("int8,none");
  const auto list = [&](const char* name, std::vector<uint32_t>& to, const char* what) {
    app.add_option(name, to, what)->delimiter(',')->check(CLI::Range(1, 4096))->option_text("N,...");
  };
  list("--batch", o.batch, "Sentences decoded side by side (default: 1,8,32)");
  list("--threads", o.threads, "Threads (default: 1)");
  app.add_option("--isa", o.isa, "Instruction sets, as `dragoman cpu` names them (default: the best)")
      ->delimiter(',')
      ->option_text("NAME,...");
  app.add_option("--input", o.input, "Lines to translate, with -m (default: built-in English sentences)")
      ->needs(model)
      ->option_text("FILE");
  app.add_option("--source-length", o.source_length,
                 "Ids of every source, eos included (default: 25; with -m: as the text has)")
      ->check(CLI::Range(2, 65536))
      ->option_text("N");
  app.add_option("--target-length", o.target_length, "Ids of every target (default: 30; with -m: until eos)")
      ->check(CLI::Range(1, 65536))
      ->option_text("N");
  app.add_option("--repeat", o.repeat, "Runs of each combination (default: 5)")
      ->check(CLI::Range(1, 1000))
      ->option_text("N");
  app.add_option("--sentences", o.sentences,
                 "Sentences in a run (default: all of --input; with forced lengths as many as the batch, at least 8)")
      ->check(CLI::Range(1, 1000000))
      ->option_text("N");
  app.add_option("--output", o.output, "table, markdown, json or csv")
      ->transform(CLI::CheckedTransformer(formats))
      ->option_text("FORMAT");
  app.add_flag("--preload", o.preload,
               "Read the model into memory, in large pages where there are some, as `dragoman` does");
  app.add_flag("--profile", o.profile, "Where the time goes: every part beside its own limit");
  app.add_option("--plot", o.plot, "Draw the roofline of this machine with our kernels on it")->option_text("FILE.svg");
  CLI::Option* growth =
      app.add_option("--growth", o.growth, "Instead: time against length (8 to 512) and against batch (1 to 64), drawn")
          ->option_text("FILE.svg");
  for (const char* other :
       {"--batch", "--input", "--source-length", "--target-length", "--sentences", "--preload", "--profile", "--plot"})
    growth->excludes(app.get_option(other));
}

// What CLI11 cannot know. Returns a sentence, or nothing.
std::string check(const Arguments& o) {
  for (const std::string& isa : o.isa) {
    if (find_kernels(isa.c_str())) continue;
    std::string known;
    for (const Kernels* k : available_kernels()) known += (known.empty() ? "" : ", ") + std::string(k->name);
    return "this machine has no instruction set '" + isa + "': it runs " + known;
  }
  if (!o.growth.empty()) {
    const size_t models = std::max<size_t>(1, o.synthetic.size()) * o.quantize.size();
    if (models > 1 || o.isa.size() > 1 || o.threads.size() > 1)
      return "--growth is of one model, one instruction set and one number of threads";
    if (o.output == Format::kCsv) return "--growth prints two tables: as table, markdown or json";
  }
  if (!o.forced()) return "";
  if (!o.input.empty()) return "--input has lengths of its own: leave out --source-length and --target-length";
  const size_t cap = length_cap(o.source_length, 65536, 65536);
  if (o.target_length > cap) {
    return "a target of " + std::to_string(o.target_length) + " ids is cut after " + std::to_string(cap) +
           ", twice a source of " + std::to_string(o.source_length) + " and 10: ask for a longer --source-length";
  }
  if (o.model.empty() && std::max(o.source_length, o.target_length) > kPositions)
    return "synthetic models have positions for " + std::to_string(kPositions) + " ids";
  return "";
}

}  // namespace

bool parse(int argc, const char* const* argv, Arguments& o, Stop& stop) {
  CLI::App app(kDescription, "dragoman-bench");
  describe(app, o);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      stop.code = app.exit(error);  // prints the help or the version
    } else {
      stop.text = error.what();
    }
    return false;
  }
  if (o.model.empty() && o.synthetic.empty()) o.synthetic = {"tiny"};
  if (o.model.empty() || !o.growth.empty() || o.source_length > 0 || o.target_length > 0) {
    if (o.source_length == 0) o.source_length = kDefaultSource;
    if (o.target_length == 0) o.target_length = kDefaultTarget;
  }
  stop.text = check(o);
  return stop.text.empty();
}

}  // namespace dragoman::bench
