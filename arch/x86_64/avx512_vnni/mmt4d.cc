// mmt4d tiles of avx512_vnni. The rows are in tiles.inc.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/x86_64/avx512_vnni/idioms.h"

namespace {

// Of sums modulo 2^32, whose order is free.
template <class Out>
struct SplitSums : Out {
  static constexpr bool kSplitsSums = true;
  static UK_INLINE __m512i add(__m512i a, __m512i b) { return _mm512_add_epi32(a, b); }
};

// VPDPWSSD: two s16 products a lane, added modulo 2^32.
template <class Operands>
struct S16Pairs : SplitSums<Avx512S32DotOut>, Operands {
  static constexpr int kK0 = 2;
  static constexpr bool kBroadcastsRows = true;
  static UK_INLINE Acc dot(Acc acc, __m512i lhs, __m512i rhs) {
    return _mm512_dpwssd_epi32(acc, lhs, rhs);
  }
  static UK_INLINE Acc row_dot(Acc acc, const char* row, __m512i rhs) {
    return dpwssd_row(acc, rhs, row);
  }
};

// VPDPBUSD: four products a lane of u8 by s8, added modulo 2^32. It broadcasts s8 alone, here
// columns.
struct U8S8 : SplitSums<Avx512S32DotOut>, Avx512DirectOperands {
  static constexpr int kK0 = 4;
  static UK_INLINE Acc dot(Acc acc, __m512i lhs, __m512i rhs) {
    return _mm512_dpbusd_epi32(acc, lhs, rhs);
  }
};

// s8 by s8 on VPDPBUSD, which wants one operand unsigned: flipping the sign bit of the RHS adds 128
// to each of its elements, and so 128 times the sum of its row to each result. One more dot a step
// takes these: of the rows as they lie in memory, lane i has row i. Flipping the LHS instead
// would cost a dot a vector of columns, for their sums, and rewriting the rows.
struct S8S8 : SplitSums<Avx512S32Out>, Avx512DirectOperands {
  static constexpr bool kDecodesRhs = true;
  // The sign bits, the sums of rows.
  static constexpr int kK0 = 4, kTemporaries = 2, kDecodeTemporaries = 2;
  static constexpr bool kSumsRows = true, kKnowsSums = false;
  static UK_INLINE __m512i load_rhs(const char* rhs) {
    return _mm512_xor_si512(Avx512DirectOperands::load_rhs(rhs), sign_bits());
  }
  static constexpr bool kBroadcastsRows = true;
  static UK_INLINE Acc dot(Acc acc, __m512i lhs, __m512i rhs) {
    return _mm512_dpbusd_epi32(acc, rhs, lhs);
  }
  static UK_INLINE Acc row_dot(Acc acc, const char* row, __m512i rhs) {
    return dpbusd_row(acc, rhs, row);
  }
  template <int Rows>
  static UK_INLINE Acc sum_rows(Acc sums, const char* rows) {
    return ::sum_rows<Rows>(sums, rows);
  }
  template <int Rows>
  static UK_INLINE Acc sum_panel(const char* panel, uk_index_t k1) {
    return ::sum_panel<Rows>(panel, k1);
  }
  template <int Vectors>
  static UK_INLINE void subtract_sum(Acc (&acc)[Vectors], const char* sum_of_row) {
    const Acc sum = _mm512_set1_epi32(load_s32(sum_of_row));
    UK_UNROLL for (int j = 0; j < Vectors; ++j) acc[j] = _mm512_sub_epi32(acc[j], sum);
  }
};

// s16 by u4, eight k a step. A column is the 32 bits of its lane, k = 0 lowest; masked after a
// shift by 4 * p they leave nibble p in the lower 16 bits and nibble p + 4 in the upper ones, so
// the row's elements are paired alike and the RHS is not shuffled:
//
//   columns.pairs[p], lane j:   rhs[j][p] | rhs[j][p + 4] << 16
//   row.pairs[p], every lane:   lhs[p]    | lhs[p + 4] << 16
struct S16U4 : SplitSums<Avx512S32Out> {
  struct Pairs {
    __m512i pairs[4];
  };
  static constexpr int kK0 = 8, kTemporaries = 10;  // pairs of two vectors of columns and of a row
  static constexpr int kDecodeTemporaries = 0;
  static constexpr bool kStagesLhs = true, kDecodesRhs = true;
  static constexpr int kLhsBytes = 16, kRhsBytes = 4, kRowBytes = 16, kStageSlack = 0;
  static constexpr int kRowsBesideDots = 0, kLeastRowsStagedOnce = 0;

