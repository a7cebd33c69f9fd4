/* The header as C99 sees it: struct layouts, flag values, and calls from C.
 *
 * Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
 */
#include <stdio.h>
#include <string.h>

#include "ukernel/ukernel.h"

static int failures = 0;

static void check(int condition, const char* text, int line) {
  if (condition) return;
  ++failures;
  fprintf(stderr, "abi_test.c:%d: %s\n", line, text);
}
#define CHECK(condition) check((condition) ? 1 : 0, #condition, __LINE__)

/* Fields are appended and never moved, so these numbers never change. */
static void check_layouts(void) {
  if (sizeof(void*) != 8 || sizeof(size_t) != 8) return; /* the numbers are those of LP64 */
#define CHECK_FIELD(type, field, offset, size) \
  CHECK(offsetof(type, field) == (offset) && sizeof(((type*)0)->field) == (size))
  CHECK(sizeof(uk_index_t) == 8 && (uk_index_t)-1 < 0);
  CHECK(sizeof(uk_status_t) == 4);
  CHECK(sizeof(uk_mmt4d_params_t) == 144);
  CHECK_FIELD(uk_mmt4d_params_t, struct_size, 0, 8);
  CHECK_FIELD(uk_mmt4d_params_t, lhs, 8, 8);
  CHECK_FIELD(uk_mmt4d_params_t, lhs_offset, 16, 8);
  CHECK_FIELD(uk_mmt4d_params_t, lhs_stride0, 24, 8);
  CHECK_FIELD(uk_mmt4d_params_t, rhs, 32, 8);
  CHECK_FIELD(uk_mmt4d_params_t, rhs_offset, 40, 8);
  CHECK_FIELD(uk_mmt4d_params_t, rhs_stride0, 48, 8);
  CHECK_FIELD(uk_mmt4d_params_t, out, 56, 8);
  CHECK_FIELD(uk_mmt4d_params_t, out_offset, 64, 8);
  CHECK_FIELD(uk_mmt4d_params_t, out_stride0, 72, 8);
  CHECK_FIELD(uk_mmt4d_params_t, m, 80, 8);
  CHECK_FIELD(uk_mmt4d_params_t, n, 88, 8);
  CHECK_FIELD(uk_mmt4d_params_t, k, 96, 8);
  CHECK_FIELD(uk_mmt4d_params_t, m0, 104, 4);
  CHECK_FIELD(uk_mmt4d_params_t, n0, 108, 4);
  CHECK_FIELD(uk_mmt4d_params_t, k0, 112, 4);
  CHECK_FIELD(uk_mmt4d_params_t, flags, 116, 4);
  CHECK_FIELD(uk_mmt4d_params_t, cpu_data, 120, 8);
  CHECK_FIELD(uk_mmt4d_params_t, out_size0, 128, 8);
  CHECK_FIELD(uk_mmt4d_params_t, out_size1, 136, 8);

  CHECK(sizeof(uk_pack_params_t) == 144);
  CHECK_FIELD(uk_pack_params_t, struct_size, 0, 8);
  CHECK_FIELD(uk_pack_params_t, in, 8, 8);
  CHECK_FIELD(uk_pack_params_t, in_offset, 16, 8);
  CHECK_FIELD(uk_pack_params_t, in_stride0, 24, 8);
  CHECK_FIELD(uk_pack_params_t, in_stride1, 32, 8);
  CHECK_FIELD(uk_pack_params_t, in_size0, 40, 8);
  CHECK_FIELD(uk_pack_params_t, in_size1, 48, 8);
  CHECK_FIELD(uk_pack_params_t, out, 56, 8);
  CHECK_FIELD(uk_pack_params_t, out_offset, 64, 8);
  CHECK_FIELD(uk_pack_params_t, out_stride0, 72, 8);
  CHECK_FIELD(uk_pack_params_t, out_stride1, 80, 8);
  CHECK_FIELD(uk_pack_params_t, out_size0, 88, 8);
  CHECK_FIELD(uk_pack_params_t, out_size1, 96, 8);
  CHECK_FIELD(uk_pack_params_t, out_size2, 104, 8);
  CHECK_FIELD(uk_pack_params_t, out_size3, 112, 8);
  CHECK_FIELD(uk_pack_params_t, padding_value, 120, 8);
  CHECK_FIELD(uk_pack_params_t, flags, 128, 4);
  CHECK_FIELD(uk_pack_params_t, cpu_data, 136, 8);

  CHECK(sizeof(uk_unpack_params_t) == 136);
  CHECK_FIELD(uk_unpack_params_t, struct_size, 0, 8);
  CHECK_FIELD(uk_unpack_params_t, in, 8, 8);
  CHECK_FIELD(uk_unpack_params_t, in_offset, 16, 8);
  CHECK_FIELD(uk_unpack_params_t, in_stride0, 24, 8);
  CHECK_FIELD(uk_unpack_params_t, in_stride1, 32, 8);
  CHECK_FIELD(uk_unpack_params_t, in_size0, 40, 8);
  CHECK_FIELD(uk_unpack_params_t, in_size1, 48, 8);
  CHECK_FIELD(uk_unpack_params_t, in_size2, 56, 8);
  CHECK_FIELD(uk_unpack_params_t, in_size3, 64, 8);
  CHECK_FIELD(uk_unpack_params_t, out, 72, 8);
  CHECK_FIELD(uk_unpack_params_t, out_offset, 80, 8);
  CHECK_FIELD(uk_unpack_params_t, out_stride0, 88, 8);
  CHECK_FIELD(uk_unpack_params_t, out_stride1, 96, 8);
  CHECK_FIELD(uk_unpack_params_t, out_size0, 104, 8);
  CHECK_FIELD(uk_unpack_params_t, out_size1, 112, 8);
  CHECK_FIELD(uk_unpack_params_t, flags, 120, 4);
  CHECK_FIELD(uk_unpack_params_t, cpu_data, 128, 8);

  CHECK(sizeof(uk_tile_sizes_t) == 12);
  CHECK_FIELD(uk_tile_sizes_t, m0, 0, 4);
  CHECK_FIELD(uk_tile_sizes_t, n0, 4, 4);
  CHECK_FIELD(uk_tile_sizes_t, k0, 8, 4);

  CHECK(sizeof(uk_tile_row_t) == 128);
  CHECK_FIELD(uk_tile_row_t, symbol, 0, 8);
  CHECK_FIELD(uk_tile_row_t, arch, 8, 8);
  CHECK_FIELD(uk_tile_row_t, isa, 16, 8);
  CHECK_FIELD(uk_tile_row_t, op, 24, 4);
  CHECK_FIELD(uk_tile_row_t, flags, 28, 4);
  CHECK_FIELD(uk_tile_row_t, m0, 32, 4);
  CHECK_FIELD(uk_tile_row_t, n0, 36, 4);
  CHECK_FIELD(uk_tile_row_t, k0, 40, 4);
  CHECK_FIELD(uk_tile_row_t, features, 48, 64);
  CHECK_FIELD(uk_tile_row_t, numerics, 112, 4);
  CHECK_FIELD(uk_tile_row_t, origin, 116, 4);
  CHECK_FIELD(uk_tile_row_t, function, 120, 8);
}

