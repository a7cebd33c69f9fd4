// How long a slice is, by a clock that the test sets, and which slices count.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "bench/peak.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "bench/in_turns.h"

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

using Slices = std::vector<size_t>;

TEST(QuietSlices, LieBetweenTwoTimesOfWhichNeitherIsLong) {
  EXPECT_EQ((Slices{0, 1, 2}), quiet_slices({3e-6, 3.1e-6, 3e-6, 3.05e-6}));
  EXPECT_EQ((Slices{0, 3}), quiet_slices({3e-6, 3e-6, 4e-6, 3e-6, 3e-6}));
  EXPECT_EQ((Slices{2}), quiet_slices({6e-6, 6e-6, 3e-6, 3e-6}));
  EXPECT_EQ(Slices{}, quiet_slices({3e-6, 6e-6, 3e-6}));
}

TEST(QuietSlices, AreAllWhereNoneIsQuieter) {
  EXPECT_EQ((Slices{0, 1}), quiet_slices({6e-6, 6e-6, 6e-6}));
}

}  // namespace
}  // namespace uk::bench
