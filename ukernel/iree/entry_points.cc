// IREE's entry points, each a call of one of the library's operations.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "ukernel/iree/iree_ukernel.h"
#include "ukernel/ukernel.h"

namespace {

// Nothing else would tell the caller that its output is not there.
void require(bool condition) {
  if (!condition) __builtin_trap();
}

}  // namespace

extern "C" {

void iree_uk_mmt4d(const void* lhs_buffer, iree_uk_index_t lhs_offset, iree_uk_index_t lhs_stride0,
                   const void* rhs_buffer, iree_uk_index_t rhs_offset, iree_uk_index_t rhs_stride0,
                   void* out_buffer, iree_uk_index_t out_offset, iree_uk_index_t out_stride0,
                   iree_uk_index_t M, iree_uk_index_t N, iree_uk_index_t K, int32_t M0, int32_t N0,
                   int32_t K0, uint32_t flags, const uint64_t* cpu_data) {
  require(!(flags & UK_MMT4D_UNPACK_OUT));  // there is no argument for the size of that OUT
  if (M == 0 || N == 0 || M0 == 0 || N0 == 0) return;
  if (K0 == 0) {  // as good as no K, in any tile that splits no byte
    K = 0;
    K0 = 2;
  }
  if (K == 0) {
    if (flags & UK_MMT4D_ACCUMULATE) return;
    flags |= UK_MMT4D_ALLOW_GENERIC_FALLBACK;
  }
  const uk_mmt4d_params_t params = {sizeof(params),
                                    lhs_buffer,
                                    lhs_offset,
                                    lhs_stride0,
                                    rhs_buffer,
                                    rhs_offset,
                                    rhs_stride0,
                                    out_buffer,
                                    out_offset,
                                    out_stride0,
                                    M,
                                    N,
                                    K,
                                    M0,
                                    N0,
                                    K0,
                                    flags,
                                    cpu_data,
                                    0,
                                    0};
  require(uk_mmt4d(&params) == UK_STATUS_OK);
}

uint32_t iree_uk_mmt4d_info(int32_t M0, int32_t N0, int32_t K0, uint32_t flags,
                            const uint64_t* cpu_data) {
  if (flags & UK_MMT4D_UNPACK_OUT) return 0;  // iree_uk_mmt4d has none for that
  uk_mmt4d_params_t params = {};
  params.struct_size = sizeof(params);
  params.m0 = M0;
  params.n0 = N0;
  params.k0 = K0;
  params.flags = flags & ~UK_MMT4D_ALLOW_GENERIC_FALLBACK;
  params.cpu_data = cpu_data;
  const uk_tile_row_t* row = nullptr;
  return uk_mmt4d_info(&params, &row) == UK_STATUS_OK
             ? IREE_UK_FLAG_MMT4D_INFO_HAVE_ARCHITECTURE_SPECIFIC_TILE_FUNCTION
             : 0;
}

void iree_uk_pack(const void* in_buffer, iree_uk_index_t in_offset, iree_uk_index_t in_stride0,
                  iree_uk_index_t in_stride1, void* out_buffer, iree_uk_index_t out_offset,
                  iree_uk_index_t out_stride0, iree_uk_index_t out_stride1,
                  iree_uk_index_t in_size0, iree_uk_index_t in_size1, iree_uk_index_t out_size0,
                  iree_uk_index_t out_size1, iree_uk_index_t out_size2, iree_uk_index_t out_size3,
                  uint64_t padding_value, uint32_t flags, const uint64_t* cpu_data) {
  if (out_size0 == 0 || out_size1 == 0 || out_size2 == 0 || out_size3 == 0) return;
  const uk_pack_params_t params = {sizeof(params), in_buffer, in_offset,  in_stride0, in_stride1,
                                   in_size0,       in_size1,  out_buffer, out_offset, out_stride0,
                                   out_stride1,    out_size0, out_size1,  out_size2,  out_size3,
                                   padding_value,  flags,     cpu_data};
  require(uk_pack(&params) == UK_STATUS_OK);
}

void iree_uk_unpack(const void* in_buffer, iree_uk_index_t in_offset, iree_uk_index_t in_stride0,
                    iree_uk_index_t in_stride1, void* out_buffer, iree_uk_index_t out_offset,
                    iree_uk_index_t out_stride0, iree_uk_index_t out_stride1,
                    iree_uk_index_t in_size0, iree_uk_index_t in_size1, iree_uk_index_t in_size2,
                    iree_uk_index_t in_size3, iree_uk_index_t out_size0, iree_uk_index_t out_size1,
                    uint32_t flags, const uint64_t* cpu_data) {
  if (out_size0 == 0 || out_size1 == 0) return;
  const uk_unpack_params_t params = {
      sizeof(params), in_buffer, in_offset, in_stride0, in_stride1, in_size0,
      in_size1,       in_size2,  in_size3,  out_buffer, out_offset, out_stride0,
      out_stride1,    out_size0, out_size1, flags,      cpu_data};
  require(uk_unpack(&params) == UK_STATUS_OK);
}

int iree_uk_query_tile_sizes_2d(const iree_uk_query_tile_sizes_2d_params_t* params,
                                iree_uk_query_tile_sizes_2d_out_params_t* out_params) {
  // The operations are numbered as the mmt4d types are, as far as they go.
  const uint32_t type = (params->flags & IREE_UK_FLAG_QUERY_TILE_SIZES_OPERATION_MASK) >> 8;
  require(type <= UK_MMT4D_TYPE_BF16BF16BF16);
  uk_tile_sizes_t sizes;
  const uk_status_t status = uk_query_tile_sizes(type | UK_MMT4D_ALLOW_GENERIC_FALLBACK, -1, -1, -1,
                                                 nullptr, params->cpu_data, &sizes);
  require(status == UK_STATUS_OK);
  switch (params->flags & ~IREE_UK_FLAG_QUERY_TILE_SIZES_OPERATION_MASK) {
    case IREE_UK_FLAG_QUERY_TILE_SIZES_OPERAND_ROLE_LHS:
      *out_params = {sizes.m0, sizes.k0};
      break;
    case IREE_UK_FLAG_QUERY_TILE_SIZES_OPERAND_ROLE_RHS:
      *out_params = {sizes.n0, sizes.k0};
      break;
    case IREE_UK_FLAG_QUERY_TILE_SIZES_OPERAND_ROLE_RESULT:
      *out_params = {sizes.m0, sizes.n0};
      break;
    default:
      require(false);
  }
  return 0;
}

}  // extern "C"
