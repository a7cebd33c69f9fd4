// The parts that AVX2 primitives are put together from: OUT types, operands, roundings.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_X86_64_AVX2_FMA_IDIOMS_H_
#define UKERNEL_ARCH_X86_64_AVX2_FMA_IDIOMS_H_

#include "arch/x86_64/mmt4d_tile.h"
#include "arch/x86_64/partial_vectors.h"

namespace {

// ---------------------------------------------------------------- 16-bit floats

// bf16 is the upper half of an f32. By one instruction from memory, whose load repeats the eight:
//
//   0 1 2 3 4 5 6 7 | 0 1 2 3 4 5 6 7  ->  . 0 . 1 . 2 . 3 | . 4 . 5 . 6 . 7
UK_INLINE __m256 bf16_to_f32(__m128i h) {
  const __m256i upper_halves =
      _mm256_setr_epi8(-1, -1, 0, 1, -1, -1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7,  //
                       -1, -1, 8, 9, -1, -1, 10, 11, -1, -1, 12, 13, -1, -1, 14, 15);
  return _mm256_castsi256_ps(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(h), upper_halves));
}

// Of two bf16 in each lane the upper one as f32. Zero is made anew for each vector, which no port
// has to execute: a mask, or a zero that lives as long as a K loop, would take the register that a
// sixth row needs. Compilers would make such a one of any zero they know.
UK_INLINE __m256i upper_halves(__m256i pairs) {
  __m256i zero;
  asm volatile("vpxor %0, %0, %0" : "=x"(zero));
  return _mm256_blend_epi16(zero, pairs, 0xAA);
}

// The nearest bf16 (ties to even, subnormals kept), still in the upper half of each f32 lane.
// Adding 0x7FFF, or 0x8000 where the last kept bit is odd, carries into the upper half exactly when
// rounding up is due. A NaN stays one: made from bf16 operands, its lower half is zero, and nothing
// carries.
UK_INLINE __m256 round_to_bf16(__m256 f) {
  const __m256i bits = _mm256_castps_si256(f);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i biased = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
  return _mm256_castsi256_ps(
      _mm256_and_si256(biased, _mm256_set1_epi32(static_cast<int>(0xFFFF0000))));
}

// acc + a * b, rounded to odd, where the product is exact: of a sum that is inexact the last bit
// becomes one, after it has moved towards zero if it is too large. The error is what Fast2Sum
// (Dekker) gives of the larger addend; of the smaller one that is zero or has the same sign, as
// roundings are monotonic. By FMAs where the product is an addend: they have other ports than sums.
UK_INLINE __m256 fma_round_to_odd(__m256 acc, __m256 a, __m256 b) {
  const __m256 sum = _mm256_fmadd_ps(a, b, acc), zero = _mm256_setzero_ps();
  const __m256 error = _mm256_or_ps(_mm256_fnmadd_ps(a, b, _mm256_sub_ps(sum, acc)),
                                    _mm256_sub_ps(_mm256_fnmadd_ps(a, b, sum), acc));
  const __m256 outwards = _mm256_xor_ps(error, _mm256_and_ps(sum, _mm256_set1_ps(-0.0f)));
  // Ordered: the NaN that an infinite sum leaves there must not move it.
  const __m256i too_large = _mm256_castps_si256(_mm256_cmp_ps(outwards, zero, _CMP_GT_OQ));
  const __m256i inexact = _mm256_castps_si256(_mm256_cmp_ps(outwards, zero, _CMP_NEQ_OQ));
  const __m256i towards_zero = _mm256_add_epi32(_mm256_castps_si256(sum), too_large);
  return _mm256_castsi256_ps(_mm256_or_si256(towards_zero, _mm256_srli_epi32(inexact, 31)));
}

UK_INLINE __m128i f32_to_bf16(__m256 f) {
  const __m256i upper = _mm256_srli_epi32(_mm256_castps_si256(round_to_bf16(f)), 16);
  // Packing works in 128-bit halves: a a b b, of which the quarters 0 and 2 are wanted.
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(upper, upper), 0x08);
  return _mm256_castsi256_si128(packed);
}

