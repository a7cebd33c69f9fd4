// Roundings with the instructions of bf16.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_ARM_64_BF16_IDIOMS_H_
#define UKERNEL_ARCH_ARM_64_BF16_IDIOMS_H_

#include "arch/arm_64/neon/idioms.h"

namespace {

// Four bf16 and four zeros. BFCVTN keeps subnormals, as long as FPCR is what it is by default.
UK_INLINE uint16x8_t convert_to_bf16(float32x4_t f) {
  return vreinterpretq_u16_bf16(vcvtq_low_bf16_f32(f));
}

// By contract an f32 FMA, then a second rounding to bf16. Of `rows` lane kLane.
template <int kLane>
UK_INLINE float32x4_t fma_converted_to_bf16(float32x4_t acc, float32x4_t columns,
                                            float32x4_t rows) {
  return bf16_to_f32_low(convert_to_bf16(vfmaq_laneq_f32(acc, columns, rows, kLane)));
}

struct ConvertedBf16Columns : Bf16Columns {
  static UK_INLINE void store(char* p, Vector v) {
    store_128<8>(p, vreinterpretq_u8_u16(convert_to_bf16(v)));
  }
};

}  // namespace

#endif  // UKERNEL_ARCH_ARM_64_BF16_IDIOMS_H_
