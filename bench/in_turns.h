// Two things timed in turns.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_IN_TURNS_H_
#define UKERNEL_BENCH_IN_TURNS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/median.h"
#include "bench/peak.h"

namespace uk::bench {

struct Pair {
  double seconds;            // of one repetition, median
  double reference_seconds;  // the same of the reference
  double speed;              // reference's time / its time, median over adjacent slices
};

// In turns, so that a change of the clock frequency or a disturbance hits both alike; medians, so
// that one bad slice changes nothing. Goes on for `least_seconds` and `least_pairs` at least.
template <class Run, class Reference>
Pair time_in_turns(const Run& run, const Reference& reference, double least_seconds,
                   size_t least_pairs) {
  const uint64_t n = repetitions_per_slice(run);
  const uint64_t reference_n = repetitions_per_slice(reference);
  std::vector<double> seconds, reference_seconds, speeds;
  double spent = 0;
  while (spent < least_seconds || seconds.size() < least_pairs) {
    const double r = seconds_of([&] { reference(reference_n); });
    const double s = seconds_of([&] { run(n); });
    spent += r + s;
    reference_seconds.push_back(r / static_cast<double>(reference_n));
    seconds.push_back(s / static_cast<double>(n));
    speeds.push_back(reference_seconds.back() / seconds.back());
  }
  return {median(seconds), median(reference_seconds), median(speeds)};
}

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_IN_TURNS_H_
