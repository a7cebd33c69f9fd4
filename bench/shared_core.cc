// The loop that takes all of a core's issue slots.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "bench/shared_core.h"

#include "bench/peak.h"

namespace uk::bench {
namespace {

// Cascade Lake: 1.36 times its shortest time where AVX-512 had lowered the clock before, 1.5 to 2
// times where another thread was on the core.
constexpr double kSharedTimes = 1.4;

}  // namespace

double seconds_of_issue_slots() {
  return seconds_of([] {
    for (int turn = 0; turn < 1000; ++turn) {
      asm volatile(
          "nop\n nop\n nop\n nop\n nop\n nop\n nop\n nop\n"
          "nop\n nop\n nop\n nop\n nop\n nop\n nop\n nop\n"
          "nop\n nop\n nop\n nop\n nop\n nop\n nop\n nop\n"
          "nop\n nop\n nop\n nop\n nop\n nop\n nop\n nop");
    }
  });
}

bool SharedCore::is_shared(double seconds) {
  if (shortest_ == 0 || seconds < shortest_) shortest_ = seconds;
  return seconds > kSharedTimes * shortest_;
}

bool core_is_shared() {
  static SharedCore core;
  return core.is_shared(seconds_of_issue_slots());
}

}  // namespace uk::bench
