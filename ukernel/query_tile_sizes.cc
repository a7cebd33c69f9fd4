// uk_query_tile_sizes: the cheapest row of the table.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "ukernel/internal.h"
#include "ukernel/tile.h"

namespace uk {
namespace {

constexpr uk_index_t kLarge = 1 << 20;  // what an unknown size counts as
// Times as long as the model has it: a dot of the one level that CPUs are slow at.
constexpr int kSlow = 4;
// Tiles of 16 rows that one instruction multiplies, where so few are there, come last: they were
// measured to be no faster than others, and most of the LHS and OUT is padding.
constexpr uk_index_t kFewRowsOfTiles = 3;
constexpr int kMostlyPadding = 16;
// Tiles of more rows are the best of AMX alone. Elsewhere they multiply what was packed for it: s8
// by s8 of 32x32x4 was measured to be a tenth slower than of 16x32x4, which the model has as fast.
constexpr int kRowsOfTall = 17;
// Likewise of f64 on AVX2: on Zen 3 16x8 took up to 1.27 times as long as 6x8 and 4x8, which the
// model has as slow.
constexpr int kRowsOfTallF64 = 9;
constexpr double kTall = 1.125;
// Few rows, which a CPU that gains by several RHS panels abreast (ukernel/tile.h) was measured to
// multiply faster by tiles that can do so, in the caches too: f32 2x32 took 1.3 times as long as
// 2x16. From memory others take so many times as long to read: 1x64 1.2 to 1.4 times as long as
// 1x16, 4x16 up to 1.5 times as long as 4x8.
constexpr uk_index_t kFewRows = 4;
constexpr double kAlone = 1.375;
// Several LHS panels by tiles that take several RHS panels count so many times as long as the model
// has it, in the caches of Zen 5. 240x480 took tiles of 6x16 0.97 to 1.01 times as long as 16x32,
// but less padding should decide, not a tie: 246x47x25 took 13x32 1.39 to 1.47 times as long as
// 4x16 or 6x16, of f32, u8s8 and bf16. Tiles of one or two rows mostly read: 3 rows of f32 took
// 1x64 up to 2.1 times as long as 4x16. Where sums are rounded each step, 8 rows of f16 took 1.1
// to 1.2 times as long by 4x16 as by 8x32, 9 to 12 rows of bf16 0.66 to 0.87 times as long by 4x16
// as by 8x16. What is lost: 11 and 12 rows of f16 still come by 4x32, 1.2 times as long as by 4x16.
constexpr double kOfSeveral = 1.0625, kRoundedOfSeveral = 1.25;
constexpr int32_t kLeastRowsOfSeveral = 3;
// A panel of an RHS from memory that is so long does not stay in L2, beside that of the LHS, until
// the next block of a tile reads it. Measured on Zen 5, where each LHS panel in turn meets the RHS
// panels, unless its rows are few.
constexpr double kFarPanelBytes = 256 << 10;
// What is shorter, multiplying or reading from memory, goes on beside the other but for such a
// part.
constexpr double kLeftOver = 0.125;

// Time for the whole matmul, padding included, in quarter cycles. An RHS that streams comes from
// memory for the first LHS panel, and is in the caches for the others. Doubles, as sizes may be
// anything; generator/query.py does the same operations in the same order.
double total_cost(const uk_tile_row_t& row, const uint64_t* cpu_data, bool wide,
                  bool streams_abreast, uk_index_t m, uk_index_t n, uk_index_t k) {
  const double tiles_m = m > 0 ? static_cast<double>(ceil_div(m, row.m0)) : double(kLarge) / row.m0;
  const double tiles_n = n > 0 ? static_cast<double>(ceil_div(n, row.n0)) : double(kLarge) / row.n0;
  const double steps = k > 0 ? static_cast<double>(ceil_div(k, row.k0)) : double(kLarge) / row.k0;
  const uk_index_t lhs_panels = m > 0 ? ceil_div(m, row.m0) : kLarge;
  const uk_index_t rhs_panels = n > 0 ? ceil_div(n, row.n0) : kLarge;
  const Mmt4dType& type = *find_mmt4d_type(row.flags);
  const int bits = row.n0 * row.k0 * type.rhs_bits;  // whole bytes
  const double bytes = bits / 8.0;
  const bool streams = tiles_n * steps * bytes >= kStreamBytes;
  // Of few rows, tiles of as many take several RHS panels at once, and are as fast without.
  const bool half_pads = tile_steps(row) == 1 && 0 < m && m <= row.m0 / 2;
  TileInOp in_op;
  if (decodes_rhs_once(row, lhs_panels, rhs_panels, cpu_data)) {
    in_op.rhs_decoded_for = lhs_panels;
  } else if (!half_pads && decodes_lhs_once(row, lhs_panels, rhs_panels, streams, cpu_data)) {
    in_op.lhs_decoded_for = rhs_panels;
  }
  const bool mostly_pads = tile_steps(row) > 1 && 0 < m && m <= kFewRowsOfTiles;
  const bool are_several = rhs_panels >= kPanelsAbreast;
  const bool gains = 0 < m && m <= kFewRows && are_several && cpu_reads_ahead(cpu_data);
  // Where sums are rounded each step, which takes longest, in the caches of any CPU: of a few rows
  // by K x N = 256 x 256 f16 4x32 took 1.03 to 1.2 times as long as 4x16 (Zen 4, Zen 5, Cascade
  // Lake), bf16 1x64 1.16 to 1.25 times as long as 2x16 (Zen 4, Zen 5), and 1.06 to 1.65 times as
  // long as 4x16 (these and Emerald Rapids). Others in the caches of Zen 5: for 5 and 6 rows 8x32
  // took 1.1 to 1.35 times as long as 6x16, for 4 of bf16 and of s16 by u4 4x32 1.12 to 1.35 times
  // as long as 4x16.
  const VectorUnit& unit = vector_unit_of_row(row);
  const double panel_bytes = steps * bytes;
  const bool from_several = streams && streams_abreast && panel_bytes >= kLeastBytesAbreast;
  const bool rounds = row.numerics == UK_NUMERICS_ROUND_EACH_STEP;
  const bool cached_abreast = streams_abreast && !streams;
  const bool waits =
      are_several && unit.bytes == 64 && (rounds ? !streams || from_several : cached_abreast);
  // Of more LHS panels, too, but for bytes by nibbles: each tile sums its rows, and 4x16 took up to
  // 2.5 times as long as 9x32.
  const bool gains_for_several =
      rounds || (row.m0 >= kLeastRowsOfSeveral && type.flag != UK_MMT4D_TYPE_S8S4S32);
  const bool gains_for_all = lhs_panels == 1 || (gains_for_several && cached_abreast);
  in_op.abreast = (gains || waits) && gains_for_all && gains_abreast_in_caches(row);
  // On Zen 5, too, where 8x32 took 1.28 to 1.39 times as long as 8x16 from memory. Nearly all tiles
  // of so few sums can take several, but a panel of one vector would have to be long enough, too:
  // else 16x16 looked better than tiles of 32 columns, of which 9 rows of bytes, with K = 4096,
  // took 1.5 to 1.8 times as long by it as by 9x32, and 13 rows 1.35 times as long as by 13x32.
  const uk_index_t vectors =
      ceil_div(uk_index_t{row.n0} * larger(type.out_bits, 32), 8 * unit.bytes);
  const bool can_take_several =
      lhs_panels == 1 && are_several && unit.bytes == 64 && row.m0 * vectors <= kMostSumsAbreast;
  const bool is_alone = (gains && !in_op.abreast) ||
                        (from_several && !can_take_several &&
                         panel_bytes >= static_cast<double>(vectors * kLeastBytesAbreast));
  // Of so few rows only LHS panels that are very long come one by one (ukernel/mmt4d_walk.h).
  const bool by_lhs_panels = m <= 0 || m > kRowsToFetchBeside;
  in_op.is_far = streams && streams_abreast && by_lhs_panels && panel_bytes >= kFarPanelBytes &&
                 in_op.rhs_decoded_for == 0;
  double step = tile_step_cost(row, wide, in_op);
  // The last one or two panels come by themselves. On other CPUs nobody measured what that costs.
  if (in_op.abreast && cached_abreast) {
    const double alone = tile_step_cost(row, wide);
    const double last_panels = static_cast<double>(rhs_panels % kPanelsAbreast);
    step += (alone - step) * last_panels / static_cast<double>(rhs_panels);
  }
  if (in_op.abreast && lhs_panels > 1) step *= rounds ? kRoundedOfSeveral : kOfSeveral;
  step *= (row_is_slow(row, cpu_data) ? kSlow : 1) * (mostly_pads ? kMostlyPadding : 1);
  const double read = bytes / kMemoryBytes * (is_alone ? kAlone : 1);
  const double reading = streams ? read : 0;
  const double first = step > reading ? step + reading * kLeftOver : reading + step * kLeftOver;
  const bool is_f64_of_avx2 = type.out_bits == 64 && unit.bytes == 32;
  const bool is_tall =
      row.m0 >= (is_f64_of_avx2 ? kRowsOfTallF64 : kRowsOfTall) && tile_steps(row) == 1;
  return tiles_n * steps * (first + (tiles_m - 1) * step) * (is_tall ? kTall : 1);
}

// Elements of the padded output.
double padded_elements(const uk_tile_row_t& row, uk_index_t m, uk_index_t n) {
  const double tiles_m = static_cast<double>(ceil_div(m > 0 ? m : kLarge, row.m0));
  const double tiles_n = static_cast<double>(ceil_div(n > 0 ? n : kLarge, row.n0));
  return tiles_m * row.m0 * tiles_n * row.n0;
}

// A total order on shapes, so that the answer does not depend on the order of rows: cost, then the
// least padding, then the larger tile (fewer calls), the squarer (operands are read less often) and
// the wider one.
bool is_better(const uk_tile_row_t& a, double a_cost, const uk_tile_row_t& b, double b_cost,
               uk_index_t m, uk_index_t n) {
  if (a_cost != b_cost) return a_cost < b_cost;
  const double a_padded = padded_elements(a, m, n), b_padded = padded_elements(b, m, n);
  if (a_padded != b_padded) return a_padded < b_padded;
  const uk_index_t a_area = uk_index_t{a.m0} * a.n0, b_area = uk_index_t{b.m0} * b.n0;
  if (a_area != b_area) return a_area > b_area;
  if (a.m0 + a.n0 != b.m0 + b.n0) return a.m0 + a.n0 < b.m0 + b.n0;
  if (a.n0 != b.n0) return a.n0 > b.n0;
  return a.k0 > b.k0;
}

bool fits(const uk_tile_sizes_t& fixed, const uk_tile_row_t& row) {
  return (fixed.m0 == 0 || fixed.m0 == row.m0) && (fixed.n0 == 0 || fixed.n0 == row.n0) &&
         (fixed.k0 == 0 || fixed.k0 == row.k0);
}

// What the scalar path is asked to do where nothing else is there: as little padding as possible
// for a narrow matmul, K0 on byte boundaries.
uk_tile_sizes_t generic_sizes(const uk_tile_sizes_t& fixed, const Mmt4dType& type, uk_index_t m,
                              uk_index_t n) {
  const int32_t k0 = type.rhs_bits < 8 ? 2 : 1;
  return {fixed.m0         ? fixed.m0
          : m > 0 && m < 8 ? static_cast<int32_t>(m)
                           : 8,
          fixed.n0         ? fixed.n0
          : n > 0 && n < 8 ? static_cast<int32_t>(n)
                           : 8,
          fixed.k0 ? fixed.k0 : k0};
}

}  // namespace
}  // namespace uk

