// Loads and stores of the first Bytes bytes of a vector, touching no byte more; loads fill with
// zero.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_X86_64_PARTIAL_VECTORS_H_
#define UKERNEL_ARCH_X86_64_PARTIAL_VECTORS_H_

#include "arch/x86_64/intrinsics.h"
#include "ukernel/tile.h"

namespace {

// ---------------------------------------------------------------- 16 bytes

template <int Bytes>
UK_INLINE __m128i load_128(const char* p) {
  static_assert(0 < Bytes && Bytes <= 16, "a part of a vector");
  if constexpr (Bytes == 16) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  } else if constexpr (Bytes == 8) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  } else {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    return _mm_maskz_loadu_epi8(static_cast<__mmask16>((1u << Bytes) - 1), p);
#else
    uint64_t low = 0, high = 0;
    __builtin_memcpy(&low, p, Bytes < 8 ? Bytes : 8);
    if constexpr (Bytes <= 8) return _mm_cvtsi64_si128(static_cast<int64_t>(low));
    __builtin_memcpy(&high, p + 8, Bytes < 8 ? 0 : Bytes - 8);
    return _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
#endif
  }
}

template <int Bytes>
UK_INLINE void store_128(char* p, __m128i v) {
  static_assert(0 < Bytes && Bytes <= 16, "a part of a vector");
  if constexpr (Bytes == 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v);
  } else {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    _mm_mask_storeu_epi8(p, static_cast<__mmask16>((1u << Bytes) - 1), v);
#else
    const int64_t low = _mm_cvtsi128_si64(v), high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(v, v));
    __builtin_memcpy(p, &low, Bytes < 8 ? Bytes : 8);
    if constexpr (Bytes > 8) __builtin_memcpy(p + 8, &high, Bytes - 8);
#endif
  }
}

#if defined(__AVX2__)

// ---------------------------------------------------------------- 32 bytes

// All bits set in the first Lanes lanes of 32 bits.
template <int Lanes>
UK_INLINE __m256i first_lanes_256() {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(Lanes), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

template <int Bytes>
UK_INLINE __m256i load_256(const char* p) {
  static_assert(0 < Bytes && Bytes <= 32, "a part of a vector");
  if constexpr (Bytes == 32) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  } else {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    return _mm256_maskz_loadu_epi8(static_cast<__mmask32>((UINT64_C(1) << Bytes) - 1), p);
#else
    if constexpr (Bytes % 4 == 0) {
      return _mm256_maskload_epi32(reinterpret_cast<const int*>(p), first_lanes_256<Bytes / 4>());
    } else if constexpr (Bytes <= 16) {
      return _mm256_zextsi128_si256(load_128<Bytes>(p));
    } else {
      return _mm256_set_m128i(load_128<Bytes - 16>(p + 16), load_128<16>(p));
    }
#endif
  }
}

template <int Bytes>
UK_INLINE void store_256(char* p, __m256i v) {
  static_assert(0 < Bytes && Bytes <= 32, "a part of a vector");
  if constexpr (Bytes == 32) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
  } else {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    _mm256_mask_storeu_epi8(p, static_cast<__mmask32>((UINT64_C(1) << Bytes) - 1), v);
#else
    static_assert(Bytes % 4 == 0, "lanes of 32 bits");
    _mm256_maskstore_epi32(reinterpret_cast<int*>(p), first_lanes_256<Bytes / 4>(), v);
#endif
  }
}

#endif  // __AVX2__

#if defined(__AVX512BW__)

// ---------------------------------------------------------------- 64 bytes

template <int Bytes>
UK_INLINE __m512i load_512(const char* p) {
  static_assert(0 < Bytes && Bytes <= 64, "a part of a vector");
  // A mask would cost an instruction on the vector ports.
  if constexpr (Bytes == 64) {
    return _mm512_loadu_si512(p);
  } else if constexpr (Bytes == 32) {
    return _mm512_zextsi256_si512(load_256<32>(p));
  } else if constexpr (Bytes == 16) {
    return _mm512_zextsi128_si512(load_128<16>(p));
  } else {
    return _mm512_maskz_loadu_epi8(~UINT64_C(0) >> (64 - Bytes), p);
  }
}

template <int Bytes>
UK_INLINE void store_512(char* p, __m512i v) {
  static_assert(0 < Bytes && Bytes <= 64, "a part of a vector");
  if constexpr (Bytes == 64) {
    _mm512_storeu_si512(p, v);
  } else {
    _mm512_mask_storeu_epi8(p, ~UINT64_C(0) >> (64 - Bytes), v);
  }
}

// A sum that a multiplier has just written. Stored as it is, each held the multipliers of Zen 4 up
// for two cycles, 13 % of a tile's time at K = 64; not so if any instruction changed it in between,
// which an OR with itself seems to. In halves they do not wait either, but twice as many stores
// took 13 % of that time on Cascade Lake.
template <int Bytes>
UK_INLINE void store_product_512(char* p, __m512i v) {
  if constexpr (Bytes == 64) asm("vpord %0, %0, %0" : "+v"(v));
  store_512<Bytes>(p, v);
}

#endif  // __AVX512BW__

}  // namespace

#endif  // UKERNEL_ARCH_X86_64_PARTIAL_VECTORS_H_
