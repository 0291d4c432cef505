#include "runtime/command/progress.h"

#include <unistd.h>

#include "runtime/command/text_out.h"

namespace dragoman::command {
namespace {

constexpr double kInterval = 0.1;

}  // namespace

Progress::Progress(bool wanted) : on_(wanted && ::isatty(STDERR_FILENO) == 1), start_(seconds_now()), shown_(start_) {}

void Progress::update(double now, uint64_t lines, uint64_t tokens) {
  if (on_ && now - shown_ >= kInterval) show(now, lines, tokens, "");
}

void Progress::clear() {
  if (visible_) write_error("\r\033[K");
  visible_ = false;
}

void Progress::finish(uint64_t lines, uint64_t tokens) {
  if (on_) show(seconds_now(), lines, tokens, "\n");
  visible_ = false;
}

void Progress::show(double now, uint64_t lines, uint64_t tokens, const char* end) {
  char buffer[160];
  TextOut out(STDERR_FILENO, buffer);
  const double seconds = now - start_ > 1e-3 ? now - start_ : 1e-3;
  out.put("\r\033[K");
  out.put_integer(static_cast<int64_t>(lines));
  out.put(lines == 1 ? " line, " : " lines, ");
  out.put_fixed(static_cast<double>(lines) / seconds, 1);
  out.put(" lines/s, ");
  out.put_fixed(static_cast<double>(tokens) / seconds, 0);
  out.put(" tokens/s, ");
  out.put_fixed(seconds, 1);
  out.put(" s");
  out.put(end);
  out.flush();
  shown_ = now;
  visible_ = true;
}

}  // namespace dragoman::command
