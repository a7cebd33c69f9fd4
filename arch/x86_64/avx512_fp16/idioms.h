// What the f16f16f16 tiles of avx512_fp16 use beside intrinsics.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_X86_64_AVX512_FP16_IDIOMS_H_
#define UKERNEL_ARCH_X86_64_AVX512_FP16_IDIOMS_H_

#include "arch/x86_64/mmt4d_tile.h"
#include "arch/x86_64/partial_vectors.h"

namespace {

// The f16 at p in every lane. As a float: GCC 12 and Clang 14 make an operand of the FMA of it,
// {1to32}, but not of a broadcast integer, which is an instruction on the port of shuffles.
UK_INLINE __m512i broadcast_f16(const char* p) {
  _Float16 f;
  __builtin_memcpy(&f, p, sizeof(f));
  return _mm512_castph_si512(_mm512_set1_ph(f));
}

// Of the lanes of a and then those of b, every second one, from the first or the second on.
UK_INLINE __m512i even_lanes(__m512i a, __m512i b) {
  const __m512i even =
      _mm512_set_epi16(62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40, 38, 36, 34, 32, 30, 28, 26,
                       24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  return _mm512_permutex2var_epi16(a, even, b);
}
UK_INLINE __m512i odd_lanes(__m512i a, __m512i b) {
  const __m512i odd =
      _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27,
                       25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  return _mm512_permutex2var_epi16(a, odd, b);
}

}  // namespace

#endif  // UKERNEL_ARCH_X86_64_AVX512_FP16_IDIOMS_H_
