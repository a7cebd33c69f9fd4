// iree_uk_mma_x86_avx512vnni_16x16x2_i32_i8_casti16.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <immintrin.h>

#include "ukernel/iree/iree_ukernel.h"
#include "ukernel/tile.h"

namespace {

constexpr int kSize = 16;             // of a block, in rows and in columns
constexpr int kPanel = 2 * kSize;     // elements of a block's operand for two k
constexpr int kSums = kSize * kSize;  // of a block

// A block's sums are 16 vectors. Vector (r, c) has four rows of four columns, a row a lane:
//
//   lane          0            1            2            3
//   rows          r            r + 4        r + 8        r + 12
//   columns       4c .. 4c+3   4c .. 4c+3   4c .. 4c+3   4c .. 4c+3
using Sums = __m512i[kSize];

// A panel, widened: the pair of k of row (or column) i is dword i. So `Row` of every lane, repeated
// through its lane, has the rows of vectors (Row, c).
template <int kRow>
UK_INLINE void add_rows(Sums& sums, __m512i lhs, const __m512i (&rhs)[4]) {
  const __m512i rows = _mm512_shuffle_epi32(lhs, static_cast<_MM_PERM_ENUM>(0x55 * kRow));
  UK_UNROLL for (int c = 0; c < 4; ++c) {
    sums[4 * kRow + c] = _mm512_dpwssd_epi32(sums[4 * kRow + c], rows, rhs[c]);
  }
}

UK_INLINE __m512i load_panel(const int8_t* panel) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(panel)));
}

UK_INLINE void add_products(Sums& sums, const int8_t* lhs_panel, const int8_t* rhs_panel) {
  const __m512i lhs = load_panel(lhs_panel), rhs = load_panel(rhs_panel);
  // Lane c, with columns 4c .. 4c+3, in all lanes.
  const __m512i columns[4] = {
      _mm512_shuffle_i32x4(rhs, rhs, 0x00), _mm512_shuffle_i32x4(rhs, rhs, 0x55),
      _mm512_shuffle_i32x4(rhs, rhs, 0xAA), _mm512_shuffle_i32x4(rhs, rhs, 0xFF)};
  add_rows<0>(sums, lhs, columns);
  add_rows<1>(sums, lhs, columns);
  add_rows<2>(sums, lhs, columns);
  add_rows<3>(sums, lhs, columns);
}

}  // namespace

extern "C" void iree_uk_mma_x86_avx512vnni_16x16x2_i32_i8_casti16(
    const void* lhs_base, int64_t lhs_offset, const void* rhs_base, int64_t rhs_offset,
    void* acc_base, int64_t acc_offset, int32_t k_outer, int32_t intrinsics_m, int32_t intrinsics_n,
    int32_t intrinsics_k) {
  const int8_t* lhs = static_cast<const int8_t*>(lhs_base) + lhs_offset;
  const int8_t* rhs = static_cast<const int8_t*>(rhs_base) + rhs_offset;
  int32_t* acc = static_cast<int32_t*>(acc_base) + acc_offset;
  const int64_t panels = intrinsics_k;
  // A block fills half of the registers: one block after the other, each through all of K.
  for (int64_t m = 0; m < intrinsics_m; ++m) {
    for (int64_t n = 0; n < intrinsics_n; ++n, acc += kSums) {
      Sums sums;
      UK_UNROLL for (int i = 0; i < kSize; ++i) sums[i] = _mm512_loadu_si512(acc + kSize * i);
      for (int64_t outer = 0; outer < k_outer; ++outer) {
        const int8_t* lhs_panel = lhs + (outer * intrinsics_m + m) * panels * kPanel;
        const int8_t* rhs_panel = rhs + (outer * intrinsics_n + n) * panels * kPanel;
        for (int64_t k = 0; k < panels; ++k) {
          add_products(sums, lhs_panel + k * kPanel, rhs_panel + k * kPanel);
        }
      }
      UK_UNROLL for (int i = 0; i < kSize; ++i) _mm512_storeu_si512(acc + kSize * i, sums[i]);
    }
  }
}
