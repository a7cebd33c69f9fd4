// mmt4d tiles of bf16. The rows are in tiles.inc.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/arm_64/bf16/idioms.h"

namespace {

// BFMMLA: two rows by two columns of four products each, accumulated in f32 in the hardware's
// order, subnormals flushed.
template <class Out>
struct Bf16Matrices : TwoRowsOf4<Out>, PairOperands {
  using typename TwoRowsOf4<Out>::Acc;
  static constexpr int kK0 = 4;
  template <int>
  static UK_INLINE Acc dot(const Acc& acc, uint8x16_t lhs, const Columns& rhs) {
    const bfloat16x8_t rows = vreinterpretq_bf16_u8(lhs);
    return {vbfmmlaq_f32(acc.low, rows, vreinterpretq_bf16_u8(rhs.low)),
            vbfmmlaq_f32(acc.high, rows, vreinterpretq_bf16_u8(rhs.high))};
  }
};

struct Bf16Rounded : RowOf8<ConvertedBf16Columns>, WidenedFloats<WidenBf16> {
  static constexpr int kK0 = 1, kTemporaries = 4;
  template <int kLane>
  static UK_INLINE Acc dot(const Acc& acc, const F32x8& lhs, const F32x8& rhs) {
    return {fma_converted_to_bf16<kLane % 4>(acc.low, rhs.low, half<kLane>(lhs)),
            fma_converted_to_bf16<kLane % 4>(acc.high, rhs.high, half<kLane>(lhs))};
  }
};

UK_MMT4D_BODY(bf16bf16f32, Bf16Matrices<F32Columns>)
UK_MMT4D_BODY(bf16bf16bf16, Bf16Rounded)
UK_MMT4D_BODY(bf16bf16bf16_f32acc, Bf16Matrices<ConvertedBf16Columns>)

}  // namespace

#define UK_MMT4D_TILE UK_DEFINE_MMT4D_TILE
#define UK_PACK_TILE UK_IGNORE_ROW
#define UK_UNPACK_TILE UK_IGNORE_ROW
#include "arch/arm_64/bf16/tiles.inc"
