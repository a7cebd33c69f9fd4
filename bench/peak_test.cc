// How long a slice is, by a clock that the test sets.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "bench/peak.h"

#include <gtest/gtest.h>

#include <set>

namespace uk::bench {
namespace {

constexpr double kSeconds = kSliceSeconds / 1000;  // of a repetition

// With calls that last a whole slice longer than they should.
uint64_t repetitions_with_slow_calls(const std::set<int>& slow) {
  int call = 0;
  return repetitions_per_slice_by([&](uint64_t n) {
    return static_cast<double>(n) * kSeconds + (slow.count(call++) ? kSliceSeconds : 0);
  });
}

TEST(RepetitionsPerSlice, FillIt) { EXPECT_NEAR(1000, repetitions_with_slow_calls({}), 1); }

TEST(RepetitionsPerSlice, DoNotCountSlowCalls) {
  EXPECT_NEAR(1000, repetitions_with_slow_calls({0}), 1);
  EXPECT_NEAR(1000, repetitions_with_slow_calls({0, 1, 4}), 1);
  EXPECT_NEAR(1000, repetitions_with_slow_calls({8, 9}), 1);
}

TEST(RepetitionsPerSlice, AreOneAtLeast) {
  EXPECT_EQ(1u, repetitions_per_slice_by([](uint64_t) { return 10 * kSliceSeconds; }));
}

}  // namespace
}  // namespace uk::bench
