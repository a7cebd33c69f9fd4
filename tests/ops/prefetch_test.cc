// Which lines of an RHS mmt4d tiles prefetch, and when: by their addresses, as nothing is read.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "arch/mmt4d_tile.h"

namespace {

// Neither at a page nor as far from one as a whole number of pages.
constexpr uintptr_t kRhs = uintptr_t{1} << 30 | 0x1240;

uk_tile_context_t context_of(bool prefetches_pages) {
  uk_tile_context_t context = {0};
  context.prefetches_pages = prefetches_pages;
  return context;
}

// What the RHS's panels, one behind the other, have each block prefetch: per line, counted from
// where the RHS begins, in which step of all blocks it first comes up, and how often.
struct Lines {
  struct Line {
    int step, count;
  };
  std::map<intptr_t, Line> lines;
  int steps = 0;

  void add(uintptr_t address) {
    const auto offset = static_cast<intptr_t>(address - kRhs);
    Line& line = lines.emplace(offset >> 6, Line{steps, 0}).first->second;
    ++line.count;
  }

  template <int kBlocks, int kStepBytes, int kSteps = 1>
  void add_step(Prefetch& ahead) {
    for_prefetched_lines<kBlocks, kStepBytes, kSteps>(ahead, [&](uintptr_t line) { add(line); });
  }
};
static_assert(kLineBytes == 1 << 6, "as Lines reckons");

template <int kBlocks, int kStepBytes, int kPrefetched>
Lines lines_of(int panels, int steps, const uk_tile_context_t& context) {
  Lines found;
  for (int panel = 0; panel < panels; ++panel) {
    const uintptr_t at = kRhs + static_cast<uintptr_t>(panel * steps * kStepBytes);
    for (int block = 0; block < kBlocks; ++block) {
      Prefetch ahead = prefetch_start<kBlocks, kStepBytes, kBlocks, kPrefetched>(
          reinterpret_cast<const char*>(at), steps, block, context);
      for (int k = 0; k < steps; ++k, ++found.steps) {
        found.add_step<kBlocks, kPrefetched>(ahead);
      }
    }
  }
  return found;
}

// Of a single block: each line of the panels, but for the first ones, before it is read, and at
// most `most` times.
template <int kStepBytes, int kPrefetched = kStepBytes>
void check_block(bool pages, int steps, int most) {
  SCOPED_TRACE("steps of " + std::to_string(kStepBytes) + " bytes, pages " + std::to_string(pages));
  constexpr intptr_t kFirst = kPrefetchDistance + 2 * kPrefetchedPage;
  const int panels = 100000 / (steps * kStepBytes) + 2;
  const Lines found = lines_of<1, kStepBytes, kPrefetched>(panels, steps, context_of(pages));
  const intptr_t end = static_cast<intptr_t>(panels) * steps * kStepBytes;
  ASSERT_GT(end, 2 * kFirst);
  for (intptr_t at = kFirst; at + kLineBytes <= end; at += kLineBytes) {
    const auto line = found.lines.find(at / kLineBytes);
    ASSERT_NE(line, found.lines.end()) << at;
    EXPECT_LE(line->second.count, most) << at;
    EXPECT_LT(line->second.step * kStepBytes + static_cast<intptr_t>(kPrefetchedPage), at);
  }
  EXPECT_LE(found.lines.rbegin()->first * kLineBytes, end + kFirst);
  if (!pages) {
    EXPECT_EQ(static_cast<intptr_t>(kPrefetchDistance) / kLineBytes, found.lines.begin()->first);
  }
}

// The last bytes of a step may be in a line with the first of the next one.
TEST(Prefetch, OneBlockPrefetchesEachLineAhead) {
  for (const bool pages : {false, true}) {
    for (const int steps : {60, 64, 333}) {
      check_block<32>(pages, steps, 2);
      check_block<64>(pages, steps, 1);
      check_block<96>(pages, steps, 2);
      check_block<128>(pages, steps, 1);
      check_block<192>(pages, steps, 1);
      check_block<256>(pages, steps, 1);
      check_block<320>(pages, steps, 1);
      check_block<384>(pages, steps, 2);
      check_block<32, prefetched_bytes(32, 2)>(pages, steps, 5);
      check_block<64, prefetched_bytes(64, 1)>(pages, steps, 3);
      check_block<96, prefetched_bytes(96, 1)>(pages, steps, 3);
    }
  }
}

// Of blocks that share it: the steps behind theirs, and nothing else.
template <int kBlocks, int kStepBytes>
void check_blocks(bool pages, int steps) {
  SCOPED_TRACE(std::to_string(kBlocks) + " blocks, steps of " + std::to_string(kStepBytes) +
               " bytes, pages " + std::to_string(pages));
  const Lines found = lines_of<kBlocks, kStepBytes, kStepBytes>(1, steps, context_of(pages));
  const intptr_t bytes = static_cast<intptr_t>(steps) * kStepBytes;
  for (intptr_t at = bytes; at + kLineBytes <= 2 * bytes; at += kLineBytes) {
    EXPECT_EQ(1u, found.lines.count(at / kLineBytes)) << at;
  }
  EXPECT_EQ(bytes / kLineBytes, found.lines.begin()->first);
  EXPECT_LE(found.lines.rbegin()->first, (2 * bytes + kStepBytes) / kLineBytes);
}

TEST(Prefetch, BlocksPrefetchTheNextSteps) {
  for (const bool pages : {false, true}) {
    check_blocks<2, 64>(pages, 128);
    check_blocks<2, 128>(pages, 64);
    check_blocks<2, 256>(pages, 32);
    check_blocks<2, 320>(pages, 24);
    check_blocks<3, 384>(pages, 21);
    check_blocks<4, 128>(pages, 64);
    check_blocks<4, 512>(pages, 16);
  }
}

TEST(Prefetch, FewRowsPrefetchALineOfEachPage) {
  EXPECT_EQ(2 * kLineBytes, prefetched_bytes(kLineBytes, 1));
  EXPECT_EQ(2 * kLineBytes, prefetched_bytes(16, 2));
  EXPECT_EQ(kLineBytes, prefetched_bytes(kLineBytes, 3));
  EXPECT_EQ(3 * kLineBytes, prefetched_bytes(3 * kLineBytes, 1));
}

template <int kBlocks, int kStepBytes>
std::vector<uintptr_t> first_lines(const uk_tile_context_t& context) {
  std::vector<uintptr_t> lines;
  Prefetch ahead =
      prefetch_start<kBlocks, kStepBytes>(reinterpret_cast<const char*>(kRhs), 64, 0, context);
  for (int step = 0; step < 4; ++step) {
    for_prefetched_lines<kBlocks, kStepBytes, 1>(ahead,
                                                 [&](uintptr_t line) { lines.push_back(line); });
  }
  return lines;
}

// So that both are on their way at once.
TEST(Prefetch, PagesTakeTurns) {
  std::vector<uintptr_t> lines = first_lines<1, 128>(context_of(true));
  for (size_t i = 0; i < lines.size(); i += 2) {
    EXPECT_EQ(kPrefetchedPage, lines[i] - lines[i + 1]);
    EXPECT_EQ(0u, lines[i + 1] & kPrefetchedPage);
    EXPECT_EQ(lines[0] + i / 2 * kLineBytes, lines[i]);
  }
  lines = first_lines<2, 128>(context_of(true));
  ASSERT_EQ(4u, lines.size());
  const uintptr_t half = 64 * 128 / 2;
  EXPECT_EQ(kRhs + 2 * half, lines[0]);
  EXPECT_EQ(lines[0] + half, lines[1]);
  EXPECT_EQ(lines[0] + kLineBytes, lines[2]);
  EXPECT_EQ(lines[1] + kLineBytes, lines[3]);
}

// Several steps, or a part of a tile's columns, go line by line whatever the context says.
TEST(Prefetch, PartsOfStepsTakeNoTurns) {
  const uk_tile_context_t context = context_of(true);
  const Prefetch of_columns =
      prefetch_start<1, 256, 2, 128>(reinterpret_cast<const char*>(kRhs), 64, 0, context);
  EXPECT_EQ(kRhs + kPrefetchDistance, of_columns.next);
  EXPECT_EQ(256u, of_columns.step);
  EXPECT_EQ(0u, of_columns.apart);
  Prefetch ahead = {kRhs, 64, kPrefetchedPage};
  Lines found;
  found.add_step<1, 64, 4>(ahead);
  for (int line = 0; line < 4; ++line) EXPECT_EQ(1, found.lines[line].count);
  EXPECT_EQ(kRhs + 256, ahead.next);
}

// All that the next tile needs, once, wherever the panel of this one lies.
template <int kBlocks, int kPrefetched, class Start>
void check_fetch(Start start) {
  constexpr int kSteps = 100, kBytes = 128;
  uk_tile_context_t context = context_of(true);
  context.prefetch_from = kRhs;
  context.prefetch_step_bytes = kBytes;
  Lines found;
  for (int block = 0; block < kBlocks; ++block) {
    Prefetch ahead = start(static_cast<const char*>(nullptr), kSteps, block, context);
    for (int k = 0; k < kSteps; ++k) {
      found.add_step<kBlocks, kPrefetched>(ahead);
    }
  }
  for (int line = 0; line < kSteps * kBytes / kLineBytes; ++line) {
    EXPECT_EQ(1u, found.lines.count(line)) << line;
  }
  EXPECT_EQ(0, found.lines.begin()->first);
}

TEST(Prefetch, TilesFetchForOthers) {
  check_fetch<1, 128>(prefetch_start<1, 128>);
  check_fetch<2, 128>(prefetch_start<2, 128>);
  check_fetch<1, 128>(fetch_start<1>);
  check_fetch<2, 256>(fetch_start<2>);
  check_fetch<4, 512>(fetch_start<4>);
}

// A tile on a decoded RHS that is told to fetch nothing.
TEST(Prefetch, NothingElseComesUpWhereThereIsNothingToFetch) {
  Prefetch ahead = fetch_start<1>(reinterpret_cast<const char*>(kRhs), 10, 0, context_of(true));
  Lines found;
  for (int k = 0; k < 10; ++k) {
    found.add_step<1, 128>(ahead);
  }
  EXPECT_EQ(2u, found.lines.size());
  EXPECT_EQ(10, found.lines[0].count);
}

}  // namespace
