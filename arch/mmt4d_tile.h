// What the mmt4d tiles of all architectures share.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_MMT4D_TILE_H_
#define UKERNEL_ARCH_MMT4D_TILE_H_

#include "ukernel/tile.h"

namespace {

// How far ahead of its reads a tile prefetches a streaming RHS, in bytes. Nearer than 16 KiB the
// requests in flight do not cover the memory's latency.
constexpr int kPrefetchDistance = 16 << 10;
constexpr int kCacheLine = 64;

UK_INLINE void prefetch_rhs(const char* rhs, int bytes) {
  // Integer arithmetic: the address may lie past the end of the buffer, which a prefetch ignores
  // and a pointer must not do.
  const uintptr_t ahead = reinterpret_cast<uintptr_t>(rhs) + kPrefetchDistance;
  UK_UNROLL for (int b = 0; b < bytes; b += kCacheLine) {
    __builtin_prefetch(reinterpret_cast<const char*>(ahead + static_cast<uintptr_t>(b)));
  }
}

UK_INLINE int32_t load_s32(const char* p) {
  int32_t v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

}  // namespace

// The body that UK_DEFINE_MMT4D_TILE calls for the rows of one type: UK_MMT4D_BODY(types,
// Primitive), on the mmt4d_tile of the architecture.
#define UK_MMT4D_BODY(types, ...)                                                          \
  template <int M0, int N0, int K0>                                                        \
  UK_INLINE void mmt4d_##types(void* out, const void* lhs, const void* rhs, uk_index_t k1, \
                               uint32_t flags) {                                           \
    mmt4d_tile<__VA_ARGS__, M0, N0, K0>(out, lhs, rhs, k1, flags);                         \
  }

#endif  // UKERNEL_ARCH_MMT4D_TILE_H_
