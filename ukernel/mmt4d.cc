// uk_mmt4d: check, select, walk the tiles.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <utility>

#include "ukernel/copy_rows.h"
#include "ukernel/internal.h"
#include "ukernel/mmt4d_walk.h"
#include "ukernel/stream.h"

namespace uk {
namespace {

// All that does not concern the buffers. On success *row is the row to use.
uk_status_t check_shape(const uk_mmt4d_params_t& p, const Mmt4dType** type,
                        const uk_tile_row_t** row) {
  *type = find_mmt4d_type(p.flags);
  if (!*type) return UK_STATUS_BAD_TYPE;
  if (p.flags & ~kMmt4dCallerFlags) return UK_STATUS_BAD_FLAGS;
  if (p.m < 0 || p.n < 0 || p.k < 0) return UK_STATUS_BAD_EXTENT;
  if (p.m0 <= 0 || p.n0 <= 0 || p.k0 <= 0) return UK_STATUS_BAD_TILE_SHAPE;
  if (splits_byte(**type, p.k0)) return UK_STATUS_SPLIT_BYTE;
  if (unpacks(p)) {
    if (p.out_size0 < 0 || p.out_size1 < 0) return UK_STATUS_BAD_EXTENT;
    const bool covers = ceil_div(p.out_size0, p.m0) <= p.m && ceil_div(p.out_size1, p.n0) <= p.n;
    if (!covers) return UK_STATUS_BAD_EXTENT;
  }
  *row = select_tile(UK_OP_MMT4D, p.flags, p.m0, p.n0, p.k0, p.cpu_data);
  if (!*row && (p.flags & UK_MMT4D_ALLOW_GENERIC_FALLBACK)) {
    *row = generic_mmt4d_row(p.flags);
  }
  return *row ? UK_STATUS_OK : UK_STATUS_NO_TILE;
}

// With m and n > 0.
uk_status_t check_buffers(const uk_mmt4d_params_t& p, const Mmt4dType& type) {
  if (!p.out || (p.k > 0 && (!p.lhs || !p.rhs))) return UK_STATUS_NULL_POINTER;
  Checked c;
  const uk_index_t lhs_step = c.mul(p.m0, p.k0), rhs_step = c.mul(p.n0, p.k0);
  const uk_index_t lhs_panel = c.mul(p.k, lhs_step), rhs_panel = c.mul(p.k, rhs_step);
  const uk_index_t out_tile = c.mul(p.m0, p.n0), out_tiles = c.mul(p.n, out_tile);
  // What is read in all, however the strides may let panels overlap; and of it a step, as the walk
  // counts in bytes also where k = 0.
  c.mul(p.k, c.mul(lhs_step, c.mul(p.m, type.lhs_bits)));
  c.mul(p.k, c.mul(rhs_step, c.mul(p.n, type.rhs_bits)));
  c.mul(out_tiles, c.mul(p.m, type.out_bits));  // also where OUT is a matrix
  if (c.overflowed()) return UK_STATUS_OVERFLOW;
  const Layout lhs = {p.lhs, p.lhs_offset, p.m, p.lhs_stride0, 1, 0, lhs_panel, type.lhs_bits};
  const Layout rhs = {p.rhs, p.rhs_offset, p.n, p.rhs_stride0, 1, 0, rhs_panel, type.rhs_bits};
  Layout out = {p.out, p.out_offset, p.m, p.out_stride0, 1, 0, out_tiles, type.out_bits};
  if (unpacks(p)) {
    out.size0 = p.out_size0;
    out.run = p.out_size1;
  }
  Rows lhs_rows, rhs_rows, out_rows;
  uk_status_t status = rows_of(lhs, &lhs_rows);
  if (status == UK_STATUS_OK) status = rows_of(rhs, &rhs_rows);
  if (status == UK_STATUS_OK) status = rows_of(out, &out_rows);
  if (status != UK_STATUS_OK) return status;
  if (!runs_are_disjoint(out)) return UK_STATUS_BAD_STRIDE;
  if (rows_overlap(out_rows, lhs_rows) || rows_overlap(out_rows, rhs_rows)) {
    return UK_STATUS_OVERLAP;
  }
  return UK_STATUS_OK;
}

// What a tile function is called with for one block of K of one tile, or of several abreast, but
// OUT and the context.
struct Step {
  uk_mmt4d_strided_tile_fn* tile;  // that function; null for the scalar path
  uk_index_t i, j;
  uk_index_t panels;  // of the RHS, from j on
  const char *lhs, *rhs;
  uk_index_t k1;
  uint32_t flags;
  bool first, last;          // of the tile's
  bool follows;              // the one before in the same block: OUT is in L1 or L2
  bool fetches_out = false;  // of the tile after it in the same column
};

// ---------------------------------------------------------------- operands

// Which of them are decoded, and whether the walk is by decoded LHS panels: each in turn meets the
// RHS panels, and its tiles fetch nothing for the next ones.

// Tiles get their operands as they are.
struct Operands {
  static constexpr bool kDecodesLhs = false, kDecodesRhs = false, kByLhsPanels = false;
  static constexpr uk_index_t kMostTileBytes = uk::kMostTileBytes;
  uk_mmt4d_strided_tile_fn* tile(const uk_tile_row_t& row) { return strided_tile_of_row(row); }
  void limit(const uk_mmt4d_params_t&, const Mmt4dType&, Mmt4dWalk*) {}
  void give(const TilesOfRhs&, uk_index_t, uk_tile_context_t*) {}
};

// And the sums of their rows from the first tile with the same part of the same LHS panel. On Zen 4
// and M from 16 on, s8s8 runs up to 5 % faster than where each tile sums its rows, on Zen 5 with an
// RHS from memory up to 10 %.
class OperandsAndRowSums : public Operands {
 public:
  void limit(const uk_mmt4d_params_t&, const Mmt4dType&, Mmt4dWalk* walk) {
    by_lhs_panels_ = walk->exchanged;
  }
  void give(const TilesOfRhs& tiles, uk_index_t i, uk_tile_context_t* context) {
    const uk_index_t place = by_lhs_panels_ ? 0 : smaller(i - tiles.i0, kSummedLhsPanels);
    const bool is_first = by_lhs_panels_ ? i == tiles.i0 : tiles.starts_lhs;
    context->row_sums = reinterpret_cast<char*>(sums_[place]);
    context->fills_row_sums = is_first || place == kSummedLhsPanels;
  }

