#include "runtime/pool.h"

#include <sched.h>
#include <signal.h>

#include <cstring>

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

}  // namespace

Status Pool::start(size_t threads) {
  threads_ = threads < 1 ? 1 : threads;
  if (threads_ > kMaxThreads) return fail("%zu threads asked for; at most %zu are possible", threads, kMaxThreads);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  sigset_t all, before;  // the program's signal handlers do not run on these small stacks
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
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

void Pool::share(size_t thread) const {
  const size_t begin = task_.n * thread / threads_, end = task_.n * (thread + 1) / threads_;
  if (begin < end) task_.call(task_.user, thread, begin, end);
}

void Pool::dispatch(const Task& task) {
  task_ = task;
  pending_.store(static_cast<uint32_t>(threads_ - 1), std::memory_order_relaxed);
  epoch_.fetch_add(1);  // publishes task_; ordered before the look at sleeping_
  if (sleeping_.load() > 0) {
    pthread_mutex_lock(&mutex_);
    pthread_cond_broadcast(&wake_);
    pthread_mutex_unlock(&mutex_);
  }
  share(0);
  for (int spins = 0; pending_.load(std::memory_order_acquire) > 0; ++spins) {
    if (spins < kSpins) {
      pause_cpu();
    } else {
      sched_yield();  // more threads than cores: let them run
    }
  }
}

uint32_t Pool::wait_for_task(uint32_t seen) {
  for (int spins = 0; spins < kSpins; ++spins) {
    const uint32_t now = epoch_.load(std::memory_order_acquire);
    if (now != seen) return now;
    pause_cpu();
  }
  pthread_mutex_lock(&mutex_);
  sleeping_.fetch_add(1);
  uint32_t now;
  while ((now = epoch_.load()) == seen) pthread_cond_wait(&wake_, &mutex_);
  sleeping_.fetch_sub(1);
  pthread_mutex_unlock(&mutex_);
  return now;
}

void Pool::work(size_t thread) {
  const FloatEnv env;
  uint32_t seen = 0;
  while (true) {
    seen = wait_for_task(seen);
    if (stopping_) {
      pending_.fetch_sub(1, std::memory_order_release);
      return;
    }
    share(thread);
    pending_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace dragoman
