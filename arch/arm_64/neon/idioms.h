// The parts that Arm primitives are put together from: OUT types, operands, roundings. The other
// levels build on them.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_ARM_64_NEON_IDIOMS_H_
#define UKERNEL_ARCH_ARM_64_NEON_IDIOMS_H_

#include "arch/arm_64/mmt4d_tile.h"
#include "arch/arm_64/partial_vectors.h"

namespace {

// ---------------------------------------------------------------- 16-bit floats

UK_INLINE float32x4_t f16_to_f32(uint16x4_t h) { return vcvt_f32_f16(vreinterpret_f16_u16(h)); }
UK_INLINE float32x4_t f16_to_f32_high(uint16x8_t h) {
  return vcvt_high_f32_f16(vreinterpretq_f16_u16(h));
}
UK_INLINE uint16x4_t f32_to_f16(float32x4_t f) { return vreinterpret_u16_f16(vcvt_f16_f32(f)); }

// bf16 is the upper half of an f32, so a zero goes below each.
UK_INLINE float32x4_t bf16_to_f32_low(uint16x8_t h) {
  return vreinterpretq_f32_u16(vzip1q_u16(vdupq_n_u16(0), h));
}
UK_INLINE float32x4_t bf16_to_f32_high(uint16x8_t h) {
  return vreinterpretq_f32_u16(vzip2q_u16(vdupq_n_u16(0), h));
}
UK_INLINE float32x4_t bf16_to_f32(uint16x4_t h) {
  return bf16_to_f32_low(vcombine_u16(h, vdup_n_u16(0)));
}

// The nearest bf16 (ties to even, subnormals kept), in the upper half of each lane; the lower half
// is left over from the rounding. Adding 0x7FFF, or 0x8000 where the last kept bit is odd, carries
// into the upper half exactly when rounding up is due. A NaN stays one: made from bf16 operands,
// its lower half is zero, and nothing carries.
UK_INLINE uint32x4_t add_bf16_rounding(float32x4_t f) {
  const uint32x4_t bits = vreinterpretq_u32_f32(f);
  const uint32x4_t last_kept_on_top = vshlq_n_u32(bits, 15);
  return vsraq_n_u32(vaddq_u32(bits, vdupq_n_u32(0x7FFF)), last_kept_on_top, 31);
}
UK_INLINE float32x4_t round_to_bf16(float32x4_t f) {
  return vreinterpretq_f32_u32(vandq_u32(add_bf16_rounding(f), vdupq_n_u32(0xFFFF0000)));
}
UK_INLINE uint16x4_t f32_to_bf16(float32x4_t f) { return vshrn_n_u32(add_bf16_rounding(f), 16); }

// By contract an f32 FMA, then a second rounding to bf16. Of `rows` lane kLane.
template <int kLane>
UK_INLINE float32x4_t fma_rounded_to_bf16(float32x4_t acc, float32x4_t columns, float32x4_t rows) {
  return round_to_bf16(vfmaq_laneq_f32(acc, columns, rows, kLane));
}

// acc + columns * row of values that are f16, rounded once to f16. The sum is taken in f64 and
// rounded to odd on its way to f32, which leaves the rounding to f16 nothing to round twice. Where
// the f64 sum is inexact it is no neighbour of a tie of f16: the product has 22 bits and acc 11, so
// bits that 53 do not hold belong to a product too small to reach halfway to acc's next f16.
template <int kLane>
UK_INLINE float32x4_t fma_rounded_to_f16(float32x4_t acc, float32x4_t columns, float32x4_t rows) {
  const float64x2_t row = kLane < 2 ? vcvt_f64_f32(vget_low_f32(rows)) : vcvt_high_f64_f32(rows);
  const float64x2_t low = vfmaq_laneq_f64(vcvt_f64_f32(vget_low_f32(acc)),
                                          vcvt_f64_f32(vget_low_f32(columns)), row, kLane % 2);
  const float64x2_t high =
      vfmaq_laneq_f64(vcvt_high_f64_f32(acc), vcvt_high_f64_f32(columns), row, kLane % 2);
  return f16_to_f32(f32_to_f16(vcvtx_high_f32_f64(vcvtx_f32_f64(low), high)));
}

// ---------------------------------------------------------------- four columns of OUT

struct S32Columns {
  using Vector = int32x4_t;
  static constexpr int kBytes = 4;
  static UK_INLINE Vector zero() { return vdupq_n_s32(0); }
  static UK_INLINE Vector load(const char* p) { return vreinterpretq_s32_u8(load_128<16>(p)); }
  static UK_INLINE void store(char* p, Vector v) { store_128<16>(p, vreinterpretq_u8_s32(v)); }
};

struct F32Columns {
  using Vector = float32x4_t;
  static constexpr int kBytes = 4;
  static UK_INLINE Vector zero() { return vdupq_n_f32(0); }
  static UK_INLINE Vector load(const char* p) { return vreinterpretq_f32_u8(load_128<16>(p)); }
  static UK_INLINE void store(char* p, Vector v) { store_128<16>(p, vreinterpretq_u8_f32(v)); }
};

// Of 16 bits in memory, f32 in registers.
struct F16Columns : F32Columns {
  static constexpr int kBytes = 2;
  static UK_INLINE Vector load(const char* p) {
    return f16_to_f32(vreinterpret_u16_u8(load_64<8>(p)));
  }
  static UK_INLINE void store(char* p, Vector v) {
    store_64<8>(p, vreinterpret_u8_u16(f32_to_f16(v)));
  }
};

struct Bf16Columns : F32Columns {
  static constexpr int kBytes = 2;
  static UK_INLINE Vector load(const char* p) {
    return bf16_to_f32(vreinterpret_u16_u8(load_64<8>(p)));
  }
  static UK_INLINE void store(char* p, Vector v) {
    store_64<8>(p, vreinterpret_u8_u16(f32_to_bf16(v)));
  }
};

// ---------------------------------------------------------------- accumulators

// One row by four columns.
template <class Columns>
struct RowOf4 {
  using Acc = typename Columns::Vector;
  static constexpr int kAccRegisters = 1, kAccRows = 1, kLanes = 4, kTemporaries = 1;
  static constexpr int kOutBytes = Columns::kBytes;
  static UK_INLINE Acc zero() { return Columns::zero(); }
  template <int kRows>
  static UK_INLINE Acc load_out(const char* out, uk_index_t) {
    return Columns::load(out);
  }
  template <int kRows>
  static UK_INLINE void store_out(char* out, uk_index_t, Acc acc) {
    Columns::store(out, acc);
  }
};

using F32x8 = TwoVectors<float32x4_t>;
using S32x8 = TwoVectors<int32x4_t>;

// One row by eight columns, for what takes its columns from one vector of 16-bit operands.
template <class Columns>
struct RowOf8 {
  using Acc = TwoVectors<typename Columns::Vector>;
  static constexpr int kAccRegisters = 2, kAccRows = 1, kLanes = 8, kTemporaries = 1;
  static constexpr int kOutBytes = Columns::kBytes;
  static UK_INLINE Acc zero() { return {Columns::zero(), Columns::zero()}; }
  template <int kRows>
  static UK_INLINE Acc load_out(const char* out, uk_index_t) {
    return {Columns::load(out), Columns::load(out + 4 * kOutBytes)};
  }
  template <int kRows>
  static UK_INLINE void store_out(char* out, uk_index_t, const Acc& acc) {
    Columns::store(out, acc.low);
    Columns::store(out + 4 * kOutBytes, acc.high);
  }
};

// Two rows by four columns, as the matrix instructions want them: two by two a vector.
//
//   low:   r0c0 r0c1 r1c0 r1c1        high:   r0c2 r0c3 r1c2 r1c3
UK_INLINE int32x4_t first_halves(int32x4_t a, int32x4_t b) {
  return vcombine_s32(vget_low_s32(a), vget_low_s32(b));
}
UK_INLINE int32x4_t second_halves(int32x4_t a, int32x4_t b) {
  return vcombine_s32(vget_high_s32(a), vget_high_s32(b));
}
UK_INLINE float32x4_t first_halves(float32x4_t a, float32x4_t b) {
  return vcombine_f32(vget_low_f32(a), vget_low_f32(b));
}
UK_INLINE float32x4_t second_halves(float32x4_t a, float32x4_t b) {
  return vcombine_f32(vget_high_f32(a), vget_high_f32(b));
}

template <class Columns>
struct TwoRowsOf4 {
  using Acc = TwoVectors<typename Columns::Vector>;
  static constexpr int kAccRegisters = 2, kAccRows = 2, kLanes = 4, kTemporaries = 1;
  static constexpr int kOutBytes = Columns::kBytes;
  static UK_INLINE Acc zero() { return {Columns::zero(), Columns::zero()}; }
  template <int kRows>
  static UK_INLINE Acc load_out(const char* out, uk_index_t row_bytes) {
    const auto row0 = Columns::load(out);
    const auto row1 = kRows == 2 ? Columns::load(out + row_bytes) : Columns::zero();
    return {first_halves(row0, row1), second_halves(row0, row1)};
  }
  template <int kRows>
  static UK_INLINE void store_out(char* out, uk_index_t row_bytes, const Acc& acc) {
    Columns::store(out, first_halves(acc.low, acc.high));
    if (kRows == 2) Columns::store(out + row_bytes, second_halves(acc.low, acc.high));
  }
};

// ---------------------------------------------------------------- operands

// Operands that are used as they lie in memory, 16 bytes a vector.
template <int kBytes>
struct DirectOperands {
  static constexpr int kLhsBytes = kBytes, kRhsBytes = kBytes, kGroup = 16 / kBytes;
  template <int kRows>
  static UK_INLINE uint8x16_t load_lhs(const char* lhs) {
    return whole(load_128<kRows * kBytes>(lhs));
  }
  static UK_INLINE uint8x16_t load_rhs(const char* rhs) { return load_128<16>(rhs); }
};

// Operands of the matrix instructions: eight bytes of k, two rows or two columns a vector. A row
// without a second one is beside zeros.
struct PairOperands {
  using Columns = TwoVectors<uint8x16_t>;
  static constexpr int kLhsBytes = 8, kRhsBytes = 8, kGroup = 1;
  template <int kRows>
  static UK_INLINE uint8x16_t load_lhs(const char* lhs) {
    return load_128<8 * kRows>(lhs);
  }
  static UK_INLINE Columns load_rhs(const char* rhs) {
    return {load_128<16>(rhs), load_128<16>(rhs + 16)};
  }
};

struct WidenF16 {
  static UK_INLINE F32x8 widen(uint16x8_t h) {
    return {f16_to_f32(vget_low_u16(h)), f16_to_f32_high(h)};
  }
};
struct WidenBf16 {
  static UK_INLINE F32x8 widen(uint16x8_t h) { return {bf16_to_f32_low(h), bf16_to_f32_high(h)}; }
};

// Eight rows, eight columns of 16 bits each, made f32.
template <class Widen>
struct WidenedFloats {
  static constexpr int kLhsBytes = 2, kRhsBytes = 2, kGroup = 8;
  template <int kRows>
  static UK_INLINE F32x8 load_lhs(const char* lhs) {
    const F32x8 rows = Widen::widen(vreinterpretq_u16_u8(load_128<2 * kRows>(lhs)));
    return whole(rows);
  }
  static UK_INLINE F32x8 load_rhs(const char* rhs) {
    return Widen::widen(vreinterpretq_u16_u8(load_128<16>(rhs)));
  }

