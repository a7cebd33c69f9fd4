// The shape of an Arm mmt4d tile: init, K loop, store. A Primitive says how one type does each of
// these with the instructions of one ISA.
//
// The LHS is loaded as it lies, vectors of several rows, of which the instructions pick a lane
// each: broadcast loads, one a row, would keep the load ports from the RHS.
//
// A Primitive has
//   kTemporaries             registers that dot needs beyond accumulators and operands
//   Acc, kAccRegisters       accumulators: kAccRows rows by kLanes columns of OUT
//   kAccRows, kLanes
//   kOutBytes                an element of OUT
//   zero, load_out, store_out
//                            accumulators <-> OUT; of kAccRows rows the first kRows, row_bytes
//                            apart
//   kK0                      k consumed by one dot
//   kLhsBytes, kRhsBytes     memory of one row, of one column, in a k step
//   load_rhs(p)              kLanes columns x kK0
//   kGroup                   accumulators down the rows whose LHS one operand holds
//   load_lhs<kRows>(p)       kRows rows x kK0, of kGroup * kAccRows at most
//   dot<kLane>(acc, lhs, rhs)
//                            accumulator kLane of a group
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_ARM_64_MMT4D_TILE_H_
#define UKERNEL_ARCH_ARM_64_MMT4D_TILE_H_

#include <arm_neon.h>

#include "arch/mmt4d_tile.h"

