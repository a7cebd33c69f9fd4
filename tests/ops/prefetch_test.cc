// Which lines of an RHS mmt4d tiles prefetch, as addresses: nothing is read.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "arch/mmt4d_tile.h"

namespace {

// A panel of another length than a whole number of pages, anywhere.
constexpr uintptr_t kRhs = uintptr_t{5} << 30 | 0x1240;
constexpr int kPanels = 7;

uk_tile_context_t context_of(bool prefetches_pages) {
  uk_tile_context_t context = {0};
  context.prefetches_pages = prefetches_pages;
  return context;
}

// How often each line came up, by its number from the RHS on.
class Lines {
 public:
  void add(uintptr_t address) {
    ++counts_[(static_cast<intptr_t>(address - kRhs) & ~intptr_t{kCacheLine - 1}) / kCacheLine];
  }
  int count(uintptr_t bytes) const {
    const auto found = counts_.find(static_cast<intptr_t>(bytes) / kCacheLine);
    return found == counts_.end() ? 0 : found->second;
  }
  intptr_t last() const { return counts_.rbegin()->first; }

 private:
  std::map<intptr_t, int> counts_;
};

// Panels one behind the other, each by kBlocks blocks for so many steps at a time.
template <int kBlocks, int kStepBytes, int kPrefetched>
Lines lines_of(uk_index_t steps, const uk_tile_context_t& context) {
  Lines lines;
  for (int panel = 0; panel < kPanels; ++panel) {
    const uintptr_t at = kRhs + static_cast<uintptr_t>(panel * steps * kStepBytes);
    for (int block = 0; block < kBlocks; ++block) {
      Prefetch ahead = prefetch_start<kBlocks, kStepBytes, kBlocks, kPrefetched>(
          reinterpret_cast<const char*>(at), steps, block, context);
      for (uk_index_t k = 0; k < steps; ++k) {
        for_prefetched_lines<kBlocks, kPrefetched, 1>(ahead,
                                                      [&](uintptr_t line) { lines.add(line); });
      }
    }
  }
  return lines;
}

// Each line from `first` bytes on up to where the panels end came up, at most `most` times, and
// none that lies further than two pages past what the last step is ahead.
template <int kBlocks, int kStepBytes, int kPrefetched = kStepBytes>
void check_lines(bool pages, uk_index_t steps, uintptr_t first, int most) {
  SCOPED_TRACE(std::to_string(kBlocks) + " blocks, steps of " + std::to_string(kStepBytes) +
               " bytes, pages " + std::to_string(pages));
  const Lines lines = lines_of<kBlocks, kStepBytes, kPrefetched>(steps, context_of(pages));
  const auto end = static_cast<uintptr_t>(kPanels * steps * kStepBytes);
  for (uintptr_t at = first; at + kCacheLine <= end; at += kCacheLine) {
    EXPECT_GE(lines.count(at), 1) << at;
    EXPECT_LE(lines.count(at), most) << at;
  }
  const uintptr_t furthest = end + kPrefetchDistance + 2 * kPrefetchedPage;
  EXPECT_LE(lines.last(), static_cast<intptr_t>(furthest) / kCacheLine);
}

// A line of a step's end may be the next one's beginning.
TEST(Prefetch, OneBlockPrefetchesEachLineAhead) {
  const uintptr_t first = kPrefetchDistance + 2 * kPrefetchedPage;
  for (const bool pages : {false, true}) {
    for (const uk_index_t steps : {60, 64, 333}) {
      check_lines<1, 128>(pages, steps, first, 2);
      check_lines<1, 256>(pages, steps, first, 2);
      check_lines<1, 64, prefetched_bytes(64, 1)>(pages, steps, first, 4);
      check_lines<1, 32, prefetched_bytes(32, 2)>(pages, steps, first, 8);
    }
  }
  check_lines<1, 64>(true, 1000, first, 2);
}

TEST(Prefetch, BlocksPrefetchEachLineOfTheNextSteps) {
  for (const bool pages : {false, true}) {
    check_lines<2, 128>(pages, 64, 128 * 64, 2);
    check_lines<2, 256>(pages, 32, 256 * 32, 2);
    check_lines<4, 128>(pages, 64, 128 * 64, 4);
    check_lines<2, 64>(pages, 128, 64 * 128, 4);
  }
}

// In turns, so that both are on their way at once.
TEST(Prefetch, PagesAreAPageApart) {
  Prefetch ahead =
      prefetch_start<1, 128>(reinterpret_cast<const char*>(kRhs), 1000, 0, context_of(true));
  for (int step = 0; step < 1000; ++step) {
    uintptr_t lines[2] = {}, *line = lines;
    for_prefetched_lines<1, 128, 1>(ahead, [&](uintptr_t address) { *line++ = address; });
    EXPECT_EQ(kPrefetchedPage, lines[0] - lines[1]);
    EXPECT_EQ(0u, lines[1] & kPrefetchedPage);
    const uintptr_t read = kRhs + static_cast<uintptr_t>(step * 128);
    EXPECT_GE(lines[1], read + kPrefetchedPage);
    EXPECT_LE(lines[0], read + kPrefetchDistance + 2 * kPrefetchedPage);
  }
}

// What the next tile needs, once, wherever the panel of this one lies.
TEST(Prefetch, TilesFetchForOthersLineByLine) {
  uk_tile_context_t context = context_of(true);
  context.prefetch_from = kRhs;
  context.prefetch_step_bytes = 128;
  Prefetch ahead = prefetch_start<1, 128>(nullptr, 100, 0, context);
  Lines lines;
  for (int step = 0; step < 100; ++step) {
    for_prefetched_lines<1, 128, 1>(ahead, [&](uintptr_t line) { lines.add(line); });
  }
  for (uintptr_t at = 0; at < 100 * 128; at += kCacheLine) EXPECT_EQ(1, lines.count(at));
  EXPECT_EQ(199, lines.last());
}

}  // namespace
