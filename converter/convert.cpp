#include "converter/convert.h"

#include <algorithm>
#include <cstdarg>

#include "converter/calibration.h"
#include "converter/file.h"
#include "converter/marian.h"

namespace dragoman {
namespace {

constexpr const char* kNoLicence = "unknown: ask the model's author before you use or pass on this model";
constexpr size_t kMaxText = 1 << 20;

// "key: value" lines.
class Provenance {
 public:
  __attribute__((format(printf, 3, 4))) void line(const char* key, const char* format, ...) {
    char value[512];
    va_list args;
    va_start(args, format);
    std::vsnprintf(value, sizeof value, format, args);
    va_end(args);
    text += std::string(key) + ": " + value + "\n";
  }
  std::string text;
};

const TensorReport* worst_tensor(const std::vector<TensorReport>& tensors) {
  const auto worst = std::max_element(tensors.begin(), tensors.end(), [](const TensorReport& a, const TensorReport& b) {
    return a.error.relative < b.error.relative;
  });
  return worst == tensors.end() ? nullptr : &*worst;
}

std::string provenance_text(const Origin& origin, const ConvertReport& report, bool calibrated) {
  const SelfTestFigures& figures = report.selftest;
  const bool int8 = report.arch.weights == Weights::kInt8;
  Provenance p;
  p.line("converter", "dragoman-convert %s", DRAGOMAN_VERSION);
  p.line("source format", "%s", origin.format.c_str());
  p.line("source name", "%s", origin.name.c_str());
  p.line("source weights", "%s, %llu bytes, %s", origin.weights.c_str(),
         static_cast<unsigned long long>(origin.weight_bytes), origin.storage.c_str());
  p.line("source checksum", "%016llx", static_cast<unsigned long long>(origin.checksum));
  p.line("quantization", "%s", int8 ? "int8, symmetric, one scale per output channel" : "none");
  if (int8) p.line("rounding", "%s", calibrated ? "calibrated on arbitrary ids" : "to the nearest");
  const TensorReport* worst = worst_tensor(report.tensors);
  if (int8 && worst) p.line("largest relative error", "%.3g (%s)", worst->error.relative, worst->name.c_str());
  p.line("self-test", "%zu sentences, %zu ids", figures.sentences, figures.tokens);
  p.line("logit differences to the double-precision reference", "%.3g (root mean square), %.3g at most",
         figures.logit_rms(), figures.logit_difference);
  p.line("agreement with the reference", "%zu of %zu sentences, %zu of %zu ids", figures.agreeing_sentences,
         figures.sentences, figures.agreeing_tokens, figures.tokens);
  return p.text;
}

std::string licence_text(const std::string& folder, const ConvertOptions& options) {
  std::string text = options.licence.empty() ? licence_of_folder(folder) : options.licence;
  if (text.empty()) text = kNoLicence;
  if (text.back() != '\n') text += '\n';
  if (!options.attribution.empty()) text += "attribution: " + options.attribution + "\n";
  return text;
}

// Text goes to terminals as it is: printable characters of UTF-8, tabs and line ends.
Status check_text(const std::string& text, const char* what) {
  const bool control = std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 127 || (byte < 32 && byte != '\n' && byte != '\r' && byte != '\t');
  });
  if (control) return fail("the %s is not plain text: it has control characters", what);
  if (text.size() > kMaxText) return fail("the %s has %zu bytes: at most %zu can be kept", what, text.size(), kMaxText);
  return Done{};
}

Status judge(const Architecture& arch, const SelfTestFigures& figures) {
  if (arch.weights != Weights::kF32 || figures.logit_difference <= kMaxLogitDifference) return Done{};
  return fail(
      "the self-test failed: logits of the float32 model differ by %.3g from the double-precision reference (at "
      "most %g is allowed), and %zu of %zu ids agree; nothing was written; please report this",
      figures.logit_difference, kMaxLogitDifference, figures.agreeing_tokens, figures.tokens);
}