namespace {

constexpr int kRegisters = 32;

// Leaves what is computed before it apart from what follows.
template <class Vector>
UK_INLINE Vector in_order(Vector v) {
  asm("" : "+w"(v));
  return v;
}

// A vector as it was loaded. GCC loads the lanes that instructions pick one by one otherwise.
template <class Vector>
UK_INLINE Vector whole(Vector v) {
  return in_order(v);
}

// Keeps loads behind the dots that gave these accumulators. Compilers would have all operands of a
// step under way at a time, for which there are not enough registers.
template <class Acc>
UK_INLINE void load_after(Acc& acc) {
  asm volatile("" : "+w"(acc) : : "memory");
}
template <class Acc, class... Accs>
UK_INLINE void load_after(Acc& acc, Accs&... accs) {
  load_after(acc);
  load_after(accs...);
}

// What has more columns than a vector.
template <class Vector>
struct TwoVectors {
  Vector low, high;
};
template <class Vector>
UK_INLINE TwoVectors<Vector> whole(const TwoVectors<Vector>& v) {
  return {whole(v.low), whole(v.high)};
}

// The dots of kLanes columns of one k step, whose rows are kFirst, kFirst + 1, ... of the groups. A
// recursion, since lanes are part of an instruction: they must be constants before any loop is
// unrolled.
template <class P, int kFirst, int kRow, int Rows, int Vectors, class Lhs, class Rhs>
UK_INLINE void dot_rows(typename P::Acc (&acc)[Rows][Vectors], int j, const Lhs* groups,
                        const Rhs& columns) {
  if constexpr (kRow < Rows) {
    constexpr int kAt = kFirst + kRow;
    acc[kRow][j] = P::template dot<kAt % P::kGroup>(acc[kRow][j], groups[kAt / P::kGroup], columns);
    dot_rows<P, kFirst, kRow + 1>(acc, j, groups, columns);
  }
}

// Of more columns than N0, each N0 are in the next of panels panel_bytes apart.
template <class P, int N0, int kSteps, int kStep, int Rows, int Vectors, class Lhs>
UK_INLINE void dot_steps(typename P::Acc (&acc)[Rows][Vectors], const Lhs* groups, const char* rhs,
                         uk_index_t panel_bytes) {
  constexpr int kPanelVectors = N0 / P::kLanes, kVectorBytes = P::kLanes * P::kRhsBytes;
  const auto vector = [&](int j) UK_INLINE_LAMBDA {
    return P::load_rhs(vector_of_panels<kPanelVectors, kVectorBytes>(rhs, j, panel_bytes));
  };
  if constexpr (kStep < kSteps) {
    if constexpr (P::kAccRows == 1) {
      // All columns first: compilers load two vectors by one instruction then.
      decltype(P::load_rhs(rhs)) columns[Vectors];
      UK_UNROLL for (int j = 0; j < Vectors; ++j) columns[j] = vector(j);
      UK_UNROLL for (int j = 0; j < Vectors; ++j) {
        dot_rows<P, kStep * Rows, 0>(acc, j, groups, columns[j]);
      }
    } else {
      // Rows by pairs take more registers, which leaves less for columns.
      UK_UNROLL for (int j = 0; j < Vectors; ++j) {
        const auto columns = vector(j);
        dot_rows<P, kStep * Rows, 0>(acc, j, groups, columns);
      }
    }
    dot_steps<P, N0, kSteps, kStep + 1>(acc, groups, rhs + N0 * P::kRhsBytes, panel_bytes);
  }
}

// k1 steps, kSteps at a time, on the accumulators of kOutRows rows. Returns how many are left.
// The rows of several steps lie one behind the other only where a block is all rows of the tile.
// One of kPrefetchBlocks blocks prefetches what is `ahead`; none does if that is 0.
template <class P, int M0, int N0, int kOutRows, int kSteps, int kPrefetchBlocks, int Rows,
          int Vectors>
UK_INLINE uk_index_t k_steps(typename P::Acc (&acc)[Rows][Vectors], const char*& lhs,
                             const char*& rhs, uk_index_t panel_bytes, uk_index_t k1,
                             Prefetch& ahead) {
  constexpr int kRows = kSteps * kOutRows, kGroupRows = P::kGroup * P::kAccRows;
  constexpr int kWhole = kRows / kGroupRows, kRest = kRows % kGroupRows;
  static_assert(kSteps == 1 || kOutRows == M0, "the next step's rows follow");
  // Compilers know how few steps may be left, and would write out each number of them.
  UK_KEEP_LOOP for (; k1 >= kSteps; k1 -= kSteps) {
    if constexpr (kPrefetchBlocks > 0) {
      prefetch<kPrefetchBlocks, N0 * P::kRhsBytes, kSteps>(ahead);
    }
    decltype(P::template load_lhs<1>(lhs)) groups[kWhole + (kRest > 0)];
    UK_UNROLL for (int g = 0; g < kWhole; ++g) {
      groups[g] = P::template load_lhs<kGroupRows>(lhs + g * kGroupRows * P::kLhsBytes);
    }
    if constexpr (kRest > 0) {
      groups[kWhole] = P::template load_lhs<kRest>(lhs + kWhole * kGroupRows * P::kLhsBytes);
    }
    dot_steps<P, N0, kSteps, 0>(acc, groups, rhs, panel_bytes);
    lhs += kSteps * M0 * P::kLhsBytes;
    rhs += kSteps * N0 * P::kRhsBytes;
  }
  return k1;
}

// A block's K loop. Few rows: as many steps at a time as their rows fill one group, unless that is
// more operands than fit beside the accumulators.
template <class P, int M0, int N0, int kOutRows, int kPrefetchBlocks, int Rows, int Vectors>
UK_INLINE void k_loop(typename P::Acc (&acc)[Rows][Vectors], const char* lhs, const char* rhs,
                      uk_index_t panel_bytes, uk_index_t k1, Prefetch ahead) {
  constexpr bool kFew = kOutRows == M0 && P::kAccRows == 1 && M0 < P::kGroup &&
                        P::kGroup % M0 == 0 &&
                        Rows * Vectors * P::kAccRegisters + P::kTemporaries <= kRegisters / 2;
  if constexpr (kFew) {
    k1 = k_steps<P, M0, N0, kOutRows, P::kGroup / M0, kPrefetchBlocks>(acc, lhs, rhs, panel_bytes,
                                                                       k1, ahead);
  }
  k_steps<P, M0, N0, kOutRows, 1, kPrefetchBlocks>(acc, lhs, rhs, panel_bytes, k1, ahead);
}

// One register block: of the tile's rows, row_bytes apart in OUT, its part, all columns, of kPanels
// panels. kPrefetchBlocks as above.
template <class P, int M0, int N0, int kBlocks, int kBlock, int kPrefetchBlocks, int kPanels = 1>
UK_INLINE void block(char* out, uk_index_t row_bytes, const char* lhs, const char* rhs,
                     uk_index_t k1, uint32_t flags, const uk_tile_context_t& context) {
  constexpr int kTileAccRows = (M0 + P::kAccRows - 1) / P::kAccRows;
  constexpr int kRow = P::kAccRows * uk::block_first_row(kTileAccRows, kBlocks, kBlock);
  constexpr int kEnd = P::kAccRows * uk::block_first_row(kTileAccRows, kBlocks, kBlock + 1);
  constexpr int kOutRows = (kEnd < M0 ? kEnd : M0) - kRow;
  constexpr int kVectorBytes = P::kLanes * P::kOutBytes, kPanelVectors = N0 / P::kLanes;
  constexpr int kRows = (kOutRows + P::kAccRows - 1) / P::kAccRows,
                kVectors = kPanels * N0 / P::kLanes;
  constexpr int kAccRows = kOutRows < P::kAccRows ? kOutRows : P::kAccRows;
  static_assert(kOutRows % kAccRows == 0, "accumulators of as many rows each");
  const uk_index_t acc_bytes = P::kAccRows * row_bytes;
  const uk_index_t out_panel_bytes = kPanels > 1 ? context.out_panel_stride * P::kOutBytes : 0;
  const auto out_at = [&](auto row, int j) UK_INLINE_LAMBDA {
    return vector_of_panels<kPanelVectors, kVectorBytes>(row, j, out_panel_bytes);
  };
  out += kRow * row_bytes;
  lhs += kRow * P::kLhsBytes;
  typename P::Acc acc[kRows][kVectors];
  if (flags & UK_MMT4D_ACCUMULATE) {
    const char* row = out;
    UK_UNROLL for (int i = 0; i < kRows; ++i) {
      if (i > 0) row += acc_bytes;
      UK_UNROLL for (int j = 0; j < kVectors; ++j) {
        acc[i][j] = P::template load_out<kAccRows>(out_at(row, j), row_bytes);
      }
    }
  } else {
    UK_UNROLL for (int i = 0; i < kRows; ++i) {
      UK_UNROLL for (int j = 0; j < kVectors; ++j) acc[i][j] = P::zero();
    }
  }
  if constexpr (kPrefetchBlocks == 0) {
    k_loop<P, M0, N0, kOutRows, 0>(acc, lhs, rhs, context.rhs_panel_bytes, k1, {});
  } else if (flags & UK_MMT4D_PREFETCH_RHS) {
    const Prefetch ahead =
        prefetch_start<kPrefetchBlocks, N0 * P::kRhsBytes>(rhs, k1, kBlock, context);
    k_loop<P, M0, N0, kOutRows, kPrefetchBlocks>(acc, lhs, rhs, 0, k1, ahead);
  } else {
    k_loop<P, M0, N0, kOutRows, 0>(acc, lhs, rhs, context.rhs_panel_bytes, k1, {});
  }
  UK_UNROLL for (int i = 0; i < kRows; ++i) {
    if (i > 0) out = next_row(out, acc_bytes);
    UK_UNROLL for (int j = 0; j < kVectors; ++j) {
      P::template store_out<kAccRows>(out_at(out, j), row_bytes, acc[i][j]);
    }
  }
}

template <class P, int M0, int N0, int kBlocks, bool kShare, int kBlock = 0>
UK_INLINE void blocks(char* out, uk_index_t row_bytes, const char* lhs, const char* rhs,
                      uk_index_t k1, uint32_t flags, const uk_tile_context_t& context) {
  if constexpr (kBlock < kBlocks) {
    constexpr int kPrefetchBlocks = kShare ? kBlocks : kBlock == 0 ? 1 : 0;
    block<P, M0, N0, kBlocks, kBlock, kPrefetchBlocks>(out, row_bytes, lhs, rhs, k1, flags,
                                                       context);
    blocks<P, M0, N0, kBlocks, kShare, kBlock + 1>(out, row_bytes, lhs, rhs, k1, flags, context);
  }
}

// None takes a decoded operand: nobody measured whether that would be worth it.
template <class P, int M0, int N0>
constexpr uk_decoded_operand_t decoded_operand(uk::TileForm) {
  return {0};
}

// Where the dots of few sums would wait for each other: for 1x8 of f32 LLVM's models of Neoverse N1
// and V1 have 0.67 cycles an FMLA on three panels, and 2 on one. Compilers load all columns of a
// step.
template <class P, int M0, int N0>
constexpr uk::Abreast reads_abreast() {
  constexpr int kVectors = kPanelsAbreast * N0 / P::kLanes;
  constexpr int kColumnRegisters = sizeof(decltype(P::load_rhs(nullptr))) / sizeof(uint8x16_t);
  constexpr int kRows = (M0 + P::kAccRows - 1) / P::kAccRows;
  constexpr int kNeeded = kVectors * (kRows * P::kAccRegisters + kColumnRegisters) + 1;
  const bool are_few = kRows * N0 / P::kLanes * P::kAccRegisters <= kFewSums;
  return are_few && kNeeded <= kRegisters - P::kTemporaries ? uk::Abreast::kAnywhere
                                                            : uk::Abreast::kNowhere;
}

template <class P, int M0, int N0, int K0, uk::TileForm kForm>
UK_INLINE void mmt4d_tile(void* out, const void* lhs, const void* rhs, uk_index_t k1,
                          uint32_t flags, const uk_tile_context_t& context) {
  static_assert(K0 == P::kK0, "one dot per k step");
  static_assert(N0 % P::kLanes == 0, "whole vectors");
  if constexpr (kForm == uk::TileForm::kAbreast) {
    block<P, M0, N0, 1, 0, 0, kPanelsAbreast>(
        static_cast<char*>(out), context.out_stride * P::kOutBytes, static_cast<const char*>(lhs),
        static_cast<const char*>(rhs), k1, flags, context);
  } else {
    static_assert(kForm == uk::TileForm::kPlain, "no tile decodes an operand");
    constexpr int kAccRows = (M0 + P::kAccRows - 1) / P::kAccRows;
    constexpr int kColumns = N0 / P::kLanes * P::kAccRegisters;
    constexpr int kBlocks = uk::block_count(kRegisters - P::kTemporaries, kAccRows, kColumns);
    // Only where OUT holds what accumulators hold can blocks run on few steps at a time.
    constexpr bool kShare =
        kBlocks > 1 && sizeof(typename P::Acc) == P::kAccRows * P::kLanes * P::kOutBytes;
    for_steps<kShare, M0 * P::kLhsBytes, N0 * P::kRhsBytes>(
        lhs, rhs, k1, flags, context,
        [&](const char* lhs, const char* rhs, uk_index_t steps, uint32_t flags) UK_INLINE_LAMBDA {
          blocks<P, M0, N0, kBlocks, kShare>(static_cast<char*>(out),
                                             context.out_stride * P::kOutBytes, lhs, rhs, steps,
                                             flags, context);
        });
  }
}

}  // namespace

#endif  // UKERNEL_ARCH_ARM_64_MMT4D_TILE_H_
