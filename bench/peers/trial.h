// The fastest of several ways to do the same.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_PEERS_TRIAL_H_
#define UKERNEL_BENCH_PEERS_TRIAL_H_

#include <algorithm>

#include "bench/peak.h"

namespace uk::bench {

// Seconds of a call once caches are warm, the best of some.
template <class Run>
double trial_seconds(const Run& run) {
  constexpr double kEnough = 0.02;
  constexpr int kMostCalls = 5;
  run();
  double best = 1e9, spent = 0;
  for (int call = 0; call < kMostCalls && (call == 0 || spent < kEnough); ++call) {
    const double seconds = seconds_of(run);
    best = std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_PEERS_TRIAL_H_
