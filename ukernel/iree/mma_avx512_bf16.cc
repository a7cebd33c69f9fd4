// iree_uk_mma_x86_avx512bf16_1x16x2_f32_bf16.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <immintrin.h>

#include "ukernel/iree/iree_ukernel.h"
#include "ukernel/tile.h"

namespace {

constexpr int kColumns = 16;  // of a block, which is one row
constexpr int kPair = 2;      // elements of an LHS row for two k

// Elements from one to the next, of the three operands.
struct Steps {
  int64_t outer_count, k_count;
  int64_t lhs_outer, lhs_row, rhs_outer, acc_row;
};

// kRows blocks of one column of blocks: independent sums, as a dot waits for the last one into its
// sum.
template <int kRows>
UK_INLINE void add_products(float* acc, const uint16_t* lhs, const uint16_t* rhs, const Steps& s) {
  __m512 sums[kRows];
  UK_UNROLL for (int r = 0; r < kRows; ++r) sums[r] = _mm512_loadu_ps(acc + r * s.acc_row);
  for (int64_t outer = 0; outer < s.outer_count; ++outer) {
    for (int64_t k = 0; k < s.k_count; ++k) {
      const __m512i columns = _mm512_loadu_si512(rhs + k * kColumns * kPair);
      UK_UNROLL for (int r = 0; r < kRows; ++r) {
        int32_t pair;
        __builtin_memcpy(&pair, lhs + r * s.lhs_row + k * kPair, sizeof(pair));
        sums[r] = _mm512_dpbf16_ps(sums[r], (__m512bh)_mm512_set1_epi32(pair), (__m512bh)columns);
      }
    }
    lhs += s.lhs_outer;
    rhs += s.rhs_outer;
  }
  UK_UNROLL for (int r = 0; r < kRows; ++r) _mm512_storeu_ps(acc + r * s.acc_row, sums[r]);
}

}  // namespace

extern "C" void iree_uk_mma_x86_avx512bf16_1x16x2_f32_bf16(
    const uint16_t* lhs_base, int64_t lhs_offset, const uint16_t* rhs_base, int64_t rhs_offset,
    float* acc_base, int64_t acc_offset, int32_t k_outer, int32_t intrinsics_m,
    int32_t intrinsics_n, int32_t intrinsics_k) {
  constexpr int kRows = 8;
  Steps s;
  s.outer_count = k_outer;
  s.k_count = intrinsics_k;
  s.lhs_row = s.k_count * kPair;
  s.lhs_outer = intrinsics_m * s.lhs_row;
  s.rhs_outer = intrinsics_n * s.k_count * kColumns * kPair;
  s.acc_row = int64_t{intrinsics_n} * kColumns;
  for (int64_t n = 0; n < intrinsics_n; ++n) {
    const uint16_t* rhs = rhs_base + rhs_offset + n * s.k_count * kColumns * kPair;
    const uint16_t* lhs = lhs_base + lhs_offset;
    float* acc = acc_base + acc_offset + n * kColumns;
    int64_t rows = intrinsics_m;
    for (; rows >= kRows; rows -= kRows) {
      add_products<kRows>(acc, lhs, rhs, s);
      lhs += kRows * s.lhs_row;
      acc += kRows * s.acc_row;
    }
    for (; rows > 0; --rows) {
      add_products<1>(acc, lhs, rhs, s);
      lhs += s.lhs_row;
      acc += s.acc_row;
    }
  }
}
