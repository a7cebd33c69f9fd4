// mmt4d tiles of avx512_bf16. The rows are in tiles.inc.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/x86_64/avx512_base/idioms.h"

namespace {

// VDPBF16PS: two bf16 products a lane, accumulated in f32 in the hardware's order, subnormals
// flushed.
template <class Out>
struct Bf16Pairs : Out, Avx512DirectOperands {
  static constexpr int kK0 = 2;
  static UK_INLINE __m512i broadcast_lhs(const char* row) { return broadcast_beside_floats(row); }
  static UK_INLINE __m512 dot(__m512 acc, __m512i lhs, __m512i rhs) {
    return _mm512_dpbf16_ps(acc, (__m512bh)lhs, (__m512bh)rhs);
  }
};

UK_MMT4D_BODY(bf16bf16f32, Bf16Pairs<Avx512F32Out>)
UK_MMT4D_BODY(bf16bf16bf16_f32acc, Bf16Pairs<Avx512Bf16Out>)

}  // namespace

#define UK_MMT4D_TILE UK_DEFINE_MMT4D_TILE
#define UK_PACK_TILE UK_IGNORE_ROW
#define UK_UNPACK_TILE UK_IGNORE_ROW
#include "arch/x86_64/avx512_bf16/tiles.inc"
