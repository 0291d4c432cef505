// A few threads that split a range. The caller takes the first share; workers spin briefly for the next call, then
// sleep. How a range is split never changes a result: every item is computed alone (C6).
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/result.h"

namespace dragoman {

class Pool {
 public:
  static constexpr size_t kMaxThreads = 64;
  static constexpr size_t kWorthSharing = 1 << 16;

  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // threads counts the caller: 1 starts none. Nothing is allocated after this.
  Status start(size_t threads);
  void stop();
  size_t threads() const { return threads_; }

  // f(thread, begin, end) for contiguous shares of [0, n), in parallel; returns when all are done. `work` is about how
  // many multiply-adds all of it takes: little work is done by the caller alone, waking others would take longer.
  template <class F>
  void run(size_t n, uint64_t work, const F& f) {
    if (threads_ == 1 || n <= 1 || work < kWorthSharing) {
      if (n > 0) f(size_t{0}, size_t{0}, n);
      return;
    }
    dispatch({[](const void* user, size_t thread, size_t begin, size_t end) {
                (*static_cast<const F*>(user))(thread, begin, end);
              },
              &f, n});
  }

 private:
  struct Task {
    void (*call)(const void* user, size_t thread, size_t begin, size_t end) = nullptr;
    const void* user = nullptr;
    size_t n = 0;
  };
  struct Worker {
    Pool* pool = nullptr;
    size_t index = 0;
    pthread_t thread{};
  };

  void dispatch(const Task& task);
  void share(size_t thread) const;
  void work(size_t thread);
  uint32_t wait_for_task(uint32_t seen);

  size_t threads_ = 1;
  Worker workers_[kMaxThreads];
  Task task_;
  bool stopping_ = false;
  std::atomic<uint32_t> epoch_{0};    // one more for every task
  std::atomic<uint32_t> pending_{0};  // workers that have not finished it
  std::atomic<uint32_t> sleeping_{0};
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_ = PTHREAD_COND_INITIALIZER;
};

}  // namespace dragoman
