/* IREE's entry points as it declares them itself (runtime/src/iree/builtins/ukernel, and the mma
 * functions in compiler/plugins/target/LLVMCPU/builtins/ukernel), so that the test does not depend
 * on what ukernel/iree/iree_ukernel.h says of them.
 *
 * Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
 */
#ifndef UKERNEL_TESTS_IREE_PUBLISHED_H_
#define UKERNEL_TESTS_IREE_PUBLISHED_H_

typedef long long index_t;
typedef int i32;
typedef unsigned int u32;
typedef unsigned long long u64;

void iree_uk_mmt4d(const void* lhs_buffer, index_t lhs_offset, index_t lhs_stride0,
                   const void* rhs_buffer, index_t rhs_offset, index_t rhs_stride0,
                   void* out_buffer, index_t out_offset, index_t out_stride0, index_t M, index_t N,
                   index_t K, i32 M0, i32 N0, i32 K0, u32 flags, const u64* cpu_data);
u32 iree_uk_mmt4d_info(i32 M0, i32 N0, i32 K0, u32 flags, const u64* cpu_data);
void iree_uk_pack(const void* in_buffer, index_t in_offset, index_t in_stride0, index_t in_stride1,
                  void* out_buffer, index_t out_offset, index_t out_stride0, index_t out_stride1,
                  index_t in_size0, index_t in_size1, index_t out_size0, index_t out_size1,
                  index_t out_size2, index_t out_size3, u64 padding_value, u32 flags,
                  const u64* cpu_data);
void iree_uk_unpack(const void* in_buffer, index_t in_offset, index_t in_stride0,
                    index_t in_stride1, void* out_buffer, index_t out_offset, index_t out_stride0,
                    index_t out_stride1, index_t in_size0, index_t in_size1, index_t in_size2,
                    index_t in_size3, index_t out_size0, index_t out_size1, u32 flags,
                    const u64* cpu_data);

struct query_params {
  u32 flags;
  index_t size0;
  index_t size1;
  const u64* cpu_data;
};
struct query_out_params {
  index_t tile_size0;
  index_t tile_size1;
};
int iree_uk_query_tile_sizes_2d(const struct query_params* params, struct query_out_params* out);

void iree_uk_mma_x86_avx512vnni_16x16x2_i32_i8_casti16(const void* lhs_base, index_t lhs_offset,
                                                       const void* rhs_base, index_t rhs_offset,
                                                       void* acc_base, index_t acc_offset,
                                                       i32 k_outer, i32 intrinsics_m,
                                                       i32 intrinsics_n, i32 intrinsics_k);
void iree_uk_mma_x86_avx512bf16_1x16x2_f32_bf16(const unsigned short* lhs_base, index_t lhs_offset,
                                                const unsigned short* rhs_base, index_t rhs_offset,
                                                float* acc_base, index_t acc_offset, i32 k_outer,
                                                i32 intrinsics_m, i32 intrinsics_n,
                                                i32 intrinsics_k);

enum { MMT4D_F32F32F32 = 1, MMT4D_S8S8S32 = 2, MMT4D_S8S4S32 = 0xA, MMT4D_END = 0xB };
enum { ACCUMULATE = 0x100, ALLOW_GENERIC_FALLBACK = 0x200, SKIP_INTERMEDIATE_ROUNDINGS = 0x400 };
enum { PACK_F32 = 1, PACK_I8 = 2, PACK_I32 = 3, PACK_F16 = 4, PACK_BF16 = 5 };
enum { TRANSPOSE_INNER = 0x100, TRANSPOSE_OUTER = 0x200 };
enum { ROLE_LHS = 1, ROLE_RHS = 2, ROLE_RESULT = 3 };

#endif /* UKERNEL_TESTS_IREE_PUBLISHED_H_ */
