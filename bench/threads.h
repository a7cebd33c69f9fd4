// Running on several threads at once and timing it.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_THREADS_H_
#define UKERNEL_BENCH_THREADS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace uk::bench {

// Spins, since sleeping threads would take longer to wake than a short product takes.
class SpinBarrier {
 public:
  explicit SpinBarrier(int threads) : threads_(threads) {}
  void wait() {
    const int round = round_.load();
    if (arrived_.fetch_add(1) + 1 == threads_) {
      arrived_.store(0);
      round_.store(round + 1);
      return;
    }
    while (round_.load() == round) std::this_thread::yield();
  }

 private:
  const int threads_;
  std::atomic<int> arrived_{0}, round_{0};
};

// body(0) on the caller, body(1) ... body(threads - 1) on threads of their own; returns when all
// have.
void run_on_threads(int threads, const std::function<void(int)>& body);

// The sum over `threads` threads of what body measures on each, all starting together.
double sum_on_threads(int threads, const std::function<double(int)>& body);

struct Timing {
  double median, fastest;  // seconds of one call
  int64_t calls;
};

// Times call(thread, index) as made on all threads together, index = 0, 1, ...: at least min_calls
// times and for at least min_seconds. Calls too short for the clock are timed in groups.
Timing time_calls(int threads, int64_t min_calls, double min_seconds,
                  const std::function<void(int, int64_t)>& call);

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_THREADS_H_
