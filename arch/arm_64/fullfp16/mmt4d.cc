// mmt4d tiles of fullfp16. The rows are in tiles.inc.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/arm_64/fullfp16/idioms.h"

namespace {

// The FMA of f16 itself rounds each step once.
struct EightF16Columns {
  using Vector = float16x8_t;
  static constexpr int kBytes = 2;
  static UK_INLINE Vector zero() { return vdupq_n_f16(0); }
  static UK_INLINE Vector load(const char* p) { return vreinterpretq_f16_u8(load_128<16>(p)); }
  static UK_INLINE void store(char* p, Vector v) { store_128<16>(p, vreinterpretq_u8_f16(v)); }
};

struct F16 : RowOf4<EightF16Columns>, DirectOperands<2> {
  static constexpr int kK0 = 1, kLanes = 8;
  template <int kLane>
  static UK_INLINE Acc dot(Acc acc, uint8x16_t lhs, uint8x16_t rhs) {
    return fma_f16<kLane>(acc, vreinterpretq_f16_u8(rhs), vreinterpretq_f16_u8(lhs));
  }
};

UK_MMT4D_BODY(f16f16f16, F16)

}  // namespace

#define UK_MMT4D_TILE UK_DEFINE_MMT4D_TILE
#define UK_PACK_TILE UK_IGNORE_ROW
#define UK_UNPACK_TILE UK_IGNORE_ROW
#include "arch/arm_64/fullfp16/tiles.inc"