static void check_mmt4d_flags(void) {
  CHECK(UK_MMT4D_TYPE_MASK == 0xFF);
  CHECK(UK_MMT4D_TYPE_F32F32F32 == 0x01);
  CHECK(UK_MMT4D_TYPE_S8S8S32 == 0x02);
  CHECK(UK_MMT4D_TYPE_F16F16F32 == 0x03);
  CHECK(UK_MMT4D_TYPE_F16F16F16 == 0x04);
  CHECK(UK_MMT4D_TYPE_BF16BF16F32 == 0x05);
  CHECK(UK_MMT4D_TYPE_BF16BF16BF16 == 0x06);
  CHECK(UK_MMT4D_TYPE_S16S16S32 == 0x07);
  CHECK(UK_MMT4D_TYPE_S16U4S32 == 0x08);
  CHECK(UK_MMT4D_TYPE_S16S8S32 == 0x09);
  CHECK(UK_MMT4D_TYPE_S8S4S32 == 0x0A);
  CHECK(UK_MMT4D_TYPE_U8S8S32 == 0x40);
  CHECK(UK_MMT4D_TYPE_F64F64F64 == 0x41);
  CHECK(UK_MMT4D_ACCUMULATE == 0x100);
  CHECK(UK_MMT4D_ALLOW_GENERIC_FALLBACK == 0x200);
  CHECK(UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS == 0x400);
  CHECK(UK_MMT4D_PREFETCH_RHS == 0x80000000u);
  CHECK(UK_MMT4D_UNPACK_OUT == 0x40000000u);
}

