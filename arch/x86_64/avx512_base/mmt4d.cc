// mmt4d tiles of avx512_base. The rows are in tiles.inc.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/x86_64/avx512_base/idioms.h"

namespace {

template <class Out, class Operands>
struct F32Fma : Out, Operands {
  static constexpr int kK0 = 1;
  static UK_INLINE __m512 dot(__m512 acc, __m512i lhs, __m512i rhs) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(lhs), _mm512_castsi512_ps(rhs), acc);
  }
  static constexpr bool kBroadcastsRows = true;
  static UK_INLINE __m512 row_dot(__m512 acc, const char* row, __m512i rhs) {
    return fmadd_row(acc, _mm512_castsi512_ps(rhs), row);
  }
};

struct F16Rounded : Avx512F16Out, Avx512WidenedOperands<Avx512WidenF16> {
  static constexpr int kK0 = 1, kTemporaries = 4;
  static UK_INLINE Acc dot(Acc acc, __m512i lhs, __m512i rhs) {
    return fma_rounded_to_f16(acc, _mm512_castsi512_ps(lhs), _mm512_castsi512_ps(rhs));
  }
};

// By contract an f32 FMA, then a second rounding to bf16.
struct Bf16Rounded : Avx512Bf16Out, Avx512WidenedOperands<Avx512WidenBf16> {
  static constexpr int kK0 = 1, kTemporaries = 15;  // what GCC's scheduler keeps in flight
  static constexpr bool kRoundsDots = true;
  static UK_INLINE Acc dot(Acc acc, __m512i lhs, __m512i rhs) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(lhs), _mm512_castsi512_ps(rhs), acc);
  }
  static UK_INLINE Acc round_dot(Acc acc) { return round_to_bf16(acc); }
};

// VPMADDWD adds two s16 products; only 2 * (-32768)^2 leaves int32, and it wraps as the sum may.
template <class Operands>
struct S16Pairs : Avx512S32Out, Operands {
  static constexpr int kK0 = 2, kTemporaries = 1;
  static constexpr bool kPairsDots = true;
  static UK_INLINE Acc multiply(__m512i lhs, __m512i rhs) { return _mm512_madd_epi16(lhs, rhs); }
  static UK_INLINE Acc add(Acc acc, Acc product) { return _mm512_add_epi32(acc, product); }
};

struct F64 : Avx512 {
  using Acc = __m512d;
  static constexpr int kLanes = 8, kOutBytes = 8, kK0 = 1;
  static constexpr bool kStagesLhs = false, kDecodesRhs = false;
  static constexpr int kLhsBytes = 8, kRhsBytes = 8, kRowBytes = 8;
  static UK_INLINE __m512d broadcast_lhs(const char* row) {
    return _mm512_castsi512_pd(_mm512_set1_epi64(load_s64(row)));
  }
  static UK_INLINE Acc zero() { return _mm512_setzero_pd(); }
  static UK_INLINE Acc load_out(const char* out) { return _mm512_loadu_pd(out); }
  static UK_INLINE void store_out(char* out, Acc acc) {
    store_product_512<64>(out, _mm512_castpd_si512(acc));
  }
  static UK_INLINE __m512d load_rhs(const char* rhs) { return _mm512_loadu_pd(rhs); }
  static UK_INLINE Acc dot(Acc acc, __m512d lhs, __m512d rhs) {
    return _mm512_fmadd_pd(lhs, rhs, acc);
  }
  static constexpr bool kBroadcastsRows = true;
  static UK_INLINE Acc row_dot(Acc acc, const char* row, __m512d rhs) {
    return fmadd_row(acc, rhs, row);
  }
};

// ---------------------------------------------------------------- the body of each type's rows

UK_MMT4D_BODY(f32f32f32, F32Fma<Avx512F32Out, Avx512DirectOperands>)
UK_MMT4D_BODY(f16f16f32, F32Fma<Avx512F32Out, Avx512WidenedOperands<Avx512WidenF16>>)
UK_MMT4D_BODY(f16f16f16, F16Rounded)
UK_MMT4D_BODY(f16f16f16_f32acc, F32Fma<Avx512F16Out, Avx512WidenedOperands<Avx512WidenF16>>)
UK_MMT4D_BODY(bf16bf16f32, F32Fma<Avx512F32Out, Avx512WidenedOperands<Avx512WidenBf16>>)
UK_MMT4D_BODY(bf16bf16bf16, Bf16Rounded)
UK_MMT4D_BODY(bf16bf16bf16_f32acc, F32Fma<Avx512Bf16Out, Avx512WidenedOperands<Avx512WidenBf16>>)
UK_MMT4D_BODY(s8s8s32, S16Pairs<Avx512WidenedOperands<Avx512WidenS8>>)
UK_MMT4D_BODY(u8s8s32, S16Pairs<Avx512WidenedOperands<Avx512WidenU8, Avx512WidenS8>>)
UK_MMT4D_BODY(s16s16s32, S16Pairs<Avx512DirectOperands>)
UK_MMT4D_BODY(f64f64f64, F64)

}  // namespace

#define UK_MMT4D_TILE UK_DEFINE_MMT4D_TILE
#define UK_PACK_TILE UK_IGNORE_ROW
#define UK_UNPACK_TILE UK_IGNORE_ROW
#include "arch/x86_64/avx512_base/tiles.inc"
