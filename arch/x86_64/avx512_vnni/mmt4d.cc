// mmt4d tiles of avx512_vnni. The rows are in tiles.inc.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/x86_64/avx512_base/idioms.h"

namespace {

// VPDPWSSD: two s16 products a lane, added modulo 2^32.
template <class Operands>
struct S16Pairs : Avx512S32Out, Operands {
  static constexpr int kK0 = 2;
  static UK_INLINE Acc dot(Acc acc, __m512i lhs, __m512i rhs) {
    return _mm512_dpwssd_epi32(acc, lhs, rhs);
  }
};

// VPDPBUSD: four products a lane of u8 by s8, added modulo 2^32.
struct U8S8 : Avx512S32Out, Avx512DirectOperands {
  static constexpr int kK0 = 4;
  static UK_INLINE Acc dot(Acc acc, __m512i lhs, __m512i rhs) {
    return _mm512_dpbusd_epi32(acc, lhs, rhs);
  }
};

// The rows of each k step with the sign bits of their bytes flipped, kept in a ring on the stack.
template <int kStride, int Rows>
class FlippedLhs {
 public:
  // Far enough ahead that a row is read from L1 and not from the store buffer, which forwards fewer
  // loads per cycle than a k step makes.
  static constexpr int kBytes = 4 * Rows, kSlotBytes = (kBytes + 63) / 64 * 64;
  static constexpr int kAhead = 3, kBufferBytes = (kAhead + 1) * kSlotBytes;

  UK_INLINE FlippedLhs(const char* lhs, uk_index_t k1, char* ring) : lhs_(lhs), ring_(ring) {
    for (int step = 0; step < kAhead && step < k1; ++step) flip_next(ring_ + step * kSlotBytes);
  }
  UK_INLINE const char* next(uk_index_t steps_left) {
    const char* step = ring_ + offset_;
    // Never past the panel's end.
    if (steps_left > kAhead) flip_next(ring_ + (offset_ + kAhead * kSlotBytes) % kBufferBytes);
    offset_ = (offset_ + kSlotBytes) % kBufferBytes;
    return step;
  }

 private:
  UK_INLINE void flip_next(char* to) {
    constexpr int kVectors = kBytes / 64 * 64;
    UK_UNROLL for (int b = 0; b < kVectors; b += 64) {
      const __m512i rows = _mm512_loadu_si512(lhs_ + b);
      _mm512_store_si512(to + b, _mm512_xor_si512(rows, _mm512_set1_epi8(-128)));
    }
    // Less than a vector on general registers: the dots need every slot of the vector ports.
    UK_UNROLL for (int b = kVectors; b + 8 <= kBytes; b += 8) {
      flip_bytes<uint64_t>(to + b, lhs_ + b);
    }
    if constexpr (kBytes % 8 == 4) flip_bytes<uint32_t>(to + kBytes - 4, lhs_ + kBytes - 4);
    lhs_ += kStride;
  }
  template <class Word>
  static UK_INLINE void flip_bytes(char* to, const char* from) {
    Word word;
    __builtin_memcpy(&word, from, sizeof(word));
    word ^= static_cast<Word>(UINT64_C(0x8080808080808080));
    __builtin_memcpy(to, &word, sizeof(word));
  }

  const char* lhs_;
  char* ring_;
  uintptr_t offset_ = 0;  // of the current step's slot
};

// s8 by s8 on VPDPBUSD, which wants one operand unsigned: flipping the sign bit of the LHS adds 128
// to each of its elements, and 128 times the sum of the RHS column is subtracted at the end. Per k
// step that costs one more dot a vector of columns; flipping the RHS instead would cost the vector
// ports an XOR a vector of columns and a dot for the rows.
struct S8S8 : Avx512S32Out, Avx512DirectOperands {
  static constexpr int kK0 = 4, kTemporaries = 3;  // two sums, and the 128s
  template <int kStride, int Rows>
  using LhsStream = FlippedLhs<kStride, Rows>;

