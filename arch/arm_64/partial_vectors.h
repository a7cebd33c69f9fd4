// Loads and stores of the first Bytes bytes of a vector, touching no byte more; loads fill with
// zero.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_ARM_64_PARTIAL_VECTORS_H_
#define UKERNEL_ARCH_ARM_64_PARTIAL_VECTORS_H_

#include <arm_neon.h>

#include "ukernel/tile.h"

namespace {

// What is no whole vector is moved in pieces of 8, 4, 2 and 1 bytes, each a lane at its place: the
// largest first, so that a piece's offset is a multiple of its size. Compilers make one lane load
// or store of each.
constexpr int largest_piece(int bytes) {
  return bytes >= 8 ? 8 : bytes >= 4 ? 4 : bytes >= 2 ? 2 : 1;
}

template <int Bytes>
struct Piece;
template <>
struct Piece<8> {
  using Bits = uint64_t;
  using Vector = uint64x2_t;
};
template <>
struct Piece<4> {
  using Bits = uint32_t;
  using Vector = uint32x4_t;
};
template <>
struct Piece<2> {
  using Bits = uint16_t;
  using Vector = uint16x8_t;
};
template <>
struct Piece<1> {
  using Bits = uint8_t;
  using Vector = uint8x16_t;
};

template <int Offset, int Bytes>
UK_INLINE uint8x16_t load_pieces(uint8x16_t v, const char* p) {
  if constexpr (Bytes == 0) {
    return v;
  } else {
    constexpr int kPiece = largest_piece(Bytes);
    typename Piece<kPiece>::Bits piece;
    __builtin_memcpy(&piece, p + Offset, kPiece);
    auto lanes = (typename Piece<kPiece>::Vector)v;  // the same bits
    lanes[Offset / kPiece] = piece;
    return load_pieces<Offset + kPiece, Bytes - kPiece>((uint8x16_t)lanes, p);
  }
}

template <int Offset, int Bytes>
UK_INLINE void store_pieces(char* p, uint8x16_t v) {
  if constexpr (Bytes > 0) {
    constexpr int kPiece = largest_piece(Bytes);
    const auto piece = ((typename Piece<kPiece>::Vector)v)[Offset / kPiece];
    __builtin_memcpy(p + Offset, &piece, kPiece);
    store_pieces<Offset + kPiece, Bytes - kPiece>(p, v);
  }
}

// ---------------------------------------------------------------- 16 bytes

template <int Bytes>
UK_INLINE uint8x16_t load_128(const char* p) {
  static_assert(0 < Bytes && Bytes <= 16, "a part of a vector");
  if constexpr (Bytes == 16) {
    return vld1q_u8(reinterpret_cast<const uint8_t*>(p));
  } else {
    return load_pieces<0, Bytes>(vdupq_n_u8(0), p);
  }
}

template <int Bytes>
UK_INLINE void store_128(char* p, uint8x16_t v) {
  static_assert(0 < Bytes && Bytes <= 16, "a part of a vector");
  if constexpr (Bytes == 16) {
    vst1q_u8(reinterpret_cast<uint8_t*>(p), v);
  } else {
    store_pieces<0, Bytes>(p, v);
  }
}

// ---------------------------------------------------------------- 8 bytes

template <int Bytes>
UK_INLINE uint8x8_t load_64(const char* p) {
  static_assert(0 < Bytes && Bytes <= 8, "a part of a vector");
  return vget_low_u8(load_128<Bytes>(p));
}

template <int Bytes>
UK_INLINE void store_64(char* p, uint8x8_t v) {
  static_assert(0 < Bytes && Bytes <= 8, "a part of a vector");
  store_128<Bytes>(p, vcombine_u8(v, v));
}

}  // namespace

#endif  // UKERNEL_ARCH_ARM_64_PARTIAL_VECTORS_H_
