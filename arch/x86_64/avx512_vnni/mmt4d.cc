// mmt4d tiles of avx512_vnni. The rows are in tiles.inc.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/x86_64/avx512_base/idioms.h"

namespace {

// VPDPWSSD: two s16 products a lane, added modulo 2^32.
template <class Operands>
struct S16Pairs : Avx512S32Out, Operands {
  static constexpr int kK0 = 2;
  static UK_INLINE Acc dot(Acc acc, __m512i lhs, __m512i rhs) {
    return _mm512_dpwssd_epi32(acc, lhs, rhs);
  }
};

// VPDPBUSD: four products a lane of u8 by s8, added modulo 2^32.
struct U8S8 : Avx512S32Out, Avx512DirectOperands {
  static constexpr int kK0 = 4;
  static UK_INLINE Acc dot(Acc acc, __m512i lhs, __m512i rhs) {
    return _mm512_dpbusd_epi32(acc, lhs, rhs);
  }
};

// s8 by s8 on VPDPBUSD, which wants one operand unsigned: flipping the sign bit of the RHS adds 128
// to each of its elements. The sums of rows that make up for it are taken before the K loop
// (start_out), which is left with one XOR a vector of columns. Flipping the LHS instead would cost
// it a dot a vector, for the sums of columns, and rewriting the rows.
struct S8S8 : Avx512S32Out, Avx512DirectOperands {
  static constexpr int kK0 = 4, kTemporaries = 1;  // the sign bits
  static UK_INLINE __m512i load_rhs(const char* rhs) {
    return _mm512_xor_si512(Avx512DirectOperands::load_rhs(rhs), _mm512_set1_epi8(-128));
  }
  static UK_INLINE Acc dot(Acc acc, __m512i lhs, __m512i rhs) {
    return _mm512_dpbusd_epi32(acc, rhs, lhs);
  }
};

// Subtracts from each result what 128 in every element of the RHS adds to it: 128 times the sum of
// its row. OUT counts as zero if it is not accumulated.
template <int M0, int N0>
UK_INLINE void start_out(char* out, const char* lhs, uk_index_t k1, uint32_t flags) {
  // So many steps at a time that they fill whole vectors: lane i of these is always of row i % M0.
  constexpr int kPowerOfTwo = M0 & -M0, kPeriodSteps = kPowerOfTwo < 16 ? 16 / kPowerOfTwo : 1;
  constexpr int kPeriod = kPeriodSteps * M0 / 16;
  // Several sums for each lane, as a dot waits for the last one into its accumulator.
  constexpr int kPeriods = kPeriod < 2 ? 8 : kPeriod < 4 ? 4 : kPeriod < 8 ? 2 : 1;
  constexpr int kSteps = kPeriods * kPeriodSteps, kVectors = kPeriods * kPeriod;
  const __m512i factor = _mm512_set1_epi8(-128);  // unsigned to the dot: 128
  __m512i sums[kVectors];
  UK_UNROLL for (int v = 0; v < kVectors; ++v) sums[v] = _mm512_setzero_si512();
  for (; k1 >= kSteps; k1 -= kSteps) {
    UK_UNROLL for (int v = 0; v < kVectors; ++v) {
      sums[v] = _mm512_dpbusd_epi32(sums[v], factor, _mm512_loadu_si512(lhs + 64 * v));
    }
    lhs += 64 * kVectors;
  }
  const int lanes_left = static_cast<int>(k1) * M0;
  UK_UNROLL for (int v = 0; v < kVectors; ++v) {
    const int lanes = lanes_left - 16 * v;
    const uint32_t mask = lanes < 0 ? 0 : lanes < 16 ? (1u << lanes) - 1 : 0xFFFF;
    const char* from = lanes > 0 ? lhs + 64 * v : lhs;
    const __m512i rows = _mm512_maskz_loadu_epi32(static_cast<__mmask16>(mask), from);
    // in_order: else the loop keeps its sums elsewhere, and moves them every step.
    sums[v] = _mm512_dpbusd_epi32(in_order(sums[v]), factor, rows);
  }
  alignas(64) uint32_t lanes[16 * kPeriod];
  UK_UNROLL for (int v = 0; v < kPeriod; ++v) {
    UK_UNROLL for (int w = v + kPeriod; w < kVectors; w += kPeriod) {
      sums[v] = _mm512_add_epi32(sums[v], sums[w]);
    }
    _mm512_store_si512(lanes + 16 * v, sums[v]);
  }
  for (int row = 0; row < M0; ++row) {
    uint32_t sum = 0;
    UK_UNROLL for (int i = 0; i < 16 * kPeriod; i += M0) sum -= lanes[row + i];
    const __m512i start = _mm512_set1_epi32(static_cast<int>(sum));
    UK_UNROLL for (int j = 0; j < N0; j += 16, out += 64) {
      const bool accumulate = flags & UK_MMT4D_ACCUMULATE;
      const __m512i before = accumulate ? _mm512_loadu_si512(out) : _mm512_setzero_si512();
      _mm512_storeu_si512(out, _mm512_add_epi32(before, start));
    }
  }
}

// s16 by u4, eight k a step. A column is the 32 bits of its lane, k = 0 lowest; masked after a
// shift by 4 * p they leave nibble p in the lower 16 bits and nibble p + 4 in the upper ones, so
// the row's elements are paired alike and the RHS is not shuffled:
//
//   columns.pairs[p], lane j:   rhs[j][p] | rhs[j][p + 4] << 16
//   row.pairs[p], every lane:   lhs[p]    | lhs[p + 4] << 16
struct S16U4 : Avx512S32Out {
  struct Pairs {
    __m512i pairs[4];
  };
  static constexpr int kK0 = 8, kTemporaries = 10;  // pairs of two vectors of columns and of a row
  static constexpr bool kStagesLhs = true;
  static constexpr int kLhsBytes = 16, kRhsBytes = 4, kRowBytes = 16, kStageSlack = 0;