 private:
  bool by_lhs_panels_ = false;
  alignas(64) int32_t sums_[kSummedLhsPanels + 1][kSharedRowSums];  // the last for all others
};

// Tiles that take a decoded RHS share a part of its panel, and the sums of the rows of their LHS
// panels, if they need any. They fill in both themselves.
class DecodedRhs {
 public:
  static constexpr bool kDecodesLhs = false, kDecodesRhs = true, kByLhsPanels = false;
  static constexpr uk_index_t kMostTileBytes = kMostTileBytesOnDecoded;

  explicit DecodedRhs(const uk_tile_on_decoded_t& tile) : tile_(tile) {}

  uk_mmt4d_strided_tile_fn* tile(const uk_tile_row_t&) { return tile_.function; }
  void limit(const uk_mmt4d_params_t& p, const Mmt4dType& type, Mmt4dWalk* walk) {
    const uk_index_t whole_steps = kDecodedBytes / tile_.operand.step_bytes;
    // Nobody measured parts of blocks where a core reads ahead by itself, nor, with a larger L2,
    // where L3 feeds tiles.
    walk->has_parts =
        type.rhs_bits <= 8 && !cpu_reads_ahead(p.cpu_data) &&
        (walk->small_l2 || (p.k > whole_steps && p.m0 >= kLeastRowsOfParts &&
                            walk->results_leave_l2(whole_steps) && !l3_feeds_tiles(p.cpu_data)));
    const uk_index_t bytes = walk->has_parts ? kDecodedPartBytes : kDecodedBytes;
    walk->most_steps = bytes / tile_.operand.step_bytes;
    walk->most_lhs_panels = walk->results_share_sets ? kLhsPanelsInSets : kSummedLhsPanels;
  }
  void give(const TilesOfRhs& tiles, uk_index_t i, uk_tile_context_t* context) {
    context->decoded = rhs_;
    context->fills_decoded = i == tiles.i0;
    const uk_index_t sums = tiles.part * (tiles.i1 - tiles.i0) + i - tiles.i0;
    context->row_sums = reinterpret_cast<char*>(row_sums_[sums]);
    context->fills_row_sums = tiles.starts_lhs;
  }

