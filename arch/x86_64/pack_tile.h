// The vectors that x86 pack and unpack tiles are made with; their shape is in arch/pack_tile.h.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_X86_64_PACK_TILE_H_
#define UKERNEL_ARCH_X86_64_PACK_TILE_H_

#include <immintrin.h>

#include "ukernel/tile.h"

namespace {

#if defined(__AVX512BW__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

using Lane = __m128i;

UK_INLINE __m128i load_lane(const char* in) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
}
UK_INLINE void store_lane(char* out, __m128i lane) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), lane);
}

UK_INLINE Lane load_halves(const char* low, const char* high) {
  const __m128d half = _mm_load_sd(reinterpret_cast<const double*>(low));
  return _mm_castpd_si128(_mm_loadh_pd(half, reinterpret_cast<const double*>(high)));
}
UK_INLINE void store_halves(char* low, char* high, Lane lane) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(low), lane);
  _mm_storeh_pd(reinterpret_cast<double*>(high), _mm_castsi128_pd(lane));
}
UK_INLINE Lane low_bytes(Lane a, Lane b) { return _mm_packus_epi16(a, b); }

template <int kLanes>
struct Lanes;

#define UK_INTERLEAVE(prefix, suffix)                                               \
  template <int kUnit, int kHalf>                                                   \
  static UK_INLINE Vector interleave(Vector a, Vector b) {                          \
    if constexpr (kUnit == 1) {                                                     \
      return kHalf ? prefix##_unpackhi_epi8(a, b) : prefix##_unpacklo_epi8(a, b);   \
    } else if constexpr (kUnit == 2) {                                              \
      return kHalf ? prefix##_unpackhi_epi16(a, b) : prefix##_unpacklo_epi16(a, b); \
    } else if constexpr (kUnit == 4) {                                              \
      return kHalf ? prefix##_unpackhi_epi32(a, b) : prefix##_unpacklo_epi32(a, b); \
    } else {                                                                        \
      return kHalf ? prefix##_unpackhi_epi64(a, b) : prefix##_unpacklo_epi64(a, b); \
    }                                                                               \
  }                                                                                 \
  static UK_INLINE Vector load(const char* in) {                                    \
    return prefix##_loadu_##suffix(reinterpret_cast<const Vector*>(in));            \
  }                                                                                 \
  static UK_INLINE void store(char* out, Vector v) {                                \
    prefix##_storeu_##suffix(reinterpret_cast<Vector*>(out), v);                    \
  }

template <>
struct Lanes<1> {
  using Vector = __m128i;
  UK_INTERLEAVE(_mm, si128)
  static UK_INLINE Vector gather(const char* const* in, uk_index_t offset) {
    return load_lane(in[0] + offset);
  }
  static UK_INLINE Vector repeat(int64_t x) { return _mm_set1_epi64x(x); }
  static UK_INLINE __m128i lane(Vector v, int) { return v; }
  // 8 bytes -> 8 words.
  static UK_INLINE Vector widen(const char* in) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(in));
    return _mm_unpacklo_epi8(bytes, _mm_setzero_si128());
  }
};

#if defined(__AVX2__)
template <>
struct Lanes<2> {
  using Vector = __m256i;
  UK_INTERLEAVE(_mm256, si256)
  static UK_INLINE Vector gather(const char* const* in, uk_index_t offset) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_lane(in[0] + offset)),
                                   load_lane(in[1] + offset), 1);
  }
  static UK_INLINE Vector repeat(int64_t x) { return _mm256_set1_epi64x(x); }
  static UK_INLINE __m128i lane(Vector v, int i) {
    return i == 0 ? _mm256_castsi256_si128(v) : _mm256_extracti128_si256(v, 1);
  }
  static UK_INLINE Vector widen(const char* in) { return _mm256_cvtepu8_epi16(load_lane(in)); }
};
#endif

#if defined(__AVX512BW__)
template <>
struct Lanes<4> {
  using Vector = __m512i;
  UK_INTERLEAVE(_mm512, si512)
  static UK_INLINE Vector gather(const char* const* in, uk_index_t offset) {
    Vector v = _mm512_castsi128_si512(load_lane(in[0] + offset));
    v = _mm512_inserti32x4(v, load_lane(in[1] + offset), 1);
    v = _mm512_inserti32x4(v, load_lane(in[2] + offset), 2);
    return _mm512_inserti32x4(v, load_lane(in[3] + offset), 3);
  }
  static UK_INLINE Vector repeat(int64_t x) { return _mm512_set1_epi64(x); }
  static UK_INLINE __m128i lane(Vector v, int i) {
    return i == 0   ? _mm512_castsi512_si128(v)
           : i == 1 ? _mm512_extracti32x4_epi32(v, 1)
           : i == 2 ? _mm512_extracti32x4_epi32(v, 2)
                    : _mm512_extracti32x4_epi32(v, 3);
  }
  static UK_INLINE Vector widen(const char* in) { return _mm512_cvtepu8_epi16(Lanes<2>::load(in)); }
};
#endif
#undef UK_INTERLEAVE

}  // namespace

#include "arch/pack_tile.h"

#endif  // UKERNEL_ARCH_X86_64_PACK_TILE_H_
