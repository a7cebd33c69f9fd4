// Threads and the timed loop.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "bench/threads.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace uk::bench {
void run_on_threads(int threads, const std::function<void(int)>& body) {
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(body, t);
  body(0);
  for (std::thread& other : others) other.join();
}

double sum_on_threads(int threads, const std::function<double(int)>& body) {
  SpinBarrier barrier(threads);
  std::vector<double> results(threads);
  run_on_threads(threads, [&](int thread) {
    barrier.wait();
    results[thread] = body(thread);
  });
  double sum = 0;
  for (double result : results) sum += result;
  return sum;
}

Timing time_calls(int threads, int64_t min_calls, double min_seconds,
                  const std::function<void(int, int64_t)>& call) {
  using Clock = std::chrono::steady_clock;
  constexpr double kShortest = 50e-6;  // of a group: a thousand times the clock's own cost
  SpinBarrier barrier(threads);
  std::vector<double> samples;
  double elapsed = 0;
  int64_t group = 1, next = 0;
  bool done = false;
  run_on_threads(threads, [&](int thread) {
    while (true) {
      barrier.wait();
      // What is shared is written by thread 0 alone, while the others wait here.
      if (done) return;
      const int64_t first = next, last = next + group;
      const Clock::time_point start = Clock::now();
      for (int64_t index = first; index < last; ++index) call(thread, index);
      barrier.wait();
      if (thread != 0) continue;
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      next = last;
      if (seconds < kShortest) {
        group *= 2;
        continue;
      }
      samples.push_back(seconds / static_cast<double>(group));
      elapsed += seconds;
      done = next >= min_calls && elapsed >= min_seconds;
    }
  });
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples[0], next};
}

}  // namespace uk::bench