 private:
  const uk_tile_on_decoded_t& tile_;
  alignas(64) char rhs_[kDecodedBytes];
  alignas(64) int32_t row_sums_[kSummedLhsPanels][kSharedRowSums];
};

// Tiles that take a decoded LHS share a part of K of a few of its panels: each RHS panel would have
// them decoded anew.
class DecodedLhs {
 public:
  static constexpr bool kDecodesLhs = true, kDecodesRhs = false, kByLhsPanels = false;
  static constexpr uk_index_t kMostTileBytes = kMostTileBytesOnDecoded;

  explicit DecodedLhs(const uk_tile_on_decoded_t& tile) : tile_(tile) {}

  uk_mmt4d_strided_tile_fn* tile(const uk_tile_row_t&) { return tile_.function; }
  void limit(const uk_mmt4d_params_t& p, const Mmt4dType&, Mmt4dWalk* walk) {
    const uk_index_t most = larger(quotient(kDecodedLhsRows, p.m0), 1);
    walk->most_lhs_panels = smaller(most, kDecodedLhsPanels);
    const uk_index_t panels = smaller(p.m, walk->most_lhs_panels);
    panel_bytes_ = kDecodedBytes / panels / kLineBytes * kLineBytes;
    walk->most_steps = panel_bytes_ / tile_.operand.step_bytes;
  }
  void give(const TilesOfRhs& tiles, uk_index_t i, uk_tile_context_t* context) {
    const uk_index_t panel = i - tiles.i0;
    context->decoded = lhs_ + panel * panel_bytes_;
    context->row_sums = reinterpret_cast<char*>(row_sums_[panel]);
    // In this order: a panel starts in the slack of the one before, which was filled before it.
    context->fills_decoded = context->fills_row_sums = tiles.starts_lhs;
  }

 private:
  const uk_tile_on_decoded_t& tile_;
  uk_index_t panel_bytes_ = 0;
  alignas(64) char lhs_[kDecodedBytes + kDecodedSlack];
  alignas(64) int32_t row_sums_[kDecodedLhsPanels][kSharedRowSums];
};

// Tiles that are multiplied by an instruction share a part of one decoded LHS panel, of any number.
class DecodedLhsPanel {
 public:
  static constexpr bool kDecodesLhs = true, kDecodesRhs = false, kByLhsPanels = true;
  static constexpr uk_index_t kMostTileBytes = kMostTileBytesOnDecoded;

  explicit DecodedLhsPanel(const uk_tile_on_decoded_t& tile) : tile_(tile) {
    if (tile.operand.begin) tile.operand.begin();
  }
  ~DecodedLhsPanel() {
    if (tile_.operand.end) tile_.operand.end();
  }
  DecodedLhsPanel(const DecodedLhsPanel&) = delete;
  DecodedLhsPanel& operator=(const DecodedLhsPanel&) = delete;

  uk_mmt4d_strided_tile_fn* tile(const uk_tile_row_t&) { return tile_.function; }
  void limit(const uk_mmt4d_params_t&, const Mmt4dType&, Mmt4dWalk* walk) {
    walk->most_steps = kDecodedBytes / tile_.operand.step_bytes;
    // Of tiles as fast as AMX's, the operands take longer to come once more for each block of OUT
    // than OUT does for each part of K.
    walk->out_tile_bytes = 0;
  }
  void give(const TilesOfRhs& tiles, uk_index_t j, uk_tile_context_t* context) {
    context->decoded = lhs_;
    context->fills_decoded = j == tiles.i0;
  }