  static UK_INLINE Pairs load_rhs(const char* rhs) {
    const __m512i nibbles = _mm512_loadu_si512(rhs), mask = _mm512_set1_epi32(0x000F000F);
    return {{_mm512_and_si512(nibbles, mask), _mm512_and_si512(_mm512_srli_epi32(nibbles, 4), mask),
             _mm512_and_si512(_mm512_srli_epi32(nibbles, 8), mask),
             _mm512_and_si512(_mm512_srli_epi32(nibbles, 12), mask)}};
  }
  // k0 k1 k2 k3 k4 k5 k6 k7  ->  k0 k4 k1 k5 k2 k6 k3 k7
  static UK_INLINE void stage_lhs(char* to, const char* from, int rows) {
    for (; rows > 0; --rows, from += 16, to += 16) {
      const __m128i k = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      _mm_store_si128(reinterpret_cast<__m128i*>(to), _mm_unpacklo_epi16(k, _mm_srli_si128(k, 8)));
    }
  }
  static UK_INLINE Pairs broadcast_lhs(const char* row) {
    return {{_mm512_set1_epi32(load_s32(row)), _mm512_set1_epi32(load_s32(row + 4)),
             _mm512_set1_epi32(load_s32(row + 8)), _mm512_set1_epi32(load_s32(row + 12))}};
  }
  static UK_INLINE Acc dot(Acc acc, const Pairs& row, const Pairs& columns) {
    UK_UNROLL for (int p = 0; p < 4; ++p) {
      acc = _mm512_dpwssd_epi32(acc, row.pairs[p], columns.pairs[p]);
    }
    return acc;
  }
};

UK_MMT4D_BODY(s16s16s32, S16Pairs<Avx512DirectOperands>)
UK_MMT4D_BODY(s16u4s32, S16U4)
UK_MMT4D_BODY(u8s8s32, U8S8)

template <int M0, int N0, int K0>
UK_INLINE void mmt4d_s8s8s32(void* out, const void* lhs, const void* rhs, uk_index_t k1,
                             uint32_t flags) {
  if constexpr (K0 == 4) {
    start_out<M0, N0>(static_cast<char*>(out), static_cast<const char*>(lhs), k1, flags);
    mmt4d_tile<S8S8, M0, N0, K0>(out, lhs, rhs, k1, flags | UK_MMT4D_ACCUMULATE);
  } else {
    mmt4d_tile<S16Pairs<Avx512WidenedOperands<Avx512WidenS8>>, M0, N0, K0>(out, lhs, rhs, k1,
                                                                           flags);
  }
}

}  // namespace

#define UK_MMT4D_TILE UK_DEFINE_MMT4D_TILE
#define UK_PACK_TILE UK_IGNORE_ROW
#define UK_UNPACK_TILE UK_IGNORE_ROW
#include "arch/x86_64/avx512_vnni/tiles.inc"
