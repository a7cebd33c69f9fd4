// The shape of an AMX mmt4d tile. AMX has eight registers of 16 rows of 64 bytes, and multiplies
//
//   A: 16 rows of the LHS              B: 16 k steps of an RHS panel      C: results
//
//   row 0    step 0, 1 ... 15          step 0    column 0, 1 ... 15       row 0    column 0 ... 15
//   row 1    step 0, 1 ... 15          step 1    column 0, 1 ... 15       row 1    column 0 ... 15
//   ...                                ...                                ...
//
// where a step is four bytes of a row or column. An RHS panel lies as B needs it. An LHS panel lies
// like one, so that its steps are transposed to A, 16 at a time.
//
// A Primitive, of UK_AMX_PRIMITIVE, says which instruction multiplies.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_X86_64_AMX_TILE_H_
#define UKERNEL_ARCH_X86_64_AMX_TILE_H_

#include <immintrin.h>

#include "arch/mmt4d_tile.h"

namespace {

constexpr int kTileRows = 16, kTileRowBytes = 64, kTileBytes = kTileRows * kTileRowBytes;
constexpr int kTileSteps = 16;  // of K that an instruction takes
constexpr int kUnitBytes = 4;   // of a row or column in a step

// Keeps reads and writes of memory on their side of it. GCC 12 does not know that instructions with
// tiles do any.
UK_INLINE void memory_barrier() { asm volatile("" : : : "memory"); }

// ---------------------------------------------------------------- configuration

// As LDTILECFG reads it.
struct TileShapes {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};

// All eight registers in full. A constant in memory: GCC 12 says of the instruction that it reads
// the first bytes alone. It takes 200 cycles, so that ops do it once for all their tiles.
constexpr uint16_t kAll = kTileRowBytes;
alignas(64) constexpr TileShapes kWholeTiles = {
    1, 0, {}, {kAll, kAll, kAll, kAll, kAll, kAll, kAll, kAll}, {16, 16, 16, 16, 16, 16, 16, 16}};

UK_INLINE void configure_tiles() { _tile_loadconfig(&kWholeTiles); }
// Gives the registers back: without contents they need not be saved, and cores may clock higher.
UK_INLINE void release_tiles() { _tile_release(); }

// ---------------------------------------------------------------- the LHS

// 16 bytes each of four steps that are four steps apart.
UK_INLINE __m512i every_fourth_step(const char* from, uk_index_t step_bytes) {
  const auto four_rows = [&](int step) UK_INLINE_LAMBDA {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + step * step_bytes));
  };
  __m512i v = _mm512_castsi128_si512(four_rows(0));
  v = _mm512_inserti32x4(v, four_rows(4), 1);
  v = _mm512_inserti32x4(v, four_rows(8), 2);
  return _mm512_inserti32x4(v, four_rows(12), 3);
}

// 16 steps of 16 rows, of which those of a step lie side by side, to 16 rows of 16 steps. Of four
// rows a b c d at a time, whose lanes are these steps:
//
//   every_fourth_step:  a0 b0 c0 d0 | a4 b4 c4 d4 | a8 ... | a12 ...    and from steps 1, 2, 3 on
//   unpack 32 bits:     a0 a1 b0 b1 | a4 a5 b4 b5 | ...                 c0 c1 d0 d1 | ...
//                       a2 a3 b2 b3 | a6 a7 b6 b7 | ...                 c2 c3 d2 d3 | ...
//   unpack 64 bits:     a0 a1 a2 a3 | a4 a5 a6 a7 | a8 ... | a12 ...    and b, c, d
UK_INLINE void transpose_steps(char* to, const char* from, uk_index_t step_bytes) {
  UK_UNROLL for (int row = 0; row < kTileRows; row += 4) {
    const char* rows = from + row * kUnitBytes;
    const __m512i steps0 = every_fourth_step(rows, step_bytes);
    const __m512i steps1 = every_fourth_step(rows + step_bytes, step_bytes);
    const __m512i steps2 = every_fourth_step(rows + 2 * step_bytes, step_bytes);
    const __m512i steps3 = every_fourth_step(rows + 3 * step_bytes, step_bytes);
    const __m512i ab01 = _mm512_unpacklo_epi32(steps0, steps1);
    const __m512i cd01 = _mm512_unpackhi_epi32(steps0, steps1);
    const __m512i ab23 = _mm512_unpacklo_epi32(steps2, steps3);
    const __m512i cd23 = _mm512_unpackhi_epi32(steps2, steps3);
    char* const a = to + row * kTileRowBytes;
    _mm512_store_si512(a, _mm512_unpacklo_epi64(ab01, ab23));
    _mm512_store_si512(a + kTileRowBytes, _mm512_unpackhi_epi64(ab01, ab23));
    _mm512_store_si512(a + 2 * kTileRowBytes, _mm512_unpacklo_epi64(cd01, cd23));
    _mm512_store_si512(a + 3 * kTileRowBytes, _mm512_unpackhi_epi64(cd01, cd23));
  }
}