 private:
  const uk_tile_on_decoded_t& tile_;
  alignas(64) char lhs_[kDecodedBytes + kDecodedSlack];
};

// ---------------------------------------------------------------- steps

// In which each RHS panel meets the LHS panels.
Mmt4dWalk walk_of(const uk_mmt4d_params_t& p, const Mmt4dType& type, const uk_tile_row_t& row) {
  const uk_index_t lhs_step = uk_index_t{p.m0} * p.k0, rhs_step = uk_index_t{p.n0} * p.k0;
  Mmt4dWalk walk = {p.m,
                    p.n,
                    p.k,
                    p.m0,
                    larger(lhs_step * type.lhs_bits / 8, 1),
                    larger(rhs_step * type.rhs_bits / 8, 1),
                    can_split_k(row)};
  walk.out_tile_bytes = uk_index_t{p.m0} * p.n0 * type.out_bits / 8;
  walk.out_goes_on = out_goes_on(p, type);
  walk.results_share_sets = results_share_sets(p, type);
  walk.tile_steps = tile_steps(row);
  walk.small_l2 = cpu_has_small_l2(p.cpu_data);
  return walk;
}

// With the roles of the operands exchanged: a block of RHS panels stays in L2, and each LHS panel
// meets it once, decoded for all of them or fetched by the tiles of the panel before. In the other
// order each block of the LHS came to L2 while nothing was multiplied, and had few RHS panels to
// make up for it: f32 3072x256x3072 took a fifth longer, 3072x32x3072 two thirds.
Mmt4dWalk exchanged(Mmt4dWalk walk, const uk_mmt4d_params_t& p) {
  std::swap(walk.m, walk.n);
  std::swap(walk.lhs_step_bytes, walk.rhs_step_bytes);
  walk.m0 = p.n0;
  walk.exchanged = true;
  return walk;
}

// An operand as panels, from whose first element on offset and strides count, in elements.
struct Panels {
  const void* buffer;
  uk_index_t offset, stride, step;
  int bits;

