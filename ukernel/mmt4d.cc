// uk_mmt4d: check, select, walk the tiles.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "ukernel/internal.h"
#include "ukernel/mmt4d_walk.h"

namespace uk {
namespace {

// All that does not concern the buffers. On success *row is the row to use.
uk_status_t check_shape(const uk_mmt4d_params_t& p, const Mmt4dType** type,
                        const uk_tile_row_t** row) {
  *type = find_mmt4d_type(p.flags);
  if (!*type) return UK_STATUS_BAD_TYPE;
  if (p.flags & ~kCallerFlags) return UK_STATUS_BAD_FLAGS;
  if (p.m < 0 || p.n < 0 || p.k < 0) return UK_STATUS_BAD_EXTENT;
  if (p.m0 <= 0 || p.n0 <= 0 || p.k0 <= 0) return UK_STATUS_BAD_TILE_SHAPE;
  const bool has_four_bit_operand = (*type)->lhs_bits < 8 || (*type)->rhs_bits < 8;
  if (has_four_bit_operand && p.k0 % 2 != 0) return UK_STATUS_SPLIT_BYTE;
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
  const uk_index_t out_row = c.mul(p.n, c.mul(p.m0, p.n0));
  c.mul(lhs_step, type.lhs_bits);  // the walk counts in bytes, also where k = 0
  c.mul(rhs_step, type.rhs_bits);
  c.mul(rhs_panel, c.mul(p.n, type.rhs_bits));
  if (c.overflowed()) return UK_STATUS_OVERFLOW;
  const Layout lhs = {p.lhs, p.lhs_offset, p.m, p.lhs_stride0, 1, 0, lhs_panel, type.lhs_bits};
  const Layout rhs = {p.rhs, p.rhs_offset, p.n, p.rhs_stride0, 1, 0, rhs_panel, type.rhs_bits};
  const Layout out = {p.out, p.out_offset, p.m, p.out_stride0, 1, 0, out_row, type.out_bits};
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

// K is split only where the accumulator holds the exact intermediate result.
bool can_split_k(const uk_tile_row_t& row) {
  return row.numerics == UK_NUMERICS_EXACT || row.numerics == UK_NUMERICS_FMA_CHAIN ||
         row.numerics == UK_NUMERICS_MUL_ADD_CHAIN || row.numerics == UK_NUMERICS_BF16_DOT;
}

void walk_tiles(const uk_mmt4d_params_t& p, const Mmt4dType& type, const uk_tile_row_t& row) {
  const uint32_t type_flag = p.flags & UK_MMT4D_TYPE_MASK;
  const auto tile = reinterpret_cast<uk_mmt4d_tile_fn*>(row.function);
  const uk_index_t lhs_step = uk_index_t{p.m0} * p.k0, rhs_step = uk_index_t{p.n0} * p.k0;
  const uk_index_t out_tile = uk_index_t{p.m0} * p.n0;
  Mmt4dWalk walk = {p.m,
                    p.n,
                    p.k,
                    p.m0,
                    larger(lhs_step * type.lhs_bits / 8, 1),
                    larger(rhs_step * type.rhs_bits / 8, 1),
                    out_tile * type.out_bits / 8,
                    can_split_k(row),
                    least_of_levels(p.cpu_data, &VectorUnit::l3_feeds) == 2,
                    0,
                    1};
  if (tile && walk.reads_rhs_once()) {
    walk.step_cost = tile_step_cost(row, cpu_is_wide(p.cpu_data));
    walk.panels = least_of_levels(p.cpu_data, &VectorUnit::panels);
  }
  walk.for_each_tile([&](uk_index_t i, uk_index_t j, uk_index_t k, uk_index_t k1, bool prefetch) {
    const uint32_t accumulate = k > 0 ? UK_MMT4D_ACCUMULATE : p.flags & UK_MMT4D_ACCUMULATE;
    const char* lhs = at(p.lhs, p.lhs_offset + i * p.lhs_stride0 + k * lhs_step, type.lhs_bits);
    const char* rhs = at(p.rhs, p.rhs_offset + j * p.rhs_stride0 + k * rhs_step, type.rhs_bits);
    char* out = at(p.out, p.out_offset + i * p.out_stride0 + j * out_tile, type.out_bits);
    if (tile) {
      tile(out, lhs, rhs, k1, accumulate | (prefetch ? UK_MMT4D_PREFETCH_RHS : 0));
    } else {
      generic_mmt4d_tile(type_flag, out, lhs, rhs, k1, accumulate, p.m0, p.n0, p.k0);
    }
  });
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
  if (status == UK_STATUS_OK && p.m > 0 && p.n > 0) {
    status = uk::check_buffers(p, *type);
    // K = 0 needs no operands: null pointers, which offsets and strides must not move.
    if (p.k == 0) p.lhs_offset = p.lhs_stride0 = p.rhs_offset = p.rhs_stride0 = 0;
    // Nothing is added, not even to what the rounding of a 16-bit output would change.
    const bool stays = p.k == 0 && (p.flags & UK_MMT4D_ACCUMULATE);
    if (status == UK_STATUS_OK && !stays) uk::walk_tiles(p, *type, *row);
  }
  return status;
}

}  // extern "C"