// The last steps of a panel, fewer than 16, with zeros behind them.
template <int kStepBytes>
UK_INLINE void pad_steps(char* to, const char* from, uk_index_t steps) {
  static_assert(kStepBytes % 64 == 0, "whole vectors");
  UK_KEEP_LOOP for (int step = 0; step < kTileSteps; ++step, to += kStepBytes) {
    UK_UNROLL for (int b = 0; b < kStepBytes; b += 64) {
      _mm512_store_si512(to + b, step < steps ? _mm512_loadu_si512(from + step * kStepBytes + b)
                                              : _mm512_setzero_si512());
    }
  }
  memory_barrier();  // GCC would leave them in registers
}

// 16 steps of all rows.
template <int M0>
UK_INLINE void transpose_rows(char* to, const char* from) {
  UK_UNROLL for (int row = 0; row < M0; row += kTileRows) {
    transpose_steps(to + row * kTileRowBytes, from + row * kUnitBytes, M0 * kUnitBytes);
  }
}

// Up to 16 steps of all rows, those that are not there being zero.
template <int M0>
UK_NOINLINE void transpose_some(char* to, const char* from, uk_index_t steps) {
  if (steps >= kTileSteps) return transpose_rows<M0>(to, from);
  alignas(64) char padded[kTileSteps * M0 * kUnitBytes];
  pad_steps<M0 * kUnitBytes>(padded, from, steps);
  transpose_rows<M0>(to, padded);
}

// ---------------------------------------------------------------- the K loop

// The registers: C 0 to 3, by row tile and column tile, A 4 and 5, B 6 and 7. `multiply` is an
// intrinsic, which wants literals, for steps of k0 elements, four bytes:
//   multiply_<row tile><column tile>()   C of these += A of the row tile * B of the column tile
#define UK_AMX_PRIMITIVE(name, k0, multiply)                   \
  struct name {                                                \
    static constexpr int kK0 = k0;                             \
    static UK_INLINE void multiply_00() { multiply(0, 4, 6); } \
    static UK_INLINE void multiply_01() { multiply(1, 4, 7); } \
    static UK_INLINE void multiply_10() { multiply(2, 5, 6); } \
    static UK_INLINE void multiply_11() { multiply(3, 5, 7); } \
  };

template <int M0, int N0>
UK_INLINE void load_results(const char* out, uk_index_t row_bytes) {
  memory_barrier();
  _tile_loadd(0, out, row_bytes);
  if constexpr (N0 > 16) _tile_loadd(1, out + kTileRowBytes, row_bytes);
  if constexpr (M0 > 16) _tile_loadd(2, out + kTileRows * row_bytes, row_bytes);
  if constexpr (M0 > 16 && N0 > 16) {
    _tile_loadd(3, out + kTileRows * row_bytes + kTileRowBytes, row_bytes);
  }
}

template <int M0, int N0>
UK_INLINE void clear_results() {
  _tile_zero(0);
  if constexpr (N0 > 16) _tile_zero(1);
  if constexpr (M0 > 16) _tile_zero(2);
  if constexpr (M0 > 16 && N0 > 16) _tile_zero(3);
}

template <int M0, int N0>
UK_INLINE void store_results(char* out, uk_index_t row_bytes) {
  _tile_stored(0, out, row_bytes);
  if constexpr (N0 > 16) _tile_stored(1, out + kTileRowBytes, row_bytes);
  if constexpr (M0 > 16) _tile_stored(2, out + kTileRows * row_bytes, row_bytes);
  if constexpr (M0 > 16 && N0 > 16) {
    _tile_stored(3, out + kTileRows * row_bytes + kTileRowBytes, row_bytes);
  }
  memory_barrier();
}

// 16 steps, of transposed rows and of columns as they lie.
template <class P, int M0, int N0>
UK_INLINE void multiply_steps(const char* rows, const char* columns) {
  constexpr uk_index_t kStepBytes = N0 * kUnitBytes;
  memory_barrier();
  _tile_loadd(4, rows, kTileRowBytes);
  _tile_loadd(6, columns, kStepBytes);
  if constexpr (N0 > 16) _tile_loadd(7, columns + kTileRowBytes, kStepBytes);
  if constexpr (M0 > 16) _tile_loadd(5, rows + kTileBytes, kTileRowBytes);
  memory_barrier();
  P::multiply_00();
  if constexpr (N0 > 16) P::multiply_01();
  if constexpr (M0 > 16) P::multiply_10();
  if constexpr (M0 > 16 && N0 > 16) P::multiply_11();
}