  const char* panel(uk_index_t index, uk_index_t k) const {
    return at(buffer, offset + index * stride + k * step, bits);
  }
};

template <class AnyOperands, class OneStep>
void for_each_step(const uk_mmt4d_params_t& p, const Mmt4dType& type, const uk_tile_row_t& row,
                   AnyOperands& operands, OneStep one_step) {
  constexpr bool kDecodes = AnyOperands::kDecodesLhs || AnyOperands::kDecodesRhs;
  uk_tile_context_t context = {p.n0};
  Mmt4dWalk walk = walk_of(p, type, row);
  const bool has_panels_abreast = !kDecodes && p.n >= kPanelsAbreast;
  walk.has_tile_abreast = has_panels_abreast && gains_abreast_in_caches(row);
  // Tiles that share what is decoded of an RHS panel follow each other.
  const bool l3_feeds =
      !AnyOperands::kDecodesRhs && (p.m > 1 || walk.reads_rhs_once()) && l3_feeds_tiles(p.cpu_data);
  walk.on_l3_that_feeds = l3_feeds;
  if (AnyOperands::kByLhsPanels || (!kDecodes && walk.is_faster_exchanged())) {
    walk = exchanged(walk, p);
  } else {
    walk.rhs_is_far =
        walk.rhs_bytes() >= kFarBytes && p.m * p.m0 >= kFarRows && l3_is_far(p.cpu_data);
    walk.l3_feeds = l3_feeds && !walk.rhs_stays_near() && !walk.gains_by_lhs_blocks();
    if (row.function && walk.reads_rhs_once()) {
      const uk_index_t lhs_decoded_for = AnyOperands::kDecodesLhs ? p.n : 0;
      walk.step_cost = tile_step_cost(row, cpu_is_wide(p.cpu_data), {lhs_decoded_for, 0, false});
      walk.panels_in_turns = least_of_levels(p.cpu_data, &VectorUnit::panels_in_turns);
      walk.reads_ahead = cpu_reads_ahead(p.cpu_data);
      walk.l3_is_far = l3_is_far(p.cpu_data);
      if (has_panels_abreast && walk.streams_abreast()) {
        walk.has_tile_abreast = tile_abreast_of_row(row) != nullptr;
      }
      context.prefetches_pages = walk.prefetches_pages();
      context.prefetches_into_l1 = walk.prefetches_into_l1();
    }
  }
  operands.limit(p, type, &walk);
  uk_mmt4d_strided_tile_fn* const tile = operands.tile(row);
  uk_mmt4d_strided_tile_fn* const abreast =
      walk.reads_abreast() ? tile_abreast_of_row(row) : nullptr;
  const Panels lhs = {p.lhs, p.lhs_offset, p.lhs_stride0, uk_index_t{p.m0} * p.k0, type.lhs_bits};
  const Panels rhs = {p.rhs, p.rhs_offset, p.rhs_stride0, uk_index_t{p.n0} * p.k0, type.rhs_bits};
  // A panel of the outer operand meets those of the inner one, one after the other.
  const Panels& outer = walk.exchanged ? lhs : rhs;
  const Panels& inner = walk.exchanged ? rhs : lhs;
  context.out_panel_stride = unpacks(p) ? p.n0 : uk_index_t{p.m0} * p.n0;
  // A lone panel's stride may be anything.
  if (abreast) context.rhs_panel_bytes = rhs.stride * rhs.bits / 8;
  const uk_index_t inner_panel_bytes = walk.m > 1 ? inner.stride * inner.bits / 8 : 0;
  context.prefetch_distance = walk.prefetch_distance();
  const bool fetches_out = walk.fetches_beside();
  walk.for_all_tiles<AnyOperands::kDecodesRhs>([&](const TilesOfRhs& tiles) {
    const auto& [j, k, k1] = tiles.rhs;
    const char* const outer_panel = outer.panel(j, k);
    const char* const first_inner = inner.panel(tiles.i0, k);
    uint32_t flags = k > 0 ? UK_MMT4D_ACCUMULATE : p.flags & UK_MMT4D_ACCUMULATE;
    // AMX's tiles fetch nothing: they are as fast as with parts of the next panel on their way.
    const bool fetch_next = tiles.fetch_next && !AnyOperands::kByLhsPanels;
    // A tile prefetches ahead in its RHS, but not in a decoded one, which is in the stack.
    const bool first_prefetches = tiles.prefetch_rhs && !tiles.fetch_next && !tiles.is_fetched &&
                                  !AnyOperands::kDecodesRhs && !walk.exchanged;
    if (fetch_next || first_prefetches) flags |= UK_MMT4D_PREFETCH_RHS;
    context.prefetch_from = context.prefetch_step_bytes = 0;
    uk_mmt4d_strided_tile_fn* const fn = tiles.panels > 1 ? abreast : tile;
    for (uk_index_t i = tiles.i0; i < tiles.i1; ++i) {
      if (fetch_next) {
        const RhsPart& next = tiles.next;
        fetch_share(reinterpret_cast<uintptr_t>(outer.panel(next.j, next.k)),
                    next.k1 * walk.rhs_step_bytes, tiles.i1 - tiles.i0, i - tiles.i0, k1, &context);
      }
      operands.give(tiles, i, &context);
      const char* const inner_panel = first_inner + (i - tiles.i0) * inner_panel_bytes;
      const bool is_first = k == 0, is_last = k + k1 >= p.k;
      Step step = {fn, i,     j,        tiles.panels, inner_panel,   outer_panel,
                   k1, flags, is_first, is_last,      tiles.part > 0};
      step.fetches_out = fetches_out && !is_first && i + 1 < tiles.i1;
      if (walk.exchanged) {
        std::swap(step.i, step.j);
        std::swap(step.lhs, step.rhs);
      }
      one_step(step, context);
      if (first_prefetches) flags &= ~UK_MMT4D_PREFETCH_RHS;
    }
  });
}

template <class AnyOperands>
void walk_tiles(const uk_mmt4d_params_t& p, const Mmt4dType& type, const uk_tile_row_t& row,
                AnyOperands& operands) {
  const uk_index_t out_tile = uk_index_t{p.m0} * p.n0;
  for_each_step(p, type, row, operands, [&](const Step& s, const uk_tile_context_t& context) {
    char* out = at(p.out, p.out_offset + s.i * p.out_stride0 + s.j * out_tile, type.out_bits);
    if (s.fetches_out) {
      const uk_index_t to_next = p.out_stride0 * type.out_bits / 8;
      prefetch_run<kIntoL1>(reinterpret_cast<uintptr_t>(out) + static_cast<uintptr_t>(to_next),
                            out_tile * type.out_bits / 8);
    }
    if (s.tile) return s.tile(out, s.lhs, s.rhs, s.k1, s.flags, context);
    generic_mmt4d_tile(type.flag, {out, p.n0, p.m0, p.n0}, s.lhs, s.rhs, s.k1, s.flags,
                       {p.m0, p.n0, p.k0});
  });
}

// ---------------------------------------------------------------- UNPACK_OUT

// OUT as a matrix, of which a tile that reaches beyond it, or prefetches its own panel, is in the
// op's stack.
template <class AnyOperands>
class UnpackedOut {
  static constexpr uk_index_t kBytes = AnyOperands::kMostTileBytes;

