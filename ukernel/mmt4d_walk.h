// The order in which the tiles of an mmt4d are computed.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_MMT4D_WALK_H_
#define UKERNEL_MMT4D_WALK_H_

#include "ukernel/internal.h"

namespace uk {

UK_INLINE bool unpacks(const uk_mmt4d_params_t& p) { return (p.flags & UK_MMT4D_UNPACK_OUT) != 0; }

// Whether results that wait for their next part of K push each other out of L2, being in rows of a
// matrix that share sets of it.
UK_INLINE bool results_share_sets(const uk_mmt4d_params_t& p, const Mmt4dType& type) {
  return unpacks(p) && p.out_stride0 * type.out_bits / 8 % kSetsBytes == 0;
}

// Whether OUT's rows of tiles go on beyond the op's, where another CPU may be writing. Not where
// rows of a matrix share sets of L2, in which a column of tiles would have no room.
UK_INLINE bool out_goes_on(const uk_mmt4d_params_t& p, const Mmt4dType& type) {
  const uk_index_t row_elements = unpacks(p) ? p.out_size1 : p.n * p.m0 * p.n0;
  return p.out_stride0 > row_elements && !results_share_sets(p, type);
}

// The size of blocks that cover an extent, of which one takes unit_bytes: as few blocks as fit
// most_bytes each, or hold `least`, and all alike, since a short one loads its operands for less
// work than the others do.
inline uk_index_t equal_block(uk_index_t extent, uk_index_t unit_bytes, uk_index_t most_bytes,
                              uk_index_t least = 1) {
  // Most ops take this way, and the small ones of them would notice divisions.
  if (extent <= least || extent * unit_bytes <= most_bytes) return larger(extent, 1);
  const uk_index_t blocks = ceil_div(extent, larger(quotient(most_bytes, unit_bytes), least));
  return ceil_div(extent, blocks);
}

// Of an RHS panel, its k1 steps from k on.
struct RhsPart {
  uk_index_t j, k, k1;
};

// The tiles of LHS panels from i0 on, up to i1, with the same part of an RHS panel, or of several.
struct TilesOfRhs {
  RhsPart rhs;
  uk_index_t i0, i1;
  uk_index_t panels = 1;  // of the RHS, from rhs.j on, that one tile function takes
  // Of tiles that can fetch for others: whether each should fetch its share of `next`, which the
  // tiles after them need, and whether tiles before them were to fetch this part.
  bool fetch_next = false, is_fetched = false;
  RhsPart next = {};
  bool prefetch_rhs = false;  // of others, whether the first should fetch it beside its dots
  bool starts_lhs = false;    // the first tiles in a row with these parts of their LHS panels
  uk_index_t part = 0;        // which of their block's parts of K, where a block has several
};

// What one of `tiles` tiles, of k1 steps each, fetches of `bytes` from `from` on.
inline void fetch_share(uintptr_t from, uk_index_t bytes, uk_index_t tiles, uk_index_t tile,
                        uk_index_t k1, uk_tile_context_t* context) {
  const uk_index_t share = ceil_div(bytes, tiles);
  context->prefetch_from = from + static_cast<uintptr_t>(tile * share);
  context->prefetch_step_bytes = static_cast<uintptr_t>(ceil_div(share, k1));
}

// What is large in it is UK_INLINE: else it would be a symbol, which other libraries may have, too.
struct Mmt4dWalk {
  uk_index_t m, n, k;                         // in tiles
  uk_index_t m0;                              // rows of a tile
  uk_index_t lhs_step_bytes, rhs_step_bytes;  // > 0
  bool can_split_k;  // whether the accumulator holds the exact intermediate result
  // Tiles, as fast as L2 (ukernel/isa.inc), from an RHS that does not stay near, and not slower
  // than gains_by_lhs_blocks() says; read if m > 1 or reads_rhs_once().
  bool l3_feeds = false;
  // Read if reads_rhs_once():
  int step_cost = 0;         // quarter cycles of a k step (ukernel/tile_cost.cc)
  int panels_in_turns = 1;   // of the RHS that the CPU reads in turns (ukernel/isa.inc)
  bool reads_ahead = false;  // of one, by itself
  bool l3_is_far = false;
  // Whether a tile can take kPanelsAbreast RHS panels at once, and gains by it where these are.
  bool has_tile_abreast = false;
  // Whether blocks are those of a small L2. Read where L3 does not feed tiles.
  bool small_l2 = false;
  // Whether an RHS that does not stream is to be fetched, too.
  bool rhs_is_far = false;
  // The most steps of K and the most LHS panels that make a block, unless 0. Where K can be split,
  // and the latter for m > 1, where L3 does not feed tiles.
  uk_index_t most_steps = 0, most_lhs_panels = 0;
  // What a tile of OUT takes; 0 keeps OUT from being in blocks where most_lhs_panels makes some.
  uk_index_t out_tile_bytes = 0;
  bool out_goes_on = false;         // as uk::out_goes_on() says
  bool results_share_sets = false;  // likewise
  // Whether most_steps make a part of a block: its tiles take all parts with one RHS panel before
  // they meet the next, and find their results in L1 or L2 in between. Read by for_all_tiles<true>.
  bool has_parts = false;
  // Parts of K are a multiple of so many steps, which an instruction takes. So is most_steps.
  uk_index_t tile_steps = 1;
  // Whether the RHS here is a tile's LHS, and the other way round, so that no tile can prefetch it
  // for itself.
  bool exchanged = false;
  bool on_l3_that_feeds = false;  // whether L3 feeds these tiles, in whatever order they come

