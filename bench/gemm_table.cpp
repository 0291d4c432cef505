#include "bench/gemm_table.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "bench/gemm_data.h"
#include "bench/measure.h"
#include "runtime/clock.h"
#if defined(DRAGOMAN_HAVE_ONEDNN)
#include "bench/onednn_gemm.h"
#endif

namespace dragoman::bench {
namespace {

constexpr double kSlice = 0.004;  // seconds of one timing: within one time slice of a busy machine

double thread_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// One implementation that walks round its copies of the weights.
struct Contender {
  std::string form;
  std::function<void(size_t)> run;
  size_t copies;
  size_t next = 0;
  std::vector<double> seconds{};  // by slice, of one call

  void call() {
    run(next);
    next = (next + 1) % copies;
  }

  // Another contender has just filled the caches with its own weights: one lap first (or a slice, where that is
  // shorter) brings them to where they are when a decoder runs alone.
  double slice() {
    const double begin = seconds_now();
    size_t calls = 0;
    double wall = 0;
    do {
      call();
      wall = seconds_now() - begin;
    } while (++calls < copies && wall < kSlice);
    const size_t timed = std::max<size_t>(1, static_cast<size_t>(kSlice / wall * static_cast<double>(calls)));
    const double start = thread_seconds();
    for (size_t i = 0; i < timed; ++i) call();
    return (thread_seconds() - start) / static_cast<double>(timed);
  }
};

#if defined(DRAGOMAN_HAVE_ONEDNN)
double difference(const std::vector<float>& ours, const float* theirs) {
  double most = 0, largest = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(ours[i]) - theirs[i]));
    largest = std::max(largest, std::abs(static_cast<double>(ours[i])));
  }
  return largest > 0 ? most / largest : most;
}

struct Rival {
  std::unique_ptr<OneDnnGemm> gemm;
  Contender contender;
  double trial, error;
};

// The two forms that were quickest in one slice each.
std::vector<Rival> choose_rivals(const GemmData& data, size_t copies, OurGemm& ours) {
  ours.run(0);
  std::vector<Rival> rivals;
  for (const OneDnnForm& form : onednn_forms(data.s8)) {
    std::unique_ptr<OneDnnGemm> gemm = OneDnnGemm::create(form, data, copies);
    if (!gemm) continue;
    OneDnnGemm* at = gemm.get();
    at->run(0);
    const double error = difference(ours.result(), at->result());
    Rival rival{std::move(gemm), {form.name(), [at](size_t copy) { at->run(copy); }, copies}, 0, error};
    rival.trial = rival.contender.slice();
    rivals.push_back(std::move(rival));
    std::sort(rivals.begin(), rivals.end(), [](const Rival& a, const Rival& b) { return a.trial < b.trial; });
    if (rivals.size() > 2) rivals.pop_back();
  }
  return rivals;
}
#endif

void measure_row(GemmRow& row, GemmData& data, size_t repeat) {
  const size_t copies = row.working_set / row.matrix_bytes();
  data.set_rows(row.m);
  OurGemm gemm(*row.kernels, data, copies);
  Contender ours{"ours", [&](size_t copy) { gemm.run(copy); }, copies};
  std::vector<Contender*> turns = {&ours};
#if defined(DRAGOMAN_HAVE_ONEDNN)
  std::vector<Rival> rivals = choose_rivals(data, copies, gemm);
  for (Rival& rival : rivals) turns.push_back(&rival.contender);
#endif
  for (size_t i = 0; i < repeat; ++i) {
    for (Contender* contender : turns) contender->seconds.push_back(contender->slice());
  }
  row.ours = median(ours.seconds);
#if defined(DRAGOMAN_HAVE_ONEDNN)
  for (const Rival& rival : rivals) {
    const double took = median(rival.contender.seconds);
    if (row.onednn > 0 && took > row.onednn) continue;
    row.onednn = took;
    row.form = rival.contender.form;
    row.error = rival.error;
  }
#endif
}

}  // namespace

void measure_gemms(std::vector<GemmRow>& rows, size_t repeat, const std::function<void(const char*)>& progress) {
  std::optional<GemmData> data;
  for (size_t i = 0; i < rows.size(); ++i) {
    GemmRow& row = rows[i];
    progress((std::to_string(i + 1) + " of " + std::to_string(rows.size()) + ": " + row.name()).c_str());
    if (!data || data->s8 != row.s8 || data->k != row.shape.k || data->n != row.shape.n)
      data.emplace(row.shape, row.s8);
    measure_row(row, *data, repeat);
  }
}

#if !defined(DRAGOMAN_HAVE_ONEDNN)
std::string onednn_version() {
  return "";
}
#endif

}  // namespace dragoman::bench
