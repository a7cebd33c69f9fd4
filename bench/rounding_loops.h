// Chains of sums rounded to 16 bits at every step, in registers alone, and f16 widened to f32.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_ROUNDING_LOOPS_H_
#define UKERNEL_BENCH_ROUNDING_LOOPS_H_

#include <stdint.h>  // no header of the standard library: it is compiled for one level

namespace uk::bench {

// `rounds` steps of the chains. `data` has what is multiplied.
using RoundingLoop = void(const float* data, uint64_t rounds);

constexpr int kChains[] = {1, 2, 4, 8, 12};  // of the last ones no core waits for one
constexpr int kLoops = sizeof(kChains) / sizeof(kChains[0]);
constexpr int kWidened = 12;  // vectors of a step

struct RoundingLoops {
  const char* isa;
  RoundingLoop *f16[kLoops], *bf16[kLoops], *widen_f16;
};

#define UK_ROUNDING_LOOPS(isa) UK_ROUNDING_LOOPS_(isa)
#define UK_ROUNDING_LOOPS_(isa) rounding_loops_##isa
extern const RoundingLoops UK_ROUNDING_LOOPS(sse2);
extern const RoundingLoops UK_ROUNDING_LOOPS(avx2_fma);
extern const RoundingLoops UK_ROUNDING_LOOPS(avx512_base);

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_ROUNDING_LOOPS_H_
