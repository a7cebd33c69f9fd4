// The instructions of AVX512-FP16 that tiles use, for CPUs that lack them.
//
// Included before the source of a tile, it takes the names of the intrinsics. A lane is an integer:
// what the FMA sums is there exactly, and is rounded once.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_TESTS_GENERATOR_EMULATED_F16_H_
#define UKERNEL_TESTS_GENERATOR_EMULATED_F16_H_

#include <immintrin.h>
#include <stdint.h>

namespace emulated_f16 {

__extension__ typedef unsigned __int128 Magnitude;

constexpr uint16_t kSign = 0x8000, kInfinity = 0x7C00, kNan = 0x7E00;

inline bool is_nan(uint16_t f) { return (f & 0x7FFF) > kInfinity; }
inline bool is_infinite(uint16_t f) { return (f & 0x7FFF) == kInfinity; }
inline bool is_zero(uint16_t f) { return (f & 0x7FFF) == 0; }

// Of a finite f16, in units of 2^-24, the least subnormal.
inline uint64_t magnitude(uint16_t f) {
  const unsigned exponent = f >> 10 & 0x1F, fraction = f & 0x3FF;
  return exponent ? uint64_t{fraction | 0x400} << (exponent - 1) : fraction;
}

// The nearest f16, ties to even, of a magnitude in units of 2^-48.
inline uint16_t round(Magnitude sum) {
  const uint64_t high = static_cast<uint64_t>(sum >> 35);  // above the bits of a subnormal
  const unsigned exponent = high ? 65 - static_cast<unsigned>(__builtin_clzll(high)) : 1;
  if (exponent > 30) return kInfinity;
  const unsigned dropped = 24 + exponent - 1;
  unsigned kept = static_cast<unsigned>(sum >> dropped);
  const Magnitude rest = sum - (Magnitude{kept} << dropped), half = Magnitude{1} << (dropped - 1);
  if (rest > half || (rest == half && kept % 2)) ++kept;
  // The leading bit of a normal number adds one to the exponent; so does a carry into the next one.
  return static_cast<uint16_t>(((exponent - 1) << 10) + kept);
}

inline uint16_t multiply_add(uint16_t a, uint16_t b, uint16_t c) {
  const uint16_t product_sign = (a ^ b) & kSign, c_sign = c & kSign;
  if (is_nan(a) || is_nan(b) || is_nan(c)) return kNan;
  if (is_infinite(a) || is_infinite(b)) {
    const bool is_invalid = is_zero(a) || is_zero(b) || (is_infinite(c) && c_sign != product_sign);
    return is_invalid ? kNan : product_sign | kInfinity;
  }
  if (is_infinite(c)) return c;
  if (is_zero(a) || is_zero(b)) return is_zero(c) && c_sign != product_sign ? 0 : c;
  const Magnitude product = Magnitude{magnitude(a)} * magnitude(b);
  const Magnitude addend = Magnitude{magnitude(c)} << 24;
  if (product_sign == c_sign) return c_sign | round(product + addend);
  if (product == addend) return 0;
  return product > addend ? product_sign | round(product - addend)
                          : c_sign | round(addend - product);
}

__attribute__((noinline)) inline __m512i multiply_add_lanes(__m512i a, __m512i b, __m512i c) {
  uint16_t lanes[3][32];
  _mm512_storeu_si512(lanes[0], a);
  _mm512_storeu_si512(lanes[1], b);
  _mm512_storeu_si512(lanes[2], c);
  for (int i = 0; i < 32; ++i) lanes[0][i] = multiply_add(lanes[0][i], lanes[1][i], lanes[2][i]);
  return _mm512_loadu_si512(lanes[0]);
}

}  // namespace emulated_f16

#define _Float16 uint16_t
#define __m512h __m512i
#define _mm512_castph_si512(x) (x)
#define _mm512_castsi512_ph(x) (x)
#define _mm512_fmadd_ph emulated_f16::multiply_add_lanes
#define _mm512_set1_ph(x) _mm512_set1_epi16(static_cast<int16_t>(x))
#define _mm512_setzero_ph _mm512_setzero_si512

#endif  // UKERNEL_TESTS_GENERATOR_EMULATED_F16_H_
