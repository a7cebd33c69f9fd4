// The parts that fullfp16 primitives are put together from.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_ARM_64_FULLFP16_IDIOMS_H_
#define UKERNEL_ARCH_ARM_64_FULLFP16_IDIOMS_H_

#include "arch/arm_64/neon/idioms.h"

namespace {

// acc + columns * rows[kLane], rounded to f16 once.
template <int kLane>
UK_INLINE float16x8_t fma_f16(float16x8_t acc, float16x8_t columns, float16x8_t rows) {
#ifdef __clang__
  return vfmaq_laneq_f16(acc, columns, rows, kLane);
#else
  // GCC 12 knows no FMLA of f16 by a lane, and spends a DUP on each. Lanes are of v0 to v15 only.
  asm("fmla %0.8h, %1.8h, %2.h[%3]" : "+w"(acc) : "w"(columns), "x"(rows), "i"(kLane));
  return acc;
#endif
}

}  // namespace

#endif  // UKERNEL_ARCH_ARM_64_FULLFP16_IDIOMS_H_