// Calls next_rows() for the transposed rows of each 16 steps in turn, and has the registers
// configured. Of the last steps, if they are fewer, the columns are copied, with zeros behind them:
// what lies behind a panel is not its own.
template <class P, int M0, int N0, class NextRows>
UK_INLINE void multiply_panels(char* out, uk_index_t row_bytes, const char* rhs, uk_index_t k1,
                               uint32_t flags, NextRows next_rows) {
  static_assert((M0 == 16 || M0 == 32) && (N0 == 16 || N0 == 32), "one or two tiles each");
  constexpr int kStepBytes = N0 * kUnitBytes;
  if (flags & UK_MMT4D_ACCUMULATE) {
    load_results<M0, N0>(out, row_bytes);
  } else {
    clear_results<M0, N0>();
  }
  for (; k1 >= kTileSteps; k1 -= kTileSteps, rhs += kTileSteps * kStepBytes) {
    multiply_steps<P, M0, N0>(next_rows(), rhs);
  }
  if (k1 > 0) {
    alignas(64) char padded[kTileSteps * kStepBytes];
    pad_steps<kStepBytes>(padded, rhs, k1);
    multiply_steps<P, M0, N0>(next_rows(), padded);
  }
  store_results<M0, N0>(out, row_bytes);
}

// ---------------------------------------------------------------- tiles

// The next steps are transposed before the products of these: a load of a tile waits for stores
// that are under way.
template <class P, int M0, int N0>
UK_INLINE void tile_on_panels(char* out, uk_index_t row_bytes, const char* lhs, const char* rhs,
                              uk_index_t k1, uint32_t flags, Prefetch ahead) {
  alignas(64) char transposed[2][M0 * kTileRowBytes];
  int next = 0;
  const auto transpose_next = [&](uk_index_t steps) UK_INLINE_LAMBDA {
    if (steps > 0) transpose_some<M0>(transposed[next], lhs, steps);
    lhs += kTileSteps * M0 * kUnitBytes;
    next ^= 1;
  };
  uk_index_t steps = k1;
  transpose_next(steps);
  configure_tiles();
  const bool prefetches = (flags & UK_MMT4D_PREFETCH_RHS) != 0;
  multiply_panels<P, M0, N0>(out, row_bytes, rhs, k1, flags, [&]() UK_INLINE_LAMBDA {
    if (prefetches) prefetch<1, N0 * kUnitBytes, kTileSteps>(ahead);
    steps -= kTileSteps;
    transpose_next(steps);
    return transposed[next];
  });
  release_tiles();
}

// For an op, which has the registers configured, and prefetches nothing: see DecodedLhsPanel in
// ukernel/mmt4d.cc.
template <class P, int M0, int N0>
UK_INLINE void tile_on_transposed_lhs(char* out, uk_index_t row_bytes, const char* lhs,
                                      const char* rhs, uk_index_t k1, uint32_t flags,
                                      const uk_tile_context_t& context) {
  char* rows = context.decoded;
  if (context.fills_decoded) {
    for (uk_index_t k = 0; k < k1; k += kTileSteps) {
      transpose_some<M0>(rows + k * M0 * kUnitBytes, lhs + k * M0 * kUnitBytes, k1 - k);
    }
  }
  multiply_panels<P, M0, N0>(out, row_bytes, rhs, k1, flags, [&]() UK_INLINE_LAMBDA {
    const char* const these = rows;
    rows += M0 * kTileRowBytes;
    return these;
  });
}

// The LHS, which each RHS panel would have transposed anew.
template <class P, int M0, int N0>
constexpr uk_decoded_operand_t decoded_operand(uk::TileForm form) {
  if (form != uk::TileForm::kOnDecodedLhs) return {0};
  return {M0 * kUnitBytes, configure_tiles, release_tiles};
}

template <class P, int M0, int N0>
constexpr uk::Abreast reads_abreast() {
  return uk::Abreast::kNowhere;
}

template <class P, int M0, int N0, int K0, uk::TileForm kForm>
UK_INLINE void mmt4d_tile(void* out_matrix, const void* lhs_panel, const void* rhs_panel,
                          uk_index_t k1, uint32_t flags, const uk_tile_context_t& context) {
  static_assert(K0 == P::kK0, "four bytes");
  char* const out = static_cast<char*>(out_matrix);
  const char* const lhs = static_cast<const char*>(lhs_panel);
  const char* const rhs = static_cast<const char*>(rhs_panel);
  const uk_index_t row_bytes = context.out_stride * 4;
  if constexpr (kForm == uk::TileForm::kOnDecodedLhs) {
    tile_on_transposed_lhs<P, M0, N0>(out, row_bytes, lhs, rhs, k1, flags, context);
  } else {
    tile_on_panels<P, M0, N0>(out, row_bytes, lhs, rhs, k1, flags,
                              prefetch_start<1, N0 * kUnitBytes>(rhs, k1, 0, context));
  }
}

}  // namespace

#endif  // UKERNEL_ARCH_X86_64_AMX_TILE_H_
