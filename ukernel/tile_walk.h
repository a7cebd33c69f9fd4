// What pack and unpack share: a matrix and its tiles, checked and brought to one form, and the walk
// over the tiles. Not installed.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_TILE_WALK_H_
#define UKERNEL_TILE_WALK_H_

#include "ukernel/copy_rows.h"
#include "ukernel/internal.h"

namespace uk {

// A pack or an unpack as its caller describes it.
struct TileCopy {
  uint32_t op, flags;
  const uint64_t* cpu_data;
  const void* matrix;
  uk_index_t offset, size0, size1, stride0, stride1;
  const void* tiles;
  uk_index_t tiles_offset, outer0, outer1, outer_stride0, outer_stride1, tile0, tile1;
};

// How a block reaches the output.
enum class BlockOutput {
  kDirect,
  kGathered,   // by way of the scratch, in one run per column of tiles
  kRestacked,  // by way of the scratch, where rows of tiles are dense, and from there as tall tiles
  kStreamed,   // by way of the scratch, past the caches
};

// How the full tiles are walked: in blocks of tile_rows x tiles.
struct Blocks {
  uk_index_t tile_rows, tiles;
  bool down;  // the next block is the one below, else the one to the right
  BlockOutput output;
  // Where the tiles of a column follow each other, and so do the rows within them, a column of a
  // block is one tall tile, or several of tall_tile_rows each. This is its row, NULL if it has
  // none; its elements may be wider ones. Restacked, it is a tile of whole tiles for elements.
  const uk_tile_row_t* tall;
  int tall_bits;
  uk_index_t tall_tile_rows;
  // From the tiles at hand to those that are prefetched, in rows and columns of tiles; 0, 0: none.
  uk_index_t ahead0, ahead1;
  bool gathers;  // an unpack: columns of tiles are copied one behind the other first
};

// The same in one form. Dimensions 0 and 1 are the matrix's, also for the tiles; dimension 1 is the
// contiguous one if the matrix has any, so a column-major matrix is described by its transpose.
struct TilePlan {
  int bits;             // per element; two four-bit elements count as one of eight where they can
  bool transposed;      // the tile is stored as columns x rows
  bool half_last_byte;  // what does count so, but for the upper four bits of each row's last byte
  uk_index_t offset, size0, size1, stride0, stride1;
  uk_index_t rows, columns;  // of a tile, as the matrix sees it
  uk_index_t tiles_offset, tiles0, tiles1, tiles_stride0, tiles_stride1;
  const uk_tile_row_t* row;   // NULL: element by element
  uk_index_t whole0, whole1;  // full tiles, which come in blocks; none if there is no row
  Blocks blocks;              // if there is a row

  uk_index_t element(uk_index_t r, uk_index_t c) const {
    return offset + r * stride0 + c * stride1;
  }
  uk_index_t tile(uk_index_t i, uk_index_t j) const {
    return tiles_offset + i * tiles_stride0 + j * tiles_stride1;
  }
  uk_index_t tile_size() const { return rows * columns; }
  // Of tiles an odd number of four-bit elements wide, every other one starts on a byte: so many
  // tiles stay together.
  uk_index_t even_tiles() const { return columns * bits % 8 != 0 ? 2 : 1; }
  bool prefetches() const { return (blocks.ahead0 | blocks.ahead1) != 0; }
  // From tile (*i, *j) to the one that is prefetched beside it. Past the end of a row of blocks, or
  // of a column of them, comes the next; false if there are no `count` rows of tiles from there on.
  bool go_ahead(uk_index_t* i, uk_index_t* j, uk_index_t count) const {
    *i += blocks.ahead0;
    *j += blocks.ahead1;
    if (blocks.down) {
      for (; *i >= whole0 && *j < whole1; *j += blocks.tiles) *i -= whole0;
    } else {
      for (; *j >= whole1; *i += blocks.tile_rows) *j -= whole1;
    }
    return *i + count <= whole0 && *j < whole1;
  }
};

// All checks, the plan, and the selection.
uk_status_t plan_tiles(const TileCopy& copy, TilePlan* plan);

// Where a tile is not full, a tile function works on this much of the op's stack instead of the
// matrix: one tile row, as many tiles of it as fit. So it does for a block that is not kDirect.
constexpr uk_index_t kScratchBytes = 16 << 10;

// Visits every tile that holds an element of the matrix. A Visitor has
//   block(i, j, rows, count): full tiles (i, j) to (i + rows - 1, j + count - 1), a block or less;
//   partial(i, j, count): tiles (i, j) to (i, j + count - 1), which fit the scratch and of which
//   some are not full; partial_column(i, j, count): likewise tiles (i, j) to (i + count - 1, j),
//   all of whose rows are there; element_by_element(i, j): one tile that has no function or does
//   not fit.
template <class Visitor>
void visit_tiles(const TilePlan& plan, Visitor& visit) {
  const uk_index_t covered0 = ceil_div(plan.size0, plan.rows);
  const uk_index_t covered1 = ceil_div(plan.size1, plan.columns);
  if (covered0 == 0 || covered1 == 0) return;
  const uk_index_t tile_bytes = plan.tile_size() * plan.bits / 8;
  const uk_index_t even = plan.even_tiles(), whole0 = plan.whole0, whole1 = plan.whole1;

  const Blocks& blocks = plan.blocks;
  const auto visit_block = [&](uk_index_t i, uk_index_t j) {
    visit.block(i, j, smaller(blocks.tile_rows, whole0 - i), smaller(blocks.tiles, whole1 - j));
  };
  if (blocks.down) {
    for (uk_index_t j = 0; j < whole1; j += blocks.tiles) {
      for (uk_index_t i = 0; i < whole0; i += blocks.tile_rows) visit_block(i, j);
    }
  } else {
    for (uk_index_t i = 0; i < whole0; i += blocks.tile_rows) {
      for (uk_index_t j = 0; j < whole1; j += blocks.tiles) visit_block(i, j);
    }
  }

  // What is left: the right edge, then the bottom.
  const uk_index_t fit = plan.row ? quotient(kScratchBytes, tile_bytes) & -even : 0;
  const auto visit_row = [&](uk_index_t i, uk_index_t first) {
    for (uk_index_t j = first; j < covered1; j += larger(fit, 1)) {
      if (fit > 0) {
        visit.partial(i, j, smaller(fit, covered1 - j));
      } else {
        visit.element_by_element(i, j);
      }
    }
  };
  if (fit > 0 && even == 1 && whole1 < covered1) {
    for (uk_index_t i = 0; i < whole0; i += fit) {
      visit.partial_column(i, whole1, smaller(fit, whole0 - i));
    }
  } else {
    for (uk_index_t i = 0; i < whole0; ++i) visit_row(i, whole1);
  }
  for (uk_index_t i = whole0; i < covered0; ++i) visit_row(i, 0);
}

}  // namespace uk

#endif  // UKERNEL_TILE_WALK_H_
