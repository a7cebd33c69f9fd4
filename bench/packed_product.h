// A matrix product through the library's operations, each split over threads: pack, mmt4d, unpack.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_PACKED_PRODUCT_H_
#define UKERNEL_BENCH_PACKED_PRODUCT_H_

#include <cstdint>

#include "ukernel/internal.h"
#include "ukernel/ukernel.h"

namespace uk::bench {

// Where a tensor keeps element (head, row, k): one of the two strides is 1.
struct Operand {
  int64_t rows, k;
  int64_t head_stride, row_stride, k_stride;
};

// One operand of one product per head, unpacked and packed.
struct Packing {
  Operand from;
  int64_t heads;
  int64_t tile_rows, k0;
  uint32_t type;

  int64_t tiles() const { return ceil_div(from.rows, tile_rows); }
  int64_t steps() const { return ceil_div(from.k, k0); }
  int64_t panel() const { return steps() * tile_rows * k0; }
  int64_t elements() const { return heads * tiles() * panel(); }
};

// Where the results go: element (head, row, column), columns contiguous.
struct Result {
  int64_t heads, m, n;
  int64_t head_stride, row_stride;
  uint32_t type;
};

// Each does the share of thread `part` of `parts`: of the tiles along N, or of the operand's rows.
uk_status_t pack_part(const Packing& packing, const void* in, void* out, const uint64_t* cpu_data,
                      int part, int parts);
// `whole` says what mmt4d_params does; its buffers are those of all heads.
uk_status_t mmt4d_part(const uk_mmt4d_params_t& whole, int64_t heads, int part, int parts);
uk_status_t unpack_part(const uk_mmt4d_params_t& from, const Result& result, void* out, int part,
                        int parts);

// Of the product of one head; the buffers are left open.
uk_mmt4d_params_t mmt4d_params(const Packing& lhs, const Packing& rhs, uint32_t mmt4d_type,
                               const uint64_t* cpu_data);

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_PACKED_PRODUCT_H_
