// The dots of avx512_vnni and the sums of rows, for tiles by hand and generated ones.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_X86_64_AVX512_VNNI_IDIOMS_H_
#define UKERNEL_ARCH_X86_64_AVX512_VNNI_IDIOMS_H_

#include "arch/x86_64/avx512_base/idioms.h"

namespace {

// Dots of columns with a row of four bytes, of VPDPBUSD with one of s8: see UK_ROW_DOT.
UK_ROW_DOT(dpwssd_row, __m512i, "vpdpwssd %2%{1to16%}, %1, %0", 4,
           _mm512_dpwssd_epi32(acc, columns, _mm512_set1_epi32(load_s32(row))))
UK_ROW_DOT(dpbusd_row, __m512i, "vpdpbusd %2%{1to16%}, %1, %0", 4,
           _mm512_dpbusd_epi32(acc, columns, _mm512_set1_epi32(load_s32(row))))

// Flips an s8 in each byte into the u8 that is 128 more; as an unsigned operand it is 128 itself.
UK_INLINE __m512i sign_bits() { return _mm512_set1_epi8(-128); }

// Adds 128 times the sum of each of Rows rows, of four s8 each, to the lane of its number.
template <int Rows>
UK_INLINE __m512i sum_rows(__m512i sums, const char* rows) {
  static_assert(Rows <= 16, "a lane for each row");
  if constexpr (Rows == 16) {
    return _mm512_dpbusd_epi32(sums, sign_bits(), _mm512_loadu_si512(rows));
  } else {
    // The mask keeps the load inside the panel. There is no intrinsic for masking a dot's load: a
    // masked load is one more instruction on the ports of the dots.
    asm("vpdpbusd %2, %1, %0%{%3%}"
        : "+v"(sums)
        : "v"(sign_bits()), "m"(*reinterpret_cast<const char(*)[Rows * 4]>(rows)),
          "Yk"(static_cast<__mmask16>((1u << Rows) - 1)));
    return sums;
  }
}

// The same of all rows of a panel: where a vector holds those of several steps, a vector at a time.
// Lane i of it belongs to row i % Rows, and so it does in the result; of the other lanes nobody
// asks. Four sums are under way at a time, for each takes its next dot after four or five cycles.
template <int Rows>
UK_INLINE __m512i sum_panel(const char* panel, uk_index_t steps) {
  constexpr bool kHoldsSteps = Rows < 16 && 16 % Rows == 0;
  constexpr int kBytes = kHoldsSteps ? 64 : 4 * Rows;
  const __m512i zero = _mm512_setzero_si512();
  __m512i sums[4] = {zero, zero, zero, zero};
  uk_index_t bytes = steps * Rows * 4;
  for (; bytes >= 4 * kBytes; bytes -= 4 * kBytes, panel += 4 * kBytes) {
    UK_UNROLL for (int i = 0; i < 4; ++i) {
      sums[i] = sum_rows<kBytes / 4>(sums[i], panel + i * kBytes);
    }
  }
  // Apart from what follows: GCC would keep them in other registers for it, moving them every turn.
  UK_UNROLL for (int i = 0; i < 4; ++i) sums[i] = in_order(sums[i]);
  for (; bytes > 0; bytes -= kBytes, panel += kBytes) {
    const __mmask64 there = ~UINT64_C(0) >> (bytes < kBytes ? 64 - bytes : 64 - kBytes);
    sums[0] = _mm512_dpbusd_epi32(sums[0], sign_bits(), _mm512_maskz_loadu_epi8(there, panel));
  }
  __m512i sum =
      _mm512_add_epi32(_mm512_add_epi32(sums[0], sums[1]), _mm512_add_epi32(sums[2], sums[3]));
  if constexpr (kHoldsSteps) {
    // The halves, the quarters, and so on, each added to its neighbour.
    if constexpr (Rows <= 8) sum = _mm512_add_epi32(sum, _mm512_shuffle_i32x4(sum, sum, 0x4E));
    if constexpr (Rows <= 4) sum = _mm512_add_epi32(sum, _mm512_shuffle_i32x4(sum, sum, 0xB1));
    if constexpr (Rows <= 2) sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_BADC));
    if constexpr (Rows <= 1) sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_CDAB));
  }
  return sum;
}

}  // namespace

#endif  // UKERNEL_ARCH_X86_64_AVX512_VNNI_IDIOMS_H_
