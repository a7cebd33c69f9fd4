// What the mmt4d tiles of all architectures share.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_MMT4D_TILE_H_
#define UKERNEL_ARCH_MMT4D_TILE_H_

#include "ukernel/tile.h"

namespace {

// A streaming RHS is prefetched, by a tile of one register block as far ahead of its reads as the
// context says. Into L2, which has room for a panel: with prefetches into L1 Emerald Rapids takes 4
// to 10 % longer, Zen 4 as long, and Zen 5 up to 1.2 times as long. What several blocks prefetch is
// nearer, and goes into L1 if the context says so. Nobody measured Arm's cores.
constexpr int kLocalityOfL2 = 2, kLocalityOfL1 = 3;

// The next k step prefetches its lines from `next` on, one behind the other, but the second half of
// them `apart` further. Then `next` moves on by `step`, and set_bits are set in it again; of a
// single line the step after it moves on by step ^ turn, and so on in turns.
struct Prefetch {
  static constexpr int kLocality = kLocalityOfL2;
  uintptr_t next, step, apart = 0, set_bits = 0, turn = 0;
};
struct PrefetchIntoL1 : Prefetch {
  static constexpr int kLocality = kLocalityOfL1;
};

// Whether each half of so many bytes has as many lines, one at least.
constexpr bool has_equal_halves(int bytes) { return bytes > 0 && bytes % (2 * kLineBytes) == 0; }

// Of a step's bytes, what a block of so many rows prefetches. Of few rows, at least a line in each
// of two pages, though lines then come up more than once: loads that tiles of many rows, which are
// busy multiplying, would notice.
constexpr int prefetched_bytes(int step_bytes, int rows) {
  return rows <= 2 && step_bytes < 2 * kLineBytes ? 2 * kLineBytes : step_bytes;
}

// Of several blocks each runs through the whole panel. If the first alone prefetched, the memory
// would idle while the others run. So all blocks run on few steps at a time, which stay in L1, add
// to OUT, or to what waits for it on the stack, and each brings its part of as many steps behind
// these; 16x32x1 of f32, in two blocks:
//
//   block 0, rows 0 ... 7    reads steps 0 ... 63, prefetches 64 ... 95
//   block 1, rows 8 ... 15   reads steps 0 ... 63, prefetches 96 ... 127
//   block 0                  reads steps 64 ... 127, prefetches 128 ... 159
constexpr int kSharedPrefetchBytes = 8 << 10;

// How a block prefetches kPrefetchedBytes of a step, one of kBlocks that share it, or of kFetching
// if it is for other tiles, beside its reads of k1 steps from rhs on. Integer arithmetic, here and
// below: the address may lie past the end of the buffer, which a prefetch ignores and a pointer
// must not do.
//
// Of two pages abreast, a single block prefetches the upper one and the lower one, line by line,
// while as many bytes are read, and then the next two; what of them it begins with follows from the
// address, so that one panel goes on where the one before ended. Several blocks prefetch the two
// halves of the steps behind theirs, which are so far apart.
template <int kBlocks, int kStepBytes, int kFetching = kBlocks, int kPrefetchedBytes = kStepBytes>
UK_INLINE Prefetch prefetch_start(const char* rhs, uk_index_t k1, int block,
                                  const uk_tile_context_t& context) {
  const auto steps = static_cast<uintptr_t>(k1), number = static_cast<uintptr_t>(block);
  if (context.prefetch_from != 0) {
    const uintptr_t share = (context.prefetch_step_bytes + kFetching - 1) / kFetching;
    return {context.prefetch_from + steps * share * number, share};
  }
  constexpr int kShare = (kStepBytes + kBlocks - 1) / kBlocks;
  constexpr int kPrefetched = (kPrefetchedBytes + kBlocks - 1) / kBlocks;
  const auto from = reinterpret_cast<uintptr_t>(rhs);
  if constexpr (kBlocks > 1) {
    const uintptr_t bytes = steps * kStepBytes, half = bytes / 2;
    const uintptr_t of_half = from + bytes + half / kBlocks * number;
    if (context.prefetches_pages && has_equal_halves(kPrefetched)) {
      return {of_half, kShare / 2, half - kPrefetched / 2};
    }
    if (context.prefetches_pages && kPrefetched <= kLineBytes) {
      return {of_half, half, 0, 0, half ^ (kShare - half)};
    }
    return {from + bytes + bytes / kBlocks * number, kShare};
  }
  const uintptr_t next = from + context.prefetch_distance;
  constexpr uintptr_t kPage = kPrefetchedPage, kPair = 2 * kPage;
  // Of a part of the columns, half of each step would not be half of what lies between two steps.
  constexpr bool kAllColumns = kPrefetched >= kShare;
  constexpr bool kFillsPages = has_equal_halves(kPrefetched) && kPair % kPrefetched == 0;
  if (context.prefetches_pages && kAllColumns && kFillsPages) {
    const uintptr_t in_pair = (next & ~(kPair - 1)) + (next & (kPair - 1)) / 2;
    return {in_pair | kPage, kShare / 2, 0 - kPage - kPrefetched / 2, kPage};
  }
  return {next, kShare};
}

// Likewise of a tile on a decoded RHS, which fetches for other tiles alone: nothing else where
// there are none, the same cache lines over and over.
template <int kFetching>
UK_INLINE Prefetch fetch_start(const char* rhs, uk_index_t k1, int block,
                               const uk_tile_context_t& context) {
  if (context.prefetch_from == 0) return {reinterpret_cast<uintptr_t>(rhs), 0};
  return prefetch_start<1, 0, kFetching>(rhs, k1, block, context);
}

// How many steps blocks that share the prefetching run on at a time: all, unless they prefetch the
// RHS that they read.
template <int kStepBytes>
UK_INLINE uk_index_t steps_at_a_time(uk_index_t k1, uint32_t flags,
                                     const uk_tile_context_t& context) {
  constexpr int kFew = kStepBytes < kSharedPrefetchBytes ? kSharedPrefetchBytes / kStepBytes : 1;
  const bool is_ahead = (flags & UK_MMT4D_PREFETCH_RHS) && context.prefetch_from == 0;
  return is_ahead && k1 > kFew ? kFew : k1;
}

// Calls run_blocks(lhs, rhs, steps, flags) for all steps of the panels.
template <bool kShare, int kLhsStep, int kRhsStep, class RunBlocks>
UK_INLINE void for_steps(const void* lhs_panel, const void* rhs_panel, uk_index_t k1,
                         uint32_t flags, const uk_tile_context_t& context, RunBlocks run_blocks) {
  const uk_index_t most = kShare ? steps_at_a_time<kRhsStep>(k1, flags, context) : k1;
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

// Calls one_line(address) for what kSteps k steps of kStepBytes prefetch in one of kBlocks blocks:
// as many lines as where they prefetch what they read. Where they prefetch less, lines come up
// several times, which costs a load each. Several steps prefetch no pages abreast.
template <int kBlocks, int kStepBytes, int kSteps, class OneLine>
UK_INLINE void for_prefetched_lines(Prefetch& ahead, OneLine one_line) {
  constexpr int kShare = kSteps * ((kStepBytes + kBlocks - 1) / kBlocks);
  constexpr bool kByHalves = kSteps == 1 && has_equal_halves(kShare);
  UK_UNROLL for (int b = 0; b < kShare; b += kLineBytes) {
    const bool is_apart = kByHalves && b >= kShare / 2;
    one_line(ahead.next + static_cast<uintptr_t>(b) + (is_apart ? ahead.apart : 0));
  }
  ahead.next += kSteps * ahead.step;
  if constexpr (kByHalves && kBlocks == 1) ahead.next |= ahead.set_bits;
  if constexpr (kBlocks > 1 && kShare <= kLineBytes) ahead.step ^= ahead.turn;
}

template <int kBlocks, int kStepBytes, int kSteps = 1, class Ahead>
UK_INLINE void prefetch(Ahead& ahead) {
  for_prefetched_lines<kBlocks, kStepBytes, kSteps>(ahead, [](uintptr_t line) UK_INLINE_LAMBDA {
    __builtin_prefetch(reinterpret_cast<const char*>(line), 0, Ahead::kLocality);
  });
  // The step stays behind it. Clang would mix them, for which it has not enough vector registers.
  asm volatile("" : "+r"(ahead.next));
}

// Vector j of several panels' columns or results, of kPanelVectors each, in panels panel_bytes
// apart.
template <int kPanelVectors, int kVectorBytes, class Pointer>
UK_INLINE Pointer vector_of_panels(Pointer first, int j, uk_index_t panel_bytes) {
  return first + j / kPanelVectors * panel_bytes + j % kPanelVectors * kVectorBytes;
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

// Sums of rows over a part of K, added to those over the parts before it. Modulo 2^32.
template <int Rows>
UK_INLINE void add_row_sums(char* to, const char* from) {
  for (int row = 0; row < Rows; ++row, to += 4, from += 4) {
    const uint32_t sum =
        static_cast<uint32_t>(load_s32(to)) + static_cast<uint32_t>(load_s32(from));
    __builtin_memcpy(to, &sum, sizeof(sum));
  }
}

}  // namespace

// The body that UK_DEFINE_MMT4D_TILE calls for the rows of one type: UK_MMT4D_BODY(types,
// Primitive), on the mmt4d_tile of the architecture.
#define UK_MMT4D_BODY(types, ...)                                                               \
  template <int M0, int N0, int K0, uk::TileForm kForm>                                         \
  constexpr uk_decoded_operand_t decoded_##types = decoded_operand<__VA_ARGS__, M0, N0>(kForm); \
  template <int M0, int N0, int K0>                                                             \
  constexpr uk::Abreast reads_abreast_##types = reads_abreast<__VA_ARGS__, M0, N0>();           \
  template <int M0, int N0, int K0, uk::TileForm kForm>                                         \
  UK_INLINE void mmt4d_##types(void* out, const void* lhs, const void* rhs, uk_index_t k1,      \
                               uint32_t flags, const uk_tile_context_t& context) {              \
    mmt4d_tile<__VA_ARGS__, M0, N0, K0, kForm>(out, lhs, rhs, k1, flags, context);              \
  }

#endif  // UKERNEL_ARCH_MMT4D_TILE_H_
