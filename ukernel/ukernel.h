/* Microkernels for data-tiled matrix multiplication: the C ABI.
 *
 * Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
 *
 * Layouts, innermost dimension contiguous (sizes of the outer dimensions in tiles):
 *
 *   LHS [M1][K1][M0][K0]    RHS [N1][K1][N0][K0]    OUT [M1][N1][M0][N0]
 *   OUT[i][j][p][q] (+)= sum over k1, k0 of LHS[i][k1][p][k0] * RHS[j][k1][q][k0]
 *
 * The right-hand side is transposed: N0 comes before K0. A panel is one [K1][M0][K0] (or
 * [K1][N0][K0]) slab. Four-bit elements are packed two to a byte, the lower index in the low
 * nibble: s4 in two's complement, so that 0xF is -1, u4 from 0 to 15.
 *
 * Every offset and stride is counted in elements, never in bytes. Every function is re-entrant and
 * keeps no state; none allocates, prints, aborts or changes the floating-point environment beyond
 * its exception flags, but for uk_cpu_detect, which says below what cpuinfo does in it. That
 * environment is taken for the default one wherever floats are computed with, in
 * uk_query_tile_sizes, too; a NaN's sign and payload may be any. The stack of an optimised build
 * grows by at most 48 KiB, in mmt4d by 72 KiB under UNPACK_OUT. On any status but UK_STATUS_OK no
 * output was touched. Where several apply, any one of them is returned.
 */
#ifndef UKERNEL_UKERNEL_H_
#define UKERNEL_UKERNEL_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a declaration below changes in a way that old callers would notice. */
#define UK_ABI_VERSION 1
uint32_t uk_abi_version(void);

typedef int64_t uk_index_t;

/* ---------------------------------------------------------------- status */

typedef enum uk_status_t {
  UK_STATUS_OK = 0,
  UK_STATUS_BAD_STRUCT_SIZE =
      1,                      /* params NULL; struct_size too small, or an unknown tail not zero */
  UK_STATUS_BAD_TYPE = 2,     /* no such element type */
  UK_STATUS_BAD_FLAGS = 3,    /* a flag this op does not know */
  UK_STATUS_NULL_POINTER = 4, /* a null buffer with a non-empty extent, or null for a result */
  UK_STATUS_BAD_EXTENT = 5,   /* a negative extent, or tiles that do not cover the matrix */
  UK_STATUS_BAD_TILE_SHAPE = 6, /* a tile dimension that is zero or negative */
  UK_STATUS_OVERFLOW = 7,       /* extents, strides or offsets reach 2^63 bits, which is 2^60 bytes:
                                   of all panels also where strides have them share memory */
  UK_STATUS_SPLIT_BYTE = 8,     /* four-bit elements that do not start or end on a byte, as of an
                                   odd K0 or tile1 */
  UK_STATUS_BAD_STRIDE = 9,     /* output strides that do not nest: elements could overlap */
  UK_STATUS_OVERLAP = 10,       /* output and input overlap; of a pack or unpack, gaps that its
                                   smaller stride leaves count as occupied */
  UK_STATUS_NO_TILE = 11,       /* no tile function for this type, shape and CPU */
  UK_STATUS_BAD_ARGUMENT = 12,  /* any other argument out of range */
  UK_STATUS_UNKNOWN_LEVEL = 13, /* no ISA level of that name on this architecture */
  UK_STATUS_CPU_UNKNOWN = 14    /* the CPU's features could not be read */
} uk_status_t;

/* One line of English without a trailing period; never NULL, also for values not listed. */
const char* uk_status_string(uk_status_t status);

/* ---------------------------------------------------------------- flags */

/* mmt4d types, named <lhs><rhs><out>: the low byte of the flags. */
#define UK_MMT4D_TYPE_MASK 0xFFu
#define UK_MMT4D_TYPE_F32F32F32 0x01u
#define UK_MMT4D_TYPE_S8S8S32 0x02u
#define UK_MMT4D_TYPE_F16F16F32 0x03u
#define UK_MMT4D_TYPE_F16F16F16 0x04u
#define UK_MMT4D_TYPE_BF16BF16F32 0x05u
#define UK_MMT4D_TYPE_BF16BF16BF16 0x06u
#define UK_MMT4D_TYPE_S16S16S32 0x07u
#define UK_MMT4D_TYPE_S16U4S32 0x08u
#define UK_MMT4D_TYPE_S16S8S32 0x09u
#define UK_MMT4D_TYPE_S8S4S32 0x0Au
#define UK_MMT4D_TYPE_U8S8S32 0x40u
#define UK_MMT4D_TYPE_F64F64F64 0x41u