  // The vector of lane kLane, whose lane kLane % 4 it is.
  template <int kLane>
  static UK_INLINE float32x4_t half(const F32x8& rows) {
    return kLane < 4 ? rows.low : rows.high;
  }
};

// Eight numbers as s16.
struct FromS16 {
  static constexpr int kBytes = 2;
  template <int kCount>
  static UK_INLINE int16x8_t load(const char* p) {
    return vreinterpretq_s16_u8(load_128<2 * kCount>(p));
  }
};
struct FromS8 {
  static constexpr int kBytes = 1;
  template <int kCount>
  static UK_INLINE int16x8_t load(const char* p) {
    return vmovl_s8(vreinterpret_s8_u8(load_64<kCount>(p)));
  }
};
struct FromU8 {
  static constexpr int kBytes = 1;
  template <int kCount>
  static UK_INLINE int16x8_t load(const char* p) {
    return vreinterpretq_s16_u16(vmovl_u8(load_64<kCount>(p)));
  }
};

// The signed nibbles of each byte: the low ones, the high ones.
UK_INLINE TwoVectors<int8x16_t> s4_to_s8(uint8x16_t pairs) {
  return {vshrq_n_s8(vreinterpretq_s8_u8(vshlq_n_u8(pairs, 4)), 4),
          vshrq_n_s8(vreinterpretq_s8_u8(pairs), 4)};
}

// Eight columns by lane kLane of rows, exact in s32.
template <int kLane>
UK_INLINE S32x8 multiply_add(const S32x8& acc, int16x8_t columns, int16x8_t rows) {
  return {vmlal_laneq_s16(acc.low, vget_low_s16(columns), rows, kLane),
          vmlal_high_laneq_s16(acc.high, columns, rows, kLane)};
}

}  // namespace

#endif  // UKERNEL_ARCH_ARM_64_NEON_IDIOMS_H_
