// Two things timed in turns.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_IN_TURNS_H_
#define UKERNEL_BENCH_IN_TURNS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "bench/median.h"
#include "bench/peak.h"
#include "bench/shared_core.h"

namespace uk::bench {

struct Pair {
  double seconds;            // of one repetition, median
  double reference_seconds;  // the same of the reference
  double speed;              // reference's time / its time, median over adjacent slices
};

// How much longer the loop that takes all issue slots may last than at best, in one measurement:
// whose vectors have lowered the clock for all of it.
constexpr double kQuietTimes = 1.04;

// Of slices, between each two of which, before the first, and after the last one the issue slots
// were timed: those that had them to themselves.
inline std::vector<size_t> quiet_slices(const std::vector<double>& slots_seconds) {
  const double most = kQuietTimes * *std::min_element(slots_seconds.begin(), slots_seconds.end());
  std::vector<size_t> quiet;
  for (size_t i = 0; i + 1 < slots_seconds.size(); ++i) {
    if (std::max(slots_seconds[i], slots_seconds[i + 1]) <= most) quiet.push_back(i);
  }
  return quiet;
}

// By how many times a measurement may last longer to have as many quiet slices as it should have.
constexpr double kPatience = 3;

// In turns, so that a change of the clock frequency or a disturbance hits both alike; medians, so
// that one bad slice changes nothing, of pairs in which nobody else had the core, if there are
// enough. Goes on for `least_seconds` and `least_pairs` at least.
template <class Run, class Reference>
Pair time_in_turns(const Run& run, const Reference& reference, double least_seconds,
                   size_t least_pairs) {
  const uint64_t n = repetitions_per_slice(run);
  const uint64_t reference_n = repetitions_per_slice(reference);
  std::vector<double> seconds, reference_seconds, slots = {seconds_of_issue_slots()};
  std::vector<size_t> counted;
  for (double spent = 0;;) {
    reference_seconds.push_back(seconds_of([&] { reference(reference_n); }));
    seconds.push_back(seconds_of([&] { run(n); }));
    slots.push_back(seconds_of_issue_slots());
    spent += reference_seconds.back() + seconds.back();
    if (spent < least_seconds || seconds.size() < least_pairs) continue;
    counted = quiet_slices(slots);
    double quiet_spent = 0;
    for (const size_t i : counted) quiet_spent += reference_seconds[i] + seconds[i];
    if (quiet_spent >= least_seconds && counted.size() >= least_pairs) break;
    if (spent >= kPatience * least_seconds) break;
  }
  if (counted.size() < least_pairs) {
    counted.resize(seconds.size());
    std::iota(counted.begin(), counted.end(), size_t{0});
  }
  std::vector<double> counted_seconds, counted_reference, speeds;
  for (const size_t i : counted) {
    counted_seconds.push_back(seconds[i] / static_cast<double>(n));
    counted_reference.push_back(reference_seconds[i] / static_cast<double>(reference_n));
    speeds.push_back(counted_reference.back() / counted_seconds.back());
  }
  return {median(counted_seconds), median(counted_reference), median(speeds)};
}

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_IN_TURNS_H_
