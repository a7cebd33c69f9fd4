/* A shared object of scalar tiles for testing the conformance tool: right ones, and one for each
 * mistake that it must name.
 *
 * Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
 */
#include <stdlib.h>

#include "ukernel/ukernel.h"

enum { M0 = 4, N0 = 8, K0 = 2 };

/* What to do wrong. */
enum defect {
  NONE,
  FORGETS_ACCUMULATE,
  ALWAYS_ACCUMULATES,
  LAST_COLUMN,
  LAST_STEP,
  READS_PAST_RHS,
  READS_BEFORE_LHS,
  WRITES_PAST_OUT,
  WRITES_BEFORE_OUT,
  WRITES_LHS,
  SATURATES_PAIR,
  SATURATES_SUM,
  OBEYS_OTHER_FLAGS,
  CALLS_ABORT,
  CALLS_EXIT
};

static int64_t clamp(int64_t v, int64_t low, int64_t high) {
  return v < low ? low : v > high ? high : v;
}

static void multiply(enum defect defect, void* out_tile, const void* lhs_panel,
                     const void* rhs_panel, uk_index_t k1, uint32_t flags) {
  int32_t* out = out_tile;
  const int8_t* lhs = lhs_panel;
  const int8_t* rhs = rhs_panel;
  volatile int8_t touched = 0;
  int accumulate = (flags & UK_MMT4D_ACCUMULATE) != 0;
  if (defect == FORGETS_ACCUMULATE) accumulate = 0;
  if (defect == ALWAYS_ACCUMULATES) accumulate = 1;
  if (defect == OBEYS_OTHER_FLAGS && (flags & UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS)) return;
  if (defect == LAST_STEP && k1 > 1) --k1;
  for (int i = 0; i < M0; ++i) {
    for (int j = 0; j < N0; ++j) {
      uint32_t acc = accumulate ? (uint32_t)out[i * N0 + j] : 0;
      for (uk_index_t k = 0; k < k1; ++k) {
        const int8_t* a = lhs + (k * M0 + i) * K0;
        const int8_t* b = rhs + (k * N0 + j) * K0;
        int64_t pair = a[0] * b[0] + a[1] * b[1];
        if (defect == SATURATES_PAIR) pair = clamp(pair, INT16_MIN, INT16_MAX);
        if (defect == SATURATES_SUM) {
          acc = (uint32_t)clamp((int32_t)acc + pair, INT32_MIN, INT32_MAX);
        } else {
          acc += (uint32_t)pair;
        }
      }
      if (defect == LAST_COLUMN && j == N0 - 1) ++acc;
      out[i * N0 + j] = (int32_t)acc;
    }
  }
  if (defect == READS_PAST_RHS) touched = rhs[k1 * N0 * K0];
  if (defect == READS_BEFORE_LHS) touched = lhs[-1];
  if (defect == WRITES_PAST_OUT) out[M0 * N0] = touched;
  if (defect == WRITES_BEFORE_OUT) out[-1] = touched;
  if (defect == WRITES_LHS && k1 > 0) *(int8_t*)lhs = touched;
  if (defect == CALLS_ABORT && k1 > 1) abort();
  if (defect == CALLS_EXIT && k1 > 1) exit(0);
}

#define MMT4D(name, defect)                                                               \
  uk_mmt4d_tile_fn name;                                                                  \
  void name(void* out, const void* lhs, const void* rhs, uk_index_t k1, uint32_t flags) { \
    multiply(defect, out, lhs, rhs, k1, flags);                                           \
  }
MMT4D(uk_mmt4d_tile_s8s8s32_4x8x2_x86_64_example, NONE)
MMT4D(uk_mmt4d_tile_s8s8s32_4x8x2_x86_64_forgets_accumulate, FORGETS_ACCUMULATE)
MMT4D(uk_mmt4d_tile_s8s8s32_4x8x2_x86_64_always_accumulates, ALWAYS_ACCUMULATES)
MMT4D(uk_mmt4d_tile_s8s8s32_4x8x2_x86_64_last_column, LAST_COLUMN)
MMT4D(uk_mmt4d_tile_s8s8s32_4x8x2_x86_64_last_step, LAST_STEP)
MMT4D(uk_mmt4d_tile_s8s8s32_4x8x2_x86_64_reads_past_rhs, READS_PAST_RHS)
MMT4D(uk_mmt4d_tile_s8s8s32_4x8x2_x86_64_reads_before_lhs, READS_BEFORE_LHS)
MMT4D(uk_mmt4d_tile_s8s8s32_4x8x2_x86_64_writes_past_out, WRITES_PAST_OUT)
MMT4D(uk_mmt4d_tile_s8s8s32_4x8x2_x86_64_writes_before_out, WRITES_BEFORE_OUT)
MMT4D(uk_mmt4d_tile_s8s8s32_4x8x2_x86_64_writes_lhs, WRITES_LHS)
MMT4D(uk_mmt4d_tile_s8s8s32_4x8x2_x86_64_saturates_pair, SATURATES_PAIR)
MMT4D(uk_mmt4d_tile_s8s8s32_4x8x2_x86_64_saturates_sum, SATURATES_SUM)
MMT4D(uk_mmt4d_tile_s8s8s32_4x8x2_x86_64_obeys_other_flags, OBEYS_OTHER_FLAGS)
MMT4D(uk_mmt4d_tile_s8s8s32_4x8x2_x86_64_calls_abort, CALLS_ABORT)
MMT4D(uk_mmt4d_tile_s8s8s32_4x8x2_x86_64_calls_exit, CALLS_EXIT)
MMT4D(example_multiply, NONE)