  uk_index_t rhs_bytes() const { return n * k * rhs_step_bytes; }
  bool rhs_streams() const { return rhs_bytes() >= kStreamBytes; }
  bool reads_rhs_once() const { return rhs_streams() && m == 1; }
  // Whether tiles of OUT have left L2 when the next part of K, of so many steps of it, comes to
  // them: what passes in between is the RHS and OUT of an LHS block.
  bool results_leave_l2(uk_index_t steps) const {
    const uk_index_t block_m = equal_block(m, lhs_step_bytes * steps, kLhsBlockBytes);
    return n * (rhs_step_bytes * steps + block_m * out_tile_bytes) >= kPassedBytes;
  }
  // Whether it comes from L2 or L3, in panels that are in L2 beside those of the LHS as they are.
  // Longer ones are not split alike in either order: f32 256x32x16384 took 1.2 times as long.
  bool rhs_stays_near() const {
    return !rhs_streams() && k * (lhs_step_bytes + rhs_step_bytes) <= kPanelBytes;
  }

  // Whether an RHS from memory comes sooner in blocks of LHS panels, whose tiles all fetch a share
  // of the next RHS panel, though L3 feeds tiles: in blocks of one LHS panel the tiles of the first
  // wait for it, and memory idles beside the others. On Zen 5 17 rows by 9x32 took 0.7 to 0.85 of
  // the time, tiles of up to 4 rows 0.87 to 0.94, others with up to 256 rows in all 0.84 to 1.0.
  // With more rows the RHS comes from memory for too many blocks: f32 and bf16 512x4096x4096 took
  // up to 1.06 times as long.
  bool gains_by_lhs_blocks() const {
    if (!rhs_streams() || m == 1) return false;
    const bool is_small = m * k * lhs_step_bytes <= kLhsBytesToFetchBeside;
    return m0 <= kFewRowsToFetchBeside || (m * m0 <= kRowsToFetchBeside && is_small);
  }

  // Whether there are such blocks, whose panels are shorter then: not where results that wait for
  // more parts of K would push each other out.
  bool fetches_beside() const {
    return on_l3_that_feeds && !l3_feeds && !exchanged && rhs_streams() && !reads_abreast() &&
           !results_share_sets;
  }