static void check_pack_flags(void) {
  CHECK(UK_PACK_TYPE_MASK == 0xFF);
  CHECK(UK_PACK_TYPE_F32 == 1);
  CHECK(UK_PACK_TYPE_I8 == 2);
  CHECK(UK_PACK_TYPE_I32 == 3);
  CHECK(UK_PACK_TYPE_F16 == 4);
  CHECK(UK_PACK_TYPE_BF16 == 5);
  CHECK(UK_PACK_TYPE_I16 == 0x40);
  CHECK(UK_PACK_TYPE_I4 == 0x41);
  CHECK(UK_PACK_TYPE_F64 == 0x42);
  CHECK(UK_PACK_TRANSPOSE_INNER == 0x100);
  CHECK(UK_PACK_TRANSPOSE_OUTER == 0x200);
}

static void check_feature_bits(void) {
  CHECK(UK_CPU_DATA_FIELDS == 8);
#define CHECK_BIT(name, bit) CHECK(UK_CPU_##name == (uint64_t)1 << (bit))
  CHECK_BIT(X86_64_SSE3, 0);
  CHECK_BIT(X86_64_SSSE3, 1);
  CHECK_BIT(X86_64_SSE41, 2);
  CHECK_BIT(X86_64_SSE42, 3);
  CHECK_BIT(X86_64_AVX, 10);
  CHECK_BIT(X86_64_FMA, 11);
  CHECK_BIT(X86_64_F16C, 14);
  CHECK_BIT(X86_64_AVX2, 15);
  CHECK_BIT(X86_64_AVX512F, 20);
  CHECK_BIT(X86_64_AVX512CD, 21);
  CHECK_BIT(X86_64_AVX512VL, 22);
  CHECK_BIT(X86_64_AVX512DQ, 23);
  CHECK_BIT(X86_64_AVX512BW, 24);
  CHECK_BIT(X86_64_AVX512IFMA, 25);
  CHECK_BIT(X86_64_AVX512VBMI, 26);
  CHECK_BIT(X86_64_AVX512VNNI, 28);
  CHECK_BIT(X86_64_AVX512VBMI2, 29);
  CHECK_BIT(X86_64_AVX512BITALG, 30);
  CHECK_BIT(X86_64_AVX512BF16, 31);
  CHECK_BIT(X86_64_AVX512FP16, 32);
  CHECK_BIT(X86_64_AMXTILE, 50);
  CHECK_BIT(X86_64_AMXINT8, 51);
  CHECK_BIT(X86_64_AMXBF16, 52);
  CHECK_BIT(FIELD7_X86_64_AVXVNNI, 0);
  CHECK_BIT(FIELD7_X86_64_SLOW_AVX512BF16, 1);
  CHECK_BIT(FIELD7_X86_64_AMX_PERMITTED, 2);
  CHECK_BIT(FIELD7_X86_64_READS_AHEAD, 3);
  CHECK_BIT(FIELD7_X86_64_SMALL_L2, 4);
  CHECK_BIT(ARM_64_FULLFP16, 10);
  CHECK_BIT(ARM_64_FP16FML, 11);
  CHECK_BIT(ARM_64_DOTPROD, 12);
  CHECK_BIT(ARM_64_I8MM, 13);
  CHECK_BIT(ARM_64_BF16, 14);
  CHECK_BIT(ARM_64_SVE, 20);
  CHECK_BIT(ARM_64_SVE2, 21);
  CHECK_BIT(ARM_64_SME, 30);
  CHECK_BIT(ARM_64_SME2, 31);
  CHECK_BIT(RISCV_64_V, 0);
  CHECK_BIT(RISCV_64_ZVFHMIN, 1);
  CHECK_BIT(RISCV_64_ZVFH, 2);
  CHECK_BIT(RISCV_64_ZVFBFWMA, 3);
}