MMT4D(uk_mmt4d_tile_unknown_4x8x2_x86_64_example, NONE)

/* Product and sum rounded separately: a right answer for one contract, a wrong one for the other.
 */
uk_mmt4d_tile_fn uk_mmt4d_tile_f32f32f32_2x4x1_x86_64_example;
void uk_mmt4d_tile_f32f32f32_2x4x1_x86_64_example(void* out_tile, const void* lhs_panel,
                                                  const void* rhs_panel, uk_index_t k1,
                                                  uint32_t flags) {
  float* out = out_tile;
  const float* lhs = lhs_panel;
  const float* rhs = rhs_panel;
  for (int e = 0; e < 8; ++e) {
    float acc = flags & UK_MMT4D_ACCUMULATE ? out[e] : 0;
    for (uk_index_t k = 0; k < k1; ++k) {
      const float product = lhs[k * 2 + e / 4] * rhs[k * 4 + e % 4];
      acc = acc + product;
    }
    out[e] = acc;
  }
}

/* ---------------------------------------------------------------- pack and unpack */

enum copy_defect { COPIES, LAST_TILE, READS_PAST_IN, FILLS_GAP, IGNORES_STRIDE };

/* 16-bit elements, tiles of 4x3 as stored. */
static void copy(int packs, int transposed, enum copy_defect defect, uint16_t* out,
                 const uint16_t* in, uk_index_t count, uk_index_t packed_stride,
                 uk_index_t matrix_stride) {
  volatile uint16_t touched = 0;
  if (defect == IGNORES_STRIDE) packed_stride = 12;
  for (uk_index_t t = 0; t < count; ++t) {
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 3; ++j) {
        const uk_index_t packed = t * packed_stride + i * 3 + j;
        const uk_index_t matrix =
            transposed ? j * matrix_stride + t * 4 + i : i * matrix_stride + t * 3 + j;
        if (packs) {
          out[packed] = in[matrix];
        } else {
          out[matrix] = in[packed];
        }
      }
    }
    if (defect == FILLS_GAP && packed_stride > 12 && t + 1 < count) out[t * packed_stride + 12] = 0;
  }
  if (defect == LAST_TILE && count > 1) out[(count - 1) * packed_stride + 11] ^= 1;
  if (defect == READS_PAST_IN && count > 0) {
    touched = in[packs ? 3 * matrix_stride + count * 3 : (count - 1) * packed_stride + 12];
  }
  (void)touched;
}

#define PACK(name, transposed, defect)                                           \
  uk_pack_tile_fn name;                                                          \
  void name(void* out, const void* in, uk_index_t count, uk_index_t out_stride1, \
            uk_index_t in_stride0) {                                             \
    copy(1, transposed, defect, out, in, count, out_stride1, in_stride0);        \
  }
#define UNPACK(name, transposed, defect)                                         \
  uk_unpack_tile_fn name;                                                        \
  void name(void* out, const void* in, uk_index_t count, uk_index_t out_stride0, \
            uk_index_t in_stride1) {                                             \
    copy(0, transposed, defect, out, in, count, in_stride1, out_stride0);        \
  }
PACK(uk_pack_tile_x16_4x3_x86_64_example, 0, COPIES)
PACK(uk_pack_tile_x16_4x3_t_x86_64_example, 1, COPIES)
PACK(uk_pack_tile_x16_4x3_x86_64_last_tile, 0, LAST_TILE)
PACK(uk_pack_tile_x16_4x3_x86_64_reads_past_in, 0, READS_PAST_IN)
PACK(uk_pack_tile_x16_4x3_x86_64_fills_gap, 0, FILLS_GAP)
PACK(uk_pack_tile_x16_4x3_x86_64_ignores_stride, 0, IGNORES_STRIDE)
PACK(uk_pack_tile_x16_4x3_x86_64_ignores_order, 1, COPIES)
UNPACK(uk_unpack_tile_x16_4x3_x86_64_example, 0, COPIES)
UNPACK(uk_unpack_tile_x16_4x3_t_x86_64_example, 1, COPIES)
UNPACK(uk_unpack_tile_x16_4x3_x86_64_reads_past_in, 0, READS_PAST_IN)
UNPACK(uk_unpack_tile_x16_4x3_t_x86_64_ignores_order, 0, COPIES)