  // Whether the RHS comes from memory anew for each LHS block: its panels are then as short as
  // where tiles fetch it beside an LHS block.
  bool rereads_memory() const { return !on_l3_that_feeds && rhs_bytes() >= kMemoryRhsBytes; }

  // Whether each LHS panel in turn should meet the RHS panels, by the walk with the roles
  // exchanged, on a CPU whose L3 feeds tiles or not: if the LHS comes from memory, beyond L3 or as
  // slow as that, and is the larger operand. Where L3 feeds tiles, blocks of one LHS panel would
  // come in that order, each tile by a call of its own; exchanged, an LHS panel meets those of an
  // RHS that stays near in one loop, and is fetched if it comes from memory. On Zen 5 ops of K = 32
  // to 64 took up to a tenth less time, f32 2048x32x2048 a third less. There, too:
  //   - One RHS panel meets the LHS panels in one loop as it is, and the core sees where short ones
  //     lie: f64 6x8 took twice as long where each was fetched by the tile before.
  //   - For one or two RHS panels nearly all that is read is the LHS. Where both panels are longer
  //     than those of an RHS that stays near, and it was not fetched, they took 1.3 to 1.5 times as
  //     long.
  //   - Tiles of one or two rows have an RHS panel in L1 for all LHS panels as it is. Where it came
  //     from L2 for each of these, they took up to twice as long.
  //   - Where OUT is most of what moves, it should be written row by row though the RHS comes from
  //     memory: that took 0.6 to 0.9 of the time.
  //   - Where short rows of OUT go on beyond the op, they should not be written one by one: stores
  //     of tile after tile have a core fetch what comes next in the row, maybe from another CPU
  //     that writes there. Two that shared the columns of u8s8 384x384x64 took 43 us, and take 14.
  UK_INLINE bool is_faster_exchanged() const {
    if (m == 1 || reads_abreast()) return false;
    const uk_index_t lhs_panel = k * lhs_step_bytes, rhs_panel = k * rhs_step_bytes;
    const uk_index_t lhs_bytes = m * lhs_panel;
    const bool reads_mostly_lhs = lhs_bytes >= kStreamBytes && lhs_bytes > rhs_bytes();
    if (!on_l3_that_feeds) return reads_mostly_lhs;
    if (mostly_writes_short_rows()) return false;
    if (n == 1 && (!reads_mostly_lhs || lhs_panel < kLeastFetchedBytes)) return false;
    if (n <= 2 && reads_mostly_lhs) return lhs_panel + rhs_panel <= kLongPanelBytes;
    if (rhs_streams()) return rhs_panel <= 2 * out_tile_bytes;
    const bool panel_stays_in_l1 = rhs_panel <= kPanelBytesInL1 && rhs_bytes() > kPanelBytesInL1;
    if (m0 <= 2 && panel_stays_in_l1 && lhs_bytes < kStreamBytes) return false;
    return rhs_stays_near();
  }

  bool outruns_memory() const { return rhs_step_bytes > kMemoryBytes * step_cost; }
  bool keeps_memory_waiting() const { return rhs_step_bytes <= kWaitingBytes * step_cost; }

  // Of a tile that prefetches its own panel.
  uintptr_t prefetch_distance() const {
    return reads_ahead && outruns_memory() ? kNearPrefetchDistance : kPrefetchDistance;
  }

  // Of such a tile, too: whether it prefetches pages abreast (arch/mmt4d_tile.h). On Cascade Lake,
  // whose prefetches of its own begin anew with each page, tiles that wait for memory took 0.91 to
  // 0.96 of the time, but s8s4 16x32, which is busy multiplying, 1.05 times as long.
  bool prefetches_pages() const {
    return l3_is_far && tile_steps == 1 && reads_rhs_once() && !keeps_memory_waiting();
  }