/* Add to OUT. Without it OUT is write-only: its old contents are never read. */
#define UK_MMT4D_ACCUMULATE 0x100u
/* Permit the scalar path where no tile function serves the shape on this CPU. */
#define UK_MMT4D_ALLOW_GENERIC_FALLBACK 0x200u
/* Permit accumulation in f32 with one rounding at the end; meaningful for 16-bit outputs. */
#define UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS 0x400u
/* For the op only: OUT is not tiles but the matrix that uk_unpack would make of them. Tiles write
 * their rows into it, which takes no memory and no pass over the results. */
#define UK_MMT4D_UNPACK_OUT 0x40000000u
/* For tile functions only; the op decides it and refuses it from callers: the RHS streams from
 * memory, or from an L3 that is slower than tiles, so prefetch ahead of its reads, past the panel's
 * end. The op does not where the core's own prefetchers were measured to be as fast, which they are
 * for few rows on some CPUs. */
#define UK_MMT4D_PREFETCH_RHS 0x80000000u

/* pack and unpack types: only the width matters to the copy. */
#define UK_PACK_TYPE_MASK 0xFFu
#define UK_PACK_TYPE_F32 0x01u
#define UK_PACK_TYPE_I8 0x02u
#define UK_PACK_TYPE_I32 0x03u
#define UK_PACK_TYPE_F16 0x04u
#define UK_PACK_TYPE_BF16 0x05u
#define UK_PACK_TYPE_I16 0x40u
#define UK_PACK_TYPE_I4 0x41u
#define UK_PACK_TYPE_F64 0x42u

#define UK_PACK_TRANSPOSE_INNER 0x100u
#define UK_PACK_TRANSPOSE_OUTER 0x200u

/* ---------------------------------------------------------------- CPU features */

/* CPU data is an array of fields; field 0 holds the architecture's feature bits below, field 7 this
 * library's own. Bits nobody names are ignored. */
#define UK_CPU_DATA_FIELDS 8

#define UK_CPU_X86_64_SSE3 (UINT64_C(1) << 0)
#define UK_CPU_X86_64_SSSE3 (UINT64_C(1) << 1)
#define UK_CPU_X86_64_SSE41 (UINT64_C(1) << 2)
#define UK_CPU_X86_64_SSE42 (UINT64_C(1) << 3)
#define UK_CPU_X86_64_AVX (UINT64_C(1) << 10)
#define UK_CPU_X86_64_FMA (UINT64_C(1) << 11)
#define UK_CPU_X86_64_F16C (UINT64_C(1) << 14)
#define UK_CPU_X86_64_AVX2 (UINT64_C(1) << 15)
#define UK_CPU_X86_64_AVX512F (UINT64_C(1) << 20)
#define UK_CPU_X86_64_AVX512CD (UINT64_C(1) << 21)
#define UK_CPU_X86_64_AVX512VL (UINT64_C(1) << 22)
#define UK_CPU_X86_64_AVX512DQ (UINT64_C(1) << 23)
#define UK_CPU_X86_64_AVX512BW (UINT64_C(1) << 24)
#define UK_CPU_X86_64_AVX512IFMA (UINT64_C(1) << 25)
#define UK_CPU_X86_64_AVX512VBMI (UINT64_C(1) << 26)
#define UK_CPU_X86_64_AVX512VNNI (UINT64_C(1) << 28)
#define UK_CPU_X86_64_AVX512VBMI2 (UINT64_C(1) << 29)
#define UK_CPU_X86_64_AVX512BITALG (UINT64_C(1) << 30)
#define UK_CPU_X86_64_AVX512BF16 (UINT64_C(1) << 31)
#define UK_CPU_X86_64_AVX512FP16 (UINT64_C(1) << 32)
#define UK_CPU_X86_64_AMXTILE (UINT64_C(1) << 50)
#define UK_CPU_X86_64_AMXINT8 (UINT64_C(1) << 51)
#define UK_CPU_X86_64_AMXBF16 (UINT64_C(1) << 52)
/* In field 7. A SLOW bit says that the CPU does the products of a feature faster without it: of
 * tiles of one shape those that need the feature are taken last. Emerald Rapids takes two cycles
 * for a VDPBF16PS of 32 products, in which FMAs do 64 on bf16 that are widened to f32.
 * AMX_PERMITTED says that Linux has given the process the registers of AMX, for which it must ask;
 * without it no tile uses AMX. READS_AHEAD says that the CPU brings what it reads from memory
 * sooner by itself than with prefetches beside it, and in several sequences sooner than in one:
 * with one row, Zen 3 took up to a fifth longer with prefetches, and with one to four rows up to
 * 1.5 times as long on one RHS panel after the other as on three at a time. Nor does such a CPU
 * gain where columns of f16 or bytes are widened once for many rows, nor where a pack to memory
 * writes many rows of tiles in turns. SMALL_L2 says that a core's L2 has less than 1 MiB, or one of
 * Intel's less than 2, for which uk_mmt4d makes blocks of operands smaller and prefetches an RHS
 * that comes from L3, and one from memory that is read once two pages at a time. */
