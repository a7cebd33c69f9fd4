/* ukernel/iree/iree_ukernel.h against what IREE publishes: values, layouts and types.
 *
 * Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
 */
#include <stddef.h>

#include "ukernel/iree/iree_ukernel.h"

/* Fails to compile where a condition is false. */
#define PINNED(name, condition) typedef char name[(condition) ? 1 : -1]

PINNED(index, sizeof(iree_uk_index_t) == sizeof(void*));
PINNED(params_size, sizeof(iree_uk_query_tile_sizes_2d_params_t) == 32);
PINNED(params_flags, offsetof(iree_uk_query_tile_sizes_2d_params_t, flags) == 0);
PINNED(params_size0, offsetof(iree_uk_query_tile_sizes_2d_params_t, size0) == 8);
PINNED(params_size1, offsetof(iree_uk_query_tile_sizes_2d_params_t, size1) == 16);
PINNED(params_cpu_data, offsetof(iree_uk_query_tile_sizes_2d_params_t, cpu_data) == 24);
PINNED(out_size, sizeof(iree_uk_query_tile_sizes_2d_out_params_t) == 16);
PINNED(out_size0, offsetof(iree_uk_query_tile_sizes_2d_out_params_t, tile_size0) == 0);
PINNED(out_size1, offsetof(iree_uk_query_tile_sizes_2d_out_params_t, tile_size1) == 8);
PINNED(info, IREE_UK_FLAG_MMT4D_INFO_HAVE_ARCHITECTURE_SPECIFIC_TILE_FUNCTION == 1);
PINNED(role_mask, IREE_UK_FLAG_QUERY_TILE_SIZES_OPERAND_ROLE_MASK == 0xFF);
PINNED(lhs, IREE_UK_FLAG_QUERY_TILE_SIZES_OPERAND_ROLE_LHS == 1);
PINNED(rhs, IREE_UK_FLAG_QUERY_TILE_SIZES_OPERAND_ROLE_RHS == 2);
PINNED(result, IREE_UK_FLAG_QUERY_TILE_SIZES_OPERAND_ROLE_RESULT == 3);
PINNED(operation_mask, IREE_UK_FLAG_QUERY_TILE_SIZES_OPERATION_MASK == 0xFF00);
PINNED(f32, IREE_UK_FLAG_QUERY_TILE_SIZES_OPERATION_MATMUL_F32F32F32 == 0x100);
PINNED(i8, IREE_UK_FLAG_QUERY_TILE_SIZES_OPERATION_MATMUL_I8I8I32 == 0x200);
PINNED(f16f32, IREE_UK_FLAG_QUERY_TILE_SIZES_OPERATION_MATMUL_F16F16F32 == 0x300);
PINNED(f16, IREE_UK_FLAG_QUERY_TILE_SIZES_OPERATION_MATMUL_F16F16F16 == 0x400);
PINNED(bf16f32, IREE_UK_FLAG_QUERY_TILE_SIZES_OPERATION_MATMUL_BF16BF16F32 == 0x500);
PINNED(bf16, IREE_UK_FLAG_QUERY_TILE_SIZES_OPERATION_MATMUL_BF16BF16BF16 == 0x600);