  // Whether such a tile, if it has several register blocks, prefetches into L1. On Zen 5 16 rows of
  // f32, bf16 and f64 took 0.90 to 0.97 of the time, of bytes 0.95 to 0.99, of types that are
  // decoded 0.96 to 1.05; nobody measured it elsewhere since blocks share what they prefetch.
  bool prefetches_into_l1() const {
    return reads_rhs_once() && uk::streams_abreast(l3_feeds, panels_in_turns);
  }

  // Three panels at once come a twentieth sooner than two pages of one at a time, where a row of
  // f32 or f64 does little else than read; widened bf16 and f16 took 1.04 and 1.08 times as long.
  bool reads_far_abreast() const {
    return l3_is_far && m0 == 1 && rhs_step_bytes > kAbreastBytes * step_cost;
  }

  // While memory was busy one panel came to Zen 5 at 57 to 76 % of its rate for four rows,
  // prefetched or not, and three at 81 to 100 %; for one and two rows one at 60 to 98 % and three
  // at 76 to 111 %.
  bool streams_abreast() const {
    return reads_rhs_once() && uk::streams_abreast(l3_feeds, panels_in_turns) &&
           k * rhs_step_bytes >= kLeastBytesAbreast;
  }

  // For several LHS panels, dots of tiles of few sums wait as much as for one. On Zen 5 tiles of
  // f32, f16, bf16 and s8 by s4 took 0.35 to 0.8 of the time from the caches, but a row of 64 f32
  // by panels too long for L1 up to 1.24 times as long. Panels from memory come to the first LHS
  // panel without prefetches, and no later to the others: 2 to 16 of them took 0.4 to 0.9 of the
  // time, but by 2x32 and 1x32 of f32, which read most for what they multiply, 1.0 to 1.3 times as
  // long; 1x16 took 0.84 and is left out with these.
  bool gains_abreast_for_several() const {
    if (rhs_streams()) return rhs_step_bytes <= kStreamedBytesPerRow * m0;
    const bool only_reads = m0 == 1 && rhs_step_bytes > kRowBytesAbreast;
    return !(only_reads && k * rhs_step_bytes > kPanelBytesInL1);
  }

  // One panel that is prefetched may come from memory sooner than several that are not, and nobody
  // measured it where a CPU says nothing; but tiles of one row that are far slower than memory gain
  // by more sums.
  UK_INLINE bool reads_abreast() const {
    if (!has_tile_abreast || exchanged) return false;
    if (m > 1) return gains_abreast_for_several();
    const bool waits_for_tiles = m0 == 1 && keeps_memory_waiting();
    return !rhs_streams() || reads_ahead || waits_for_tiles || reads_far_abreast() ||
           streams_abreast();
  }

  // Calls some_tiles(TilesOfRhs) until there was each tile (i, j) of OUT, where parts of K come in
  // increasing order. K = 0 has each tile come up too. Small ops would notice the parts that blocks
  // of others may have.
  template <bool kMayHaveParts = false, class SomeTiles>
  void for_all_tiles(SomeTiles some_tiles) const {
    const Block block = block_of_tiles<kMayHaveParts>();
    const bool abreast = reads_abreast(), prefetch = prefetches();
    // An RHS panel that came only when its first tile reads it would keep that tile waiting, while
    // the memory would idle beside the others. So all tiles of a panel fetch a part of the next. A
    // part of one that is not all of it is followed by one that does not lie behind it.
    const bool fetch_next =
        prefetch && (m > 1 || exchanged || block.k < k) && !has_blocks_of_one_lhs_panel();
    for (uk_index_t j0 = 0; j0 < n; j0 += block.n) {
      const uk_index_t j1 = smaller(j0 + block.n, n);
      for (uk_index_t i0 = 0; i0 < m; i0 += block.m) {
        const uk_index_t i1 = smaller(i0 + block.m, m);
        for (uk_index_t k_from = 0; k_from == 0 || k_from < k; k_from += block.k) {
          for (uk_index_t j = j0, taken = 1; j < j1; j += taken) {
            taken = abreast && j1 - j >= kPanelsAbreast ? kPanelsAbreast : 1;
            uk_index_t k_at = k_from, part = 0;
            const uk_index_t k_to = smaller(k_from + block.k, k);
            do {
              TilesOfRhs tiles = {{j, k_at, smaller(block.k_part, k_to - k_at)}, i0, i1, taken};
              tiles.part = part++;
              tiles.starts_lhs = j == j0;
              // Only the first LHS panel finds the RHS panel in memory.
              tiles.prefetch_rhs =
                  prefetch && taken == 1 && !(i0 > 0 && has_blocks_of_one_lhs_panel());
              if (fetch_next) {
                const RhsBlock of_rhs = {j0, j1, k_from, block.k, block.k_part};
                tiles.fetch_next = find_next(tiles, of_rhs, &tiles.next);
                tiles.is_fetched = i0 > 0 || k_at > 0 || j > 0;
              }
              some_tiles(tiles);
              k_at += block.k_part;
            } while (kMayHaveParts && k_at < k_to);
          }
        }
      }
    }
  }