UK_INLINE __m256 f16_to_f32(__m128i h) { return _mm256_cvtph_ps(h); }
UK_INLINE __m128i f32_to_f16(__m256 f) {
  return _mm256_cvtps_ph(f, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

// acc + a * b of values that are f16, rounded once to f16: their product is exact in f32.
UK_INLINE __m256 fma_rounded_to_f16(__m256 acc, __m256 a, __m256 b) {
  return f16_to_f32(f32_to_f16(fma_round_to_odd(acc, a, b)));
}

// ---------------------------------------------------------------- OUT

struct Avx2 {
  static constexpr int kRegisters = 16, kTemporaries = 0;
  static constexpr bool kSumsRows = false, kPairsDots = false, kRoundsDots = false;
  static constexpr bool kSplitsSums = false, kBroadcastsRows = false, kDecodesAhead = false;
};

struct Avx2S32Out : Avx2 {
  using Acc = __m256i;
  static constexpr int kLanes = 8, kOutBytes = 4;
  static UK_INLINE Acc zero() { return _mm256_setzero_si256(); }
  static UK_INLINE Acc load_out(const char* out) { return load_256<32>(out); }
  static UK_INLINE void store_out(char* out, Acc acc) { store_256<32>(out, acc); }
};

struct Avx2F32Acc : Avx2 {
  using Acc = __m256;
  static constexpr int kLanes = 8;
  static UK_INLINE Acc zero() { return _mm256_setzero_ps(); }
};

struct Avx2F32Out : Avx2F32Acc {
  static constexpr int kOutBytes = 4;
  static UK_INLINE Acc load_out(const char* out) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(out));
  }
  static UK_INLINE void store_out(char* out, Acc acc) {
    _mm256_storeu_ps(reinterpret_cast<float*>(out), acc);
  }
};

struct Avx2F16Out : Avx2F32Acc {
  static constexpr int kOutBytes = 2;
  static UK_INLINE Acc load_out(const char* out) { return f16_to_f32(load_128<16>(out)); }
  static UK_INLINE void store_out(char* out, Acc acc) { store_128<16>(out, f32_to_f16(acc)); }
};

struct Avx2Bf16Out : Avx2F32Acc {
  static constexpr int kOutBytes = 2;
  static UK_INLINE Acc load_out(const char* out) { return bf16_to_f32(load_128<16>(out)); }
  static UK_INLINE void store_out(char* out, Acc acc) { store_128<16>(out, f32_to_bf16(acc)); }
};

// ---------------------------------------------------------------- operands

// Operands whose k step has four bytes per row and column: they are used as they lie in memory, the
// LHS broadcast by the load port.
struct Avx2DirectOperands {
  static constexpr bool kStagesLhs = false, kDecodesRhs = false;
  static constexpr int kLhsBytes = 4, kRhsBytes = 4, kRowBytes = 4;
  static UK_INLINE __m256i load_rhs(const char* rhs) { return load_256<32>(rhs); }
  static UK_INLINE __m256i broadcast_lhs(const char* row) {
    return _mm256_set1_epi32(load_s32(row));
  }
};

// Operands of two bytes per row and column, which WidenLhs and WidenRhs make four.
template <class WidenLhs, class WidenRhs = WidenLhs>
struct Avx2WidenedOperands {
  static constexpr bool kStagesLhs = true, kDecodesRhs = true;
  static constexpr int kDecodeTemporaries = 0;
  static constexpr int kLhsBytes = 2, kRhsBytes = 2, kRowBytes = 4, kStageSlack = 32;
  static constexpr int kRowsBesideDots = 8;
  static constexpr int kLeastRowsStagedOnce = 4;  // fewer take RHS panels abreast
  static UK_INLINE __m256i load_rhs(const char* rhs) { return WidenRhs::widen(load_128<16>(rhs)); }
  static UK_INLINE __m256i broadcast_lhs(const char* row) {
    return _mm256_set1_epi32(load_s32(row));
  }
  static UK_INLINE void stage_lhs(char* to, const char* from, int rows) {
    UK_UNROLL_STAGING for (; rows >= 8; rows -= 8, from += 16, to += 32) { stage_vector(to, from); }
    // The rest in pieces that stay inside the panel; each writes a whole vector, the next one over
    // it.
    if (rows & 4) {
      stage(to, load_128<8>(from));
      from += 8, to += 16;
    }
    if (rows & 2) {
      stage(to, load_128<4>(from));
      from += 4, to += 8;
    }
    if (rows & 1) stage(to, load_128<2>(from));
  }
  static UK_INLINE void stage_vector(char* to, const char* from) { stage(to, load_128<16>(from)); }

 private:
  static UK_INLINE void stage(char* to, __m128i rows) { store_256<32>(to, WidenLhs::widen(rows)); }
};

struct Avx2WidenF16 {
  static UK_INLINE __m256i widen(__m128i h) { return _mm256_castps_si256(f16_to_f32(h)); }
};
struct Avx2WidenBf16 {
  static UK_INLINE __m256i widen(__m128i h) { return _mm256_castps_si256(bf16_to_f32(h)); }
};
struct Avx2WidenU8 {
  static UK_INLINE __m256i widen(__m128i b) { return _mm256_cvtepu8_epi16(b); }
};
struct Avx2WidenS8 {
  static UK_INLINE __m256i widen(__m128i b) { return _mm256_cvtepi8_epi16(b); }
};

}  // namespace

#endif  // UKERNEL_ARCH_X86_64_AVX2_FMA_IDIOMS_H_