static void check_other_values(void) {
  CHECK(UK_ABI_VERSION == 1);
  CHECK(UK_OP_MMT4D == 1);
  CHECK(UK_OP_PACK == 2);
  CHECK(UK_OP_UNPACK == 3);
  CHECK(UK_NUMERICS_EXACT == 1);
  CHECK(UK_NUMERICS_FMA_CHAIN == 2);
  CHECK(UK_NUMERICS_MUL_ADD_CHAIN == 3);
  CHECK(UK_NUMERICS_ROUND_EACH_STEP == 4);
  CHECK(UK_NUMERICS_F32ACC == 5);
  CHECK(UK_NUMERICS_BF16_DOT == 6);
  CHECK(UK_NUMERICS_BF16_DOT_F32ACC == 7);
  CHECK(UK_ORIGIN_HAND == 1);
  CHECK(UK_ORIGIN_GENERATED == 2);
  CHECK(UK_ORIGIN_GENERIC == 3);
  CHECK(UK_STATUS_OK == 0);
  CHECK(UK_STATUS_BAD_STRUCT_SIZE == 1);
  CHECK(UK_STATUS_BAD_TYPE == 2);
  CHECK(UK_STATUS_BAD_FLAGS == 3);
  CHECK(UK_STATUS_NULL_POINTER == 4);
  CHECK(UK_STATUS_BAD_EXTENT == 5);
  CHECK(UK_STATUS_BAD_TILE_SHAPE == 6);
  CHECK(UK_STATUS_OVERFLOW == 7);
  CHECK(UK_STATUS_SPLIT_BYTE == 8);
  CHECK(UK_STATUS_BAD_STRIDE == 9);
  CHECK(UK_STATUS_OVERLAP == 10);
  CHECK(UK_STATUS_NO_TILE == 11);
  CHECK(UK_STATUS_BAD_ARGUMENT == 12);
  CHECK(UK_STATUS_UNKNOWN_LEVEL == 13);
  CHECK(UK_STATUS_CPU_UNKNOWN == 14);
}

/* The types of functions: another one does not compile. */
typedef struct functions {
  uint32_t (*abi_version)(void);
  const char* (*status_string)(uk_status_t);
  size_t (*tile_count)(void);
  const uk_tile_row_t* (*tile_at)(size_t);
  uk_status_t (*mmt4d)(const uk_mmt4d_params_t*);
  uk_status_t (*mmt4d_info)(const uk_mmt4d_params_t*, const uk_tile_row_t**);
  uk_status_t (*pack)(const uk_pack_params_t*);
  uk_status_t (*unpack)(const uk_unpack_params_t*);
  uk_status_t (*query_tile_sizes)(uint32_t, uk_index_t, uk_index_t, uk_index_t,
                                  const uk_tile_sizes_t*, const uint64_t*, uk_tile_sizes_t*);
  const char* (*isa_level_at)(size_t);
  uk_status_t (*cpu_level)(const char*, uint64_t*, size_t);
  int (*cpu_has_level)(const char*, const uint64_t*);
  uk_status_t (*cpu_detect)(uint64_t*, size_t);
  void (*mmt4d_tile)(void*, const void*, const void*, uk_index_t, uint32_t);
  void (*pack_tile)(void*, const void*, uk_index_t, uk_index_t, uk_index_t);
  void (*unpack_tile)(void*, const void*, uk_index_t, uk_index_t, uk_index_t);
} functions;

static void check_functions(void) {
  const functions f = {uk_abi_version,
                       uk_status_string,
                       uk_tile_count,
                       uk_tile_at,
                       uk_mmt4d,
                       uk_mmt4d_info,
                       uk_pack,
                       uk_unpack,
                       uk_query_tile_sizes,
                       uk_isa_level_at,
                       uk_cpu_level,
                       uk_cpu_has_level,
                       uk_cpu_detect,
                       (uk_mmt4d_tile_fn*)0,
                       (uk_pack_tile_fn*)0,
                       (uk_unpack_tile_fn*)0};
  CHECK(f.abi_version() == 1);
}