 private:
  // Blocks are of one LHS panel where L3 feeds tiles, else of all RHS panels, unless parts of K are
  // many; or there is one LHS panel.
  bool has_blocks_of_one_lhs_panel() const { return l3_feeds && m > 1; }

  bool mostly_writes_short_rows() const {
    return out_goes_on && n * out_tile_bytes <= kShortRowBytes &&
           k * (lhs_step_bytes + rhs_step_bytes) <= kReadPerWritten * out_tile_bytes;
  }

  // LHS and RHS panels and steps of K that keep the panels in cache, and of these steps those that
  // one RHS panel takes at a time.
  struct Block {
    uk_index_t m, n, k, k_part;
  };
  template <bool kMayHaveParts>
  UK_INLINE Block block_of_tiles() const {
    const bool rhs_blocks = has_blocks_of_one_lhs_panel(), has_k_parts = kMayHaveParts && has_parts;
    const uk_index_t rhs_panels = reads_abreast() ? kPanelsAbreast : 1;
    Block block = {1, n, larger(k, 1), 0};
    // An RHS panel that meets one LHS panel is read once in any order: splitting K would only add
    // traffic on OUT.
    if (m > 1 && can_split_k) {
      const uk_index_t panel_bytes = rhs_blocks                ? kLongPanelBytes
                                     : has_k_parts && small_l2 ? kPanelBytesOfPartsInSmallL2
                                     : small_l2                ? kPanelBytesInSmallL2
                                     : fetches_beside() || rereads_memory() ? kFetchedPanelBytes
                                                                            : kPanelBytes;
      block.k = equal_block(k, lhs_step_bytes + rhs_panels * rhs_step_bytes, panel_bytes, 16);
    }
    if (has_k_parts && !small_l2) {
      block.k = smaller(block.k, equal_block(k, 1, most_steps * kMostPartsOfBlock));
    }
    const bool is_limited = most_steps > 0 && !has_k_parts;
    if (is_limited) block.k = smaller(block.k, equal_block(k, 1, most_steps));
    const uk_index_t k_parts = has_k_parts ? ceil_div(block.k, most_steps) : 1;
    if (rhs_blocks) {
      const uk_index_t block_bytes = smaller(m * k * lhs_step_bytes, kRhsBlockBytes);
      block.n = equal_block(n, k * rhs_step_bytes, block_bytes);
      if (rhs_panels > 1) block.n = ceil_div(block.n, rhs_panels) * rhs_panels;
    } else {
      const uk_index_t block_bytes = small_l2                        ? kLhsBlockBytesInSmallL2
                                     : exchanged && on_l3_that_feeds ? kRhsBlockBytes
                                                                     : kLhsBlockBytes;
      block.m = equal_block(m, lhs_step_bytes * block.k, block_bytes);
      if (most_lhs_panels > 0) block.m = smaller(block.m, equal_block(m, 1, most_lhs_panels));
      if (has_k_parts) block.m = smaller(block.m, equal_block(m, 1, kSummedLhsPanels / k_parts));
      // Each part of K would bring all of OUT from memory; in blocks of it all of the LHS comes
      // from there each time, so that of few parts they are larger.
      if (m > 1 && is_limited && out_tile_bytes > 0 && block.k < k) {
        const uk_index_t most = larger(kOutBlockBytes, kOutPartsBytes / ceil_div(k, block.k));
        block.n = equal_block(n, block.m * out_tile_bytes, most);
      }
    }
    if (reads_side_by_side()) {
      block.n = 2;
      block.k = larger(kSideBySideBytes / rhs_step_bytes, 1);
    }
    if (tile_steps > 1) block.k = ceil_div(block.k, tile_steps) * tile_steps;
    block.k_part = has_k_parts ? ceil_div(block.k, k_parts) : block.k;
    return block;
  }

