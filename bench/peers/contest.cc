// Slices and rounds.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "bench/peers/contest.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "bench/median.h"
#include "bench/peak.h"
#include "bench/threads.h"

namespace uk::bench {
namespace {

// Keeps the calling thread on a CPU of its own, for as long as this lives: a new thread starts
// where its parent runs, and stays there for longer than a slice lasts.
class Pin {
 public:
  explicit Pin(int thread) {
    sched_getaffinity(0, sizeof(before_), &before_);
    int cpu = 0;
    for (int left = thread; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &before_) && left-- == 0) break;
    }
    if (cpu == CPU_SETSIZE) return;  // more threads than CPUs
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
  }
  ~Pin() { sched_setaffinity(0, sizeof(before_), &before_); }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

 private:
  cpu_set_t before_;
};

}  // namespace

Entrant::Entrant(int threads, double slice_seconds, std::function<void(int, int64_t)> run)
    : threads_(threads), slice_seconds_(slice_seconds), run_(std::move(run)) {}

double Entrant::time_calls(int64_t calls) {
  SpinBarrier barrier(threads_);
  double seconds = 0;
  run_on_threads(threads_, [&](int thread) {
    // Threads that a library starts would inherit the only caller's CPU.
    std::optional<Pin> pin;
    if (threads_ > 1) pin.emplace(thread);
    barrier.wait();
    const double spent = seconds_of([&] {
      for (int64_t call = 0; call < calls; ++call) {
        run_(thread, next_ + call);
        barrier.wait();
      }
    });
    if (thread == 0) seconds = spent;
  });
  next_ += calls;
  return seconds;
}

double Entrant::time_slice(double length) {
  constexpr double kLongCall = 0.05;
  // Whoever ran before has left its own data in the caches. A long call fills them in no time.
  const double warm_up = time_calls(1);
  if (warm_up >= kLongCall) return warm_up;
  if (calls_ == 0) {
    calls_ = 1;
    double seconds = warm_up;
    while (seconds < slice_seconds_ / 4) {
      calls_ *= 2;
      seconds = time_calls(calls_);
    }
    calls_ = std::max<int64_t>(
        static_cast<int64_t>(static_cast<double>(calls_) * slice_seconds_ / seconds), 1);
  }
  const int64_t calls = std::max<int64_t>(std::llround(static_cast<double>(calls_) * length), 1);
  return time_calls(calls) / static_cast<double>(calls);
}

std::vector<std::vector<SlicePair>> time_in_pairs(Entrant& own, std::vector<Entrant>& others,
                                                  const Pace& pace,
                                                  const std::function<bool()>& is_shared) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> length(0.75, 1.25);
  bool shared = false;
  const auto slice = [&](Entrant& entrant) {
    if (pace.rest_seconds > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double>(pace.rest_seconds));
    }
    const double seconds = entrant.time_slice(length(random));
    shared = shared || is_shared();
    return seconds;
  };
  double spent = 0, patience = pace.patience_seconds;
  const auto wait_for_core = [&] {
    for (shared = is_shared(); shared && patience > 0;) {
      patience -= seconds_of([&] { shared = is_shared(); });
    }
    shared = false;
  };
  std::vector<std::vector<SlicePair>> pairs(others.size());
  // Those around one slice of `own`; an odd one out is before or after it.
  const auto time_around = [&](std::optional<size_t> before, std::optional<size_t> after) {
    double before_seconds = 0, own_seconds = 0, after_seconds = 0;
    for (;;) {
      wait_for_core();
      const double seconds = seconds_of([&] {
        if (before) before_seconds = slice(others[*before]);
        own_seconds = slice(own);
        if (after) after_seconds = slice(others[*after]);
      });
      if (!shared || patience <= 0) {
        spent += seconds;
        break;
      }
      patience -= seconds;
    }
    if (before) pairs[*before].push_back({own_seconds, before_seconds});
    if (after) pairs[*after].push_back({own_seconds, after_seconds});
  };
  std::vector<std::optional<size_t>> order(others.size() + others.size() % 2);
  for (size_t i = 0; i < others.size(); ++i) order[i] = i;
  for (int round = 0; round < pace.rounds || spent < pace.seconds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i = 0; i < order.size(); i += 2) time_around(order[i], order[i + 1]);
  }
  return pairs;
}

Quartiles ratio_quartiles(const std::vector<SlicePair>& pairs) {
  std::vector<double> ratios;
  ratios.reserve(pairs.size());
  for (const SlicePair& pair : pairs) ratios.push_back(pair.other / pair.own);
  return {nearest_rank(ratios, 1), nearest_rank(ratios, 2), nearest_rank(ratios, 3)};
}

}  // namespace uk::bench
