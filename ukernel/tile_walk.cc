// Checks of pack and unpack, and the one form that both walk.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "ukernel/tile_walk.h"

#include <utility>

#include "ukernel/stream.h"

namespace uk {
namespace {

constexpr uint32_t kCopyCallerFlags =
    UK_PACK_TYPE_MASK | UK_PACK_TRANSPOSE_INNER | UK_PACK_TRANSPOSE_OUTER;

// All that does not concern the buffers.
uk_status_t check_shape(const TileCopy& copy) {
  const int bits = pack_type_bits(copy.flags);
  if (bits == 0) return UK_STATUS_BAD_TYPE;
  if (copy.flags & ~kCopyCallerFlags) return UK_STATUS_BAD_FLAGS;
  if (copy.size0 < 0 || copy.size1 < 0 || copy.outer0 < 0 || copy.outer1 < 0) {
    return UK_STATUS_BAD_EXTENT;
  }
  if (copy.tile0 <= 0 || copy.tile1 <= 0) return UK_STATUS_BAD_TILE_SHAPE;
  if (bits < 8 && copy.tile1 % 2 != 0) return UK_STATUS_SPLIT_BYTE;
  return UK_STATUS_OK;
}

// In the terms of the matrix, dimension 1 contiguous. A stride that leads to no second entry is
// never used and may be anything, so it is dropped.
TilePlan normalized(const TileCopy& copy) {
  TilePlan plan = {};
  plan.bits = pack_type_bits(copy.flags);
  plan.transposed = (copy.flags & UK_PACK_TRANSPOSE_INNER) != 0;
  plan.offset = copy.offset;
  plan.size0 = copy.size0;
  plan.size1 = copy.size1;
  plan.stride0 = copy.size0 > 1 && copy.size1 > 0 ? copy.stride0 : 0;
  plan.stride1 = copy.size1 > 1 && copy.size0 > 0 ? copy.stride1 : 0;
  plan.rows = copy.tile0;
  plan.columns = copy.tile1;
  if (plan.transposed) std::swap(plan.rows, plan.columns);
  plan.tiles_offset = copy.tiles_offset;
  plan.tiles0 = copy.outer0;
  plan.tiles1 = copy.outer1;
  plan.tiles_stride0 = copy.outer0 > 1 ? copy.outer_stride0 : 0;
  plan.tiles_stride1 = copy.outer1 > 1 ? copy.outer_stride1 : 0;
  if (copy.flags & UK_PACK_TRANSPOSE_OUTER) {
    std::swap(plan.tiles0, plan.tiles1);
    std::swap(plan.tiles_stride0, plan.tiles_stride1);
  }
  if (plan.stride0 == 1 && plan.stride1 != 1) {
    std::swap(plan.size0, plan.size1);
    std::swap(plan.stride0, plan.stride1);
    std::swap(plan.rows, plan.columns);
    std::swap(plan.tiles0, plan.tiles1);
    std::swap(plan.tiles_stride0, plan.tiles_stride1);
    plan.transposed = !plan.transposed;
  }
  return plan;
}

uk_status_t check_buffers(const TileCopy& copy, const TilePlan& plan) {
  const bool has_elements = plan.size0 > 0 && plan.size1 > 0;
  const bool has_tiles = plan.tiles0 > 0 && plan.tiles1 > 0;
  if (has_elements && (plan.tiles0 < ceil_div(plan.size0, plan.rows) ||
                       plan.tiles1 < ceil_div(plan.size1, plan.columns))) {
    return UK_STATUS_BAD_EXTENT;
  }
  if ((has_elements && !copy.matrix) || (has_tiles && !copy.tiles)) return UK_STATUS_NULL_POINTER;
  Checked c;
  const uk_index_t tile_size = c.mul(plan.rows, plan.columns);
  c.mul(tile_size, plan.bits);  // the walk counts in bytes, also where there are no tiles
  if (c.overflowed()) return UK_STATUS_OVERFLOW;
  const Layout tiles = {copy.tiles,  plan.tiles_offset,  plan.tiles0, plan.tiles_stride0,
                        plan.tiles1, plan.tiles_stride1, tile_size,   plan.bits};
  const bool runs = plan.stride1 == 1;
  const Layout matrix = {copy.matrix,
                         plan.offset,
                         plan.size0,
                         plan.stride0,
                         runs ? smaller(plan.size1, 1) : plan.size1,
                         runs ? 0 : plan.stride1,
                         runs ? plan.size1 : 1,
                         plan.bits};
  Rows matrix_rows, tile_rows;
  uk_status_t status = rows_of(matrix, &matrix_rows);
  if (status == UK_STATUS_OK) status = rows_of(tiles, &tile_rows);
  if (status != UK_STATUS_OK) return status;
  const bool is_pack = copy.op == UK_OP_PACK;
  if (!is_pack && has_elements && plan.bits < 8 && matrix.run % 2 != 0) {
    return UK_STATUS_SPLIT_BYTE;  // the other half of the last byte is not the output's
  }
  if (!runs_are_disjoint(is_pack ? tiles : matrix)) return UK_STATUS_BAD_STRIDE;
  return rows_overlap(matrix_rows, tile_rows) ? UK_STATUS_OVERLAP : UK_STATUS_OK;
}

// Two four-bit elements that stay neighbours in the same order move as one byte. So does a last one
// of each row that is alone, with what follows it in its byte. Tiles are an even number wide: the
// byte is in one.
void pair_four_bit_elements(TilePlan* plan) {
  const bool contiguous = plan->stride1 == 1 || plan->size1 == 1;
  if (plan->bits != 4 || plan->transposed || !contiguous) return;
  plan->bits = 8;
  plan->offset /= 2;
  plan->half_last_byte = plan->size1 % 2 != 0;
  plan->size1 = ceil_div(plan->size1, 2);
  plan->stride0 /= 2;
  plan->columns /= 2;
  plan->tiles_offset /= 2;
  plan->tiles_stride0 /= 2;
  plan->tiles_stride1 /= 2;
}

const uk_tile_row_t* select_row(const TileCopy& copy, const TilePlan& plan) {
  const bool contiguous = plan.stride1 == 1 || plan.size1 <= 1;
  // Straight four-bit tiles that are left have no bytes' tile.
  const bool has_tiles = plan.bits >= 8 || plan.transposed;
  if (!contiguous || !has_tiles || plan.rows > INT32_MAX || plan.columns > INT32_MAX) {
    return nullptr;
  }
  const uint32_t type = plan.bits == 8 ? UK_PACK_TYPE_I8 : copy.flags & UK_PACK_TYPE_MASK;
  const auto rows = static_cast<int32_t>(plan.rows), columns = static_cast<int32_t>(plan.columns);
  return plan.transposed
             ? select_tile(copy.op, type | UK_PACK_TRANSPOSE_INNER, columns, rows, 0, copy.cpu_data)
             : select_tile(copy.op, type, rows, columns, 0, copy.cpu_data);
}

// ---------------------------------------------------------------- blocks

// Where the tiles of one tile row are far apart in memory, so many are handled before the next row:
// enough of each row to read on end, few enough streams for the caches' ways and the TLB.
constexpr uk_index_t kStripTiles = 8, kStripBytes = 512;

// The same from L3, and so many rows of tiles at least.
constexpr uk_index_t kShortTiles = 8, kShortTileRows = 4;

// Tiles smaller than this would write a line in pieces, with too many others in between.
constexpr uk_index_t kNarrowBytes = kLineBytes;

// As many rows of so little give whole lines only together with many others beside them.
constexpr uk_index_t kNarrowRowBytes = kLineBytes / 4;

// Tiles larger than this are no slower alone than as parts of tall ones.
constexpr uk_index_t kTallTileBytes = 2 * kLineBytes;

// One row or one column is its own transpose.
bool is_straight(const TilePlan& plan) {
  return !plan.transposed || plan.rows == 1 || plan.columns == 1;
}

uk_index_t address_of(const void* base, uk_index_t element, int bits) {
  return static_cast<uk_index_t>(reinterpret_cast<uintptr_t>(at(base, element, bits)));
}

// An output past the caches, in whole lines: rows of a matrix that start within one would be
// written in parts of lines, each of which waits for memory.
bool is_streamed(const TileCopy& copy, const TilePlan& plan) {
  if (plan.size0 * plan.size1 * plan.bits / 8 < kStreamedCopyBytes) return false;
  const uk_index_t starts =
      address_of(copy.matrix, plan.offset, plan.bits) | plan.stride0 * plan.bits / 8;
  return copy.op == UK_OP_PACK || plan.rows == 1 || starts % kLineBytes == 0;
}

// The row of a straight tile of `rows` runs of `unit` bytes, whatever its elements are called, and
// their width. All strides and addresses are multiples of them if the union of their bits,
// `places`, is. NULL if there is none.
const uk_tile_row_t* select_straight(const TileCopy& copy, uk_index_t rows, uk_index_t unit,
                                     uk_index_t places, int* bits) {
  constexpr int kElementBits[] = {64, 32, 16, 8};
  for (const int element_bits : kElementBits) {
    const uk_index_t bytes = element_bits / 8;
    if (((unit | places) & (bytes - 1)) != 0 || unit / bytes > INT32_MAX) continue;
    const uk_tile_row_t* row =
        select_tile(copy.op, pack_row_type(element_bits), static_cast<int32_t>(rows),
                    static_cast<int32_t>(unit / bytes), 0, copy.cpu_data);
    if (row) {
      *bits = element_bits;
      return row;
    }
  }
  return nullptr;
}

// The tallest tile of at most kTallRows rows and kRunBytes that columns of whole tiles make.
void make_tall(const TileCopy& copy, const TilePlan& plan, Blocks* blocks) {
  const uk_index_t unit_bits = plan.columns * plan.bits;
  if (!is_straight(plan) || unit_bits % 8 != 0) return;
  const uk_index_t places = plan.stride0 * plan.bits / 8 | plan.tiles_stride1 * plan.bits / 8 |
                            address_of(copy.matrix, plan.offset, plan.bits) |
                            address_of(copy.tiles, plan.tiles_offset, plan.bits);
  for (uk_index_t rows = kTallRows; rows > plan.rows; rows /= 2) {
    const uk_index_t tile_rows = quotient(rows, plan.rows);
    if (tile_rows * plan.rows != rows || rows > plan.size0) continue;
    if (rows * unit_bits / 8 > kRunBytes) continue;
    blocks->tall = select_straight(copy, rows, unit_bits / 8, places, &blocks->tall_bits);
    if (blocks->tall) {
      blocks->tile_rows = blocks->tall_tile_rows = tile_rows;
      return;
    }
  }
}

// Tiles narrower than a line, in runs of at least a line down their columns. Rows of tiles are made
// densely in the scratch; transposing these as if each tile were an element makes the columns.
bool make_restacked(const TileCopy& copy, const TilePlan& plan, Blocks* blocks) {
  const uk_index_t tile_bytes = plan.tile_size() * plan.bits / 8;
  const uk_index_t places =
      plan.tiles_stride1 * plan.bits / 8 | address_of(copy.tiles, plan.tiles_offset, plan.bits);
  for (uk_index_t rows = kTallRows; rows * tile_bytes >= kLineBytes; rows /= 2) {
    if (rows * plan.rows > plan.size0) continue;
    blocks->tall = select_straight(copy, rows, tile_bytes, places, &blocks->tall_bits);
    if (blocks->tall) {
      blocks->output = BlockOutput::kRestacked;
      blocks->tile_rows = blocks->tall_tile_rows = rows;
      blocks->tiles = quotient(kScratchBytes, rows * tile_bytes) & -plan.even_tiles();
      return true;
    }
  }
  return false;
}

// Whether the columns of tiles compete for a few sets of each cache: what is stored to them in
// turns waits for one line after the other.
bool columns_share_sets(const TilePlan& plan) {
  return plan.tiles_stride1 * plan.bits / 8 % kSetsBytes == 0;
}

bool comes_from_l3(const TileCopy& copy, const TilePlan& plan) {
  const uk_index_t bytes = plan.size0 * plan.size1 * plan.bits / 8;
  return bytes >= kGatheredCopyBytes && !is_streamed(copy, plan);
}

// Whether narrow tiles of a pack, several of them side by side in a line of the matrix, are
// gathered because their columns share sets. Transposing a tile of several lines takes as long
// anyway.
bool is_gathered(const TileCopy& copy, const TilePlan& plan) {
  const uk_index_t tile_bytes = plan.tile_size() * plan.bits / 8;
  return copy.op == UK_OP_PACK && comes_from_l3(copy, plan) && columns_share_sets(plan) &&
         plan.columns * plan.bits / 8 < kLineBytes &&
         (!plan.transposed || tile_bytes <= kTallTileBytes);
}

// From L3, in blocks of few columns of tiles beside each other, each a run of whole lines of them
// high: what is read goes on where the last block ended, and what is written takes turns between
// few places. Straight rows of whole lines are as fast in any order, and so are an unpack's of half
// a line and its transposed ones of less; of rows narrower than a quarter of a line more have to be
// read at a time. What moves in single lines is slower so, unless it shares sets.
bool make_short_blocks(const TileCopy& copy, const TilePlan& plan, bool columns_are_dense,
                       Blocks* blocks) {
  const uk_index_t row_bytes = plan.columns * plan.bits / 8;
  const uk_index_t tile_bytes = plan.tile_size() * plan.bits / 8;
  const bool straight = is_straight(plan);
  if (!comes_from_l3(copy, plan) || row_bytes < kNarrowRowBytes || plan.bits < 8) return false;
  if (copy.op == UK_OP_UNPACK) {
    const bool half_lines = row_bytes >= kLineBytes / 2;
    if (!columns_share_sets(plan) || (plan.rows > 1 && half_lines == straight)) return false;
    blocks->tile_rows = ceil_div(kStackedRows, plan.rows);
    blocks->tiles = plan.rows == 1 ? kShortTiles : 2 * kShortTiles;
  } else {
    if (!columns_are_dense || (straight && row_bytes >= kLineBytes)) return false;
    if (tile_bytes <= kLineBytes && !columns_share_sets(plan)) return false;
    make_tall(copy, plan, blocks);
    if (!blocks->tall && tile_bytes < kLineBytes) return false;
    const uk_index_t least = blocks->tall ? blocks->tall_tile_rows : kShortTileRows;
    blocks->tile_rows = least * larger(quotient(kRunBytes, least * tile_bytes), 1);
    blocks->tiles = kShortTiles;
  }
  blocks->down = false;
  return true;
}

// Whether what is streamed is prefetched. A core that feeds tiles from L3 reads far enough ahead by
// itself, but not in a tall tile of an unpack, which goes on elsewhere after few lines of a row.
bool streams_are_prefetched(const TileCopy& copy, const TilePlan& plan) {
  if (!l3_feeds_tiles(copy.cpu_data)) return true;
  const bool takes_turns = plan.tiles_stride1 == plan.tile_size()
                               ? plan.transposed
                               : plan.columns * plan.bits / 8 >= kLineBytes;
  return copy.op == UK_OP_UNPACK && plan.rows > kStackedRows && takes_turns;
}

// How many tiles side by side a block of columns of `column_bytes` takes past the caches. Loads and
// streaming stores overlap if few lines are read between those that are written, but a row of the
// matrix narrower than a line is not left in the middle of one.
uk_index_t streamed_tiles(const TileCopy& copy, const TilePlan& plan, uk_index_t column_bytes) {
  const uk_index_t row_bits = plan.columns * plan.bits, row_bytes = row_bits / 8;
  if (copy.op == UK_OP_UNPACK) {
    const bool in_lines =
        is_straight(plan) && row_bytes >= kLineBytes / 2 && row_bytes <= kLineBytes;
    const uk_index_t parts = in_lines ? 2 : 1;
    const uk_index_t tiles = quotient(parts * kStreamedRowBytes * 8, row_bits);
    if (!cpu_reads_ahead(copy.cpu_data)) return tiles;
    const uk_index_t room = quotient(kScratchBytes, column_bytes);
    return larger(tiles, smaller(quotient(parts * kStreamedFarRowBytes * 8, row_bits), room));
  }
  const bool many_rows = plan.rows > kStackedRows || column_bytes > kOverlapBytes;
  if (row_bytes < kNarrowRowBytes || many_rows) {
    return quotient(kStreamedBlockBytes, column_bytes);
  }
  const bool whole_lines = row_bytes >= kLineBytes && is_straight(plan);
  return whole_lines ? 1 : quotient(kStreamedRowBytes, row_bytes);
}

// Which side of a copy by way of the scratch goes on end is its source's: rows in a pack, columns
// of tiles in an unpack. The other side is written in runs of whole lines.
bool make_staged(const TileCopy& copy, const TilePlan& plan, Blocks* blocks) {
  const bool past_caches = is_streamed(copy, plan);
  if (!past_caches && !is_gathered(copy, plan)) return false;
  const uk_index_t tile_bytes = plan.tile_size() * plan.bits / 8;
  Blocks staged = *blocks;
  staged.output = past_caches ? BlockOutput::kStreamed : BlockOutput::kGathered;
  make_tall(copy, plan, &staged);
  if (!past_caches) {
    const uk_index_t least = staged.tall ? staged.tall_tile_rows : 1;
    staged.tile_rows = least * larger(quotient(kRunBytes, least * tile_bytes), 1);
  } else if (staged.tall) {
    staged.tile_rows *= larger(quotient(kStreamedRunBytes, staged.tile_rows * tile_bytes), 1);
  } else {
    // Whole lines first: a run shorter than one passes nothing by. Of long rows one is read faster
    // than two in turns.
    const bool long_rows = copy.op == UK_OP_PACK && plan.rows == 1 && tile_bytes > kTallTileBytes;
    const uk_index_t run = long_rows ? tile_bytes : kRunBytes;
    const uk_index_t tile_rows =
        smaller(quotient(kStackedRows, plan.rows), quotient(run, tile_bytes));
    staged.tile_rows = larger(tile_rows, ceil_div(kStreamedRunBytes, tile_bytes));
  }
  const uk_index_t column_bytes = staged.tile_rows * tile_bytes;
  staged.down = copy.op == UK_OP_UNPACK;
  uk_index_t tiles = past_caches ? streamed_tiles(copy, plan, column_bytes)
                                 : quotient(kScratchBytes, column_bytes);
  if (past_caches && !l3_feeds_tiles(copy.cpu_data)) {
    // Prefetches take buffers of lines from the stores, and pay only if there are many at a time.
    const uk_index_t least = (is_straight(plan) ? 1 : 2) * kPrefetchedBlockBytes;
    tiles = larger(tiles, quotient(least, column_bytes));
  }
  const uk_index_t even = plan.even_tiles();
  staged.tiles = larger(tiles & -even, even);
  if (staged.tiles > quotient(kScratchBytes, column_bytes)) return false;
  staged.gathers =
      past_caches && copy.op == UK_OP_UNPACK && staged.tiles >= kManyColumns && plan.bits >= 8;
  *blocks = staged;
  return true;
}

// The same where rows of tiles are dense: a part of one at a time, so small that loads and
// streaming stores overlap, but with whole lines of each of the matrix's rows. Where both cannot
// be, longer parts are packed as fast as any; unpacked they are where they are prefetched.
void make_streamed_rows(const TileCopy& copy, const TilePlan& plan, Blocks* blocks) {
  if (!is_streamed(copy, plan) || plan.tiles_stride1 != plan.tile_size()) return;
  const bool is_pack = copy.op == UK_OP_PACK;
  const uk_index_t tile_bytes = plan.tile_size() * plan.bits / 8, even = plan.even_tiles();
  if (even * tile_bytes > kStreamedBlockBytes) return;
  uk_index_t part;
  blocks->tile_rows = 1;
  if (!l3_feeds_tiles(copy.cpu_data)) {
    // Streaming stores wait for each other where they go to many places. On Zen 3 packs by eight
    // rows in turns took 1.1 times as long as by two, and of one row 1.1 to 1.7 times; unpacks by
    // 128 bytes of each row 1.3 to 1.5 times as long as by 512.
    const bool few_places = cpu_reads_ahead(copy.cpu_data);
    const uk_index_t row_bytes =
        few_places && !is_pack ? kStreamedDenseRowBytes : kStreamedRowBytes;
    part = smaller(larger(plan.rows * row_bytes, kPrefetchedBlockBytes), kScratchBytes);
    const uk_index_t turns = few_places ? kRowsInFewTurns : kRowsInTurns;
    if (is_pack) blocks->tile_rows = larger(quotient(turns, plan.rows), 1);
  } else {
    // A line of a row is read with the next one; those that are written wait for each other.
    const uk_index_t most = is_pack ? kOverlapBytes : 2 * kOverlapBytes;
    part = larger(smaller(plan.rows * 2 * kStreamedRowBytes, most), kOverlapBytes / 2);
    if (plan.bits < 8) part = 4 * kOverlapBytes;  // a call for so many tiles fills its own stage
    if (plan.rows > kStackedRows || even * tile_bytes > most) part = kStreamedBlockBytes;
  }
  static_assert(kStreamedBlockBytes <= kScratchBytes && 4 * kOverlapBytes <= kScratchBytes,
                "any part fits the scratch");
  // Parts of rows end where a line does, if they are as long: what is left of one is written apart.
  const uk_index_t in_lines = larger(quotient(kLineBytes, tile_bytes & -tile_bytes), even);
  const uk_index_t tiles = quotient(part, blocks->tile_rows * tile_bytes);
  blocks->tiles = larger(tiles & -(tiles >= in_lines ? in_lines : even), even);
  blocks->down = false;
  blocks->output = BlockOutput::kStreamed;
}

// Of a matrix too large for the caches a pack takes a small part of each row: a core does not see
// where the next parts are, unless each goes on for a page.
bool prefetches_rows(const TileCopy& copy, const TilePlan& plan) {
  const uk_index_t part_bytes = plan.size1 * plan.bits / 8;
  const uk_index_t row_bytes = plan.stride0 * plan.bits / 8;
  return copy.op == UK_OP_PACK && part_bytes >= kRowPartBytes && part_bytes < kPageBytes &&
         4 * part_bytes <= row_bytes && plan.size0 * row_bytes >= kStreamedCopyBytes;
}

Blocks choose_blocks(const TileCopy& copy, const TilePlan& plan) {
  Blocks blocks = {larger(plan.tiles0, 1),
                   larger(plan.tiles1, 1),
                   true,
                   BlockOutput::kDirect,
                   nullptr,
                   0,
                   0,
                   0,
                   0,
                   false};
  const bool far_apart =
      plan.tiles_stride1 > plan.tile_size() && plan.tiles_stride0 < plan.tiles_stride1;
  if (!far_apart) {
    make_streamed_rows(copy, plan, &blocks);
    return blocks;
  }
  const bool columns_are_dense = plan.tiles_stride0 == plan.tile_size();
  if (make_short_blocks(copy, plan, columns_are_dense, &blocks)) return blocks;
  if (columns_are_dense && make_staged(copy, plan, &blocks)) return blocks;

  const uk_index_t tile_bytes = plan.tile_size() * plan.bits / 8;
  const bool makes_columns = copy.op == UK_OP_PACK && columns_are_dense;
  const bool gathers = makes_columns && tile_bytes < kNarrowBytes;
  if (makes_columns && tile_bytes <= kTallTileBytes) make_tall(copy, plan, &blocks);
  if (blocks.tall) {
    blocks.down = false;
    return blocks;
  }
  if (gathers && make_restacked(copy, plan, &blocks)) return blocks;
  const uk_index_t strip = ceil_div(kStripBytes * 8, plan.columns * plan.bits);
  const uk_index_t even = plan.even_tiles();
  blocks.tiles = (larger(strip, kStripTiles) + even - 1) & -even;
  if (gathers) {
    blocks.output = BlockOutput::kGathered;
    blocks.tiles = smaller(blocks.tiles, quotient(kScratchBytes, tile_bytes) & -even);
    blocks.tile_rows = quotient(kScratchBytes, blocks.tiles * tile_bytes);
  }
  return blocks;
}

Blocks make_blocks(const TileCopy& copy, const TilePlan& plan) {
  Blocks blocks = choose_blocks(copy, plan);
  if (blocks.output == BlockOutput::kStreamed && streams_are_prefetched(copy, plan)) {
    const uk_index_t bytes = blocks.tile_rows * blocks.tiles * plan.tile_size() * plan.bits / 8;
    const uk_index_t later = larger(quotient(kAheadBytes, bytes), 1);
    (blocks.down ? blocks.ahead0 : blocks.ahead1) =
        later * (blocks.down ? blocks.tile_rows : blocks.tiles);
  } else if (prefetches_rows(copy, plan)) {
    blocks.ahead0 = ceil_div(kRowsAhead, plan.rows);
  }
  return blocks;
}

}  // namespace

uk_status_t plan_tiles(const TileCopy& copy, TilePlan* plan) {
  uk_status_t status = check_shape(copy);
  if (status != UK_STATUS_OK) return status;
  *plan = normalized(copy);
  status = check_buffers(copy, *plan);
  if (status != UK_STATUS_OK) return status;
  // Without elements there is nothing to walk, and what has not been checked must not be used.
  if (plan->size0 == 0 || plan->size1 == 0) return UK_STATUS_OK;
  pair_four_bit_elements(plan);
  plan->row = select_row(copy, *plan);
  if (!plan->row) return UK_STATUS_OK;
  plan->whole0 = quotient(plan->size0, plan->rows);
  plan->whole1 = quotient(plan->size1, plan->columns) & -plan->even_tiles();
  plan->blocks = make_blocks(copy, *plan);
  return UK_STATUS_OK;
}

}  // namespace uk