 public:
  UnpackedOut(const uk_mmt4d_params_t& p, const Mmt4dType& type)
      : p_(p),
        bits_(type.out_bits),
        tile_bytes_(uk_index_t{p.m0} * p.n0 * type.out_bits / 8),
        is_far_(p.m * p.n * tile_bytes_ >= kStreamBytes) {}

  // What there is of a tile in the matrix.
  TilePart part(const Step& s) const {
    const uk_index_t r = s.i * p_.m0, c = s.j * p_.n0;
    return {at(p_.out, p_.out_offset + r * p_.out_stride0 + c, bits_), p_.out_stride0,
            smaller(p_.m0, p_.out_size0 - r), smaller(columns(s), p_.out_size1 - c)};
  }

  void run(const Step& s, uk_tile_context_t& context) {
    const TilePart out = part(s);
    if (s.fetches_out) {
      Step next = s;
      ++next.i;
      fetch_rows<kIntoL1>(part(next));
    }
    // A tile that prefetches its own panel takes its results up and puts them down every few steps
    // (arch/mmt4d_tile.h). In the matrix they may share a set of L1 with each other: M = 16 of f32
    // took a sixth longer where rows were 16 KiB apart.
    const bool prefetches_own = (s.flags & UK_MMT4D_PREFETCH_RHS) && context.prefetch_from == 0;
    if (out.rows == p_.m0 && out.columns == columns(s) && !prefetches_own) {
      // Each part of K takes up what the one before has left, by then in L2 or further: a line or
      // two of each row, where a core does not see what comes next. Without it s8s8 2048x2048x2048
      // took 7 % longer. Where OUT is near, prefetches only cost time.
      const bool is_in_parts = !(s.first && s.last) && !s.follows;
      if (AnyOperands::kDecodesRhs && is_far_ && is_in_parts) fetch_rows<kIntoL2>(out);
      context.out_stride = out.stride;
      return s.tile(out.first, s.lhs, s.rhs, s.k1, s.flags, context);
    }
    // A lone row of tiles may come as two tiles whose blocks of K take turns (mmt4d_walk.h): what
    // each has so far stays here. Any other tile's blocks of K are few, and it waits for the next
    // in the matrix.
    const bool waits_here = !AnyOperands::kDecodesLhs && p_.m == 1 && 2 * tile_bytes_ <= kBytes;
    char* const copy = tiles_ + (waits_here ? s.j % 2 * tile_bytes_ : 0);
    if ((s.flags & UK_MMT4D_ACCUMULATE) && (s.first || !waits_here)) {
      // What is not in the matrix takes part in the arithmetic and must not be slow in it.
      __builtin_memset(copy, 0, static_cast<size_t>(s.panels * tile_bytes_));
      copy_rows(out, copy, columns(s), out.first, out.stride);
    }
    context.out_stride = columns(s);
    s.tile(copy, s.lhs, s.rhs, s.k1, s.flags, context);
    if (s.last || !waits_here) copy_rows(out, out.first, out.stride, copy, columns(s));
  }

 private:
  // Of the tile, those beyond the matrix too.
  uk_index_t columns(const Step& s) const { return s.panels * p_.n0; }

  void copy_rows(const TilePart& part, void* to, uk_index_t to_stride, const void* from,
                 uk_index_t from_stride) const {
    copy_row_parts(
        static_cast<char*>(to), static_cast<const char*>(from),
        {part.rows, part.columns * bits_ / 8, to_stride * bits_ / 8, from_stride * bits_ / 8});
  }

  template <int kLocality>
  void fetch_rows(const TilePart& part) const {
    for (uk_index_t r = 0; r < part.rows; ++r) {
      prefetch_run<kLocality>(reinterpret_cast<uintptr_t>(at(part.first, r * part.stride, bits_)),
                              part.columns * bits_ / 8);
    }
  }