#define UK_CPU_FIELD7_X86_64_AVXVNNI (UINT64_C(1) << 0)
#define UK_CPU_FIELD7_X86_64_SLOW_AVX512BF16 (UINT64_C(1) << 1)
#define UK_CPU_FIELD7_X86_64_AMX_PERMITTED (UINT64_C(1) << 2)
#define UK_CPU_FIELD7_X86_64_READS_AHEAD (UINT64_C(1) << 3)
#define UK_CPU_FIELD7_X86_64_SMALL_L2 (UINT64_C(1) << 4)

#define UK_CPU_ARM_64_FULLFP16 (UINT64_C(1) << 10)
#define UK_CPU_ARM_64_FP16FML (UINT64_C(1) << 11)
#define UK_CPU_ARM_64_DOTPROD (UINT64_C(1) << 12)
#define UK_CPU_ARM_64_I8MM (UINT64_C(1) << 13)
#define UK_CPU_ARM_64_BF16 (UINT64_C(1) << 14)
#define UK_CPU_ARM_64_SVE (UINT64_C(1) << 20)
#define UK_CPU_ARM_64_SVE2 (UINT64_C(1) << 21)
#define UK_CPU_ARM_64_SME (UINT64_C(1) << 30)
#define UK_CPU_ARM_64_SME2 (UINT64_C(1) << 31)

#define UK_CPU_RISCV_64_V (UINT64_C(1) << 0)
#define UK_CPU_RISCV_64_ZVFHMIN (UINT64_C(1) << 1)
#define UK_CPU_RISCV_64_ZVFH (UINT64_C(1) << 2)
#define UK_CPU_RISCV_64_ZVFBFWMA (UINT64_C(1) << 3)

/* ---------------------------------------------------------------- tile functions */

/* The types of the public tile symbols. They check nothing: k1 and count are >= 0. Pointers need no
 * alignment. A tile reads exactly its panels and writes exactly its tile.
 *
 *   extern uk_mmt4d_tile_fn uk_mmt4d_tile_f32f32f32_8x32x1_x86_64_avx512_base;
 *
 * mmt4d: k1 steps of K0; of the flags a tile reads ACCUMULATE and PREFETCH_RHS. Tiles of AMX, and
 * ops that use them, configure its registers and leave them released: what the caller had there is
 * lost. */
typedef void uk_mmt4d_tile_fn(void* out_tile, const void* lhs_panel, const void* rhs_panel,
                              uk_index_t k1, uint32_t flags);

/* pack: `count` whole tiles along the source's dimension 1, whose stride is 1:
 *   out[t * out_stride1 + i * tile1 + j] = in[i * in_stride0 + t * tile1 + j]
 * and with _t, where the source tile is tile1 x tile0:
 *   out[t * out_stride1 + i * tile1 + j] = in[j * in_stride0 + t * tile0 + i]
 * for t < count, i < tile0, j < tile1. */
typedef void uk_pack_tile_fn(void* out, const void* in, uk_index_t count, uk_index_t out_stride1,
                             uk_index_t in_stride0);

/* unpack: the inverse; `count` whole tiles along the destination's dimension 1:
 *   out[i * out_stride0 + t * tile1 + j] = in[t * in_stride1 + i * tile1 + j]
 * and with _t:
 *   out[j * out_stride0 + t * tile0 + i] = in[t * in_stride1 + i * tile1 + j] */
typedef void uk_unpack_tile_fn(void* out, const void* in, uk_index_t count, uk_index_t out_stride0,
                               uk_index_t in_stride1);

/* ---------------------------------------------------------------- the table */

#define UK_OP_MMT4D 1u
#define UK_OP_PACK 2u
#define UK_OP_UNPACK 3u

