// A few threads that split a range. Each takes the next piece of it until there is none, smaller ones towards the end,
// so that all end together, and the caller waits only for workers that have begun: on a busy machine, where a worker
// does not get its turn, the others do its share. Workers spin briefly for the next call, then sleep. How a range is
// split never changes a result: every item is computed alone (C6).
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
  static constexpr size_t kLeastWork = kWorthSharing / 2;  // of a piece: taking one costs a tenth of a microsecond

  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // threads counts the caller: 1 starts none. Nothing is allocated after this.
  Status start(size_t threads);
  void stop();
  size_t threads() const { return threads_; }

  // f(thread, begin, end) for contiguous pieces of [0, n), in parallel, those of one thread in rising order; returns
  // when all are done. `work` is about how many multiply-adds all of it takes: little work is done by the caller alone,
  // waking others would take longer. Pieces are multiples of `grain`, but for the last.
  template <class F>
  void run(size_t n, uint64_t work, const F& f, size_t grain = 1) {
    if (threads_ == 1 || n <= 1 || work < kWorthSharing) {
      if (n > 0) f(size_t{0}, size_t{0}, n);
      return;
    }
    dispatch({[](const void* user, size_t thread, size_t begin, size_t end) {
                (*static_cast<const F*>(user))(thread, begin, end);
              },
              &f, n, static_cast<size_t>(1 + uint64_t{n} * kLeastWork / work), grain});
  }

 private:
  struct Task {
    void (*call)(const void* user, size_t thread, size_t begin, size_t end) = nullptr;
    const void* user = nullptr;
    size_t n = 0;
    size_t least = 1;  // items in a piece
    size_t grain = 1;
  };
  struct Worker {
    Pool* pool = nullptr;
    size_t index = 0;
    pthread_t thread{};
  };

  void dispatch(const Task& task);
  void share(size_t thread);
  size_t piece(size_t left) const;
  bool enter(uint64_t& seen);
  void work(size_t thread);
  void wait_for_task(uint64_t seen);

  // state_: how many workers are at the task, whether more may begin, and a number that is another for every task.
  static constexpr uint64_t kInside = 0xffff, kOpen = 0x10000, kNumber = ~(kInside | kOpen);

  size_t threads_ = 1;
  Worker workers_[kMaxThreads];
  Task task_;  // written while no worker is inside and none may begin
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> state_{0};
  std::atomic<size_t> next_{0};  // the first item that nobody has taken
  std::atomic<uint32_t> sleeping_{0};
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_ = PTHREAD_COND_INITIALIZER;
};

}  // namespace dragoman
