/* IREE's microkernel entry points, served by this library: link the archive ukernel_iree in the
 * place of IREE's own. This header is for callers that have none of IREE's, which declare the same.
 *
 * Signatures and flag values are those of IREE since pull request 17516 (May 2024), on targets with
 * 64-bit pointers; the mma functions those since pull request 24652 (June 2026). Flags, types and
 * feature bits are the numbers of ukernel/ukernel.h, but for those of query_tile_sizes below.
 *
 * The functions have no way to report an error. Where IREE has an assertion, and where it calls
 * through a null pointer (no tile for the shape, no ALLOW_GENERIC_FALLBACK), these stop the program
 * (__builtin_trap). So they do where an operation of this library refuses what IREE would run: an
 * output that overlaps an input, or whose rows overlap each other.
 *
 * Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
 */
#ifndef UKERNEL_IREE_IREE_UKERNEL_H_
#define UKERNEL_IREE_IREE_UKERNEL_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int64_t iree_uk_index_t;

/* With M, N, M0 or N0 zero nothing happens; with K or K0 zero OUT becomes zero, or stays under
 * ACCUMULATE, whether there is a tile or not. */
void iree_uk_mmt4d(const void* lhs_buffer, iree_uk_index_t lhs_offset, iree_uk_index_t lhs_stride0,
                   const void* rhs_buffer, iree_uk_index_t rhs_offset, iree_uk_index_t rhs_stride0,
                   void* out_buffer, iree_uk_index_t out_offset, iree_uk_index_t out_stride0,
                   iree_uk_index_t M, iree_uk_index_t N, iree_uk_index_t K, int32_t M0, int32_t N0,
                   int32_t K0, uint32_t flags, const uint64_t* cpu_data);

#define IREE_UK_FLAG_MMT4D_INFO_HAVE_ARCHITECTURE_SPECIFIC_TILE_FUNCTION 0x1u
/* That bit, if a tile function serves these; else 0. */
uint32_t iree_uk_mmt4d_info(int32_t M0, int32_t N0, int32_t K0, uint32_t flags,
                            const uint64_t* cpu_data);

/* With any out_size zero nothing happens. */
void iree_uk_pack(const void* in_buffer, iree_uk_index_t in_offset, iree_uk_index_t in_stride0,
                  iree_uk_index_t in_stride1, void* out_buffer, iree_uk_index_t out_offset,
                  iree_uk_index_t out_stride0, iree_uk_index_t out_stride1,
                  iree_uk_index_t in_size0, iree_uk_index_t in_size1, iree_uk_index_t out_size0,
                  iree_uk_index_t out_size1, iree_uk_index_t out_size2, iree_uk_index_t out_size3,
                  uint64_t padding_value, uint32_t flags, const uint64_t* cpu_data);

/* With any out_size zero nothing happens. */
void iree_uk_unpack(const void* in_buffer, iree_uk_index_t in_offset, iree_uk_index_t in_stride0,
                    iree_uk_index_t in_stride1, void* out_buffer, iree_uk_index_t out_offset,
                    iree_uk_index_t out_stride0, iree_uk_index_t out_stride1,
                    iree_uk_index_t in_size0, iree_uk_index_t in_size1, iree_uk_index_t in_size2,
                    iree_uk_index_t in_size3, iree_uk_index_t out_size0, iree_uk_index_t out_size1,
                    uint32_t flags, const uint64_t* cpu_data);

/* The operand's role, and the matmul that it is an operand of. */
#define IREE_UK_FLAG_QUERY_TILE_SIZES_OPERAND_ROLE_MASK 0xFFu
#define IREE_UK_FLAG_QUERY_TILE_SIZES_OPERAND_ROLE_LHS 0x01u
#define IREE_UK_FLAG_QUERY_TILE_SIZES_OPERAND_ROLE_RHS 0x02u
#define IREE_UK_FLAG_QUERY_TILE_SIZES_OPERAND_ROLE_RESULT 0x03u
#define IREE_UK_FLAG_QUERY_TILE_SIZES_OPERATION_MASK 0xFF00u
#define IREE_UK_FLAG_QUERY_TILE_SIZES_OPERATION_MATMUL_F32F32F32 0x0100u
#define IREE_UK_FLAG_QUERY_TILE_SIZES_OPERATION_MATMUL_I8I8I32 0x0200u
#define IREE_UK_FLAG_QUERY_TILE_SIZES_OPERATION_MATMUL_F16F16F32 0x0300u
#define IREE_UK_FLAG_QUERY_TILE_SIZES_OPERATION_MATMUL_F16F16F16 0x0400u
#define IREE_UK_FLAG_QUERY_TILE_SIZES_OPERATION_MATMUL_BF16BF16F32 0x0500u
#define IREE_UK_FLAG_QUERY_TILE_SIZES_OPERATION_MATMUL_BF16BF16BF16 0x0600u

typedef struct iree_uk_query_tile_sizes_2d_params_t {
  uint32_t flags;
  iree_uk_index_t size0, size1; /* of the operand; not read, as each query knows but two of M, N, K
                                   and the three must agree */
  const uint64_t* cpu_data;
} iree_uk_query_tile_sizes_2d_params_t;

typedef struct iree_uk_query_tile_sizes_2d_out_params_t {
  iree_uk_index_t tile_size0, tile_size1; /* LHS: M0, K0. RHS: N0, K0. RESULT: M0, N0 */
} iree_uk_query_tile_sizes_2d_out_params_t;

/* Returns 0. */
int iree_uk_query_tile_sizes_2d(const iree_uk_query_tile_sizes_2d_params_t* params,
                                iree_uk_query_tile_sizes_2d_out_params_t* out_params);

#if defined(__x86_64__)
/* The K loop of one tile in IREE's data-tiled layouts, intrinsics_m x intrinsics_n blocks of
 * sums and k_outer x intrinsics_k steps of two k. ACC += LHS * RHS. Offsets are in elements, and
 * every operand is dense:
 *
 *   LHS [k_outer][intrinsics_m][intrinsics_k][block rows][2]
 *   RHS [k_outer][intrinsics_n][intrinsics_k][block columns][2]
 *   ACC [intrinsics_m][intrinsics_n][block]
 *
 * They check nothing, and need a CPU of level avx512_vnni or avx512_bf16. They are functions to
 * call: IREE's compiler takes its own as bitcode, and inlines them. */

/* s8 * s8 in s32; a block is 16x16: row r, column c is [r % 4][c / 4][r / 4][c % 4]. */
void iree_uk_mma_x86_avx512vnni_16x16x2_i32_i8_casti16(const void* lhs_base, int64_t lhs_offset,
                                                       const void* rhs_base, int64_t rhs_offset,
                                                       void* acc_base, int64_t acc_offset,
                                                       int32_t k_outer, int32_t intrinsics_m,
                                                       int32_t intrinsics_n, int32_t intrinsics_k);

/* bf16 * bf16 in f32 by VDPBF16PS, in increasing k; a block is 1x16. */
void iree_uk_mma_x86_avx512bf16_1x16x2_f32_bf16(const uint16_t* lhs_base, int64_t lhs_offset,
                                                const uint16_t* rhs_base, int64_t rhs_offset,
                                                float* acc_base, int64_t acc_offset,
                                                int32_t k_outer, int32_t intrinsics_m,
                                                int32_t intrinsics_n, int32_t intrinsics_k);
#endif

#ifdef __cplusplus
}
#endif

#endif /* UKERNEL_IREE_IREE_UKERNEL_H_ */