/* What a row's results are, bit for bit. F32ACC is a MUL_ADD_CHAIN on sse2: as exact for f16, while
 * products of bf16 may leave the range of f32. A step of ROUND_EACH_STEP is a fused multiply-add
 * that is rounded once, to f16, or to f32 and then to bf16. */
#define UK_NUMERICS_EXACT 1u           /* integers modulo 2^32, and copies */
#define UK_NUMERICS_FMA_CHAIN 2u       /* one fused multiply-add per k, in increasing k */
#define UK_NUMERICS_MUL_ADD_CHAIN 3u   /* as above, product and sum rounded separately */
#define UK_NUMERICS_ROUND_EACH_STEP 4u /* 16-bit output, rounded to it at every k */
#define UK_NUMERICS_F32ACC 5u          /* 16-bit output: f32 FMA chain, rounded once; needs SKIP */
#define UK_NUMERICS_BF16_DOT 6u        /* order and subnormals of the hardware's dot product */
#define UK_NUMERICS_BF16_DOT_F32ACC 7u /* as above, rounded once to bf16; needs SKIP */

#define UK_ORIGIN_HAND 1u
#define UK_ORIGIN_GENERATED 2u
#define UK_ORIGIN_GENERIC \
  3u /* scalar; m0 = n0 = k0 = 0 and no function: reached through ops only */

typedef struct uk_tile_sizes_t {
  int32_t m0, n0, k0;
} uk_tile_sizes_t;

typedef struct uk_tile_row_t {
  const char* symbol;
  const char* arch;
  const char* isa;
  uint32_t op;    /* UK_OP_* */
  uint32_t flags; /* type, and the flags the row is for: SKIP, TRANSPOSE_INNER. A pack or unpack row
                     serves every type of its width and carries I4, I8, I16, I32 or F64 */
  int32_t m0, n0, k0;                    /* pack, unpack: tile0, tile1, 0 */
  uint64_t features[UK_CPU_DATA_FIELDS]; /* bits that must be set */
  uint32_t numerics;                     /* UK_NUMERICS_* */
  uint32_t origin;                       /* UK_ORIGIN_* */
  void (*function)(void);                /* cast to the op's tile type */
} uk_tile_row_t;

/* Every tile of this build, in no particular order. uk_tile_at returns NULL past the end. */
size_t uk_tile_count(void);
const uk_tile_row_t* uk_tile_at(size_t index);

/* ---------------------------------------------------------------- ops */

/* struct_size is sizeof the struct as the caller compiled it. A smaller one than this library's
 * reads the missing fields as zero; the smallest is the first version's, which ends with cpu_data.
 * A larger one, up to 4096, is accepted while its tail is zero.
 * cpu_data points to UK_CPU_DATA_FIELDS fields; NULL means the architecture's baseline.
 *
 * The ops' buffers may start at any address, elements need no alignment: only speed depends on it.
 * Offsets and strides of four-bit elements are even, so that what they lead to starts on a byte; a
 * stride of 1 along a row is fine, and one of a dimension of size 1 is not read. */

typedef struct uk_mmt4d_params_t {
  size_t struct_size;
  const void* lhs;
  uk_index_t lhs_offset, lhs_stride0; /* panel i starts at lhs_offset + i * lhs_stride0 */
  const void* rhs;
  uk_index_t rhs_offset, rhs_stride0;
  void* out;
  uk_index_t out_offset, out_stride0; /* row i of tiles starts at out_offset + i * out_stride0 */
  uk_index_t m, n, k;                 /* in tiles: M1, N1, K1 */
  int32_t m0, n0, k0;
  uint32_t flags;
  const uint64_t* cpu_data;
  uk_index_t out_size0, out_size1; /* of OUT under UNPACK_OUT, in elements; else not read */
} uk_mmt4d_params_t;

/* Input strides may be anything (zero re-reads one panel); rows of OUT must not overlap.
 * With k = 0 the operands are not needed and OUT becomes zero, or stays under ACCUMULATE.
 *
 * Under UNPACK_OUT element (r, c) of OUT lies at out_offset + r * out_stride0 + c, and is place
 * (r % M0, c % N0) of tile (r / M0, c / N0), bit for bit. The tiles must cover out_size0 x
 * out_size1 elements; what lies beyond these in the tiles is neither read nor written, and tiles of
 * nothing else are as if they were not there. */
uk_status_t uk_mmt4d(const uk_mmt4d_params_t* params);

/* The row that uk_mmt4d would use for these params; checks all that uk_mmt4d does except the
 * buffers and what they would span, so pointers, offsets and strides may be left zero. */
