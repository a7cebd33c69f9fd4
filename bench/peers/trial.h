// The fastest of several ways to do the same.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_PEERS_TRIAL_H_
#define UKERNEL_BENCH_PEERS_TRIAL_H_

#include <algorithm>

#include "bench/peak.h"

namespace uk::bench {

// Seconds of a call, the best of some; of a long one the first will do.
template <class Run>
double trial_seconds(const Run& run) {
  constexpr double kEnough = 0.02;
  constexpr int kMostCalls = 5;
  double best = seconds_of(run), spent = best;
  for (int call = 1; call < kMostCalls && spent < kEnough; ++call) {
    const double seconds = seconds_of(run);
    best = std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_PEERS_TRIAL_H_