  static UK_INLINE Pairs load_rhs(const char* rhs) {
    const __m512i nibbles = loaded_once(_mm512_loadu_si512(rhs));
    const __m512i mask = _mm512_set1_epi32(0x000F000F);
    return {{_mm512_and_si512(nibbles, mask), _mm512_and_si512(_mm512_srli_epi32(nibbles, 4), mask),
             _mm512_and_si512(_mm512_srli_epi32(nibbles, 8), mask),
             _mm512_and_si512(_mm512_srli_epi32(nibbles, 12), mask)}};
  }
  // k0 k1 k2 k3 k4 k5 k6 k7  ->  k0 k4 k1 k5 k2 k6 k3 k7
  static UK_INLINE void stage_lhs(char* to, const char* from, int rows) {
    const __m128i order = _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
    UK_UNROLL_STAGING for (; rows >= 4; rows -= 4, from += 64, to += 64) {
      _mm512_store_si512(
          to, _mm512_shuffle_epi8(_mm512_loadu_si512(from), _mm512_broadcast_i32x4(order)));
    }
    for (; rows > 0; --rows, from += 16, to += 16) {
      const __m128i k = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      _mm_store_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(k, order));
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

// The nibbles in the order of memory, for rows as they lie: pair p is byte p of the lane. That
// byte, times 256, is put into both halves; of 256 times it, and of 16 times it, the upper 16 bits
// are all of it, and its high nibble.
//
//   columns.pairs[p], lane j:   rhs[j][2 * p] | rhs[j][2 * p + 1] << 16
struct S16U4InOrder : S16U4 {
  static constexpr bool kStagesLhs = false;

  template <int Pair>
  static UK_INLINE __m512i decode_pair(__m512i nibbles) {
    const char a = Pair, b = a + 4, c = a + 8, d = a + 12;
    const __m128i bytes = _mm_setr_epi8(-1, a, -1, a, -1, b, -1, b, -1, c, -1, c, -1, d, -1, d);
    const __m512i halves = _mm512_shuffle_epi8(nibbles, _mm512_broadcast_i32x4(bytes));
    return _mm512_and_si512(_mm512_mulhi_epu16(halves, _mm512_set1_epi32(0x00100100)),
                            _mm512_set1_epi32(0x000F000F));
  }
  static UK_INLINE Pairs load_rhs(const char* rhs) {
    const __m512i nibbles = loaded_once(_mm512_loadu_si512(rhs));
    return {{decode_pair<0>(nibbles), decode_pair<1>(nibbles), decode_pair<2>(nibbles),
             decode_pair<3>(nibbles)}};
  }
};
template <>
struct DecodedOnceBy<S16U4> {
  using Primitive = S16U4InOrder;
};

UK_MMT4D_BODY(s16s16s32, S16Pairs<Avx512DirectOperands>)
UK_MMT4D_BODY(s16u4s32, S16U4)
UK_MMT4D_BODY(u8s8s32, U8S8)

// Of pairs where K0 is not that of VPDPBUSD.
template <int K0>
struct S8S8Of : S16Pairs<Avx512WidenedOperands<Avx512WidenS8>> {};
template <>
struct S8S8Of<S8S8::kK0> : S8S8 {};
UK_MMT4D_BODY(s8s8s32, S8S8Of<K0>)

}  // namespace

#define UK_MMT4D_TILE UK_DEFINE_MMT4D_TILE
#define UK_PACK_TILE UK_IGNORE_ROW
#define UK_UNPACK_TILE UK_IGNORE_ROW
#include "arch/x86_64/avx512_vnni/tiles.inc"
