// `dragoman verify`: is this file what the converter wrote, and does this CPU compute the same bits?
#include <cstring>

#include "runtime/command/commands.h"
#include "runtime/command/locate.h"
#include "runtime/command/text_out.h"
#include "runtime/mapped_file.h"
#include "runtime/selftest.h"

namespace dragoman::command {
namespace {

// One line a check; remembers whether one failed.
class Checks {
 public:
  explicit Checks(TextOut& out) : out_(out) {}
  void ok(const char* what, const char* detail) { line("ok", what, detail); }
  void failed(const char* what, const char* detail) {
    line("FAILED", what, detail);
    code_ = kFailed;
  }
  int code() const { return code_; }

 private:
  void line(const char* verdict, const char* what, const char* detail) {
    out_.format("%-7s %-22s %s\n", verdict, what, detail);
    out_.flush();
  }
  TextOut& out_;
  int code_ = kOk;
};

void check_selftest(Checks& checks, const Model& model, const Kernels& kernels) {
  char what[40];
  std::snprintf(what, sizeof what, "self-test on %s", kernels.name);
  const Result<SelfTestReport> report = replay_selftest(model, kernels);
  if (!report) return checks.failed(what, report.error().text);
  char detail[200];
  if (report->failed == 0) {
    std::snprintf(detail, sizeof detail, "%zu sentence%s: ids and logits have the recorded bits", report->cases,
                  report->cases == 1 ? "" : "s");
    return checks.ok(what, detail);
  }
  std::snprintf(detail, sizeof detail, "%zu of %zu sentences differ, first in their %s", report->failed, report->cases,
                report->first_failure);
  checks.failed(what, detail);
}

void check_file(Checks& checks, const MappedFile& file, const char* path, std::span<const Kernels* const> kernels) {
  static Model model;
  const Status opened = open_model(file.bytes, path, model);
  if (!opened) return checks.failed("structure", opened.error().text);
  checks.ok("structure", "header, section table, architecture, tokenizer");
  const Status tensors = verify_tensors(model, path);
  if (!tensors) {
    checks.failed("tensors", tensors.error().text);
  } else {
    checks.ok("tensors", "every checksum matches");
  }
  for (const Kernels* table : kernels) check_selftest(checks, model, *table);
}

}  // namespace

int run_verify(const Settings& settings) {
  const Result<KernelSelection> selection = select_kernels(settings);
  const bool too_many = settings.words.size() > 1;
  if (!selection || too_many || (settings.isa && settings.all_isas)) {
    say("%s", !selection ? selection.error().text
              : too_many ? "verify takes one file at a time"
                         : "--isa and --all-isas exclude each other");
    return kUsageError;
  }
  const Result<const char*> path = locate_model(settings, settings.words.empty() ? nullptr : settings.words[0]);
  if (!path) {
    say("%s", path.error().text);
    return kRuntimeError;
  }
  Result<MappedFile> file = map_file(*path, settings.preload);
  if (!file) {
    say("%s", file.error().text);
    return kRuntimeError;
  }
  Checks checks(standard_output());
  const Kernels* const one[] = {selection->kernels};
  check_file(checks, *file, *path, settings.all_isas ? available_kernels() : std::span<const Kernels* const>(one));
  unmap_file(*file);
  return finish_output(standard_output(), checks.code());
}

}  // namespace dragoman::command