  static UK_INLINE Acc dot(Acc acc, __m512i lhs, __m512i rhs) {
    return _mm512_dpbusd_epi32(acc, lhs, rhs);
  }
  template <int Vectors>
  class Correction {
   public:
    UK_INLINE Correction() {
      UK_UNROLL for (int j = 0; j < Vectors; ++j) sums_[j] = _mm512_setzero_si512();
    }
    UK_INLINE void step(const __m512i (&columns)[Vectors]) {
      UK_UNROLL for (int j = 0; j < Vectors; ++j) {
        sums_[j] = _mm512_dpbusd_epi32(sums_[j], _mm512_set1_epi8(-128), columns[j]);
      }
    }
    UK_INLINE Acc apply(int j, Acc acc) const { return _mm512_sub_epi32(acc, sums_[j]); }

   private:
    __m512i sums_[Vectors];  // 128 times the sum of each column so far
  };
};

// s16 by u4, eight k a step. A column is the 32 bits of its lane, k = 0 lowest; masked after a
// shift by 4 * p they leave nibble p in the lower 16 bits and nibble p + 4 in the upper ones, so
// the row's elements are paired alike and the RHS is not shuffled:
//
//   columns.pairs[p], lane j:   rhs[j][p] | rhs[j][p + 4] << 16
//   row.pairs[p], every lane:   lhs[p]    | lhs[p + 4] << 16
struct S16U4 : Avx512S32Out {
  struct Pairs {
    __m512i pairs[4];
  };
  static constexpr int kK0 = 8, kTemporaries = 10;  // pairs of two vectors of columns and of a row
  static constexpr bool kStagesLhs = true;
  static constexpr int kLhsBytes = 16, kRhsBytes = 4, kRowBytes = 16, kStageSlack = 0;

  static UK_INLINE Pairs load_rhs(const char* rhs) {
    const __m512i nibbles = _mm512_loadu_si512(rhs), mask = _mm512_set1_epi32(0x000F000F);
    return {{_mm512_and_si512(nibbles, mask), _mm512_and_si512(_mm512_srli_epi32(nibbles, 4), mask),
             _mm512_and_si512(_mm512_srli_epi32(nibbles, 8), mask),
             _mm512_and_si512(_mm512_srli_epi32(nibbles, 12), mask)}};
  }
  // k0 k1 k2 k3 k4 k5 k6 k7  ->  k0 k4 k1 k5 k2 k6 k3 k7
  static UK_INLINE void stage_lhs(char* to, const char* from, int rows) {
    for (; rows > 0; --rows, from += 16, to += 16) {
      const __m128i k = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      _mm_store_si128(reinterpret_cast<__m128i*>(to), _mm_unpacklo_epi16(k, _mm_srli_si128(k, 8)));
    }
  }
  static UK_INLINE Pairs broadcast_lhs(const char* row) {
    return {{_mm512_set1_epi32(load_s32(row)), _mm512_set1_epi32(load_s32(row + 4)),
             _mm512_set1_epi32(load_s32(row + 8)), _mm512_set1_epi32(load_s32(row + 12))}};
  }
  static UK_INLINE Acc dot(Acc acc, const Pairs& row, const Pairs& columns) {
    UK_UNROLL for (int p = 0; p < 4; ++p) {
      acc = _mm512_dpwssd_epi32(acc, row.pairs[p], columns.pairs[p]);
    }
    return acc;
  }
};

UK_MMT4D_BODY(s16s16s32, S16Pairs<Avx512DirectOperands>)
UK_MMT4D_BODY(s16u4s32, S16U4)
UK_MMT4D_BODY(u8s8s32, U8S8)

template <int M0, int N0, int K0>
UK_INLINE void mmt4d_s8s8s32(void* out, const void* lhs, const void* rhs, uk_index_t k1,
                             uint32_t flags) {
  if constexpr (K0 == 4) {
    mmt4d_tile<S8S8, M0, N0, K0>(out, lhs, rhs, k1, flags);
  } else {
    mmt4d_tile<S16Pairs<Avx512WidenedOperands<Avx512WidenS8>>, M0, N0, K0>(out, lhs, rhs, k1,
                                                                           flags);
  }
}

}  // namespace

#define UK_MMT4D_TILE UK_DEFINE_MMT4D_TILE
#define UK_PACK_TILE UK_IGNORE_ROW
#define UK_UNPACK_TILE UK_IGNORE_ROW
#include "arch/x86_64/avx512_vnni/tiles.inc"
