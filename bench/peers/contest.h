// Timing one thing in turns with others.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_PEERS_CONTEST_H_
#define UKERNEL_BENCH_PEERS_CONTEST_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "bench/shared_core.h"

namespace uk::bench {

// Something that is timed: run(thread, call) for call = 0, 1, ... on all its threads together.
class Entrant {
 public:
  // A slice of it has as many calls as fill about `slice_seconds`, but one at least.
  Entrant(int threads, double slice_seconds, std::function<void(int, int64_t)> run);
  // The seconds of a call, the mean of a slice that lasts `length` times as long as others.
  double time_slice(double length);

 private:
  double time_calls(int64_t calls);

  int threads_;
  double slice_seconds_;
  std::function<void(int, int64_t)> run_;
  int64_t next_ = 0, calls_ = 0;
};

// Seconds of a call in adjacent slices.
struct SlicePair {
  double own, other;
};

struct Pace {
  int rounds;           // at least
  double seconds;       // at least, of all rounds
  double rest_seconds;  // before each slice
  // Of waiting until `own` has its core to itself, and of slices that turn out to have shared it:
  // they are taken anew. Once it is spent, any slice counts.
  double patience_seconds;
};

// pairs[other][round]. Each slice of another is next to a slice of `own`, so that a change of the
// clock frequency hits both alike; one of `own` has another on either side. In each round the
// others come in a new order, on a new side of `own`, and slices have new lengths: a disturbance in
// a rhythm of its own does not hit the same contestant every time, but drives the quartiles apart.
// is_shared() is asked before slices and after each, on the calling thread.
std::vector<std::vector<SlicePair>> time_in_pairs(
    Entrant& own, std::vector<Entrant>& others, const Pace& pace,
    const std::function<bool()>& is_shared = core_is_shared);

struct Quartiles {
  double lower, median, upper;
};
// Of other / own: how many times as fast `own` is.
Quartiles ratio_quartiles(const std::vector<SlicePair>& pairs);

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_PEERS_CONTEST_H_
