// mmt4d tiles of fp16fml. The rows are in tiles.inc.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/arm_64/fp16fml/idioms.h"

namespace {

// FMLAL and FMLAL2 multiply and add f16 to f32 with one rounding: an FMA of what they were widened
// to.
template <class Columns>
struct F32OfF16 : RowOf8<Columns>, DirectOperands<2> {
  using typename RowOf8<Columns>::Acc;
  static constexpr int kK0 = 1;
  template <int kLane>
  static UK_INLINE Acc dot(const Acc& acc, uint8x16_t lhs, uint8x16_t rhs) {
    const float16x8_t rows = vreinterpretq_f16_u8(lhs), columns = vreinterpretq_f16_u8(rhs);
    return {fma_low<kLane>(acc.low, columns, rows), fma_high<kLane>(acc.high, columns, rows)};
  }
};

UK_MMT4D_BODY(f16f16f32, F32OfF16<F32Columns>)
UK_MMT4D_BODY(f16f16f16_f32acc, F32OfF16<F16Columns>)

}  // namespace

#define UK_MMT4D_TILE UK_DEFINE_MMT4D_TILE
#define UK_PACK_TILE UK_IGNORE_ROW
#define UK_UNPACK_TILE UK_IGNORE_ROW
#include "arch/arm_64/fp16fml/tiles.inc"
