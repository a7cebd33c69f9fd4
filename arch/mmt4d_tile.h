// What the mmt4d tiles of all architectures share.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_MMT4D_TILE_H_
#define UKERNEL_ARCH_MMT4D_TILE_H_

#include "ukernel/tile.h"

namespace {

// A streaming RHS is prefetched. A tile of one register block does so this far ahead of its reads,
// in bytes: nearer than 16 KiB the requests in flight do not cover the memory's latency.
constexpr int kPrefetchDistance = 16 << 10;
// Into L2: with prefetches into L1 Emerald Rapids takes 4 to 10 % longer, Zen 4 and Zen 5 as long.
// Nobody measured Arm's cores, which keep to L1.
#if defined(__x86_64__)
constexpr int kPrefetchLocality = 2;
#else
constexpr int kPrefetchLocality = 3;
#endif
constexpr int kCacheLine = 64;

// Of several blocks each runs through the whole panel. If the first alone prefetched, the memory
// would idle while the others run. So all blocks run on few steps at a time, which stay in L1, add
// to OUT, and each brings its part of as many steps behind these; 16x32x1 of f32, in two blocks:
//
//   block 0, rows 0 ... 7    reads steps 0 ... 63, prefetches 64 ... 95
//   block 1, rows 8 ... 15   reads steps 0 ... 63, prefetches 96 ... 127
//   block 0                  reads steps 64 ... 127, prefetches 128 ... 159
constexpr int kSharedPrefetchBytes = 8 << 10;

// Where one of kBlocks blocks that share it starts to prefetch, beside its reads of `bytes` from
// rhs on. Integer arithmetic, here and below: the address may lie past the end of the buffer, which
// a prefetch ignores and a pointer must not do.
template <int kBlocks>
UK_INLINE uintptr_t prefetch_start(const char* rhs, uk_index_t bytes, int block) {
  uk_index_t ahead = kPrefetchDistance;
  if constexpr (kBlocks > 1) ahead = bytes + bytes / kBlocks * block;
  return reinterpret_cast<uintptr_t>(rhs) + static_cast<uintptr_t>(ahead);
}

// How many steps blocks that share the prefetching run on at a time: all, unless the RHS streams.
template <int kStepBytes>
UK_INLINE uk_index_t steps_at_a_time(uk_index_t k1, uint32_t flags) {
  constexpr int kFew = kStepBytes < kSharedPrefetchBytes ? kSharedPrefetchBytes / kStepBytes : 1;
  return (flags & UK_MMT4D_PREFETCH_RHS) && k1 > kFew ? kFew : k1;
}

// Calls run_blocks(lhs, rhs, steps, flags) for all steps of the panels.
template <bool kShare, int kLhsStep, int kRhsStep, class RunBlocks>
UK_INLINE void for_steps(const void* lhs_panel, const void* rhs_panel, uk_index_t k1,
                         uint32_t flags, RunBlocks run_blocks) {
  const uk_index_t most = kShare ? steps_at_a_time<kRhsStep>(k1, flags) : k1;
  const char* lhs = static_cast<const char*>(lhs_panel);
  const char* rhs = static_cast<const char*>(rhs_panel);
  do {
    const uk_index_t steps = k1 < most ? k1 : most;
    run_blocks(lhs, rhs, steps, flags);
    lhs += steps * kLhsStep;
    rhs += steps * kRhsStep;
    k1 -= steps;
    flags |= UK_MMT4D_ACCUMULATE;
  } while (kShare && k1 > 0);
}

// What a k step of kStepBytes prefetches in one of kBlocks blocks. Returns where the next one does.
template <int kBlocks, int kStepBytes>
UK_INLINE uintptr_t prefetch_rhs(uintptr_t ahead) {
  constexpr int kShare = (kStepBytes + kBlocks - 1) / kBlocks;
  UK_UNROLL for (int b = 0; b < kShare; b += kCacheLine) {
    __builtin_prefetch(reinterpret_cast<const char*>(ahead + static_cast<uintptr_t>(b)), 0,
                       kPrefetchLocality);
  }
  ahead += kShare;
  // The step stays behind it. Clang would mix them, for which it has not enough vector registers.
  asm volatile("" : "+r"(ahead));
  return ahead;
}

// The next row of OUT. Compilers would keep the addresses of all rows for the end of a tile, more
// than there are registers, on the stack and in vectors.
template <class Pointer>
UK_INLINE Pointer next_row(Pointer row, uk_index_t row_bytes) {
  row += row_bytes;
  asm volatile("" : "+r"(row));
  return row;
}

UK_INLINE int32_t load_s32(const char* p) {
  int32_t v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

}  // namespace

// The body that UK_DEFINE_MMT4D_TILE calls for the rows of one type: UK_MMT4D_BODY(types,
// Primitive), on the mmt4d_tile of the architecture.
#define UK_MMT4D_BODY(types, ...)                                                                  \
  template <int M0, int N0, int K0>                                                                \
  UK_INLINE void mmt4d_##types(void* out, uk_index_t out_stride, const void* lhs, const void* rhs, \
                               uk_index_t k1, uint32_t flags) {                                    \
    mmt4d_tile<__VA_ARGS__, M0, N0, K0>(out, out_stride, lhs, rhs, k1, flags);                     \
  }

#endif  // UKERNEL_ARCH_MMT4D_TILE_H_
