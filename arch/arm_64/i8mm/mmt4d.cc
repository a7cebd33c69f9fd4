// mmt4d tiles of i8mm. The rows are in tiles.inc.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/arm_64/neon/idioms.h"

namespace {

// SMMLA and USMMLA: two rows by two columns of eight products each, added modulo 2^32. The first
// operand, whose numbers are the unsigned ones, is the rows.
struct S8S8 : TwoRowsOf4<S32Columns>, PairOperands {
  static constexpr int kK0 = 8;
  template <int>
  static UK_INLINE Acc dot(const Acc& acc, uint8x16_t lhs, const Columns& rhs) {
    const int8x16_t rows = vreinterpretq_s8_u8(lhs);
    return {vmmlaq_s32(acc.low, rows, vreinterpretq_s8_u8(rhs.low)),
            vmmlaq_s32(acc.high, rows, vreinterpretq_s8_u8(rhs.high))};
  }
};
struct U8S8 : TwoRowsOf4<S32Columns>, PairOperands {
  static constexpr int kK0 = 8;
  template <int>
  static UK_INLINE Acc dot(const Acc& acc, uint8x16_t lhs, const Columns& rhs) {
    return {vusmmlaq_s32(acc.low, lhs, vreinterpretq_s8_u8(rhs.low)),
            vusmmlaq_s32(acc.high, lhs, vreinterpretq_s8_u8(rhs.high))};
  }
};

// SUDOT: four products a lane of the columns' s8 by a row's u8.
struct U8S8Dot : RowOf4<S32Columns>, DirectOperands<4> {
  static constexpr int kK0 = 4;
  template <int kLane>
  static UK_INLINE Acc dot(Acc acc, uint8x16_t lhs, uint8x16_t rhs) {
    return vsudotq_laneq_s32(acc, vreinterpretq_s8_u8(rhs), lhs, kLane);
  }
};

// s8 by s4, sixteen k a step. The low nibbles of a column's eight bytes are its even k and the high
// ones its odd k, so the bytes of a row are sorted alike, and the RHS is not shuffled:
//
//   rows.low:    lhs[0][0] lhs[0][2] ... lhs[0][14] lhs[1][0] lhs[1][2] ... lhs[1][14]
//   rows.high:   lhs[0][1] lhs[0][3] ... lhs[0][15] lhs[1][1] lhs[1][3] ... lhs[1][15]
struct S8S4 : TwoRowsOf4<S32Columns> {
  struct Columns {
    TwoVectors<int8x16_t> columns01, columns23;
  };
  static constexpr int kK0 = 16, kLhsBytes = 16, kRhsBytes = 8, kGroup = 1, kTemporaries = 7;
  template <int kRows>
  static UK_INLINE TwoVectors<int8x16_t> load_lhs(const char* lhs) {
    const uint8x16_t row0 = load_128<16>(lhs);
    const uint8x16_t row1 = kRows == 2 ? load_128<16>(lhs + 16) : row0;
    return whole(TwoVectors<int8x16_t>{vreinterpretq_s8_u8(vuzp1q_u8(row0, row1)),
                                       vreinterpretq_s8_u8(vuzp2q_u8(row0, row1))});
  }
  static UK_INLINE Columns load_rhs(const char* rhs) {
    return {s4_to_s8(load_128<16>(rhs)), s4_to_s8(load_128<16>(rhs + 16))};
  }
  template <int>
  static UK_INLINE Acc dot(const Acc& acc, const TwoVectors<int8x16_t>& lhs, const Columns& rhs) {
    return {
        vmmlaq_s32(vmmlaq_s32(acc.low, lhs.low, rhs.columns01.low), lhs.high, rhs.columns01.high),
        vmmlaq_s32(vmmlaq_s32(acc.high, lhs.low, rhs.columns23.low), lhs.high, rhs.columns23.high)};
  }
};

// ---------------------------------------------------------------- the body of each type's rows

UK_MMT4D_BODY(s8s8s32, S8S8)
UK_MMT4D_BODY(s8s4s32, S8S4)

template <int K0>
struct U8S8Of : U8S8 {};
template <>
struct U8S8Of<U8S8Dot::kK0> : U8S8Dot {};
UK_MMT4D_BODY(u8s8s32, U8S8Of<K0>)

}  // namespace

#define UK_MMT4D_TILE UK_DEFINE_MMT4D_TILE
#define UK_PACK_TILE UK_IGNORE_ROW
#define UK_UNPACK_TILE UK_IGNORE_ROW
#include "arch/arm_64/i8mm/tiles.inc"