  const uk_mmt4d_params_t& p_;
  const int bits_;
  const uk_index_t tile_bytes_;
  const bool is_far_;
  alignas(64) char tiles_[kBytes];
};

// Not inlined, so that only calls which unpack need the stack for it.
template <class AnyOperands>
__attribute__((noinline)) void walk_matrix(const uk_mmt4d_params_t& p, const Mmt4dType& type,
                                           const uk_tile_row_t& row, AnyOperands& operands) {
  UnpackedOut<AnyOperands> out(p, type);
  for_each_step(p, type, row, operands, [&](const Step& s, uk_tile_context_t& context) {
    if (s.tile) return out.run(s, context);
    generic_mmt4d_tile(type.flag, out.part(s), s.lhs, s.rhs, s.k1, s.flags, {p.m0, p.n0, p.k0});
  });
}

template <class AnyOperands>
void walk_all(const uk_mmt4d_params_t& p, const Mmt4dType& type, const uk_tile_row_t& row,
              AnyOperands& operands) {
  unpacks(p) ? walk_matrix(p, type, row, operands) : walk_tiles(p, type, row, operands);
}

// Not inlined, likewise.
template <class AnyOperands, class... Tile>
__attribute__((noinline)) void walk_on(const uk_mmt4d_params_t& p, const Mmt4dType& type,
                                       const uk_tile_row_t& row, const Tile&... tile) {
  AnyOperands operands(tile...);
  walk_all(p, type, row, operands);
}

void run(const uk_mmt4d_params_t& p, const Mmt4dType& type, const uk_tile_row_t& row) {
  if (p.k > 0 && decodes_rhs_once(row, p.m, p.n, p.cpu_data)) {
    return walk_on<DecodedRhs>(p, type, row, *on_decoded_rhs_of_row(row));
  }
  const uk_tile_on_decoded_t* const tile = p.k > 0 ? on_decoded_lhs_of_row(row) : nullptr;
  if (tile && decodes_lhs_once(row, p.m, p.n, walk_of(p, type, row).rhs_streams(), p.cpu_data)) {
    return tile_steps(row) > 1 ? walk_on<DecodedLhsPanel>(p, type, row, *tile)
                               : walk_on<DecodedLhs>(p, type, row, *tile);
  }
  if (keeps_row_sums(row, p.n, p.k)) return walk_on<OperandsAndRowSums>(p, type, row);
  Operands operands;
  walk_all(p, type, row, operands);
}

}  // namespace
}  // namespace uk

extern "C" {

uk_status_t uk_mmt4d_info(const uk_mmt4d_params_t* params, const uk_tile_row_t** row) {
  uk_mmt4d_params_t p;
  const uk_status_t status = uk::read_params(params, p);
  if (status != UK_STATUS_OK) return status;
  if (!row) return UK_STATUS_NULL_POINTER;
  const uk::Mmt4dType* type = nullptr;
  const uk_tile_row_t* found = nullptr;
  const uk_status_t shape_status = uk::check_shape(p, &type, &found);
  if (shape_status == UK_STATUS_OK) *row = found;
  return shape_status;
}

uk_status_t uk_mmt4d(const uk_mmt4d_params_t* params) {
  uk_mmt4d_params_t p;
  const uk::Mmt4dType* type = nullptr;
  const uk_tile_row_t* row = nullptr;
  uk_status_t status = uk::read_params(params, p);
  if (status == UK_STATUS_OK) status = uk::check_shape(p, &type, &row);
  if (status == UK_STATUS_OK && uk::unpacks(p)) {
    // Tiles of padding alone have no results.
    p.m = uk::ceil_div(p.out_size0, p.m0);
    p.n = uk::ceil_div(p.out_size1, p.n0);
  }
  if (status == UK_STATUS_OK && p.m > 0 && p.n > 0) {
    status = uk::check_buffers(p, *type);
    // K = 0 needs no operands: null pointers, which offsets and strides must not move.
    if (p.k == 0) p.lhs_offset = p.lhs_stride0 = p.rhs_offset = p.rhs_stride0 = 0;
    // No second row tells what its distance is, and tiles reckon with it.
    if (uk::unpacks(p) && p.out_size0 <= 1) p.out_stride0 = 0;
    // Nothing is added, not even to what the rounding of a 16-bit output would change.
    const bool stays = p.k == 0 && (p.flags & UK_MMT4D_ACCUMULATE);
    if (status == UK_STATUS_OK && !stays) uk::run(p, *type, *row);
  }
  return status;
}

}  // extern "C"
