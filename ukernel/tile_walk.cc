// Checks of pack and unpack, and the one form that both walk.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "ukernel/tile_walk.h"

namespace uk {
namespace {

constexpr uint32_t kCallerFlags =
    UK_PACK_TYPE_MASK | UK_PACK_TRANSPOSE_INNER | UK_PACK_TRANSPOSE_OUTER;

void swap(uk_index_t* a, uk_index_t* b) {
  const uk_index_t t = *a;
  *a = *b;
  *b = t;
}

// All that does not concern the buffers.
uk_status_t check_shape(const TileCopy& copy) {
  const int bits = pack_type_bits(copy.flags);
  if (bits == 0) return UK_STATUS_BAD_TYPE;
  if (copy.flags & ~kCallerFlags) return UK_STATUS_BAD_FLAGS;
  if (copy.size0 < 0 || copy.size1 < 0 || copy.outer0 < 0 || copy.outer1 < 0) {
    return UK_STATUS_BAD_EXTENT;
  }
  if (copy.tile0 <= 0 || copy.tile1 <= 0) return UK_STATUS_BAD_TILE_SHAPE;
  if (bits < 8 && copy.tile1 % 2 != 0) return UK_STATUS_SPLIT_BYTE;
  return UK_STATUS_OK;
}

// In the terms of the matrix, dimension 1 contiguous. A stride of a single entry is never used and
// may be anything, so it is dropped.
TilePlan normalized(const TileCopy& copy) {
  TilePlan plan = {};
  plan.bits = pack_type_bits(copy.flags);
  plan.transposed = (copy.flags & UK_PACK_TRANSPOSE_INNER) != 0;
  plan.offset = copy.offset;
  plan.size0 = copy.size0;
  plan.size1 = copy.size1;
  plan.stride0 = copy.size0 > 1 ? copy.stride0 : 0;
  plan.stride1 = copy.size1 > 1 ? copy.stride1 : 0;
  plan.rows = copy.tile0;
  plan.columns = copy.tile1;
  if (plan.transposed) swap(&plan.rows, &plan.columns);
  plan.tiles_offset = copy.tiles_offset;
  plan.tiles0 = copy.outer0;
  plan.tiles1 = copy.outer1;
  plan.tiles_stride0 = copy.outer0 > 1 ? copy.outer_stride0 : 0;
  plan.tiles_stride1 = copy.outer1 > 1 ? copy.outer_stride1 : 0;
  if (copy.flags & UK_PACK_TRANSPOSE_OUTER) {
    swap(&plan.tiles0, &plan.tiles1);
    swap(&plan.tiles_stride0, &plan.tiles_stride1);
  }
  if (plan.stride0 == 1 && plan.stride1 != 1) {
    swap(&plan.size0, &plan.size1);
    swap(&plan.stride0, &plan.stride1);
    swap(&plan.rows, &plan.columns);
    swap(&plan.tiles0, &plan.tiles1);
    swap(&plan.tiles_stride0, &plan.tiles_stride1);
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

// Two four-bit elements that stay neighbours in the same order move as one byte.
void pair_four_bit_elements(TilePlan* plan) {
  if (plan->bits != 4 || plan->transposed || plan->stride1 != 1 || plan->size1 % 2 != 0) return;
  plan->bits = 8;
  plan->offset /= 2;
  plan->size1 /= 2;
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

}  // namespace

uk_status_t plan_tiles(const TileCopy& copy, TilePlan* plan) {
  uk_status_t status = check_shape(copy);
  if (status != UK_STATUS_OK) return status;
  *plan = normalized(copy);
  status = check_buffers(copy, *plan);
  if (status != UK_STATUS_OK) return status;
  pair_four_bit_elements(plan);
  plan->row = select_row(copy, *plan);
  return UK_STATUS_OK;
}

}  // namespace uk
