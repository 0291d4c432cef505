// dragoman-convert: someone else's model in, one .dgm file out.
#include <sys/stat.h>
#include <unistd.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "converter/convert.h"
#include "converter/file.h"
#include "converter/interruption.h"

namespace dragoman {
namespace {

constexpr const char* kDescription =
    "Packs a trained translation model into one file that `dragoman` maps and runs.\n"
    "\n"
    "SOURCE is a HuggingFace MarianMT folder: config.json, model.safetensors (whole or in parts) or "
    "pytorch_model.bin,\n"
    "source.spm, target.spm, vocab.json (or tokenizer.json) and, if there is one, generation_config.json. What the\n"
    "converter does not understand it refuses by name. Nothing in a pytorch_model.bin is ever run.\n"
    "Before it writes, it translates fixed sentences with the new model and compares every score with a\n"
    "double-precision run of the original weights. `dragoman verify OUT` replays them on any machine.\n";

constexpr const char* kFooter =
    "\nExamples:\n"
    "  dragoman-convert opus-mt-en-de en-de.dgm\n"
    "  dragoman-convert opus-mt-en-de en-de.f32.dgm --quantize none\n"
    "  dragoman-convert my-model my.dgm --licence CC-BY-4.0 --attribution \"Jane Doe, 2024\"\n"
    "\n"
    "Exit codes: 0 converted; 1 refused or failed, with a sentence that says why; 2 wrong use of this command.";

struct Arguments {
  std::string source, out, licence, attribution;
  std::string quantize = "int8";
  std::string rounding = "calibrated";
  bool quiet = false;
};

// One line on a terminal, rewritten in place.
void show_progress(const char* step, double done) {
  constexpr int kWidth = 40;
  char bar[kWidth + 1];
  for (int i = 0; i < kWidth; ++i) bar[i] = i < done * kWidth ? '#' : '.';
  bar[kWidth] = 0;
  std::fprintf(stderr, "\r%-10s [%s] %3.0f %%", step, bar, 100 * done);
  std::fflush(stderr);
}

void clear_progress() {
  std::fprintf(stderr, "\r%70s\r", "");
}

void print_report(const ConvertReport& report, const std::string& out) {
  std::printf("%-24s %15s %12s %12s  %s\n", "tensor", "shape", "bytes before", "after", "relative error");
  size_t before = 0, after = 0;
  for (const TensorReport& tensor : report.tensors) {
    char shape[48], error[24] = "-";
    if (tensor.k == 1) {
      std::snprintf(shape, sizeof shape, "%zu", tensor.n);
    } else {
      std::snprintf(shape, sizeof shape, "%zu x %zu", tensor.n, tensor.k);
    }
    if (tensor.quantized) std::snprintf(error, sizeof error, "%.5f", tensor.error.relative);
    std::printf("%-24s %15s %12zu %12zu  %s\n", tensor.name.c_str(), shape, tensor.bytes_before, tensor.bytes_after,
                error);
    before += tensor.bytes_before;
    after += tensor.bytes_after;
  }
  std::printf("%-24s %15s %12zu %12zu\n\n", "total", "", before, after);
  const SelfTestFigures& test = report.selftest;
  std::printf(
      "self-test: %zu sentences, %zu ids; against the double-precision reference: %zu sentences and %zu ids agree, "
      "logits differ by %.3g (root mean square), %.3g at most\n",
      test.sentences, test.tokens, test.agreeing_sentences, test.agreeing_tokens, test.logit_rms(),
      test.logit_difference);
  std::printf("%s: %.1f MB, from %.1f MB of weights\n", out.c_str(), static_cast<double>(report.file_bytes) / 1e6,
              static_cast<double>(report.source_bytes) / 1e6);
  if (report.licence.starts_with("unknown"))
    std::printf("licence: unknown; say what it is with --licence, so that whoever gets the file knows\n");
}

// The text of a file if there is one of that name, else the text itself.
Result<std::string> text_or_file(const std::string& value) {
  struct stat info;
  if (value.empty()) return value;
  if (stat(value.c_str(), &info) != 0) {
    if (value.ends_with(".txt") || value.ends_with(".md"))
      return fail("there is no file %s: --licence takes a file, or the text itself", printable(value).c_str());
    return value;
  }
  const Result<SourceFile> file = SourceFile::open(value);
  if (!file) return file.error();
  return std::string(file->text());
}

// What was printed must also arrive; a reader that went away needs no word. `done` says what is done all the same.
int finish_output(const std::string& done) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return 0;
  if (errno != EPIPE)
    std::fprintf(stderr, "dragoman-convert: %sstandard output cannot be written (%s)\n", done.c_str(),
                 std::strerror(errno));
  return 1;
}

int run(const Arguments& arguments) {
  const bool terminal = !arguments.quiet && isatty(STDERR_FILENO);
  ConvertOptions options;
  options.weights = arguments.quantize == "int8" ? Weights::kInt8 : Weights::kF32;
  options.calibrate = arguments.rounding == "calibrated";
  options.attribution = arguments.attribution;
  if (terminal) options.progress = show_progress;
  const Result<std::string> licence = text_or_file(arguments.licence);
  Result<ConvertReport> report = licence
                                     ? (options.licence = *licence, convert(arguments.source, arguments.out, options))
                                     : Result<ConvertReport>(licence.error());
  if (terminal) clear_progress();
  if (!report) {
    std::fprintf(stderr, "dragoman-convert: %s\n", report.error().text);
    return 1;
  }
  if (const SelfTestFigures& test = report->selftest; 2 * test.agreeing_tokens < test.tokens)
    std::fprintf(
        stderr,
        "dragoman-convert: warning: %s picks another word than the original weights at %zu of %zu ids: it will "
        "not translate as they do; try --quantize none, and look at the weights\n",
        arguments.out.c_str(), test.tokens - test.agreeing_tokens, test.tokens);
  if (arguments.quiet) return 0;
  print_report(*report, arguments.out);
  return finish_output(arguments.out + " is complete, but ");
}

int main_with(int argc, char** argv) {
  Arguments arguments;
  CLI::App app(kDescription, "dragoman-convert");
  app.footer(kFooter);
  app.set_version_flag("--version", "dragoman-convert " DRAGOMAN_VERSION, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.add_option("SOURCE", arguments.source, "Folder of the trained model")->required();
  app.add_option("OUT", arguments.out, "File to write; an older .dgm is replaced when the new one is complete")
      ->required();
  app.add_option("--quantize", arguments.quantize,
                 "int8 (a quarter of the size, and faster: the default) or none (float32)")
      ->check(CLI::IsMember({"int8", "none"}))
      ->option_text("int8|none");
  app.add_option(
         "--rounding", arguments.rounding,
         "For int8. calibrated: runs the model first and rounds so that its products change least (the default); "
         "nearest: quicker, a little less exact")
      ->check(CLI::IsMember({"calibrated", "nearest"}))
      ->option_text("calibrated|nearest");
  app.add_option("--licence,--license", arguments.licence,
                 "Licence of the model: a file, or the text itself. Without it, what the folder says")
      ->option_text("FILE|TEXT");
  app.add_option("--attribution", arguments.attribution, "Whom to name; kept with the licence in the file")
      ->option_text("TEXT");
  app.add_flag("-q,--quiet", arguments.quiet, "Print nothing but errors and warnings");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? finish_output("") : 2;
  }
  try {
    return run(arguments);
  } catch (const std::exception& error) {  // no part of us throws on purpose
    std::fprintf(stderr, "dragoman-convert: %s: please report this\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace dragoman

int main(int argc, char** argv) {
  dragoman::arrange_interruptions();
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 1 << 20);  // what one layer took goes back to the system before the next is read
#endif
  return dragoman::main_with(argc, argv);
}