/* [1 2 3; 4 5 6] * [7 8; 9 10; 11 12], each step through the library. */
static void check_calls(void) {
  const float lhs[6] = {1, 2, 3, 4, 5, 6};
  const float rhs[6] = {7, 8, 9, 10, 11, 12};
  const float product[4] = {58, 64, 139, 154};
  float lhs_tiles[6], rhs_tiles[6], out_tiles[4], out[4];
  uint64_t cpu_data[UK_CPU_DATA_FIELDS];
  const uk_tile_sizes_t fixed = {2, 2, 1};
  uk_tile_sizes_t sizes;
  const uk_tile_row_t* row = NULL;
  const uint32_t flags = UK_MMT4D_TYPE_F32F32F32 | UK_MMT4D_ALLOW_GENERIC_FALLBACK;
  uk_pack_params_t pack;
  uk_mmt4d_params_t mmt4d;
  uk_unpack_params_t unpack;

  CHECK(uk_abi_version() == UK_ABI_VERSION);
  CHECK(uk_tile_count() > 0 && uk_tile_at(0) != NULL);
  CHECK(uk_cpu_detect(cpu_data, UK_CPU_DATA_FIELDS) == UK_STATUS_OK);
  CHECK(uk_cpu_has_level(uk_isa_level_at(0), cpu_data) == 1);
  CHECK(uk_cpu_level(uk_isa_level_at(0), cpu_data, UK_CPU_DATA_FIELDS) == UK_STATUS_OK);
  CHECK(strcmp(uk_status_string(UK_STATUS_OK), "ok") == 0);
  CHECK(uk_query_tile_sizes(flags, 2, 2, 3, &fixed, cpu_data, &sizes) == UK_STATUS_OK);
  CHECK(sizes.m0 == 2 && sizes.n0 == 2 && sizes.k0 == 1);

  memset(&pack, 0, sizeof(pack));
  pack.struct_size = sizeof(pack);
  pack.in = lhs;
  pack.in_stride0 = 3;
  pack.in_stride1 = 1;
  pack.in_size0 = 2;
  pack.in_size1 = 3;
  pack.out = lhs_tiles;
  pack.out_stride0 = 6;
  pack.out_stride1 = 2;
  pack.out_size0 = 1;
  pack.out_size1 = 3;
  pack.out_size2 = 2;
  pack.out_size3 = 1;
  pack.flags = UK_PACK_TYPE_F32;
  pack.cpu_data = cpu_data;
  CHECK(uk_pack(&pack) == UK_STATUS_OK);
  pack.in = rhs; /* K x N, packed as N x K */
  pack.in_stride0 = 2;
  pack.in_size0 = 3;
  pack.in_size1 = 2;
  pack.out = rhs_tiles;
  pack.flags = UK_PACK_TYPE_F32 | UK_PACK_TRANSPOSE_INNER | UK_PACK_TRANSPOSE_OUTER;
  CHECK(uk_pack(&pack) == UK_STATUS_OK);

  memset(&mmt4d, 0, sizeof(mmt4d));
  mmt4d.struct_size = sizeof(mmt4d);
  mmt4d.lhs = lhs_tiles;
  mmt4d.lhs_stride0 = 6;
  mmt4d.rhs = rhs_tiles;
  mmt4d.rhs_stride0 = 6;
  mmt4d.out = out_tiles;
  mmt4d.out_stride0 = 4;
  mmt4d.m = 1;
  mmt4d.n = 1;
  mmt4d.k = 3;
  mmt4d.m0 = 2;
  mmt4d.n0 = 2;
  mmt4d.k0 = 1;
  mmt4d.flags = flags;
  mmt4d.cpu_data = cpu_data;
  CHECK(uk_mmt4d_info(&mmt4d, &row) == UK_STATUS_OK);
  CHECK(row != NULL && row->op == UK_OP_MMT4D);
  CHECK(uk_mmt4d(&mmt4d) == UK_STATUS_OK);

  memset(&unpack, 0, sizeof(unpack));
  unpack.struct_size = sizeof(unpack);
  unpack.in = out_tiles;
  unpack.in_stride0 = 4;
  unpack.in_stride1 = 4;
  unpack.in_size0 = 1;
  unpack.in_size1 = 1;
  unpack.in_size2 = 2;
  unpack.in_size3 = 2;
  unpack.out = out;
  unpack.out_stride0 = 2;
  unpack.out_stride1 = 1;
  unpack.out_size0 = 2;
  unpack.out_size1 = 2;
  unpack.flags = UK_PACK_TYPE_F32;
  unpack.cpu_data = cpu_data;
  CHECK(uk_unpack(&unpack) == UK_STATUS_OK);
  CHECK(memcmp(out, product, sizeof(product)) == 0);
}

int main(void) {
  check_layouts();
  check_mmt4d_flags();
  check_pack_flags();
  check_feature_bits();
  check_other_values();
  check_functions();
  check_calls();
  if (failures == 0) printf("the ABI is as documented\n");
  return failures == 0 ? 0 : 1;
}
