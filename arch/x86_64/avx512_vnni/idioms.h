// What the s8s8s32 tiles of avx512_vnni share, hand-written and generated.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_X86_64_AVX512_VNNI_IDIOMS_H_
#define UKERNEL_ARCH_X86_64_AVX512_VNNI_IDIOMS_H_

#include "arch/x86_64/avx512_base/idioms.h"

namespace {

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

}  // namespace

#endif  // UKERNEL_ARCH_X86_64_AVX512_VNNI_IDIOMS_H_
