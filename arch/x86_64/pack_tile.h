// The vectors that x86 pack and unpack tiles are made with; their shape is in arch/pack_tile.h.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_X86_64_PACK_TILE_H_
#define UKERNEL_ARCH_X86_64_PACK_TILE_H_

#include "arch/x86_64/intrinsics.h"
#include "ukernel/tile.h"

namespace {

#if defined(__AVX512BW__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

constexpr int kLaneBytes = 16;
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

#if defined(__AVX2__)
// For a lane of kGroups groups of pieces: the first piece of each group, then the second, ...
template <int kGroups, int kPiece>
UK_INLINE __m128i zip_pattern() {
  char from[kLaneBytes];
  UK_UNROLL for (int i = 0; i < kLaneBytes; ++i) {
    const int group = i / kPiece % kGroups, piece = i / kPiece / kGroups;
    from[i] = static_cast<char>(group * (kLaneBytes / kGroups) + piece * kPiece + i % kPiece);
  }
  return load_lane(from);
}
#endif

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
  static UK_INLINE Vector first(Lane lane) { return lane; }
  static UK_INLINE Vector put(Vector v, int, Lane) { return v; }
  template <int kGroups, int kPiece>
  static UK_INLINE Vector collect(Vector v) {
    return v;
  }
  static UK_INLINE Vector repeat(int64_t x) { return _mm_set1_epi64x(x); }
  static UK_INLINE __m128i lane(Vector v, int) { return v; }
};

#if defined(__AVX2__)
template <>
struct Lanes<2> {
  using Vector = __m256i;
  UK_INTERLEAVE(_mm256, si256)
  static UK_INLINE Vector gather(const char* const* in, uk_index_t offset) {
    return put(first(load_lane(in[0] + offset)), 1, load_lane(in[1] + offset));
  }
  static UK_INLINE Vector first(Lane lane) { return _mm256_castsi128_si256(lane); }
  static UK_INLINE Vector put(Vector v, int, Lane lane) {
    return _mm256_inserti128_si256(v, lane, 1);
  }
  template <int kGroups, int kPiece>
  static UK_INLINE Vector collect(Vector v) {
    if constexpr (kPiece == kLaneBytes) return v;
    v = _mm256_permute4x64_epi64(v, 0xD8);  // 0 2 1 3
    if constexpr (kPiece == 8) return v;
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(zip_pattern<2, kPiece>()));
  }
  static UK_INLINE Vector repeat(int64_t x) { return _mm256_set1_epi64x(x); }
  static UK_INLINE __m128i lane(Vector v, int i) {
    return i == 0 ? _mm256_castsi256_si128(v) : _mm256_extracti128_si256(v, 1);
  }
};
#endif

#if defined(__AVX512BW__)
template <>
struct Lanes<4> {
  using Vector = __m512i;
  UK_INTERLEAVE(_mm512, si512)
  static UK_INLINE Vector gather(const char* const* in, uk_index_t offset) {
    Vector v = first(load_lane(in[0] + offset));
    UK_UNROLL for (int i = 1; i < 4; ++i) v = put(v, i, load_lane(in[i] + offset));
    return v;
  }
  static UK_INLINE Vector first(Lane lane) { return _mm512_castsi128_si512(lane); }
  static UK_INLINE Vector put(Vector v, int i, Lane lane) {
    return i == 1   ? _mm512_inserti32x4(v, lane, 1)
           : i == 2 ? _mm512_inserti32x4(v, lane, 2)
                    : _mm512_inserti32x4(v, lane, 3);
  }
  template <int kGroups, int kPiece>
  static UK_INLINE Vector collect(Vector v) {
    if constexpr (kPiece == kLaneBytes) return v;
    if constexpr (kGroups == 2) {
      v = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), v);
    } else if constexpr (kPiece == 8) {
      v = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), v);
    } else {
      v = _mm512_permutexvar_epi32(
          _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), v);
    }
    if constexpr (kPiece >= kLaneBytes / kGroups) return v;
    return _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(zip_pattern<kGroups, kPiece>()));
  }
  static UK_INLINE Vector repeat(int64_t x) { return _mm512_set1_epi64(x); }
  static UK_INLINE __m128i lane(Vector v, int i) {
    return i == 0   ? _mm512_castsi512_si128(v)
           : i == 1 ? _mm512_extracti32x4_epi32(v, 1)
           : i == 2 ? _mm512_extracti32x4_epi32(v, 2)
                    : _mm512_extracti32x4_epi32(v, 3);
  }
  static UK_INLINE __m256i half(Vector v, int i) {
    return i == 0 ? _mm512_castsi512_si256(v) : _mm512_extracti64x4_epi64(v, 1);
  }
};
#endif
#undef UK_INTERLEAVE

}  // namespace

#include "arch/pack_tile.h"

#endif  // UKERNEL_ARCH_X86_64_PACK_TILE_H_
