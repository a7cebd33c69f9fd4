// The vectors that Arm pack and unpack tiles are made with; their shape is in arch/pack_tile.h.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_ARM_64_PACK_TILE_H_
#define UKERNEL_ARCH_ARM_64_PACK_TILE_H_

#include <arm_neon.h>

#include "ukernel/tile.h"

namespace {

constexpr int kVectorBytes = 16, kLaneBytes = 16;

using Lane = uint64x2_t;

UK_INLINE Lane load_lane(const char* in) {
  return vreinterpretq_u64_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(in)));
}
UK_INLINE void store_lane(char* out, Lane lane) {
  vst1q_u8(reinterpret_cast<uint8_t*>(out), vreinterpretq_u8_u64(lane));
}

UK_INLINE Lane load_halves(const char* low, const char* high) {
  return vreinterpretq_u64_u8(vcombine_u8(vld1_u8(reinterpret_cast<const uint8_t*>(low)),
                                          vld1_u8(reinterpret_cast<const uint8_t*>(high))));
}
UK_INLINE void store_halves(char* low, char* high, Lane lane) {
  const uint8x16_t bytes = vreinterpretq_u8_u64(lane);
  vst1_u8(reinterpret_cast<uint8_t*>(low), vget_low_u8(bytes));
  vst1_u8(reinterpret_cast<uint8_t*>(high), vget_high_u8(bytes));
}
UK_INLINE Lane low_bytes(Lane a, Lane b) {
  return vreinterpretq_u64_u8(vuzp1q_u8(vreinterpretq_u8_u64(a), vreinterpretq_u8_u64(b)));
}

template <int kLanes>
struct Lanes;

template <>
struct Lanes<1> {
  using Vector = Lane;
  template <int kUnit, int kHalf>
  static UK_INLINE Vector interleave(Vector a, Vector b) {
    if constexpr (kUnit == 1) {
      const uint8x16_t x = vreinterpretq_u8_u64(a), y = vreinterpretq_u8_u64(b);
      return vreinterpretq_u64_u8(kHalf ? vzip2q_u8(x, y) : vzip1q_u8(x, y));
    } else if constexpr (kUnit == 2) {
      const uint16x8_t x = vreinterpretq_u16_u64(a), y = vreinterpretq_u16_u64(b);
      return vreinterpretq_u64_u16(kHalf ? vzip2q_u16(x, y) : vzip1q_u16(x, y));
    } else if constexpr (kUnit == 4) {
      const uint32x4_t x = vreinterpretq_u32_u64(a), y = vreinterpretq_u32_u64(b);
      return vreinterpretq_u64_u32(kHalf ? vzip2q_u32(x, y) : vzip1q_u32(x, y));
    } else {
      return kHalf ? vzip2q_u64(a, b) : vzip1q_u64(a, b);
    }
  }
  static UK_INLINE Vector load(const char* in) { return load_lane(in); }
  static UK_INLINE void store(char* out, Vector v) { store_lane(out, v); }
  static UK_INLINE Vector gather(const char* const* in, uk_index_t offset) {
    return load_lane(in[0] + offset);
  }
  static UK_INLINE Vector first(Lane lane) { return lane; }
  static UK_INLINE Vector put(Vector v, int, Lane) { return v; }
  template <int kGroups, int kPiece>
  static UK_INLINE Vector collect(Vector v) {
    return v;
  }
  static UK_INLINE Lane lane(Vector v, int) { return v; }
  static UK_INLINE Vector repeat(uint64_t x) { return vdupq_n_u64(x); }
};

}  // namespace

#include "arch/pack_tile.h"

#endif  // UKERNEL_ARCH_ARM_64_PACK_TILE_H_
