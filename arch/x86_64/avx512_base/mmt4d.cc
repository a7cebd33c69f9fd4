// mmt4d tiles of avx512_base. The rows are in tiles.inc.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/x86_64/mmt4d_tile.h"

namespace {

struct F32 {
  using Acc = __m512;
  using Lhs = float;
  using Rhs = float;
  using Out = float;
  static constexpr int kLanes = 16, kK0 = 1, kRegisters = 32, kTemporaries = 0;

  template <int Rows>
  struct LhsRows {
    const float* lhs;
    UK_INLINE __m512 broadcast(int i) const { return _mm512_set1_ps(lhs[i]); }
  };
  template <int Rows>
  static UK_INLINE LhsRows<Rows> lhs_rows(const float* lhs) {
    return {lhs};
  }
  static UK_INLINE Acc zero() { return _mm512_setzero_ps(); }
  static UK_INLINE Acc load_out(const float* out) { return _mm512_loadu_ps(out); }
  static UK_INLINE void store_out(float* out, Acc acc) { _mm512_storeu_ps(out, acc); }
  static UK_INLINE __m512 load_rhs(const float* rhs) { return _mm512_loadu_ps(rhs); }
  static UK_INLINE Acc dot(Acc acc, __m512 lhs, __m512 rhs) {
    return _mm512_fmadd_ps(lhs, rhs, acc);
  }
};

template <int M0, int N0, int K0>
UK_INLINE void mmt4d_f32f32f32(void* out, const void* lhs, const void* rhs, uk_index_t k1,
                               uint32_t flags) {
  mmt4d_tile<F32, M0, N0, K0>(out, lhs, rhs, k1, flags);
}

}  // namespace

#define UK_MMT4D_TILE UK_DEFINE_MMT4D_TILE
#define UK_PACK_TILE UK_IGNORE_ROW
#define UK_UNPACK_TILE UK_IGNORE_ROW
#include "arch/x86_64/avx512_base/tiles.inc"
