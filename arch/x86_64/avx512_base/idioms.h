// The parts that AVX-512 primitives are put together from: OUT types, operands, roundings.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_X86_64_AVX512_BASE_IDIOMS_H_
#define UKERNEL_ARCH_X86_64_AVX512_BASE_IDIOMS_H_

#include "arch/x86_64/mmt4d_tile.h"
#include "arch/x86_64/partial_vectors.h"

namespace {

// ---------------------------------------------------------------- 16-bit floats

// bf16 is the upper half of an f32.
UK_INLINE __m512 bf16_to_f32(__m256i h) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

// The nearest bf16 (ties to even, subnormals kept), still in the upper half of each f32 lane.
// Adding 0x7FFF, or 0x8000 where the last kept bit is odd, carries into the upper half exactly when
// rounding up is due. A NaN stays one: made from bf16 operands, its lower half is zero, and nothing
// carries. Done on integers: VCVTNEPS2BF16 flushes subnormals.
UK_INLINE __m512 round_to_bf16(__m512 f) {
  const __m512i bits = _mm512_castps_si512(f);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i biased = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
  return _mm512_castsi512_ps(
      _mm512_and_si512(biased, _mm512_set1_epi32(static_cast<int>(0xFFFF0000))));
}

UK_INLINE __m256i f32_to_bf16(__m512 f) {
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(round_to_bf16(f)), 16));
}

