// The order in which the tiles of an mmt4d are computed.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "ukernel/mmt4d_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/ops/harness.h"

namespace uk {
namespace {

struct Call {
  uk_index_t i, j, k, k1;
  bool prefetches;
};

std::vector<TilesOfRhs> groups_of(const Mmt4dWalk& walk) {
  std::vector<TilesOfRhs> groups;
  const auto add = [&](const TilesOfRhs& tiles) { groups.push_back(tiles); };
  walk.has_parts ? walk.for_all_tiles<true>(add) : walk.for_all_tiles(add);
  return groups;
}

std::vector<Call> calls_of(const Mmt4dWalk& walk) {
  std::vector<Call> calls;
  for (const TilesOfRhs& tiles : groups_of(walk)) {
    const auto& [j, k, k1] = tiles.rhs;
    for (uk_index_t i = tiles.i0; i < tiles.i1; ++i) {
      for (uk_index_t panel = 0; panel < tiles.panels; ++panel) {
        calls.push_back({i, j + panel, k, k1, tiles.prefetch_rhs && i == tiles.i0});
      }
    }
  }
  return calls;
}

bool is_faster_exchanged(Mmt4dWalk walk, bool on_l3_that_feeds) {
  walk.on_l3_that_feeds = on_l3_that_feeds;
  return walk.is_faster_exchanged();
}

bool fetches_any(const Mmt4dWalk& walk) {
  const std::vector<TilesOfRhs> groups = groups_of(walk);
  return std::any_of(groups.begin(), groups.end(),
                     [](const TilesOfRhs& tiles) { return tiles.fetch_next; });
}

// m0 rows of f32 by as many panels of 32 columns as make the RHS stream.
Mmt4dWalk few_rows(uk_index_t m0, int step_cost, int panels) {
  constexpr uk_index_t kStep = 32 * 4, kK = 1000;
  return {1,     kStreamBytes / (kStep * kK) + 1, kK, m0, m0 * 4, kStep, true, false, step_cost,
          panels};
}

Mmt4dWalk abreast(Mmt4dWalk walk) {
  walk.has_tile_abreast = true;
  return walk;
}

// Tiles of 16 x 32 floats, whose K makes several blocks, and whose rows do; with limits, as of a
// decoded RHS, the columns too.
Mmt4dWalk in_blocks_each_way(bool limited) {
  Mmt4dWalk walk = {370, 41, 5000, 16, 64, 128, true, false, 0, 1};
  if (limited) {
    walk.most_steps = 400;
    walk.most_lhs_panels = 10;  // fewer than fit the cache
    walk.out_tile_bytes = 16 * 32 * 4;
  }
  return walk;
}

// As of a decoded LHS.
Mmt4dWalk in_parts(Mmt4dWalk walk) {
  walk.most_steps = 20;  // fewer than of panels in turns
  return walk;
}

Mmt4dWalk in_small_l2(Mmt4dWalk walk) {
  walk.small_l2 = true;
  return walk;
}

// As of a decoded RHS: several parts of K to a block.
Mmt4dWalk in_parts_of_blocks() {
  Mmt4dWalk walk = in_blocks_each_way(true);
  walk.most_steps = 100;
  walk.has_parts = true;
  return walk;
}

// Of a step that costs this much, few_rows waits for memory, takes as long itself, or has more to
// do, or much more.
constexpr int kCheap = 16, kModerate = 48, kDear = 100, kSlow = 200;

TEST(Mmt4dWalk, GivesEachTileAllStepsInOrder) {
  std::vector<Mmt4dWalk> walks = {
      in_blocks_each_way(true),
      in_small_l2(in_blocks_each_way(false)),
      in_parts_of_blocks(),
      in_small_l2(in_parts_of_blocks()),
      few_rows(4, kCheap, 1),
      few_rows(4, kCheap, 2),
      few_rows(4, kDear, 2),
      few_rows(1, kCheap, 2),
      in_parts(few_rows(4, kCheap, 2)),
      in_parts(few_rows(4, kDear, 1)),
      abreast(few_rows(1, kSlow, 1)),
      abreast(few_rows(4, kSlow, 1)),
      abreast({1, 2 * kPanelsAbreast + 1, 100, 1, 4, 128, true, false, 0, 1}),
      abreast({5, 7, 9000, 4, 16, 64, true, false}),
      abreast({5, 7, 9000, 4, 16, 64, true, true}),
      // Blocks of each kind that do not divide what they cover, and no K at all.
      {37, 41, 5000, 16, 64, 128, true, false, 0, 1},
      {37, 41, 5000, 16, 64, 128, false, false, 0, 1},
      {3, 5, 0, 16, 64, 128, true, false, 0, 1},
      {37, 41, 9000, 16, 64, 128, true, true, 0, 1},
      {37, 41, 9000, 16, 64, 128, false, true, 0, 1},
      {3, 5, 0, 16, 64, 128, true, true, 0, 1},
  };
  for (const Mmt4dWalk& walk : walks) {
    std::map<std::pair<uk_index_t, uk_index_t>, uk_index_t> reached;
    for (const Call& call : calls_of(walk)) {
      uk_index_t& next = reached[{call.i, call.j}];
      ASSERT_EQ(next, call.k);
      if (walk.k > 0) {
        ASSERT_GT(call.k1, 0);
      }
      next += call.k1;
    }
    ASSERT_EQ(static_cast<size_t>(walk.m * walk.n), reached.size());
    for (const auto& [tile, next] : reached) {
      ASSERT_TRUE(tile.first < walk.m && tile.second < walk.n);
      ASSERT_EQ(walk.k, next);
    }
  }
}

TEST(Mmt4dWalk, SplitsKOnlyWhereThatIsExact) {
  for (const bool l3_feeds : {false, true}) {
    for (const Call& call : calls_of({37, 41, 9000, 16, 64, 128, false, l3_feeds, 0, 1})) {
      ASSERT_EQ(9000, call.k1);
    }
  }
}

// Where an instruction takes several steps, its own are those of every part of K but the last.
TEST(Mmt4dWalk, SplitsKBetweenInstructions) {
  constexpr uk_index_t kTogether = 16;
  for (Mmt4dWalk walk : {in_blocks_each_way(true), in_blocks_each_way(false),
                         few_rows(4, kCheap, 2), few_rows(1, kCheap, 1)}) {
    walk.tile_steps = kTogether;
    bool splits = false;
    for (const Call& call : calls_of(walk)) {
      ASSERT_EQ(0, call.k % kTogether);
      if (walk.most_steps > 0) {
        ASSERT_LE(call.k1, walk.most_steps);
      }
      splits |= call.k > 0;
    }
    EXPECT_EQ(walk.m0 > 1, splits);
  }
}

// All RHS panels meet a part of the LHS panel before the next one does.
TEST(Mmt4dWalk, GivesAPartOfOneLhsPanelToAllRhsPanels) {
  for (const int panels : {1, 2}) {
    for (const int step_cost : {kCheap, kDear}) {
      Mmt4dWalk walk = in_parts(few_rows(4, step_cost, panels));
      walk.out_tile_bytes = kOutBlockBytes;  // no reason to have few of them at a time
      const std::vector<TilesOfRhs> groups = groups_of(walk);
      for (size_t at = 0; at < groups.size(); ++at) {
        ASSERT_LE(groups[at].rhs.k1, walk.most_steps);
        ASSERT_EQ(static_cast<uk_index_t>(at) % walk.n, groups[at].rhs.j);
        ASSERT_EQ(groups[at].rhs.j == 0, groups[at].starts_lhs);
        // What follows a part is that of the next panel, which no tile prefetches by itself.
        const bool is_last = at + 1 == groups.size(), waits = panels == 2 && step_cost == kCheap;
        ASSERT_EQ(!is_last && !waits, groups[at].fetch_next);
        if (groups[at].fetch_next) {
          ASSERT_EQ(groups[at + 1].rhs.j, groups[at].next.j);
          ASSERT_EQ(groups[at + 1].rhs.k, groups[at].next.k);
        }
      }
    }
  }
}

TEST(Mmt4dWalk, SplitsKWhereAPanelIsTooLong) {
  for (const bool l3_feeds : {false, true}) {
    for (const Call& call : calls_of({37, 41, 9000, 16, 64, 128, true, l3_feeds, 0, 1})) {
      ASSERT_LE(call.k1 * (64 + 128), l3_feeds ? kLongPanelBytes : kPanelBytes);
    }
  }
}

TEST(Mmt4dWalk, HasSmallerBlocksInASmallL2) {
  const Mmt4dWalk walk = in_blocks_each_way(false);
  for (const auto& [blocked, panel_bytes, block_bytes] :
       {std::tuple{walk, kPanelBytes, kLhsBlockBytes},
        std::tuple{in_small_l2(walk), kPanelBytesInSmallL2, kLhsBlockBytesInSmallL2}}) {
    for (const TilesOfRhs& tiles : groups_of(blocked)) {
      const uk_index_t k1 = tiles.rhs.k1, lhs_bytes = k1 * 64 * (tiles.i1 - tiles.i0);
      ASSERT_LE(k1 * (64 + 128), panel_bytes);
      ASSERT_LE(lhs_bytes, block_bytes);
      // Nor are they smaller than that makes them.
      if (tiles.rhs.k == 0 && tiles.i0 == 0) {
        ASSERT_GT(2 * k1 * (64 + 128), panel_bytes);
        ASSERT_GT(2 * lhs_bytes, block_bytes);
      }
    }
  }
}

// Of steps of 64 and 128 bytes: no longer than panels are that are fetched, nor half as long.
void check_fetched_panels(const Mmt4dWalk& walk) {
  for (const Call& call : calls_of(walk)) {
    ASSERT_LE(call.k1 * (64 + 128), kFetchedPanelBytes);
    ASSERT_GT(2 * call.k1 * (64 + 128), kFetchedPanelBytes);
  }
}

// The smallest RHS that has them, and the largest that has not.
TEST(Mmt4dWalk, HasShorterPanelsWhereItReadsMemoryAnew) {
  constexpr uk_index_t kN = kMemoryRhsBytes / (128 * 4096);
  const Mmt4dWalk walk = {8, kN, 4096, 16, 64, 128, true};
  check_fetched_panels(walk);
  Mmt4dWalk smaller = walk, fed = walk;
  smaller.n = kN - 1;
  fed.on_l3_that_feeds = true;
  EXPECT_TRUE(walk.rereads_memory());
  EXPECT_FALSE(smaller.rereads_memory());
  EXPECT_FALSE(fed.rereads_memory());
  EXPECT_GT(calls_of(smaller)[0].k1 * (64 + 128), kFetchedPanelBytes);
}

TEST(Mmt4dWalk, HasShorterPanelsWhereItFetchesBesideAFeedingL3) {
  Mmt4dWalk walk = {8, 41, 9000, 16, 64, 128, true};
  walk.on_l3_that_feeds = true;
  ASSERT_TRUE(walk.rhs_streams());
  check_fetched_panels(walk);
  EXPECT_TRUE(walk.fetches_beside());
  Mmt4dWalk one_by_one = walk, exchanged = walk, cached = walk, elsewhere = walk, sharing = walk;
  one_by_one.l3_feeds = exchanged.exchanged = sharing.results_share_sets = true;
  cached.k = 100;
  elsewhere.on_l3_that_feeds = false;
  for (const Mmt4dWalk& other : {one_by_one, exchanged, cached, elsewhere, sharing}) {
    EXPECT_FALSE(other.fetches_beside());
  }
}

// Of an RHS of 3 MiB, in panels of 250 KiB: all of it, or two.
TEST(Mmt4dWalk, ExchangedMeetsAllOfAnRhsThatStaysNearWhereL3Feeds) {
  for (const bool l3_feeds : {false, true}) {
    Mmt4dWalk walk = {12, 32, 2000, 32, 128, 64, true};  // with the roles exchanged
    walk.exchanged = true;
    walk.on_l3_that_feeds = l3_feeds;
    for (const TilesOfRhs& tiles : groups_of(walk)) {
      ASSERT_EQ(2000, tiles.rhs.k1);
      ASSERT_EQ(l3_feeds ? 12 : 2, tiles.i1 - tiles.i0);
    }
  }
}

#if defined(__x86_64__)
using uk_test::cpu_with;
using uk_test::CpuData;

TEST(LeastOfLevels, CountsThoseThatSaySomething) {
  const auto panels = [](const std::vector<std::string>& levels) {
    return least_of_levels(cpu_with(levels).data(), &VectorUnit::panels_in_turns);
  };
  EXPECT_EQ(1, panels({"sse2"}));
  EXPECT_EQ(1, panels({"avx512_vnni"}));
  EXPECT_EQ(2, panels({"avx512_bf16"}));
  EXPECT_EQ(1, panels({"avx512_bf16", "avx_vnni"}));
}

TEST(L3, IsFarWithASmallL2UnlessTilesOrReadsKeepUp) {
  CpuData cpu = cpu_with({"avx512_vnni"}), feeds_tiles = cpu_with({"avx512_vnni", "avx512_bf16"});
  EXPECT_FALSE(l3_is_far(cpu.data()));
  cpu[7] |= kSmallL2;
  feeds_tiles[7] |= kSmallL2;
  EXPECT_TRUE(l3_is_far(cpu.data()));
  EXPECT_FALSE(l3_is_far(feeds_tiles.data()));
  cpu[7] |= kReadsAhead;
  EXPECT_FALSE(l3_is_far(cpu.data()));
  EXPECT_FALSE(l3_is_far(nullptr));
}
#endif

// Of several LHS panels the tiles fetch for each other, of one for themselves.
TEST(Mmt4dWalk, FetchesAnRhsFromAFarL3) {
  constexpr uk_index_t kStep = 32 * 4, kK = 1000, kN = kFarBytes / (kStep * kK) + 1;
  for (const uk_index_t m : {1, 2}) {
    Mmt4dWalk walk = in_small_l2({m, kN, kK, 16, 64, kStep, true, false, 0, 1});
    ASSERT_FALSE(walk.rhs_streams());
    for (const bool is_far : {false, true}) {
      walk.rhs_is_far = is_far;
      EXPECT_EQ(is_far && m > 1, fetches_any(walk));
      EXPECT_EQ(is_far, calls_of(walk)[0].prefetches);
    }
  }
}

TEST(Mmt4dWalk, PrefetchesOnePanelOfAStreamingRhs) {
  for (const Mmt4dWalk& walk : {few_rows(4, kCheap, 1), few_rows(4, kDear, 2)}) {
    const std::vector<Call> calls = calls_of(walk);
    ASSERT_EQ(static_cast<size_t>(walk.n), calls.size());
    for (const Call& call : calls) ASSERT_TRUE(call.prefetches);
    ASSERT_FALSE(fetches_any(walk));
  }
}

// A row's tiles in order, as long as the core keeps up by itself.
TEST(Mmt4dWalk, NeitherPrefetchesNorTakesTurnsWhereTilesHardlyWait) {
  Mmt4dWalk walk = few_rows(4, kModerate, 2);
  const std::vector<Call> calls = calls_of(walk);
  ASSERT_EQ(static_cast<size_t>(walk.n), calls.size());
  for (const Call& call : calls) ASSERT_FALSE(call.prefetches);
}

class Mmt4dWalkInTurns : public ::testing::TestWithParam<Mmt4dWalk> {};

TEST_P(Mmt4dWalkInTurns, ReadsTwoPanels) {
  const Mmt4dWalk walk = GetParam();
  const std::vector<Call> calls = calls_of(walk);
  size_t at = 0;
  ASSERT_EQ(1, walk.n % 2);
  for (; calls[at].j + 1 < walk.n; at += 2) {
    EXPECT_EQ(calls[at].j + 1, calls[at + 1].j);
    EXPECT_EQ(calls[at].k, calls[at + 1].k);
  }
  EXPECT_GT(at, static_cast<size_t>(walk.n));  // in several parts each
  for (const Call& call : calls) {
    EXPECT_LE(call.k1 * walk.rhs_step_bytes, kSideBySideBytes);
    EXPECT_FALSE(call.prefetches);
  }
}

// Where tiles wait for memory, or the LHS panel is long.
INSTANTIATE_TEST_SUITE_P(Walks, Mmt4dWalkInTurns,
                         ::testing::Values(few_rows(4, kCheap, 2),
                                           few_rows(kLongLhsBytes / 4000 + 1, kModerate, 2)),
                         [](const auto& tested) {
                           return tested.index == 0 ? "Waits" : "LongLhs";
                         });

TEST(Mmt4dWalk, PrefetchesForOneRowWhereLoadsDoNotRunAhead) {
  for (const int step_cost : {kCheap, kDear}) {
    Mmt4dWalk walk = few_rows(1, step_cost, 2);  // who reads two panels in turns runs far ahead
    EXPECT_FALSE(calls_of(walk)[0].prefetches);
    walk.panels_in_turns = 1;
    EXPECT_TRUE(calls_of(walk)[0].prefetches);
    walk.reads_ahead = true;
    EXPECT_EQ(step_cost == kDear, calls_of(walk)[0].prefetches);
    walk.reads_ahead = false;
    walk.l3_feeds = true;
    EXPECT_EQ(step_cost == kDear, calls_of(walk)[0].prefetches);
  }
}

// All panels but those that are left, whatever the rows of the one LHS panel, and where a CPU would
// else have two in turns.
TEST(Mmt4dWalk, TakesPanelsAbreast) {
  for (Mmt4dWalk walk : {few_rows(1, kSlow, 1), few_rows(4, kSlow, 1), few_rows(4, kCheap, 2)}) {
    walk.reads_ahead = true;
    walk.n += kPanelsAbreast - walk.n % kPanelsAbreast + 2;
    const std::vector<TilesOfRhs> groups = groups_of(abreast(walk));
    ASSERT_EQ(static_cast<size_t>(walk.n / kPanelsAbreast + 2), groups.size());
    EXPECT_EQ(kPanelsAbreast, groups[0].panels);
  }
  for (const uk_index_t n : {1, 2, 3, 5, 12}) {
    Mmt4dWalk walk = abreast(few_rows(1, kSlow, 1));
    walk.n = n;
    const std::vector<TilesOfRhs> groups = groups_of(walk);
    ASSERT_EQ(static_cast<size_t>(n / kPanelsAbreast + n % kPanelsAbreast), groups.size());
    for (const TilesOfRhs& tiles : groups) {
      const bool is_left = tiles.rhs.j >= n / kPanelsAbreast * kPanelsAbreast;
      EXPECT_EQ(is_left ? 1 : kPanelsAbreast, tiles.panels);
    }
  }
}

// Unless the tile would do little but read.
TEST(Mmt4dWalk, TakesPanelsAbreastForSeveralLhsPanels) {
  constexpr uk_index_t kM = 5, kN = 2 * kPanelsAbreast + 1;
  const Mmt4dWalk walk = abreast({kM, kN, 100, 4, 16, 64, true});
  const std::vector<TilesOfRhs> groups = groups_of(walk);
  ASSERT_EQ(3u, groups.size());
  for (const TilesOfRhs& tiles : groups) {
    EXPECT_EQ(0, tiles.i0);
    EXPECT_EQ(kM, tiles.i1);
    EXPECT_EQ(tiles.rhs.j < kN - 1 ? kPanelsAbreast : 1, tiles.panels);
  }
  Mmt4dWalk far = walk, streaming = walk, exchanged = walk, many = walk;
  far.rhs_is_far = exchanged.exchanged = true;
  EXPECT_EQ(kPanelsAbreast, groups_of(far)[0].panels);
  EXPECT_FALSE(fetches_any(far));
  streaming.n = kStreamBytes / (100 * 64) + 1;
  EXPECT_EQ(kPanelsAbreast, groups_of(streaming)[0].panels);
  EXPECT_FALSE(fetches_any(streaming));
  streaming.m0 = 1;
  EXPECT_EQ(1, groups_of(streaming)[0].panels);
  EXPECT_EQ(1, groups_of(exchanged)[0].panels);
  many.m = kStreamBytes / (100 * 16) + 1;
  for (const bool l3_feeds : {false, true}) EXPECT_FALSE(is_faster_exchanged(many, l3_feeds));
  for (const uk_index_t k : {100, 200}) {
    const bool reads = k * 256 > kPanelBytesInL1;
    EXPECT_EQ(!reads, abreast({kM, kN, k, 1, 4, 256, true}).reads_abreast());
    EXPECT_TRUE(abreast({kM, kN, k, 2, 8, 256, true}).reads_abreast());
  }
}

// K in blocks of which as many RHS panels are in L2; where L3 feeds tiles, a block of the RHS has
// as many at least.
TEST(Mmt4dWalk, HasRoomForPanelsAbreast) {
  for (const bool l3_feeds : {false, true}) {
    for (uk_index_t n = kPanelsAbreast; n <= 12; ++n) {
      const Mmt4dWalk walk = abreast({2, n, 5000, 4, 16, 64, true, l3_feeds});
      ASSERT_FALSE(walk.rhs_stays_near());
      uk_index_t panels_abreast = 0;
      for (const TilesOfRhs& tiles : groups_of(walk)) {
        EXPECT_LE(tiles.rhs.k1 * (16 + kPanelsAbreast * 64),
                  l3_feeds ? kLongPanelBytes : kPanelBytes);
        if (tiles.i0 == 0 && tiles.rhs.k == 0 && tiles.panels > 1) panels_abreast += tiles.panels;
      }
      EXPECT_EQ(n / kPanelsAbreast * kPanelsAbreast, panels_abreast);
    }
  }
}

// From memory where a CPU says that this is sooner, or tiles of one row are far slower than that.
TEST(Mmt4dWalk, TakesPanelsAbreastWhereNoPrefetchIsMissed) {
  for (const uk_index_t m0 : {1, 4}) {
    for (const int step_cost : {kCheap, kDear, kSlow}) {
      Mmt4dWalk walk = few_rows(m0, step_cost, 1);
      EXPECT_EQ(1, groups_of(walk)[0].panels);
      walk.has_tile_abreast = true;
      EXPECT_EQ(m0 == 1 && step_cost == kSlow ? kPanelsAbreast : 1, groups_of(walk)[0].panels);
      walk.reads_ahead = true;
      EXPECT_EQ(kPanelsAbreast, groups_of(walk)[0].panels);
      walk.reads_ahead = false;
      walk.n = kPanelsAbreast;
      ASSERT_FALSE(walk.rhs_streams());
      EXPECT_EQ(kPanelsAbreast, groups_of(walk)[0].panels);
    }
  }
}

// Where reads and prefetches both go ahead.
TEST(Mmt4dWalk, PrefetchesNearWhereTheCoreOutrunsMemory) {
  for (const bool reads_ahead : {false, true}) {
    for (const int step_cost : {kCheap, kDear}) {
      Mmt4dWalk walk = few_rows(4, step_cost, 1);
      walk.reads_ahead = reads_ahead;
      EXPECT_EQ(reads_ahead && step_cost == kCheap ? kNearPrefetchDistance : kPrefetchDistance,
                walk.prefetch_distance());
    }
  }
}

// One row, where L3 is far and the tile does little else than read.
TEST(Mmt4dWalk, TakesPanelsAbreastFromFar) {
  for (const uk_index_t m0 : {1, 4}) {
    for (const int step_cost : {kCheap, kModerate}) {
      Mmt4dWalk walk = abreast(few_rows(m0, step_cost, 1));
      walk.l3_is_far = true;
      EXPECT_EQ(m0 == 1 && step_cost == kCheap ? kPanelsAbreast : 1, groups_of(walk)[0].panels);
    }
  }
}

// Of an RHS from memory, whatever tiles do with it, where L3 feeds them, but not on cores that read
// two panels in turns, nor of short panels.
TEST(Mmt4dWalk, TakesPanelsAbreastWhereL3FeedsTiles) {
  for (const uk_index_t m0 : {1, 4, 8}) {
    for (const int step_cost : {kCheap, kDear}) {
      for (const int panels : {1, 2}) {
        Mmt4dWalk walk = abreast(few_rows(m0, step_cost, panels));
        EXPECT_EQ(1, groups_of(walk)[0].panels);
        EXPECT_FALSE(walk.prefetches_into_l1());
        walk.l3_feeds = true;
        EXPECT_EQ(panels == 1, walk.prefetches_into_l1());
        EXPECT_EQ(panels == 1, walk.streams_abreast());
        EXPECT_EQ(panels == 1 ? kPanelsAbreast : 1, groups_of(walk)[0].panels);
        const uk_index_t bytes = walk.rhs_bytes();
        walk.k = kLeastBytesAbreast / walk.rhs_step_bytes - 1;
        walk.n = ceil_div(bytes, walk.k * walk.rhs_step_bytes);
        ASSERT_TRUE(walk.rhs_streams());
        EXPECT_FALSE(walk.streams_abreast());
        EXPECT_EQ(panels == 1, walk.prefetches_into_l1());
        EXPECT_EQ(1, groups_of(walk)[0].panels);
        ++walk.k;
        EXPECT_EQ(panels == 1, walk.streams_abreast());
        walk.n = kPanelsAbreast;
        ASSERT_FALSE(walk.rhs_streams());
        EXPECT_FALSE(walk.streams_abreast());
        EXPECT_FALSE(walk.prefetches_into_l1());
      }
    }
  }
}

// Where tiles that read the RHS once wait for memory.
TEST(Mmt4dWalk, PrefetchesPagesAbreastFromFar) {
  for (const bool l3_is_far : {false, true}) {
    for (const int step_cost : {kCheap, kDear, kSlow}) {
      Mmt4dWalk walk = few_rows(4, step_cost, 1);
      walk.l3_is_far = l3_is_far;
      EXPECT_EQ(l3_is_far && step_cost != kSlow, walk.prefetches_pages());
      walk.tile_steps = 16;
      EXPECT_FALSE(walk.prefetches_pages());
      walk.tile_steps = 1;
      walk.n = 1;
      EXPECT_FALSE(walk.prefetches_pages());
    }
  }
}

// The next ones of those that are left, of an RHS from memory.
TEST(Mmt4dWalk, PrefetchesNoPanelsAbreast) {
  Mmt4dWalk walk = abreast(few_rows(1, kSlow, 1));
  walk.n = (walk.n + kPanelsAbreast) / kPanelsAbreast * kPanelsAbreast + 2;
  for (const TilesOfRhs& tiles : groups_of(walk)) {
    EXPECT_EQ(tiles.panels == 1, tiles.prefetch_rhs);
  }
}

TEST(Mmt4dWalk, FetchesForTilesOfOneRowWhereL3DoesNotFeedThem) {
  Mmt4dWalk walk = few_rows(1, kCheap, 1);
  walk.m = 2;
  EXPECT_TRUE(fetches_any(walk));
  walk.l3_feeds = true;
  EXPECT_FALSE(fetches_any(walk));
  for (const Call& call : calls_of(walk)) EXPECT_FALSE(call.prefetches);
}

TEST(Mmt4dWalk, FetchesEachPanelBesideTheOneBefore) {
  for (const Mmt4dWalk& walk :
       {in_blocks_each_way(false), in_blocks_each_way(true), in_parts_of_blocks()}) {
    ASSERT_TRUE(walk.rhs_streams());
    const std::vector<TilesOfRhs> groups = groups_of(walk);
    ASSERT_LT(groups[0].i1, walk.m);
    ASSERT_LT(groups[0].rhs.k1, walk.k);
    for (size_t at = 0; at + 1 < groups.size(); ++at) {
      ASSERT_TRUE(groups[at].fetch_next);
      ASSERT_EQ(at > 0, groups[at].is_fetched);
      const RhsPart& next = groups[at].next;
      ASSERT_EQ(groups[at + 1].rhs.j, next.j);
      ASSERT_EQ(groups[at + 1].rhs.k, next.k);
      ASSERT_EQ(groups[at + 1].rhs.k1, next.k1);
    }
    ASSERT_FALSE(groups.back().fetch_next);
  }
}

// Where sums of rows are kept beside a decoded RHS they are of these LHS panels and this part of K.
TEST(Mmt4dWalk, SaysWhereOtherPartsOfTheLhsStart) {
  const std::vector<TilesOfRhs> groups = groups_of(in_blocks_each_way(true));
  ASSERT_TRUE(groups[0].starts_lhs);
  for (size_t at = 1; at < groups.size(); ++at) {
    const bool same =
        groups[at].i0 == groups[at - 1].i0 && groups[at].rhs.k == groups[at - 1].rhs.k;
    ASSERT_EQ(!same, groups[at].starts_lhs);
  }
}

// Each RHS panel has all parts of a block's K before the next one, so that OUT is near; the sums of
// rows have places for all of these.
TEST(Mmt4dWalk, TakesAllPartsOfABlockWithOneRhsPanel) {
  const Mmt4dWalk walk = in_small_l2(in_parts_of_blocks());
  const std::vector<TilesOfRhs> groups = groups_of(walk);
  ASSERT_EQ(0, groups[0].part);
  for (size_t at = 0; at < groups.size(); ++at) {
    const TilesOfRhs& tiles = groups[at];
    ASSERT_LE(tiles.rhs.k1, walk.most_steps);
    ASSERT_LE((tiles.part + 1) * (tiles.i1 - tiles.i0), kSummedLhsPanels);
    ASSERT_EQ(tiles.rhs.j == 0, tiles.starts_lhs);
    if (tiles.part == 0) continue;
    const TilesOfRhs& before = groups[at - 1];
    ASSERT_EQ(before.part + 1, tiles.part);
    ASSERT_EQ(before.rhs.j, tiles.rhs.j);
    ASSERT_EQ(before.i0, tiles.i0);
    ASSERT_EQ(before.rhs.k + before.rhs.k1, tiles.rhs.k);
  }
  // Blocks of K are as long as their panels may be, and all RHS panels meet one.
  ASSERT_EQ(0, groups[4].part);
  uk_index_t block_steps = 0;
  for (size_t at = 0; at < 4; ++at) block_steps += groups[at].rhs.k1;
  EXPECT_LE(block_steps * (64 + 128), kPanelBytesOfPartsInSmallL2);
  EXPECT_GT(block_steps * (64 + 128), kPanelBytesOfPartsInSmallL2 / 2);
  for (uk_index_t j = 0; j < walk.n; ++j) {
    const TilesOfRhs& tiles = groups[static_cast<size_t>(4 * j)];
    ASSERT_EQ(j, tiles.rhs.j);
    ASSERT_EQ(0, tiles.rhs.k);
  }
}

void check_parts(const Mmt4dWalk& walk, uk_index_t expected_most) {
  uk_index_t most = 0;
  for (const TilesOfRhs& tiles : groups_of(walk)) {
    ASSERT_LE(tiles.rhs.k1, walk.most_steps);
    ASSERT_LE((tiles.part + 1) * (tiles.i1 - tiles.i0), kSummedLhsPanels);
    most = std::max(most, tiles.part + 1);
  }
  EXPECT_EQ(expected_most, most);
}

// Four rows of bytes, the fewest that take a decoded RHS, by a column that takes a whole vector.
TEST(Mmt4dWalk, HasPlacesForTheSumsOfTheMostPartsOfABlock) {
  Mmt4dWalk walk = in_small_l2(in_parts_of_blocks());
  walk.m0 = walk.lhs_step_bytes = 4;
  walk.rhs_step_bytes = 1;
  walk.n = 3;
  walk.k = kPanelBytesOfPartsInSmallL2 / 5;  // one block, as long as may be
  walk.most_steps = kDecodedPartBytes / 64;
  check_parts(walk, ceil_div(walk.k, walk.most_steps));
}

TEST(Mmt4dWalk, TakesAtMostSoManyPartsOfABlockWhereL2IsNotSmall) {
  check_parts(in_parts_of_blocks(), kMostPartsOfBlock);
}

// Tiles of `sizes`, elements in `bytes`, sums in four.
Mmt4dWalk walk_of(uk_index_t m, uk_index_t n, uk_index_t k, const uk_tile_sizes_t& sizes,
                  uk_index_t bytes) {
  const uk_index_t step = sizes.k0 * bytes;
  Mmt4dWalk walk = {m, n, k, sizes.m0, sizes.m0 * step, sizes.n0 * step, true};
  walk.out_tile_bytes = uk_index_t{sizes.m0} * sizes.n0 * 4;
  return walk;
}

// On either side of each bound, by what was measured.
TEST(Mmt4dWalk, HasLhsBlocksWhereTheRhsComesSoonerSo) {
  constexpr uk_tile_sizes_t kF32 = {14, 32, 1}, kFew = {4, 32, 1};
  EXPECT_FALSE(walk_of(1, 128, 4096, kF32, 4).gains_by_lhs_blocks());
  EXPECT_TRUE(walk_of(2, 128, 4096, kF32, 4).gains_by_lhs_blocks());
  EXPECT_FALSE(walk_of(2, 7, 4096, kF32, 4).gains_by_lhs_blocks());  // not from memory
  EXPECT_TRUE(walk_of(10, 128, 4096, kF32, 4).gains_by_lhs_blocks());
  EXPECT_FALSE(walk_of(10, 128, 8192, kF32, 4).gains_by_lhs_blocks());
  EXPECT_TRUE(walk_of(18, 1024, 512, kF32, 4).gains_by_lhs_blocks());
  EXPECT_FALSE(walk_of(19, 1024, 512, kF32, 4).gains_by_lhs_blocks());
  EXPECT_TRUE(walk_of(128, 128, 4096, kFew, 4).gains_by_lhs_blocks());
}

// On either side of the bound, by what was measured: parts of K were faster in the first of each
// two.
TEST(Mmt4dWalk, SaysWhenResultsLeaveL2) {
  constexpr uk_tile_sizes_t kS8 = {14, 32, 4};
  constexpr uk_index_t kSteps = kDecodedBytes / (32 * 4);
  const auto leave = [&](uk_index_t m, uk_index_t n, uk_index_t k) {
    return walk_of(ceil_div(m, 14), ceil_div(n, 32), k / 4, kS8, 1).results_leave_l2(kSteps);
  };
  EXPECT_TRUE(leave(500, 1500, 8192));
  EXPECT_FALSE(leave(500, 500, 8192));
  EXPECT_TRUE(leave(200, 1500, 2048));
  EXPECT_FALSE(leave(300, 500, 1100));
  EXPECT_TRUE(leave(2048, 2048, 2048));
  EXPECT_FALSE(leave(1024, 256, 11008));
}

// On either side of each bound, by what was measured.
TEST(Mmt4dWalk, ExchangesRolesWhereThatIsFaster) {
  constexpr uk_tile_sizes_t kF32 = {14, 32, 1}, kS8 = {14, 32, 4}, kRow = {1, 64, 4};
  struct Expected {
    Mmt4dWalk walk;
    bool where_l3_feeds, elsewhere;
  };
  for (const auto& [walk, where_l3_feeds, elsewhere] :
       {// An RHS that stays near, and panels too long for that.
        Expected{walk_of(28, 12, 64, kF32, 4), true, false},
        Expected{walk_of(14, 7, 4096, kF32, 4), false, false},
        // An LHS from memory that is the larger operand, or is not.
        Expected{walk_of(147, 30, 1024, kF32, 4), true, true},
        Expected{walk_of(147, 128, 1024, kF32, 4), false, false},
        // One RHS panel: the LHS in L3, from memory, and from there in short panels.
        Expected{walk_of(8, 1, 1024, kF32, 4), false, false},
        Expected{walk_of(147, 1, 1024, kF32, 4), true, true},
        Expected{walk_of(14700, 1, 70, kF32, 4), false, true},
        // Two of them, in panels that are longer than of an RHS that stays near.
        Expected{walk_of(147, 2, 4096, kF32, 4), true, true},
        Expected{walk_of(147, 3, 4096, kF32, 4), false, true},
        Expected{walk_of(147, 2, 8192, kF32, 4), false, true},
        // Rows one by one: the RHS panel in L1, not in L1, and all of the RHS there.
        Expected{walk_of(168, 49, 67, kRow, 1), false, false},
        Expected{walk_of(168, 49, 200, kRow, 1), true, false},
        Expected{walk_of(168, 2, 67, kRow, 1), true, false},
        // An RHS from memory: one LHS panel, several, and so long that OUT is not most.
        Expected{walk_of(1, 8192, 8, kS8, 1), false, false},
        Expected{walk_of(2, 8192, 8, kS8, 1), true, false},
        Expected{walk_of(2, 8192, 32, kS8, 1), false, false}}) {
    SCOPED_TRACE(testing::PrintToString(walk.m) + " by " + testing::PrintToString(walk.n) +
                 " panels of " + testing::PrintToString(walk.k));
    EXPECT_EQ(where_l3_feeds, is_faster_exchanged(walk, true));
    EXPECT_EQ(elsewhere, is_faster_exchanged(walk, false));
  }
}

// On either side of each bound, by what was measured.
TEST(Mmt4dWalk, WritesNoShortRowsOfOutThatGoOnBeyondTheOp) {
  constexpr uk_tile_sizes_t kS8 = {16, 32, 4};
  constexpr uk_index_t kTileBytes = 16 * 32 * 4, kStepBytes = (16 + 32) * 4;
  constexpr uk_index_t kMostK = kReadPerWritten * kTileBytes / kStepBytes;
  constexpr uk_index_t kMostN = kShortRowBytes / kTileBytes;
  const auto writes_rows = [&](uk_index_t n, uk_index_t k, bool out_goes_on) {
    Mmt4dWalk walk = walk_of(24, n, k, kS8, 1);
    walk.out_goes_on = out_goes_on;
    EXPECT_TRUE(walk.rhs_stays_near());
    EXPECT_FALSE(is_faster_exchanged(walk, false));
    return is_faster_exchanged(walk, true);
  };
  EXPECT_TRUE(writes_rows(6, 16, false));
  EXPECT_FALSE(writes_rows(6, 16, true));
  EXPECT_FALSE(writes_rows(6, kMostK, true));
  EXPECT_TRUE(writes_rows(6, kMostK + 1, true));
  EXPECT_FALSE(writes_rows(kMostN, 16, true));
  EXPECT_TRUE(writes_rows(kMostN + 1, 16, true));
}

TEST(OutGoesOn, WhereRowsAreLongerThanTheOps) {
  const Mmt4dType& type = *find_mmt4d_type(UK_MMT4D_TYPE_S8S8S32);
  uk_mmt4d_params_t p = {};
  p.m = p.n = 3;
  p.m0 = 16;
  p.n0 = 32;
  for (const uk_index_t more : {0, 1, 512}) {
    p.out_stride0 = 3 * 16 * 32 + more;
    EXPECT_EQ(more > 0, out_goes_on(p, type));
  }
  p.flags = UK_MMT4D_UNPACK_OUT;
  p.out_size0 = 48;
  p.out_size1 = 90;
  for (const auto& [stride, goes_on] : {std::make_pair(90, false), std::make_pair(91, true),
                                        std::make_pair(512, false), std::make_pair(513, true)}) {
    p.out_stride0 = stride;
    EXPECT_EQ(goes_on, out_goes_on(p, type)) << stride;
  }
}

TEST(FetchShare, CoversAllBytesInTurn) {
  for (const uk_index_t bytes : {1, 1000, 64 * 1024}) {
    for (const uk_index_t tiles : {1, 3, 16}) {
      for (const uk_index_t k1 : {1, 7, 500}) {
        constexpr uintptr_t kFrom = 4096;
        uintptr_t reached = kFrom;
        for (uk_index_t tile = 0; tile < tiles; ++tile) {
          uk_tile_context_t context = {};
          fetch_share(kFrom, bytes, tiles, tile, k1, &context);
          ASSERT_LE(context.prefetch_from, reached);
          reached =
              context.prefetch_from + static_cast<uintptr_t>(k1) * context.prefetch_step_bytes;
        }
        ASSERT_GE(reached, kFrom + static_cast<uintptr_t>(bytes));
        ASSERT_LT(reached, kFrom + static_cast<uintptr_t>(bytes + tiles + k1));
      }
    }
  }
}

TEST(Mmt4dWalk, LimitsBlocks) {
  const Mmt4dWalk walk = in_blocks_each_way(true);
  const std::vector<TilesOfRhs> groups = groups_of(walk);
  for (const TilesOfRhs& tiles : groups) {
    ASSERT_LE(tiles.rhs.k1, walk.most_steps);
    ASSERT_LE(tiles.i1 - tiles.i0, walk.most_lhs_panels);
  }
  // OUT stays in L2 until it has all parts of K.
  const auto second_part = std::find_if(groups.begin(), groups.end(),
                                        [](const TilesOfRhs& tiles) { return tiles.rhs.k > 0; });
  const uk_index_t columns = second_part - groups.begin();
  ASSERT_LT(columns, walk.n);
  const uk_index_t out_bytes = columns * groups[0].i1 * walk.out_tile_bytes;
  EXPECT_LE(out_bytes, kOutBlockBytes);
  EXPECT_GT(out_bytes, kOutBlockBytes / 2);
  EXPECT_EQ(0, second_part->rhs.j);
}

// Tiles of 16 x 32 floats, and an RHS of 41 panels, of which several make a block.
TEST(Mmt4dWalk, KeepsABlockOfTheRhsWhereL3FeedsTiles) {
  const Mmt4dWalk walk = {70, 41, 1000, 16, 64, 128, true, true, 0, 1};
  ASSERT_TRUE(walk.rhs_streams());
  const std::vector<Call> calls = calls_of(walk);
  const auto new_row =
      std::find_if(calls.begin(), calls.end(), [](const Call& c) { return c.i == 1; });
  const auto block = static_cast<size_t>(new_row - calls.begin());
  EXPECT_LE(static_cast<uk_index_t>(block) * 1000 * 128, kRhsBlockBytes);
  EXPECT_GT(static_cast<uk_index_t>(block) * 1000 * 128, kRhsBlockBytes / 2);
  for (size_t c = 0; c < block * 70; ++c) {
    EXPECT_EQ(static_cast<uk_index_t>(c / block), calls[c].i);
    EXPECT_EQ(static_cast<uk_index_t>(c % block), calls[c].j);
    EXPECT_EQ(calls[c].i == 0, calls[c].prefetches);  // afterwards it is in L3
  }
  EXPECT_FALSE(fetches_any(walk));
}

TEST(Mmt4dWalk, HasBlocksOfTheRhsAsLargeAsTheLhs) {
  const Mmt4dWalk walk = {2, 41, 1000, 16, 64, 128, true, true, 0, 1};
  const std::vector<Call> calls = calls_of(walk);
  EXPECT_EQ(0, calls[1].j);  // an RHS panel has the bytes of two LHS panels
  EXPECT_EQ(1, calls[1].i);
}

TEST(Mmt4dWalk, DoesNotPrefetchWhatIsInTheCaches) {
  Mmt4dWalk walk = few_rows(4, kCheap, 1);
  walk.n /= 2;
  for (const uk_index_t m : {1, 2}) {
    walk.m = m;
    for (const Call& call : calls_of(walk)) ASSERT_FALSE(call.prefetches);
    ASSERT_FALSE(fetches_any(walk));
  }
}

}  // namespace
}  // namespace uk
