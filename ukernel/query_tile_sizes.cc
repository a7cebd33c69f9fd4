// uk_query_tile_sizes: the cheapest row of the table under a model of the K loop.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "ukernel/internal.h"
#include "ukernel/tile.h"

namespace uk {
namespace {

// Multiply-accumulates that one lane of the out vector gets from one instruction.
int k_per_instruction(const uk_tile_row_t& row) {
  switch (row.flags & UK_MMT4D_TYPE_MASK) {
    case UK_MMT4D_TYPE_S8S8S32:
    case UK_MMT4D_TYPE_U8S8S32:
    case UK_MMT4D_TYPE_S8S4S32:
      return row.k0 % 4 == 0 ? 4 : row.k0 % 2 == 0 ? 2 : 1;
    case UK_MMT4D_TYPE_S16S16S32:
    case UK_MMT4D_TYPE_S16S8S32:
    case UK_MMT4D_TYPE_S16U4S32:
      return row.k0 % 2 == 0 ? 2 : 1;
    case UK_MMT4D_TYPE_BF16BF16F32:
    case UK_MMT4D_TYPE_BF16BF16BF16:
      return row.numerics == UK_NUMERICS_BF16_DOT || row.numerics == UK_NUMERICS_BF16_DOT_F32ACC
                 ? 2
                 : 1;
    default:
      return 1;
  }
}

// Quarter cycles of one k step on a core with two vector multipliers and two load ports. An
// accumulator takes its next product after four cycles, in practice 4.75: eight of them were
// measured to keep the multipliers busy for 84 % of the time. Half a cycle stands for the loop.
uk_index_t quarter_cycles_per_step(const uk_tile_row_t& row, const Mmt4dType& type,
                                   VectorRegisters registers) {
  constexpr uk_index_t kPerMultiply = 2, kPerLoad = 2, kPerChainLink = 19, kPerLoop = 2;
  const int lane_bits = type.out_bits < 32 ? 32 : type.out_bits;
  const uk_index_t vectors =
      ceil_div(uk_index_t{row.n0} * lane_bits, uk_index_t{registers.bytes} * 8);
  const uk_index_t chain = ceil_div(row.k0, k_per_instruction(row));
  const int blocks = block_count(registers.count, row.m0, static_cast<int>(vectors));
  uk_index_t total = 0;
  for (int block = 0; block < blocks; ++block) {
    const uk_index_t rows =
        block_first_row(row.m0, blocks, block + 1) - block_first_row(row.m0, blocks, block);
    uk_index_t cost = kPerMultiply * rows * vectors;
    if (cost < kPerLoad * (rows + vectors)) cost = kPerLoad * (rows + vectors);
    if (cost < kPerChainLink) cost = kPerChainLink;
    total += cost * chain + kPerLoop;
  }
  return total;
}

// Time for the whole matmul, padding included, in quarter cycles. An unknown size counts as large.
double total_cost(const uk_tile_row_t& row, const Mmt4dType& type, VectorRegisters registers,
                  uk_index_t m, uk_index_t n, uk_index_t k) {
  constexpr uk_index_t kLarge = 1 << 20;
  const double tiles_m = m > 0 ? static_cast<double>(ceil_div(m, row.m0)) : double(kLarge) / row.m0;
  const double tiles_n = n > 0 ? static_cast<double>(ceil_div(n, row.n0)) : double(kLarge) / row.n0;
  const double steps = k > 0 ? static_cast<double>(ceil_div(k, row.k0)) : double(kLarge) / row.k0;
  return tiles_m * tiles_n * steps *
         static_cast<double>(quarter_cycles_per_step(row, type, registers));
}

// Elements of the padded output, as a double like the cost: sizes may be anything.
double padded_elements(const uk_tile_row_t& row, uk_index_t m, uk_index_t n) {
  const double tiles_m = static_cast<double>(ceil_div(m > 0 ? m : 1, row.m0));
  const double tiles_n = static_cast<double>(ceil_div(n > 0 ? n : 1, row.n0));
  return tiles_m * row.m0 * tiles_n * row.n0;
}

// A total order on shapes, so that the answer does not depend on the order of rows: cost, then the
// least padding, then the larger tile (fewer calls), then the wider one.
bool is_better(const uk_tile_row_t& a, double a_cost, const uk_tile_row_t& b, double b_cost,
               uk_index_t m, uk_index_t n) {
  if (a_cost != b_cost) return a_cost < b_cost;
  const double a_padded = padded_elements(a, m, n), b_padded = padded_elements(b, m, n);
  if (a_padded != b_padded) return a_padded < b_padded;
  const uk_index_t a_area = uk_index_t{a.m0} * a.n0, b_area = uk_index_t{b.m0} * b.n0;
  if (a_area != b_area) return a_area > b_area;
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
  if (mmt4d_flags & ~kCallerFlags) return UK_STATUS_BAD_FLAGS;
  if (!sizes) return UK_STATUS_NULL_POINTER;
  const uk_tile_sizes_t fixed = fixed_or_null ? *fixed_or_null : uk_tile_sizes_t{0, 0, 0};
  if (fixed.m0 < 0 || fixed.n0 < 0 || fixed.k0 < 0) return UK_STATUS_BAD_TILE_SHAPE;
  if (type->rhs_bits < 8 && fixed.k0 % 2 != 0) return UK_STATUS_SPLIT_BYTE;

  const uk_tile_row_t* best = nullptr;
  double best_cost = 0;
  for (size_t i = 0; i < uk_tile_count(); ++i) {
    const uk_tile_row_t& row = *uk_tile_at(i);
    if (row.origin == UK_ORIGIN_GENERIC ||
        !row_is_eligible(row, UK_OP_MMT4D, mmt4d_flags, cpu_data) || !fits(fixed, row)) {
      continue;
    }
    const double cost = total_cost(row, *type, registers_of_row(i), m, n, k);
    if (!best || is_better(row, cost, *best, best_cost, m, n)) {
      best = &row;
      best_cost = cost;
    }
  }
  if (best) {
    *sizes = {best->m0, best->n0, best->k0};
    return UK_STATUS_OK;
  }
  if (!(mmt4d_flags & UK_MMT4D_ALLOW_GENERIC_FALLBACK)) return UK_STATUS_NO_TILE;
  *sizes = generic_sizes(fixed, *type, m, n);
  return UK_STATUS_OK;
}
