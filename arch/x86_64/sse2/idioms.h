// 16-bit floats on the x86-64 baseline, which has no instructions for them, and its multiplications
// and additions as one. A vector of halves has four in its lower 64 bits.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_X86_64_SSE2_IDIOMS_H_
#define UKERNEL_ARCH_X86_64_SSE2_IDIOMS_H_

#include "arch/x86_64/mmt4d_tile.h"

namespace {

// Instructions overwrite an operand, and each compiler has its way of writing a sum over the wrong
// one: into the product, so that it must be moved back, or the other operand of the product be
// loaded again. Clang leaves a sum in the accumulator if that is not to be taken apart, GCC only if
// it does not know that sums commute.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__AVX__)
UK_INLINE __m128i add_in_place(__m128i acc, __m128i product) {
  asm("paddd %1, %0" : "+x"(acc) : "x"(product));
  return acc;
}
UK_INLINE __m128 add_in_place(__m128 acc, __m128 product) {
  asm("addps %1, %0" : "+x"(acc) : "x"(product));
  return acc;
}
UK_INLINE __m128d add_in_place(__m128d acc, __m128d product) {
  asm("addpd %1, %0" : "+x"(acc) : "x"(product));
  return acc;
}
#else
UK_INLINE __m128i add_in_place(__m128i acc, __m128i product) {
  return _mm_add_epi32(in_order(acc), product);
}
UK_INLINE __m128 add_in_place(__m128 acc, __m128 product) {
  return _mm_add_ps(in_order(acc), product);
}
UK_INLINE __m128d add_in_place(__m128d acc, __m128d product) {
  return _mm_add_pd(in_order(acc), product);
}
#endif

UK_INLINE __m128i multiply_add(__m128i acc, __m128i a, __m128i b) {
  return add_in_place(acc, _mm_madd_epi16(a, b));
}
UK_INLINE __m128 multiply_add(__m128 acc, __m128 a, __m128 b) {
  return add_in_place(acc, _mm_mul_ps(a, b));
}
UK_INLINE __m128d multiply_add(__m128d acc, __m128d a, __m128d b) {
  return add_in_place(acc, _mm_mul_pd(a, b));
}

// mask ? a : b, for masks of whole lanes.
UK_INLINE __m128i select(__m128i mask, __m128i a, __m128i b) {
  return _mm_or_si128(_mm_and_si128(mask, a), _mm_andnot_si128(mask, b));
}

// The low 16 bits of each lane, in the lower 64 bits. Sign-extended first, so that the packing has
// nothing to saturate.
UK_INLINE __m128i low_halves(__m128i lanes) {
  const __m128i extended = _mm_srai_epi32(_mm_slli_epi32(lanes, 16), 16);
  return _mm_packs_epi32(extended, extended);
}

// bf16 is the upper half of an f32. The zero below it is new each time, which costs no port: one
// for all would hold a register through the K loop. It has an operand so that compilers leave it
// there.
UK_INLINE __m128 bf16_to_f32(__m128i h) {
  __m128i zero;
  asm("pxor %0, %0" : "=&x"(zero) : "x"(h));
  return _mm_castsi128_ps(_mm_unpacklo_epi16(zero, h));
}

// The nearest bf16 (ties to even, subnormals kept), still in the upper half of each f32 lane.
// Adding 0x7FFF, or 0x8000 where the last kept bit is odd, carries into the upper half exactly when
// rounding up is due. A NaN stays one: made from bf16 operands, its lower half is zero, and nothing
// carries.
UK_INLINE __m128 round_to_bf16(__m128 f) {
  const __m128i bits = _mm_castps_si128(f);
  const __m128i odd = _mm_and_si128(_mm_srli_epi32(bits, 16), _mm_set1_epi32(1));
  const __m128i biased = _mm_add_epi32(_mm_add_epi32(bits, _mm_set1_epi32(0x7FFF)), odd);
  return _mm_castsi128_ps(_mm_and_si128(biased, _mm_set1_epi32(static_cast<int>(0xFFFF0000))));
}

UK_INLINE __m128i f32_to_bf16(__m128 f) {
  return low_halves(_mm_srli_epi32(_mm_castps_si128(round_to_bf16(f)), 16));
}

// Moves sign, exponent and mantissa to their places in f32, and makes up for the difference of the
// exponents' biases by a multiplication, which normalises subnormals too:
//
//   h                            seeeeemm mmmmmmmm
//   bits      seeeeemm mmmmmmmm 00000000 00000000
//   shifted   s000eeee emmmmmmm mmm00000 00000000
//
// The zero below h is new each time, as in bf16_to_f32. In order: compilers would take the shifts
// of all columns first.
UK_INLINE __m128 f16_to_f32(__m128i h) {
  const __m128i bits = _mm_castps_si128(bf16_to_f32(h));
  const __m128i shifted =
      _mm_and_si128(_mm_srai_epi32(bits, 3), _mm_set1_epi32(static_cast<int>(0x8FFFFFFF)));
  const __m128 scaled = _mm_mul_ps(_mm_castsi128_ps(shifted), _mm_set1_ps(0x1p112f));
  const __m128i magnitude = _mm_and_si128(bits, _mm_set1_epi32(0x7FFFFFFF));
  const __m128i is_inf_or_nan = _mm_cmpgt_epi32(magnitude, _mm_set1_epi32((0x7C00 << 16) - 1));
  const __m128i exponent = _mm_and_si128(is_inf_or_nan, _mm_set1_epi32(0x7F800000));
  return in_order(_mm_or_ps(scaled, _mm_castsi128_ps(exponent)));
}

// The nearest f16, ties to even.
UK_INLINE __m128i f32_to_f16(__m128 f) {
  const __m128i bits = _mm_castps_si128(f);
  const __m128i magnitude = _mm_and_si128(bits, _mm_set1_epi32(0x7FFFFFFF));
  const __m128i sign = _mm_srli_epi32(_mm_xor_si128(bits, magnitude), 16);
  // Normal: 13 mantissa bits go; the carry of rounding up moves into the exponent, at the top to
  // infinity.
  const __m128i odd = _mm_and_si128(_mm_srli_epi32(magnitude, 13), _mm_set1_epi32(1));
  const __m128i rebiased = _mm_add_epi32(magnitude, _mm_set1_epi32(0xFFF - ((127 - 15) << 23)));
  const __m128i normal = _mm_srli_epi32(_mm_add_epi32(rebiased, odd), 13);
  // Subnormal: the sum with 0.5 has bits of weight 2^-24, f16's smallest, at its end.
  const __m128 half = _mm_set1_ps(0.5f);
  const __m128i subnormal = _mm_sub_epi32(
      _mm_castps_si128(_mm_add_ps(_mm_castsi128_ps(magnitude), half)), _mm_castps_si128(half));
  const __m128i is_nan = _mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x7F800000));
  const __m128i inf_or_nan = select(is_nan, _mm_set1_epi32(0x7E00), _mm_set1_epi32(0x7C00));
  const __m128i is_large = _mm_cmpgt_epi32(magnitude, _mm_set1_epi32(((127 + 16) << 23) - 1));
  const __m128i is_small = _mm_cmpgt_epi32(_mm_set1_epi32((127 - 14) << 23), magnitude);
  const __m128i rounded = select(is_large, inf_or_nan, select(is_small, subnormal, normal));
  return low_halves(_mm_or_si128(rounded, sign));
}

