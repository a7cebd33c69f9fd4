// Which slices count, by entrants and a core that the test makes up.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "bench/peers/contest.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "bench/shared_core.h"

namespace uk::bench {
namespace {

void spin_for(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

// Was asked `asked` times, and is shared from time from + 1 to time `to`.
struct Core {
  int from, to, asked = 0;
  bool operator()() {
    ++asked;
    return from < asked && asked <= to;
  }
};

// Rounds of one pair of calls that last a slice each; the rounds that there are.
size_t rounds_on(Core& core, double patience_seconds) {
  const auto call = [](int, int64_t) { spin_for(1e-3); };
  Entrant own(1, 1e-3, call);
  std::vector<Entrant> others = {Entrant(1, 1e-3, call)};
  const Pace pace = {3, 0, 0, patience_seconds};
  const auto pairs = time_in_pairs(own, others, pace, [&] { return core(); });
  EXPECT_EQ(1u, pairs.size());
  return pairs[0].size();
}

constexpr double kLong = 1e3;
constexpr int kAskedPerPair = 3;  // once before, and after each of two slices

TEST(TimeInPairs, AsksAboutTheCoreAroundSlices) {
  Core core = {0, 0};
  EXPECT_EQ(3u, rounds_on(core, kLong));
  EXPECT_EQ(3 * kAskedPerPair, core.asked);
}

TEST(TimeInPairs, WaitsForTheCoreBeforeSlices) {
  Core core = {0, 5};
  EXPECT_EQ(3u, rounds_on(core, kLong));
  EXPECT_EQ(5 + 3 * kAskedPerPair, core.asked);
}

TEST(TimeInPairs, TakesPairsAnewThatSharedTheCore) {
  // After the first of the second round's slices.
  Core core = {kAskedPerPair + 1, kAskedPerPair + 2};
  EXPECT_EQ(3u, rounds_on(core, kLong));
  EXPECT_EQ(4 * kAskedPerPair - 1, core.asked);  // not once more after the other slice
}

TEST(TimeInPairs, CountsAnySliceWithoutPatience) {
  Core core = {0, 1 << 30};
  EXPECT_EQ(3u, rounds_on(core, 0));
  EXPECT_EQ(3 * 2, core.asked);  // a pair known to share the core is not asked about again
}

TEST(TimeInPairs, EndsOnACoreThatIsAlwaysShared) {
  Core core = {0, 1 << 30};
  EXPECT_EQ(3u, rounds_on(core, 1e-4));
}

TEST(SharedCore, IsOneThatTakesTimesAsLong) {
  SharedCore core;
  EXPECT_FALSE(core.is_shared(4e-6));
  EXPECT_FALSE(core.is_shared(5.5e-6));  // by a lower clock
  EXPECT_TRUE(core.is_shared(6e-6));
  EXPECT_FALSE(core.is_shared(3e-6));
  EXPECT_TRUE(core.is_shared(5.5e-6));
}

}  // namespace
}  // namespace uk::bench
