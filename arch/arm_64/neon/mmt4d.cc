// mmt4d tiles of neon. The rows are in tiles.inc.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/arm_64/neon/idioms.h"

namespace {

struct F32 : RowOf4<F32Columns>, DirectOperands<4> {
  static constexpr int kK0 = 1;
  template <int kLane>
  static UK_INLINE Acc dot(Acc acc, uint8x16_t lhs, uint8x16_t rhs) {
    return vfmaq_laneq_f32(acc, vreinterpretq_f32_u8(rhs), vreinterpretq_f32_u8(lhs), kLane);
  }
};

struct F64Columns {
  using Vector = float64x2_t;
  static constexpr int kBytes = 8;
  static UK_INLINE Vector zero() { return vdupq_n_f64(0); }
  static UK_INLINE Vector load(const char* p) { return vreinterpretq_f64_u8(load_128<16>(p)); }
  static UK_INLINE void store(char* p, Vector v) { store_128<16>(p, vreinterpretq_u8_f64(v)); }
};

struct F64 : RowOf4<F64Columns>, DirectOperands<8> {
  static constexpr int kK0 = 1, kLanes = 2;
  template <int kLane>
  static UK_INLINE Acc dot(Acc acc, uint8x16_t lhs, uint8x16_t rhs) {
    return vfmaq_laneq_f64(acc, vreinterpretq_f64_u8(rhs), vreinterpretq_f64_u8(lhs), kLane);
  }
};

// 16-bit operands, accumulated in f32.
template <class Columns, class Widen>
struct F32OfHalves : RowOf8<Columns>, WidenedFloats<Widen> {
  static constexpr int kK0 = 1;
  template <int kLane>
  static UK_INLINE F32x8 dot(const F32x8& acc, const F32x8& lhs, const F32x8& rhs) {
    const float32x4_t rows = WidenedFloats<Widen>::template half<kLane>(lhs);
    return {vfmaq_laneq_f32(acc.low, rhs.low, rows, kLane % 4),
            vfmaq_laneq_f32(acc.high, rhs.high, rows, kLane % 4)};
  }
};

struct F16Rounded : RowOf8<F16Columns>, WidenedFloats<WidenF16> {
  static constexpr int kK0 = 1, kTemporaries = 20;
  template <int kLane>
  static UK_INLINE Acc dot(const Acc& acc, const F32x8& lhs, const F32x8& rhs) {
    return {fma_rounded_to_f16<kLane % 4>(acc.low, rhs.low, half<kLane>(lhs)),
            fma_rounded_to_f16<kLane % 4>(acc.high, rhs.high, half<kLane>(lhs))};
  }
};

struct Bf16Rounded : RowOf8<Bf16Columns>, WidenedFloats<WidenBf16> {
  static constexpr int kK0 = 1, kTemporaries = 20;
  template <int kLane>
  static UK_INLINE Acc dot(const Acc& acc, const F32x8& lhs, const F32x8& rhs) {
    return {fma_rounded_to_bf16<kLane % 4>(acc.low, rhs.low, half<kLane>(lhs)),
            fma_rounded_to_bf16<kLane % 4>(acc.high, rhs.high, half<kLane>(lhs))};
  }
};

// Products of s16, whatever the operands are in memory.
template <class Lhs, class Rhs>
struct S16Products : RowOf8<S32Columns> {
  static constexpr int kK0 = 1, kLhsBytes = Lhs::kBytes, kRhsBytes = Rhs::kBytes, kGroup = 8;
  template <int kRows>
  static UK_INLINE int16x8_t load_lhs(const char* lhs) {
    return whole(Lhs::template load<kRows>(lhs));
  }
  static UK_INLINE int16x8_t load_rhs(const char* rhs) { return Rhs::template load<8>(rhs); }
  template <int kLane>
  static UK_INLINE Acc dot(const Acc& acc, int16x8_t lhs, int16x8_t rhs) {
    return multiply_add<kLane>(acc, rhs, lhs);
  }
};

// A byte of the RHS is two k of one column, and so are two neighbouring lanes of a row's:
//
//   k0, lane j:   the low nibble of column j     lanes 2i, 2i + 1:   lhs[i][k0], lhs[i][k1]
//   k1, lane j:   the high nibble of column j
template <class Lhs, class Nibbles>
struct NibblePairs : RowOf8<S32Columns> {
  struct Columns {
    int16x8_t k0, k1;
  };
  static constexpr int kK0 = 2, kLhsBytes = 2 * Lhs::kBytes, kRhsBytes = 1, kGroup = 4;
  static constexpr int kTemporaries = 2;
  template <int kRows>
  static UK_INLINE int16x8_t load_lhs(const char* lhs) {
    return whole(Lhs::template load<2 * kRows>(lhs));
  }
  static UK_INLINE Columns load_rhs(const char* rhs) {
    const uint8x8_t pairs = load_64<8>(rhs);
    return {Nibbles::low(pairs), Nibbles::high(pairs)};
  }
  template <int kLane>
  static UK_INLINE Acc dot(const Acc& acc, int16x8_t lhs, const Columns& rhs) {
    return multiply_add<2 * kLane + 1>(multiply_add<2 * kLane>(acc, rhs.k0, lhs), rhs.k1, lhs);
  }
};

struct S4 {
  static UK_INLINE int16x8_t low(uint8x8_t pairs) {
    return vmovl_s8(vshr_n_s8(vreinterpret_s8_u8(vshl_n_u8(pairs, 4)), 4));
  }
  static UK_INLINE int16x8_t high(uint8x8_t pairs) {
    return vshrq_n_s16(vmovl_s8(vreinterpret_s8_u8(pairs)), 4);
  }
};
struct U4 {
  static UK_INLINE int16x8_t low(uint8x8_t pairs) {
    return vreinterpretq_s16_u16(vmovl_u8(vand_u8(pairs, vdup_n_u8(15))));
  }
  static UK_INLINE int16x8_t high(uint8x8_t pairs) {
    return vreinterpretq_s16_u16(vmovl_u8(vshr_n_u8(pairs, 4)));
  }
};

// ---------------------------------------------------------------- the body of each type's rows

UK_MMT4D_BODY(f32f32f32, F32)
UK_MMT4D_BODY(f64f64f64, F64)
UK_MMT4D_BODY(f16f16f32, F32OfHalves<F32Columns, WidenF16>)
UK_MMT4D_BODY(f16f16f16, F16Rounded)
UK_MMT4D_BODY(f16f16f16_f32acc, F32OfHalves<F16Columns, WidenF16>)
UK_MMT4D_BODY(bf16bf16f32, F32OfHalves<F32Columns, WidenBf16>)
UK_MMT4D_BODY(bf16bf16bf16, Bf16Rounded)
UK_MMT4D_BODY(bf16bf16bf16_f32acc, F32OfHalves<Bf16Columns, WidenBf16>)
UK_MMT4D_BODY(s8s8s32, S16Products<FromS8, FromS8>)
UK_MMT4D_BODY(u8s8s32, S16Products<FromU8, FromS8>)
UK_MMT4D_BODY(s16s16s32, S16Products<FromS16, FromS16>)
UK_MMT4D_BODY(s16s8s32, S16Products<FromS16, FromS8>)
UK_MMT4D_BODY(s16u4s32, NibblePairs<FromS16, U4>)
UK_MMT4D_BODY(s8s4s32, NibblePairs<FromS8, S4>)

}  // namespace

#define UK_MMT4D_TILE UK_DEFINE_MMT4D_TILE
#define UK_PACK_TILE UK_IGNORE_ROW
#define UK_UNPACK_TILE UK_IGNORE_ROW
#include "arch/arm_64/neon/tiles.inc"