  // A core prefetches by itself, but only so far ahead of each stream of reads, and up to the end
  // of a page. Where tiles wait for memory, two panels side by side may keep more on its way than
  // prefetches for one do; they also share an LHS panel that is too long for L1. Where tiles have
  // more to do with what they read, prefetches cost less. The loads of a single row run far ahead
  // by themselves on cores that read two panels in turns, and where L3 feeds tiles or the core says
  // so, unless there is much to do between them. On Emerald Rapids one row took up to 1.35 times as
  // long without prefetches, two rows by tiles of one up to 1.4; on Zen 3 f32, f64 and s16 took
  // 1.13 to 1.2 times as long with them, and types that are widened 1.2 times as long without; on
  // others nobody measured it.
  UK_INLINE bool prefetches() const {
    if (m > 1 && reads_abreast()) return false;
    return (rhs_streams() || rhs_is_far) && !runs_ahead() && !waits_for_memory();
  }
  UK_INLINE bool reads_side_by_side() const {
    return waits_for_memory() && !reads_abreast() && m0 > 1 && can_split_k && most_steps == 0 &&
           (mostly_reads() || k * lhs_step_bytes >= kLongLhsBytes);
  }
  bool runs_ahead() const {
    if (m0 > 1) return false;
    if (!reads_rhs_once()) return l3_feeds;
    return panels_in_turns > 1 || (l3_feeds && mostly_reads()) || (reads_ahead && outruns_memory());
  }
  bool waits_for_memory() const {
    return reads_rhs_once() && panels_in_turns > 1 && outruns_memory();
  }
  bool mostly_reads() const { return rhs_step_bytes > kReadingBytes * step_cost; }

  // RHS panels j0 ... j1 - 1, and their k_block steps from k_from on, k_part at a time.
  struct RhsBlock {
    uk_index_t j0, j1, k_from, k_block, k_part;
  };

  // Where blocks are not of one LHS panel each.
  bool find_next(const TilesOfRhs& tiles, const RhsBlock& block, RhsPart* next) const {
    *next = {tiles.rhs.j, tiles.rhs.k + block.k_part, 0};
    uk_index_t k_to = smaller(block.k_from + block.k_block, k);
    if (next->k >= k_to) {
      ++next->j;
      next->k = block.k_from;
      if (next->j == block.j1) {
        next->j = block.j0;
        next->k += block.k_block;
      }
      if (next->k >= k) {
        next->k = 0;
        if (tiles.i1 == m) next->j = block.j1;  // of the next block
        if (next->j == n) return false;         // after the last one of all
      }
      k_to = smaller(next->k + block.k_block, k);
    }
    next->k1 = smaller(block.k_part, k_to - next->k);
    return true;
  }
};

}  // namespace uk

#endif  // UKERNEL_MMT4D_WALK_H_