uk_status_t uk_mmt4d_info(const uk_mmt4d_params_t* params, const uk_tile_row_t** row);

typedef struct uk_pack_params_t {
  size_t struct_size;
  const void* in;
  uk_index_t in_offset, in_stride0, in_stride1, in_size0, in_size1;
  void* out;
  uk_index_t out_offset, out_stride0, out_stride1; /* of outer0 and outer1, as stored */
  uk_index_t out_size0, out_size1, out_size2,
      out_size3;          /* outer0, outer1, tile0, tile1 as stored */
  uint64_t padding_value; /* its low bits, as many as an element has */
  uint32_t flags;
  const uint64_t* cpu_data;
} uk_pack_params_t;

/* Element (r, c) of the source goes to tile (r / R, c / C), place (r % R, c % C), where R x C is
 * the tile as the source sees it: tile0 x tile1, or tile1 x tile0 under TRANSPOSE_INNER. The tile's
 * coordinates are outer0, outer1, swapped under TRANSPOSE_OUTER. Everything else in the out_size0 x
 * out_size1 tiles is padding; whole tiles of padding are legal. The tiles must cover the source.
 * in_size1 of I4 may be odd: the high nibble of each row's last byte is then ignored. */
uk_status_t uk_pack(const uk_pack_params_t* params);

typedef struct uk_unpack_params_t {
  size_t struct_size;
  const void* in;
  uk_index_t in_offset, in_stride0, in_stride1;      /* of outer0 and outer1, as stored */
  uk_index_t in_size0, in_size1, in_size2, in_size3; /* outer0, outer1, tile0, tile1 as stored */
  void* out;
  uk_index_t out_offset, out_stride0, out_stride1, out_size0, out_size1;
  uint32_t flags;
  const uint64_t* cpu_data;
} uk_unpack_params_t;

/* The inverse of pack: writes exactly out_size0 x out_size1 elements, drops the padding.
 * I4 is written in whole bytes: an odd out_size1 (out_size0, where out_stride0 is 1) is
 * UK_STATUS_SPLIT_BYTE, and so are two strides other than 1. */
uk_status_t uk_unpack(const uk_unpack_params_t* params);

/* The tile shape to pack for. m, n, k are the matmul's sizes in elements, <= 0 when unknown.
 * Members of `fixed` that are not zero are already decided (weights that were packed with n0 and
 * k0); fixed may be NULL. Only shapes that uk_mmt4d serves under the same flags and cpu_data are
 * returned, so without ALLOW_GENERIC_FALLBACK the answer can be UK_STATUS_NO_TILE. */
uk_status_t uk_query_tile_sizes(uint32_t mmt4d_flags, uk_index_t m, uk_index_t n, uk_index_t k,
                                const uk_tile_sizes_t* fixed, const uint64_t* cpu_data,
                                uk_tile_sizes_t* sizes);

/* ---------------------------------------------------------------- ISA levels and the host */

/* The levels of the architecture this library was built for, lowest rank first: "sse2", "avx2_fma",
 * "avx512_base", ... NULL past the end. A level is usable when every feature it needs is set. */
const char* uk_isa_level_at(size_t index);

/* The level itself, whatever the host: intersect with uk_cpu_detect before running. `fields` is
 * how many cpu_data holds, at least UK_CPU_DATA_FIELDS; further ones are set to zero. */
uk_status_t uk_cpu_level(const char* isa_name, uint64_t* cpu_data, size_t fields);

/* 1 if cpu_data (NULL: the baseline) has every feature that the level needs, else 0. */
int uk_cpu_has_level(const char* isa_name, const uint64_t* cpu_data);

/* What this machine can run: the CPU has it and the operating system saves its registers. Where the
 * CPU has AMX, asks Linux for its registers, for the whole process and for good: from then on a
 * signal takes some 8 KiB more of stack, and Linux refuses an alternate signal stack without room
 * for that; if there is one already, it refuses AMX, and tiles of other levels are used.
 *
 * In the archive ukernel_cpu. The first call has cpuinfo read what it knows, which it allocates and
 * keeps for the life of the process. Where /proc/cpuinfo cannot be opened cpuinfo prints an error,
 * and the status is UK_STATUS_CPU_UNKNOWN. */
uk_status_t uk_cpu_detect(uint64_t* cpu_data, size_t fields);

#ifdef __cplusplus
}
#endif

#endif /* UKERNEL_UKERNEL_H_ */
