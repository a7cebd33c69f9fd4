// The shape of every x86 mmt4d tile: init, K loop, store. A Primitive says how one type does each
// of these with the instructions of one ISA.
//
// A Primitive has
//   Acc                         a vector of accumulators, kLanes columns of one row
//   kRegisters, kTemporaries    the register file, and what dot() needs beyond its operands
//   Lhs, Rhs, Out               element types in memory
//   kK0                         k consumed by one dot
//   zero, load_out, store_out   accumulators <-> kLanes elements of OUT
//   load_rhs(const Rhs*)        kLanes columns x kK0
//   broadcast_lhs(...)          one row's kK0 values in every lane
//   dot(acc, lhs, rhs)
// and, where the LHS must be converted, Staged and stage_lhs<Rows>: see k_loop.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_X86_64_MMT4D_TILE_H_
#define UKERNEL_ARCH_X86_64_MMT4D_TILE_H_

#include <immintrin.h>

#include "ukernel/tile.h"

namespace {

// How far ahead of its reads a tile prefetches a streaming RHS, in bytes. Nearer than 16 KiB the
// request does not cover the memory's latency times its bandwidth.
constexpr int kPrefetchDistance = 16 << 10;
constexpr int kCacheLine = 64;

UK_INLINE void prefetch_rhs(const void* rhs, int bytes) {
  // Integer arithmetic: the address may lie past the end of the buffer, which is fine for a
  // prefetch and undefined for a pointer.
  const uintptr_t ahead = reinterpret_cast<uintptr_t>(rhs) + kPrefetchDistance;
  UK_UNROLL for (int b = 0; b < bytes; b += kCacheLine) {
    _mm_prefetch(reinterpret_cast<const char*>(ahead + b), _MM_HINT_T0);
  }
}

// The largest divisor of M0 whose accumulators, with the RHS vectors of a k step, one broadcast and
// the primitive's temporaries, fit the register file. A tile of more rows runs in equal blocks,
// each with its whole K loop, so that no accumulator ever leaves its register.
template <class Primitive>
constexpr int rows_per_block(int m0, int vectors) {
  const int budget = Primitive::kRegisters - Primitive::kTemporaries - vectors - 1;
  int rows = m0;
  while (rows > 1 && (m0 % rows != 0 || rows * vectors > budget)) --rows;
  return rows;
}

// K loop of a block of Rows x (Vectors * kLanes). Operand panels advance by whole tile steps.
template <class P, int M0, int N0, int Rows, int Vectors, bool kPrefetch>
UK_INLINE void k_loop(typename P::Acc (&acc)[Rows][Vectors], const typename P::Lhs* lhs,
                      const typename P::Rhs* rhs, uk_index_t k1) {
  for (; k1 > 0; --k1) {
    if (kPrefetch) prefetch_rhs(rhs, N0 * P::kK0 * static_cast<int>(sizeof(*rhs)));
    decltype(P::load_rhs(rhs)) b[Vectors];
    UK_UNROLL for (int j = 0; j < Vectors; ++j) b[j] = P::load_rhs(rhs + j * P::kLanes * P::kK0);
    const auto a = P::template lhs_rows<Rows>(lhs);
    UK_UNROLL for (int i = 0; i < Rows; ++i) {
      const auto row = a.broadcast(i);
      UK_UNROLL for (int j = 0; j < Vectors; ++j) acc[i][j] = P::dot(acc[i][j], row, b[j]);
    }
    lhs += M0 * P::kK0;
    rhs += N0 * P::kK0;
  }
}

template <class P, int M0, int N0, int Rows, int Vectors>
UK_INLINE void block(typename P::Out* out, const typename P::Lhs* lhs, const typename P::Rhs* rhs,
                     uk_index_t k1, uint32_t flags) {
  typename P::Acc acc[Rows][Vectors];
  if (flags & UK_MMT4D_ACCUMULATE) {
    UK_UNROLL for (int i = 0; i < Rows; ++i) {
      UK_UNROLL for (int j = 0; j < Vectors; ++j) {
        acc[i][j] = P::load_out(out + i * N0 + j * P::kLanes);
      }
    }
  } else {
    UK_UNROLL for (int i = 0; i < Rows; ++i) {
      UK_UNROLL for (int j = 0; j < Vectors; ++j) acc[i][j] = P::zero();
    }
  }
  if (flags & UK_MMT4D_PREFETCH_RHS) {
    k_loop<P, M0, N0, Rows, Vectors, true>(acc, lhs, rhs, k1);
  } else {
    k_loop<P, M0, N0, Rows, Vectors, false>(acc, lhs, rhs, k1);
  }
  UK_UNROLL for (int i = 0; i < Rows; ++i) {
    UK_UNROLL for (int j = 0; j < Vectors; ++j) {
      P::store_out(out + i * N0 + j * P::kLanes, acc[i][j]);
    }
  }
}

template <class P, int M0, int N0, int K0>
UK_INLINE void mmt4d_tile(void* out_tile, const void* lhs_panel, const void* rhs_panel,
                          uk_index_t k1, uint32_t flags) {
  static_assert(K0 == P::kK0, "the primitive's k is the tile's");
  static_assert(N0 % P::kLanes == 0, "whole vectors");
  constexpr int kVectors = N0 / P::kLanes;
  constexpr int kRows = rows_per_block<P>(M0, kVectors);
  auto* out = static_cast<typename P::Out*>(out_tile);
  auto* lhs = static_cast<const typename P::Lhs*>(lhs_panel);
  auto* rhs = static_cast<const typename P::Rhs*>(rhs_panel);
  UK_UNROLL for (int i = 0; i < M0; i += kRows) {
    block<P, M0, N0, kRows, kVectors>(out + i * N0, lhs + i * K0, rhs, k1, flags);
    flags &= ~UK_MMT4D_PREFETCH_RHS;  // from the second block on the RHS panel is in cache
  }
}

}  // namespace

#endif  // UKERNEL_ARCH_X86_64_MMT4D_TILE_H_