// The self-test's sentences through the runtime, on a file that is mapped no longer than that.
Result<std::vector<Recording>> record_file(const std::string& path, const Progress& progress) {
  Result<MappedFile> file = map_file(path.c_str());
  if (!file) return file.error();
  Result<std::vector<Recording>> recordings = record_selftest(file->bytes, progress);
  unmap_file(*file);
  return recordings;
}

}  // namespace

std::string licence_of_folder(const std::string& folder) {
  for (const char* name : {"LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "LICENCE.txt", "COPYING"}) {
    const Result<SourceFile> file =
        file_exists(folder + "/" + name) ? SourceFile::open(folder + "/" + name) : Result<SourceFile>(fail("absent"));
    if (file && file->bytes().size() <= kMaxText) return std::string(file->text());
  }
  // The head of a model card: lines between two "---".
  if (!file_exists(folder + "/README.md")) return "";
  const Result<SourceFile> readme = SourceFile::open(folder + "/README.md");
  if (!readme || !readme->text().starts_with("---\n")) return "";
  const std::string_view head = readme->text().substr(3, readme->text().find("\n---", 3) - 3);
  constexpr std::string_view kKey = "\nlicense:";
  const size_t at = head.find(kKey);
  if (at == std::string_view::npos) return "";
  std::string_view value = head.substr(at + kKey.size());
  value = value.substr(0, value.find('\n'));
  const size_t first = value.find_first_not_of(" \t\"'\r");
  if (first == std::string_view::npos) return "";
  value = value.substr(first, value.find_last_not_of(" \t\"'\r") + 1 - first);
  return printable(value) + " (as the model card says)";
}

Result<ConvertReport> convert(const std::string& source, const std::string& out, const ConvertOptions& options) {
  const std::string licence = licence_text(source, options);
  if (const Status plain = check_text(licence, "licence or attribution"); !plain) return plain.error();
  Result<OutputFile> file = OutputFile::create(out);  // first: who cannot write should know before waiting
  if (!file) return file.error();
  Result<SectionsOnDisk> tensors = SectionsOnDisk::create(file->temporary());
  if (!tensors) return tensors.error();

  if (options.progress) options.progress("reading", 0);
  const Result<Checkpoint> checkpoint = read_marian(source);
  if (!checkpoint) return checkpoint.error();
  const bool calibrated = options.weights == Weights::kInt8 && options.calibrate;
  const std::vector<SentencePair> sentences =
      calibrated ? calibration_sentences(*checkpoint) : std::vector<SentencePair>();
  Result<std::vector<TensorReport>> packed =
      pack_tensors(*checkpoint, options.weights, sentences, *tensors, options.progress);
  if (!packed) return packed.error();

  ConvertReport report;
  report.arch = checkpoint->arch;
  report.arch.weights = options.weights;
  report.tensors = std::move(*packed);
  report.licence = licence;
  report.source_bytes = checkpoint->origin.weight_bytes;
  std::vector<SectionData> front = front_sections(*checkpoint, options.weights);
  if (const Status wrote = file->write_model(front, *tensors, options.progress); !wrote) return wrote.error();
  const Result<std::vector<Recording>> recordings = record_file(file->temporary(), options.progress);
  if (!recordings) return recordings.error();
  const Result<SelfTestFigures> figures = compare_with_reference(*recordings, *checkpoint, options.progress);
  if (!figures) return figures.error();
  report.selftest = *figures;
  if (const Status good = judge(report.arch, report.selftest); !good) return good.error();
  report.provenance = provenance_text(checkpoint->origin, report, calibrated);

  // What is checked at every open lies together at the front; the tensors follow.
  front.push_back(text_section("provenance", report.provenance));
  front.push_back(text_section("licence", report.licence));
  front.push_back({"selftest", SectionKind::kSelfTest, Layout::kNone, 0, 0, selftest_section(*recordings)});
  if (const Status wrote = file->write_model(front, *tensors, options.progress); !wrote) return wrote.error();
  const Result<uint64_t> bytes = file->commit();
  if (!bytes) return bytes.error();
  report.file_bytes = *bytes;
  return report;
}

}  // namespace dragoman
