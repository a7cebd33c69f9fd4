// mmt4d tiles of dotprod. The rows are in tiles.inc.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/arm_64/neon/idioms.h"

namespace {

// SDOT: four products of s8 a lane, added modulo 2^32.
struct S8S8 : RowOf4<S32Columns>, DirectOperands<4> {
  static constexpr int kK0 = 4;
  template <int kLane>
  static UK_INLINE Acc dot(Acc acc, uint8x16_t lhs, uint8x16_t rhs) {
    return vdotq_laneq_s32(acc, vreinterpretq_s8_u8(rhs), vreinterpretq_s8_u8(lhs), kLane);
  }
};

// u8 by s8 on UDOT, which wants both unsigned: flipping the sign bit of the RHS adds 128 to each of
// its elements. The sums of rows that make up for it are taken before the K loop (start_out), which
// is left with one EOR a vector of columns.
struct U8S8 : RowOf4<S32Columns>, DirectOperands<4> {
  static constexpr int kK0 = 4, kTemporaries = 9;  // the flipped columns of a step
  static UK_INLINE uint8x16_t load_rhs(const char* rhs) {
    return veorq_u8(load_128<16>(rhs), vdupq_n_u8(128));
  }
  template <int kLane>
  static UK_INLINE Acc dot(Acc acc, uint8x16_t lhs, uint8x16_t rhs) {
    return vreinterpretq_s32_u32(vdotq_laneq_u32(vreinterpretq_u32_s32(acc), rhs, lhs, kLane));
  }
};

// Subtracts from each result what 128 in every element of the RHS adds to it: 128 times the sum of
// its row. OUT counts as zero if it is not accumulated.
template <int M0, int N0>
UK_INLINE void start_out(char* out, uk_index_t row_bytes, const char* lhs, uk_index_t k1,
                         uint32_t flags) {
  // Four rows at a time; of fewer rows several steps, whose lane i is of row i % M0.
  constexpr int kVectors = M0 < 4 ? 1 : M0 / 4, kSteps = M0 < 4 ? 4 / M0 : 1;
  static_assert(kVectors * 4 == kSteps * M0, "whole vectors");
  const uint8x16_t factor = vdupq_n_u8(128);
  uint32x4_t sums[kVectors];
  UK_UNROLL for (int v = 0; v < kVectors; ++v) sums[v] = vdupq_n_u32(0);
  for (; k1 >= kSteps; k1 -= kSteps, lhs += 16 * kVectors) {
    UK_UNROLL for (int v = 0; v < kVectors; ++v) {
      sums[v] = vdotq_u32(sums[v], load_128<16>(lhs + 16 * v), factor);
    }
  }
  for (; k1 > 0; --k1, lhs += 4 * M0) {
    sums[0] = vdotq_u32(sums[0], load_128 < M0 < 4 ? 4 * M0 : 16 > (lhs), factor);
  }
  uint32_t lanes[4 * kVectors];
  UK_UNROLL for (int v = 0; v < kVectors; ++v) vst1q_u32(lanes + 4 * v, sums[v]);
  for (int row = 0; row < M0; ++row) {
    if (row > 0) out += row_bytes;
    uint32_t sum = 0;
    UK_UNROLL for (int i = 0; i < 4 * kVectors; i += M0) sum -= lanes[row + i];
    const int32x4_t start = vreinterpretq_s32_u32(vdupq_n_u32(sum));
    UK_UNROLL for (int j = 0; j < N0; j += 4) {
      const bool accumulate = flags & UK_MMT4D_ACCUMULATE;
      const int32x4_t before = accumulate ? S32Columns::load(out + 4 * j) : S32Columns::zero();
      S32Columns::store(out + 4 * j, vaddq_s32(before, start));
    }
  }
}

// s8 by s4, eight k a step. The low nibbles of a column's four bytes are its even k and the high
// ones its odd k, so the bytes of a row are sorted alike, and the RHS is not shuffled:
//
//   columns.low, lane j:   rhs[j][0] rhs[j][2] rhs[j][4] rhs[j][6]
//   columns.high, lane j:  rhs[j][1] rhs[j][3] rhs[j][5] rhs[j][7]
//   rows.low, lane i:      lhs[i][0] lhs[i][2] lhs[i][4] lhs[i][6]
//   rows.high, lane i:     lhs[i][1] lhs[i][3] lhs[i][5] lhs[i][7]
struct S8S4 : RowOf4<S32Columns> {
  static constexpr int kK0 = 8, kLhsBytes = 8, kRhsBytes = 4, kGroup = 4, kTemporaries = 9;
  template <int kRows>
  static UK_INLINE TwoVectors<int8x16_t> load_lhs(const char* lhs) {
    const uint8x16_t rows01 = load_128 < kRows == 1 ? 8 : 16 > (lhs);
    uint8x16_t rows23 = rows01;
    if constexpr (kRows > 2) rows23 = load_128<8 * (kRows - 2)>(lhs + 16);
    return whole(TwoVectors<int8x16_t>{vreinterpretq_s8_u8(vuzp1q_u8(rows01, rows23)),
                                       vreinterpretq_s8_u8(vuzp2q_u8(rows01, rows23))});
  }
  static UK_INLINE TwoVectors<int8x16_t> load_rhs(const char* rhs) {
    return s4_to_s8(load_128<16>(rhs));
  }
  template <int kLane>
  static UK_INLINE Acc dot(Acc acc, const TwoVectors<int8x16_t>& lhs,
                           const TwoVectors<int8x16_t>& rhs) {
    return vdotq_laneq_s32(vdotq_laneq_s32(acc, rhs.low, lhs.low, kLane), rhs.high, lhs.high,
                           kLane);
  }
};

// ---------------------------------------------------------------- the body of each type's rows

UK_MMT4D_BODY(s8s8s32, S8S8)
UK_MMT4D_BODY(s8s4s32, S8S4)

template <int M0, int N0, int K0, uk::TileForm kForm>
constexpr uk_decoded_operand_t decoded_u8s8s32 = decoded_operand<U8S8, M0, N0>(kForm);
template <int M0, int N0, int K0>
constexpr uk::Abreast reads_abreast_u8s8s32 = uk::Abreast::kNowhere;  // all panels would be started
template <int M0, int N0, int K0, uk::TileForm kForm>
UK_INLINE void mmt4d_u8s8s32(void* out, const void* lhs, const void* rhs, uk_index_t k1,
                             uint32_t flags, const uk_tile_context_t& context) {
  start_out<M0, N0>(static_cast<char*>(out), context.out_stride * U8S8::kOutBytes,
                    static_cast<const char*>(lhs), k1, flags);
  mmt4d_tile<U8S8, M0, N0, K0, kForm>(out, lhs, rhs, k1, flags | UK_MMT4D_ACCUMULATE, context);
}

}  // namespace

#define UK_MMT4D_TILE UK_DEFINE_MMT4D_TILE
#define UK_PACK_TILE UK_IGNORE_ROW
#define UK_UNPACK_TILE UK_IGNORE_ROW
#include "arch/arm_64/dotprod/tiles.inc"