// product + addend, rounded to odd: of a sum that is inexact the last bit becomes one, after it has
// moved towards zero if it is too large. The error is what Fast2Sum (Dekker) gives of the larger
// addend; of the smaller one that is zero or has the same sign, as roundings are monotonic.
UK_INLINE __m128 add_round_to_odd(__m128 product, __m128 addend) {
  const __m128 sum = _mm_add_ps(product, addend), zero = _mm_setzero_ps();
  const __m128 error = _mm_or_ps(_mm_sub_ps(_mm_sub_ps(sum, addend), product),
                                 _mm_sub_ps(_mm_sub_ps(sum, product), addend));
  const __m128 outwards = _mm_xor_ps(error, _mm_and_ps(sum, _mm_set1_ps(-0.0f)));
  // Ordered comparisons: the NaN that an infinite sum leaves there must not move it.
  const __m128i too_large = _mm_castps_si128(_mm_cmplt_ps(zero, outwards));
  const __m128i too_small = _mm_castps_si128(_mm_cmplt_ps(outwards, zero));
  const __m128i last_bit = _mm_srli_epi32(_mm_or_si128(too_large, too_small), 31);
  const __m128i towards_zero = _mm_add_epi32(_mm_castps_si128(sum), too_large);
  return _mm_castsi128_ps(_mm_or_si128(towards_zero, last_bit));
}