UK_INLINE __m512 f16_to_f32(__m256i h) { return _mm512_cvtph_ps(h); }
UK_INLINE __m256i f32_to_f16(__m512 f) {
  return _mm512_cvtps_ph(f, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

// acc + a * b of values that are f16, rounded once to f16. The f32 FMA is rounded to odd, so that
// the conversion to f16 is the only rounding to nearest. Of the sums rounded down and up, which are
// equal or neighbours, the one with an odd last bit is the sum rounded to odd.
UK_INLINE __m512 fma_rounded_to_f16(__m512 acc, __m512 a, __m512 b) {
  const __m512 down = _mm512_fmadd_round_ps(a, b, acc, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  const __m512 up = _mm512_fmadd_round_ps(a, b, acc, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
  const __mmask16 down_is_odd =
      _mm512_test_epi32_mask(_mm512_castps_si512(down), _mm512_set1_epi32(1));
  return f16_to_f32(f32_to_f16(_mm512_mask_mov_ps(up, down_is_odd, down)));
}

// ---------------------------------------------------------------- OUT

struct Avx512 {
  static constexpr int kRegisters = 32, kTemporaries = 0;
  static constexpr bool kSumsRows = false, kPairsDots = false, kRoundsDots = false;
  static constexpr bool kSplitsSums = false, kBroadcastsRows = false, kDecodesAhead = true;
};

struct Avx512S32Out : Avx512 {
  using Acc = __m512i;
  static constexpr int kLanes = 16, kOutBytes = 4;
  static UK_INLINE Acc zero() { return _mm512_setzero_si512(); }
  static UK_INLINE Acc load_out(const char* out) { return _mm512_loadu_si512(out); }
  static UK_INLINE void store_out(char* out, Acc acc) { _mm512_storeu_si512(out, acc); }
};

// Of dots that are one instruction.
struct Avx512S32DotOut : Avx512S32Out {
  static UK_INLINE void store_out(char* out, Acc acc) { store_product_512<64>(out, acc); }
};

struct Avx512F32Acc : Avx512 {
  using Acc = __m512;
  static constexpr int kLanes = 16;
  static UK_INLINE Acc zero() { return _mm512_setzero_ps(); }
};

struct Avx512F32Out : Avx512F32Acc {
  static constexpr int kOutBytes = 4;
  static UK_INLINE Acc load_out(const char* out) { return _mm512_loadu_ps(out); }
  static UK_INLINE void store_out(char* out, Acc acc) {
    store_product_512<64>(out, _mm512_castps_si512(acc));
  }
};

struct Avx512F16Out : Avx512F32Acc {
  static constexpr int kOutBytes = 2;
  static UK_INLINE Acc load_out(const char* out) { return f16_to_f32(load_256<32>(out)); }
  static UK_INLINE void store_out(char* out, Acc acc) { store_256<32>(out, f32_to_f16(acc)); }
};

struct Avx512Bf16Out : Avx512F32Acc {
  static constexpr int kOutBytes = 2;
  static UK_INLINE Acc load_out(const char* out) { return bf16_to_f32(load_256<32>(out)); }
  static UK_INLINE void store_out(char* out, Acc acc) { store_256<32>(out, f32_to_bf16(acc)); }
};

// ---------------------------------------------------------------- operands

// Four bytes in every lane, by VPBROADCASTD. For floats Clang would write VBROADCASTSS, from which
// Zen 4 does dots of bf16, or FMAs beside conversions, at three quarters of the speed. Sanitizers,
// which do not see what assembly reads, get the intrinsic.
UK_INLINE __m512i broadcast_beside_floats(const char* p) {
#if defined(__clang__) && !defined(UK_SANITIZED)
  struct Bytes {
    char bytes[4];
  };
  __m512i v;
  asm("vpbroadcastd {%1, %0|%0, %1}" : "=v"(v) : "m"(*reinterpret_cast<const Bytes*>(p)));
  return v;
#else
  return _mm512_set1_epi32(load_s32(p));
#endif
}

// name(acc, columns, row): a dot by an instruction that broadcasts its row of so many bytes itself.
// Of intrinsics GCC 12 makes two. Blocks of one vector have a dot for each row that they load: by
// two instructions for each they take all four that Cascade Lake issues in a cycle, and up to 1.5
// times as long. Sanitizers, which do not see what assembly reads, get the intrinsics.
#ifdef UK_SANITIZED
#define UK_ROW_DOT(name, Vector, assembly, bytes, intrinsics) \
  UK_INLINE Vector name(Vector acc, Vector columns, const char* row) { return intrinsics; }
#else
#define UK_ROW_DOT(name, Vector, assembly, bytes, intrinsics)                                    \
  UK_INLINE Vector name(Vector acc, Vector columns, const char* row) {                           \
    asm(assembly : "+v"(acc) : "v"(columns), "m"(*reinterpret_cast<const char(*)[bytes]>(row))); \
    return acc;                                                                                  \
  }
#endif

UK_ROW_DOT(fmadd_row, __m512, "vfmadd231ps %2%{1to16%}, %1, %0", 4,
           _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_set1_epi32(load_s32(row))), columns, acc))
UK_ROW_DOT(fmadd_row, __m512d, "vfmadd231pd %2%{1to8%}, %1, %0", 8,
           _mm512_fmadd_pd(_mm512_castsi512_pd(_mm512_set1_epi64(load_s64(row))), columns, acc))

// Operands whose k step has four bytes per row and column: they are used as they lie in memory, the
// LHS broadcast by the load port.
struct Avx512DirectOperands {
  static constexpr bool kStagesLhs = false, kDecodesRhs = false;
  static constexpr int kLhsBytes = 4, kRhsBytes = 4, kRowBytes = 4;
  static UK_INLINE __m512i load_rhs(const char* rhs) { return _mm512_loadu_si512(rhs); }
  static UK_INLINE __m512i broadcast_lhs(const char* row) {
    return _mm512_set1_epi32(load_s32(row));
  }
};

// Operands of two bytes per row and column, which WidenLhs and WidenRhs make four.
template <class WidenLhs, class WidenRhs = WidenLhs>
struct Avx512WidenedOperands {
  static constexpr bool kStagesLhs = true, kDecodesRhs = true;
  static constexpr int kDecodeTemporaries = 0;
  static constexpr int kLhsBytes = 2, kRhsBytes = 2, kRowBytes = 4, kStageSlack = 64;
  static constexpr int kRowsBesideDots = 0, kLeastRowsStagedOnce = 0;
  static UK_INLINE __m512i load_rhs(const char* rhs) { return WidenRhs::widen(load_256<32>(rhs)); }
  static UK_INLINE __m512i broadcast_lhs(const char* row) { return broadcast_beside_floats(row); }
  static UK_INLINE void stage_lhs(char* to, const char* from, int rows) {
    UK_UNROLL_STAGING for (; rows >= 16; rows -= 16, from += 32, to += 64) {
      _mm512_store_si512(to, WidenLhs::widen(load_256<32>(from)));
    }
    if (rows > 0) {  // the mask keeps the load inside the panel
      const __mmask16 mask = static_cast<__mmask16>((1u << rows) - 1);
      _mm512_store_si512(to, WidenLhs::widen(_mm256_maskz_loadu_epi16(mask, from)));
    }
  }
};

// Of two bf16 a lane, one as an f32, where there is an f32 that was a bf16: only its upper half is
// written. The mask does what a shift or an AND would take a vector port from dots for.
//
//   v                            l0 h0 | l1 h1 | ...     16 bits each, from the lowest
//   `to` after store_low_halves   0 l0 |  0 l1 | ...
//           store_high_halves     0 h0 |  0 h1 | ...
UK_INLINE void store_low_halves(char* to, __m512i v) {
  _mm512_mask_storeu_epi16(to + 2, 0x55555555, v);
}
UK_INLINE void store_high_halves(char* to, __m512i v) {
  _mm512_mask_storeu_epi16(to, 0xAAAAAAAA, v);
}

struct Avx512WidenF16 {
  static UK_INLINE __m512i widen(__m256i h) { return _mm512_castps_si512(f16_to_f32(h)); }
};
struct Avx512WidenBf16 {
  static UK_INLINE __m512i widen(__m256i h) { return _mm512_castps_si512(bf16_to_f32(h)); }
};
struct Avx512WidenU8 {
  static UK_INLINE __m512i widen(__m256i b) { return _mm512_cvtepu8_epi16(b); }
};
struct Avx512WidenS8 {
  static UK_INLINE __m512i widen(__m256i b) { return _mm512_cvtepi8_epi16(b); }
};

}  // namespace

#endif  // UKERNEL_ARCH_X86_64_AVX512_BASE_IDIOMS_H_
