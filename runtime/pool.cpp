#include "runtime/pool.h"

#include <sched.h>
#include <signal.h>

#include <cstring>
#include <initializer_list>

#include "kernels/float_env.h"

namespace dragoman {
namespace {

// About 20 microseconds: longer than the gap between two products of one decoding step, shorter than a time slice.
constexpr int kSpins = 4000;
constexpr size_t kStackBytes = 256 * 1024;

inline void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// The program's signal handlers do not run on these small stacks, except for faults of the worker itself: a fault that
// is blocked kills the process before its handler can say why.
sigset_t workers_mask() {
  sigset_t mask;
  sigfillset(&mask);
  for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&mask, fault);
  return mask;
}

}  // namespace

Status Pool::start(size_t threads) {
  threads_ = threads < 1 ? 1 : threads;
  if (threads_ > kMaxThreads) return fail("%zu threads asked for; at most %zu are possible", threads, kMaxThreads);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  const sigset_t mask = workers_mask();
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &mask, &before);
  int failed = 0;
  size_t started = 1;
  for (; started < threads_ && !failed; ++started) {
    Worker& worker = workers_[started];
    worker.pool = this;
    worker.index = started;
    const auto body = [](void* user) -> void* {
      Worker* self = static_cast<Worker*>(user);
      self->pool->work(self->index);
      return nullptr;
    };
    failed = pthread_create(&worker.thread, &attributes, body, &worker);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (!failed) return Done{};
  threads_ = started - 1;
  stop();
  return fail("could not start %zu threads (%s): ask for fewer", threads, std::strerror(failed));
}

void Pool::stop() {
  if (threads_ == 1) return;
  stopping_ = true;
  const size_t threads = threads_;
  dispatch({});
  for (size_t i = 1; i < threads; ++i) pthread_join(workers_[i].thread, nullptr);
  threads_ = 1;
}

// Half of a thread's share of what is left. With four equal pieces for each thread, one waited for the other during 7 %
// of the time (two threads on Zen 3, base and tiny at 32 sentences).
size_t Pool::piece(size_t left) const {
  const size_t some = left / (2 * threads_), least = some > task_.least ? some : task_.least;
  const size_t whole = (least + task_.grain - 1) / task_.grain * task_.grain;
  return whole < left ? whole : left;
}

void Pool::share(size_t thread) {
  size_t begin = next_.load(std::memory_order_relaxed);
  while (begin < task_.n) {
    const size_t end = begin + piece(task_.n - begin);
    if (!next_.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
    task_.call(task_.user, thread, begin, end);
    begin = next_.load(std::memory_order_relaxed);
  }
}

void Pool::dispatch(const Task& task) {
  task_ = task;
  next_.store(0, std::memory_order_relaxed);
  state_.store((state_.load(std::memory_order_relaxed) & kNumber) + kOpen * 2 + kOpen);  // publishes the two above
  if (sleeping_.load() > 0) {                                                            // ordered after state_
    pthread_mutex_lock(&mutex_);
    pthread_cond_broadcast(&wake_);
    pthread_mutex_unlock(&mutex_);
  }
  share(0);
  state_.fetch_and(~kOpen);
  for (int spins = 0; (state_.load(std::memory_order_acquire) & kInside) > 0; ++spins) {
    if (spins < kSpins) {
      pause_cpu();
    } else {
      sched_yield();  // more threads than cores: let them run
    }
  }
}

void Pool::wait_for_task(uint64_t seen) {
  for (int spins = 0; spins < kSpins; ++spins) {
    if ((state_.load(std::memory_order_acquire) & kNumber) != seen) return;
    pause_cpu();
  }
  pthread_mutex_lock(&mutex_);
  sleeping_.fetch_add(1);
  while ((state_.load() & kNumber) == seen) pthread_cond_wait(&wake_, &mutex_);
  sleeping_.fetch_sub(1);
  pthread_mutex_unlock(&mutex_);
}

// True if this worker may begin; `seen` becomes the number of the task it has seen, late or not.
bool Pool::enter(uint64_t& seen) {
  uint64_t state = state_.load(std::memory_order_acquire);
  do {
    seen = state & kNumber;
    if (!(state & kOpen)) return false;
  } while (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire));
  return true;
}

void Pool::work(size_t thread) {
  const FloatEnv env;
  uint64_t seen = 0;
  while (true) {
    wait_for_task(seen);
    if (stopping_) return;
    if (!enter(seen)) continue;
    share(thread);
    state_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace dragoman