extern "C" uk_status_t uk_query_tile_sizes(uint32_t mmt4d_flags, uk_index_t m, uk_index_t n,
                                           uk_index_t k, const uk_tile_sizes_t* fixed_or_null,
                                           const uint64_t* cpu_data, uk_tile_sizes_t* sizes) {
  using namespace uk;
  const Mmt4dType* type = find_mmt4d_type(mmt4d_flags);
  if (!type) return UK_STATUS_BAD_TYPE;
  if (mmt4d_flags & ~kMmt4dCallerFlags) return UK_STATUS_BAD_FLAGS;
  if (!sizes) return UK_STATUS_NULL_POINTER;
  const uk_tile_sizes_t fixed = fixed_or_null ? *fixed_or_null : uk_tile_sizes_t{0, 0, 0};
  if (fixed.m0 < 0 || fixed.n0 < 0 || fixed.k0 < 0) return UK_STATUS_BAD_TILE_SHAPE;
  if (splits_byte(*type, fixed.k0)) return UK_STATUS_SPLIT_BYTE;

  const uk_tile_row_t* best = nullptr;
  double best_cost = 0;
  const bool wide = cpu_is_wide(cpu_data);
  const bool streams_abreast = uk::streams_abreast(
      l3_feeds_tiles(cpu_data), least_of_levels(cpu_data, &VectorUnit::panels_in_turns));
  for (size_t i = 0; i < uk_tile_count(); ++i) {
    const uk_tile_row_t& row = *uk_tile_at(i);
    if (row.origin == UK_ORIGIN_GENERIC ||
        !row_is_eligible(row, UK_OP_MMT4D, mmt4d_flags, cpu_data) || !fits(fixed, row)) {
      continue;
    }
    const double cost = total_cost(row, cpu_data, wide, streams_abreast, m, n, k);
    if (best && !is_better(row, cost, *best, best_cost, m, n)) continue;
    // A call with this shape may get the tile of another level, whose cost is another.
    if (select_tile(UK_OP_MMT4D, mmt4d_flags, row.m0, row.n0, row.k0, cpu_data) != &row) continue;
    best = &row;
    best_cost = cost;
  }
  if (best) {
    *sizes = {best->m0, best->n0, best->k0};
    return UK_STATUS_OK;
  }
  if (!(mmt4d_flags & UK_MMT4D_ALLOW_GENERIC_FALLBACK)) return UK_STATUS_NO_TILE;
  *sizes = generic_sizes(fixed, *type, m, n);
  return UK_STATUS_OK;
}
