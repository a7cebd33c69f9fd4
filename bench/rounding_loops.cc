// The loops of one level: UK_ISA, whose idioms are in the file UK_IDIOMS.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "bench/rounding_loops.h"

#include UK_IDIOMS

namespace uk::bench {
namespace {

template <class V>
V vector_of(V (*function)(V));
using V = decltype(vector_of(round_to_bf16));  // the level's, of f32

template <class H>
H operand_of(V (*function)(H));
using Halves = decltype(operand_of(f16_to_f32));

struct F16 {
  static UK_INLINE V dot(V acc, V a, V b) { return fma_rounded_to_f16(acc, a, b); }
  static UK_INLINE V round(V acc) { return acc; }
};
struct Bf16 {
#if defined(__AVX512F__)
  static UK_INLINE V dot(V acc, V a, V b) { return _mm512_fmadd_ps(a, b, acc); }
  static UK_INLINE V round(V acc) { return round_to_bf16(acc); }
#elif defined(__FMA__)
  static UK_INLINE V dot(V acc, V a, V b) { return _mm256_fmadd_ps(a, b, acc); }
  static UK_INLINE V round(V acc) { return round_to_bf16(acc); }
#else
  static UK_INLINE V dot(V acc, V a, V b) { return fma_rounded_to_bf16(acc, a, b); }
  static UK_INLINE V round(V acc) { return acc; }
#endif
};

template <class Type, int kCount>
void chains(const float* data, uint64_t rounds) {
  V a, b, acc[kCount];
  __builtin_memcpy(&a, data, sizeof(V));
  __builtin_memcpy(&b, data + sizeof(V) / sizeof(float), sizeof(V));
  UK_UNROLL for (int i = 0; i < kCount; ++i) acc[i] = a;
  for (; rounds > 0; --rounds) {
    __asm__ volatile("" : "+x"(a), "+x"(b));  // or their product would be there already
    UK_UNROLL for (int i = 0; i < kCount; ++i) {
      acc[i] = Type::dot(acc[i], a, b);
      __asm__ volatile("" : "+x"(acc[i]));  // one after the other, as in a tile
    }
    UK_UNROLL for (int i = 0; i < kCount; ++i) {
      acc[i] = Type::round(acc[i]);
      __asm__ volatile("" : "+x"(acc[i]));
    }
  }
}

void widen_f16(const float* data, uint64_t rounds) {
  Halves h = {};
  __builtin_memcpy(&h, data, sizeof(V) / 2);
  for (; rounds > 0; --rounds) {
    UK_UNROLL for (int i = 0; i < kWidened; ++i) {
      __asm__ volatile("" : "+x"(h));  // or one would do for all
      __asm__ volatile("" ::"x"(f16_to_f32(h)));
    }
  }
}

}  // namespace

#define UK_NAME(isa) UK_NAME_(isa)
#define UK_NAME_(isa) #isa
#define UK_LOOPS(type)                                                            \
  {                                                                               \
    chains<type, kChains[0]>, chains<type, kChains[1]>, chains<type, kChains[2]>, \
        chains<type, kChains[3]>, chains<type, kChains[4]>                        \
  }
const RoundingLoops UK_ROUNDING_LOOPS(UK_ISA) = {UK_NAME(UK_ISA), UK_LOOPS(F16), UK_LOOPS(Bf16),
                                                 widen_f16};

}  // namespace uk::bench
