// mmt4d tiles of avx2_fma. The rows are in tiles.inc.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/x86_64/avx2_fma/idioms.h"

namespace {

template <class Out, class Operands>
struct F32Fma : Out, Operands {
  static constexpr int kK0 = 1;
  static UK_INLINE __m256 dot(__m256 acc, __m256i lhs, __m256i rhs) {
    return _mm256_fmadd_ps(_mm256_castsi256_ps(lhs), _mm256_castsi256_ps(rhs), in_place(acc));
  }
};

struct F16Rounded : Avx2F16Out, Avx2WidenedOperands<Avx2WidenF16> {
  static constexpr int kK0 = 1, kTemporaries = 6;
  static constexpr int kRowsBesideDots = 0;  // rounding overlaps by itself
  static UK_INLINE Acc dot(Acc acc, __m256i lhs, __m256i rhs) {
    return fma_rounded_to_f16(acc, _mm256_castsi256_ps(lhs), _mm256_castsi256_ps(rhs));
  }
};

// By contract an f32 FMA, then a second rounding to bf16.
struct Bf16Rounded : Avx2Bf16Out, Avx2WidenedOperands<Avx2WidenBf16> {
  static constexpr int kK0 = 1, kTemporaries = 8;
  static constexpr int kRowsBesideDots = 0;  // rounding overlaps by itself
  static constexpr bool kRoundsDots = true;
  static UK_INLINE Acc dot(Acc acc, __m256i lhs, __m256i rhs) {
    return _mm256_fmadd_ps(_mm256_castsi256_ps(lhs), _mm256_castsi256_ps(rhs), in_place(acc));
  }
  static UK_INLINE Acc round_dot(Acc acc) { return round_to_bf16(acc); }
};

// VPMADDWD adds two s16 products; only 2 * (-32768)^2 leaves int32, and it wraps as the sum may.
template <class Operands>
struct S16Pairs : Avx2S32Out, Operands {
  static constexpr int kK0 = 2, kTemporaries = 1;
  static UK_INLINE Acc dot(Acc acc, __m256i lhs, __m256i rhs) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(lhs, rhs));
  }
};

struct F64 : Avx2 {
  using Acc = __m256d;
  static constexpr bool kStagesLhs = false, kDecodesRhs = false;
  static constexpr int kLanes = 4, kOutBytes = 8, kK0 = 1;
  static constexpr int kLhsBytes = 8, kRhsBytes = 8, kRowBytes = 8;
  static UK_INLINE __m256d broadcast_lhs(const char* row) {
    return _mm256_castsi256_pd(_mm256_set1_epi64x(load_s64(row)));
  }
  static UK_INLINE Acc zero() { return _mm256_setzero_pd(); }
  static UK_INLINE Acc load_out(const char* out) {
    return _mm256_loadu_pd(reinterpret_cast<const double*>(out));
  }
  static UK_INLINE void store_out(char* out, Acc acc) {
    _mm256_storeu_pd(reinterpret_cast<double*>(out), acc);
  }
  static UK_INLINE __m256d load_rhs(const char* rhs) { return load_out(rhs); }
  static UK_INLINE Acc dot(Acc acc, __m256d lhs, __m256d rhs) {
    return _mm256_fmadd_pd(lhs, rhs, in_place(acc));
  }
};

// ---------------------------------------------------------------- the body of each type's rows

UK_MMT4D_BODY(f32f32f32, F32Fma<Avx2F32Out, Avx2DirectOperands>)
UK_MMT4D_BODY(f16f16f32, F32Fma<Avx2F32Out, Avx2WidenedOperands<Avx2WidenF16>>)
UK_MMT4D_BODY(f16f16f16, F16Rounded)
UK_MMT4D_BODY(f16f16f16_f32acc, F32Fma<Avx2F16Out, Avx2WidenedOperands<Avx2WidenF16>>)
UK_MMT4D_BODY(bf16bf16f32, F32Fma<Avx2F32Out, Avx2WidenedOperands<Avx2WidenBf16>>)
UK_MMT4D_BODY(bf16bf16bf16, Bf16Rounded)
UK_MMT4D_BODY(bf16bf16bf16_f32acc, F32Fma<Avx2Bf16Out, Avx2WidenedOperands<Avx2WidenBf16>>)
UK_MMT4D_BODY(s8s8s32, S16Pairs<Avx2WidenedOperands<Avx2WidenS8>>)
UK_MMT4D_BODY(u8s8s32, S16Pairs<Avx2WidenedOperands<Avx2WidenU8, Avx2WidenS8>>)
UK_MMT4D_BODY(s16s16s32, S16Pairs<Avx2DirectOperands>)
UK_MMT4D_BODY(f64f64f64, F64)

}  // namespace

#define UK_MMT4D_TILE UK_DEFINE_MMT4D_TILE
#define UK_PACK_TILE UK_IGNORE_ROW
#define UK_UNPACK_TILE UK_IGNORE_ROW
#include "arch/x86_64/avx2_fma/tiles.inc"
