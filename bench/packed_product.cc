// Parts of tensors as parameters of the operations.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "bench/packed_product.h"

#include <algorithm>

namespace uk::bench {
namespace {

// Splits the tiles of all heads over threads; work(head, begin, end) gets the pieces of one.
template <class Work>
uk_status_t for_part(int64_t heads, int64_t tiles, int part, int parts, const Work& work) {
  const int64_t begin = heads * tiles * part / parts, end = heads * tiles * (part + 1) / parts;
  for (int64_t at = begin; at < end;) {
    const int64_t head = at / tiles, stop = std::min(end, (head + 1) * tiles);
    const uk_status_t status = work(head, at - head * tiles, stop - head * tiles);
    if (status != UK_STATUS_OK) return status;
    at = stop;
  }
  return UK_STATUS_OK;
}

}  // namespace

uk_status_t pack_part(const Packing& p, const void* in, void* out, const uint64_t* cpu_data,
                      int part, int parts) {
  return for_part(p.heads, p.tiles(), part, parts, [&](int64_t head, int64_t begin, int64_t end) {
    const int64_t rows = std::min(end * p.tile_rows, p.from.rows) - begin * p.tile_rows;
    // Where the rows are the contiguous dimension, pack sees the transposed matrix.
    const bool transposed = p.from.row_stride == 1;
    uk_pack_params_t params = {};
    params.struct_size = sizeof(params);
    params.in = in;
    params.in_offset = head * p.from.head_stride + begin * p.tile_rows * p.from.row_stride;
    params.in_stride0 = transposed ? p.from.k_stride : p.from.row_stride;
    params.in_stride1 = 1;
    params.in_size0 = transposed ? p.from.k : rows;
    params.in_size1 = transposed ? rows : p.from.k;
    params.out = out;
    params.out_offset = (head * p.tiles() + begin) * p.panel();
    params.out_stride0 = p.panel();
    params.out_stride1 = p.tile_rows * p.k0;
    params.out_size0 = end - begin;
    params.out_size1 = p.steps();
    params.out_size2 = p.tile_rows;
    params.out_size3 = p.k0;
    params.flags = p.type | (transposed ? UK_PACK_TRANSPOSE_INNER | UK_PACK_TRANSPOSE_OUTER : 0);
    params.cpu_data = cpu_data;
    return uk_pack(&params);
  });
}

uk_status_t mmt4d_part(const uk_mmt4d_params_t& whole, int64_t heads, int part, int parts) {
  return for_part(heads, whole.n, part, parts, [&](int64_t head, int64_t begin, int64_t end) {
    uk_mmt4d_params_t params = whole;
    params.lhs_offset = head * whole.m * whole.lhs_stride0;
    params.rhs_offset = (head * whole.n + begin) * whole.rhs_stride0;
    params.out_offset = head * whole.m * whole.out_stride0 + begin * whole.m0 * whole.n0;
    params.n = end - begin;
    return uk_mmt4d(&params);
  });
}

uk_status_t unpack_part(const uk_mmt4d_params_t& from, const Result& result, void* out, int part,
                        int parts) {
  return for_part(result.heads, from.n, part, parts, [&](int64_t head, int64_t begin, int64_t end) {
    uk_unpack_params_t params = {};
    params.struct_size = sizeof(params);
    params.in = from.out;
    params.in_offset = head * from.m * from.out_stride0 + begin * from.m0 * from.n0;
    params.in_stride0 = from.out_stride0;
    params.in_stride1 = int64_t{from.m0} * from.n0;
    params.in_size0 = from.m;
    params.in_size1 = end - begin;
    params.in_size2 = from.m0;
    params.in_size3 = from.n0;
    params.out = out;
    params.out_offset = head * result.head_stride + begin * from.n0;
    params.out_stride0 = result.row_stride;
    params.out_stride1 = 1;
    params.out_size0 = result.m;
    params.out_size1 = std::min(end * from.n0, result.n) - begin * from.n0;
    params.flags = result.type;
    params.cpu_data = from.cpu_data;
    return uk_unpack(&params);
  });
}

uk_mmt4d_params_t mmt4d_params(const Packing& lhs, const Packing& rhs, uint32_t mmt4d_type,
                               const uint64_t* cpu_data) {
  uk_mmt4d_params_t params = {};
  params.struct_size = sizeof(params);
  params.lhs_stride0 = lhs.panel();
  params.rhs_stride0 = rhs.panel();
  params.out_stride0 = rhs.tiles() * lhs.tile_rows * rhs.tile_rows;
  params.m = lhs.tiles();
  params.n = rhs.tiles();
  params.k = lhs.steps();
  params.m0 = static_cast<int32_t>(lhs.tile_rows);
  params.n0 = static_cast<int32_t>(rhs.tile_rows);
  params.k0 = static_cast<int32_t>(lhs.k0);
  params.flags = mmt4d_type;
  params.cpu_data = cpu_data;
  return params;
}

}  // namespace uk::bench
