// The parts that fp16fml primitives are put together from.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_ARM_64_FP16FML_IDIOMS_H_
#define UKERNEL_ARCH_ARM_64_FP16FML_IDIOMS_H_

#include "arch/arm_64/neon/idioms.h"

namespace {

// FMLAL and FMLAL2, of the lower and the upper half of `columns` by rows[kLane]: f16 multiplied and
// added to f32 with one rounding. Lanes are of v0 to v15 only, which Clang 14 does not know: it
// puts rows anywhere, and what runs then takes a lane of another register. Clang 19 is right.
#if defined(__clang__) && __clang_major__ < 19
template <int kLane>
UK_INLINE float32x4_t fma_low(float32x4_t acc, float16x8_t columns, float16x8_t rows) {
  asm("fmlal %0.4s, %1.4h, %2.h[%3]" : "+w"(acc) : "w"(columns), "x"(rows), "i"(kLane));
  return acc;
}
template <int kLane>
UK_INLINE float32x4_t fma_high(float32x4_t acc, float16x8_t columns, float16x8_t rows) {
  asm("fmlal2 %0.4s, %1.4h, %2.h[%3]" : "+w"(acc) : "w"(columns), "x"(rows), "i"(kLane));
  return acc;
}
#else
template <int kLane>
UK_INLINE float32x4_t fma_low(float32x4_t acc, float16x8_t columns, float16x8_t rows) {
  return vfmlalq_laneq_low_f16(acc, columns, rows, kLane);
}
template <int kLane>
UK_INLINE float32x4_t fma_high(float32x4_t acc, float16x8_t columns, float16x8_t rows) {
  return vfmlalq_laneq_high_f16(acc, columns, rows, kLane);
}
#endif

}  // namespace

#endif  // UKERNEL_ARCH_ARM_64_FP16FML_IDIOMS_H_