// The nearest f16, ties to even, as an f32. With f's exponent e, f + 1.5 * 2^(e+13) ends with the
// bit of weight 2^(e-10), f16's last, and f + 0.75 with that of its subnormals. Of exponents so
// large that their sum overflows into a NaN or a negative number, max takes the other.
UK_INLINE __m128 round_to_f16(__m128 f) {
  const __m128i exponent = _mm_and_si128(_mm_castps_si128(f), _mm_set1_epi32(0x7F800000));
  const __m128i large = _mm_add_epi32(exponent, _mm_set1_epi32((13 << 23) | 0x400000));
  const __m128 addend = _mm_max_ps(_mm_castsi128_ps(large), _mm_set1_ps(0.75f));
  const __m128 rounded = _mm_sub_ps(_mm_add_ps(f, addend), addend);
  // What f16 cannot hold becomes infinite on the way.
  const __m128 limited =
      _mm_mul_ps(_mm_mul_ps(rounded, _mm_set1_ps(0x1p112f)), _mm_set1_ps(0x1p-112f));
  return _mm_or_ps(limited, _mm_and_ps(f, _mm_set1_ps(-0.0f)));  // zeros have lost their sign
}

// acc + a * b of values that are f16, rounded once to f16: their product is exact in f32.
UK_INLINE __m128 fma_rounded_to_f16(__m128 acc, __m128 a, __m128 b) {
  return round_to_f16(add_round_to_odd(_mm_mul_ps(a, b), acc));
}

// acc + a * b in double, rounded to odd there as above, which makes the conversion to f32 the only
// rounding to nearest. Products of f32 are exact in double.
UK_INLINE __m128 fma_two_lanes(__m128 acc, __m128 a, __m128 b) {
  const __m128d product = _mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b)), addend = _mm_cvtps_pd(acc);
  const __m128d sum = _mm_add_pd(product, addend), zero = _mm_setzero_pd();
  const __m128d error = _mm_or_pd(_mm_sub_pd(_mm_sub_pd(sum, addend), product),
                                  _mm_sub_pd(_mm_sub_pd(sum, product), addend));
  const __m128d outwards = _mm_xor_pd(error, _mm_and_pd(sum, _mm_set1_pd(-0.0)));
  const __m128i too_large = _mm_castpd_si128(_mm_cmplt_pd(zero, outwards));
  const __m128i too_small = _mm_castpd_si128(_mm_cmplt_pd(outwards, zero));
  const __m128i last_bit = _mm_srli_epi64(_mm_or_si128(too_large, too_small), 63);
  const __m128i towards_zero = _mm_add_epi64(_mm_castpd_si128(sum), too_large);
  return _mm_cvtpd_ps(_mm_castsi128_pd(_mm_or_si128(towards_zero, last_bit)));
}

// By contract an f32 FMA, then a second rounding to bf16. Mul and add would do for products that
// are normal in f32; those of bf16 can overflow and underflow.
UK_INLINE __m128 fma_rounded_to_bf16(__m128 acc, __m128 a, __m128 b) {
  const __m128 low = fma_two_lanes(acc, a, b);
  const __m128 high =
      fma_two_lanes(_mm_movehl_ps(acc, acc), _mm_movehl_ps(a, a), _mm_movehl_ps(b, b));
  return in_order(round_to_bf16(_mm_movelh_ps(low, high)));
}

}  // namespace

#endif  // UKERNEL_ARCH_X86_64_SSE2_IDIOMS_H_
