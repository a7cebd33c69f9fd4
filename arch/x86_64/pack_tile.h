// The shape of every x86 pack and unpack tile.
//
// Seen by a copy, the matrix is rows of units and a tile side is columns of units: kRows units of
// one column are contiguous in the tiles. A straight tile0 x tile1 tile has tile0 rows of units of
// tile1 elements, one column a tile; a transposed one has tile1 rows of single elements, tile0
// columns a tile. Units of 16 bytes and more are copied run by run. Smaller ones are transposed in
// registers: 16-byte lanes of 16 / kUnit units each, by rounds of interleaving.
//
// What is left over at the end of a row (or of the rows of a tile) is covered by a last block that
// starts early and writes some bytes twice, with the same value: nothing is read or written outside
// the operands, and no path needs masks.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_X86_64_PACK_TILE_H_
#define UKERNEL_ARCH_X86_64_PACK_TILE_H_

#include <immintrin.h>

#include "ukernel/tile.h"

namespace {

#if defined(__AVX512BW__)
constexpr int kVectorBytes = 64;
#else
constexpr int kVectorBytes = 32;
#endif

// ---------------------------------------------------------------- vectors of 16-byte lanes

constexpr int kLaneBytes = 16;
constexpr int kLineBytes = 64;

UK_INLINE __m128i load_lane(const char* in) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
}
UK_INLINE void store_lane(char* out, __m128i lane) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), lane);
}

template <int kLanes>
struct Lanes;

// interleave<kUnit, 0> takes units from the lower half of each lane of a and b, a first;
// interleave<kUnit, 1> from the upper half.
#define UK_INTERLEAVE(prefix, suffix)                                               \
  template <int kUnit, int kHalf>                                                   \
  static UK_INLINE Vector interleave(Vector a, Vector b) {                          \
    if constexpr (kUnit == 1) {                                                     \
      return kHalf ? prefix##_unpackhi_epi8(a, b) : prefix##_unpacklo_epi8(a, b);   \
    } else if constexpr (kUnit == 2) {                                              \
      return kHalf ? prefix##_unpackhi_epi16(a, b) : prefix##_unpacklo_epi16(a, b); \
    } else if constexpr (kUnit == 4) {                                              \
      return kHalf ? prefix##_unpackhi_epi32(a, b) : prefix##_unpacklo_epi32(a, b); \
    } else {                                                                        \
      return kHalf ? prefix##_unpackhi_epi64(a, b) : prefix##_unpacklo_epi64(a, b); \
    }                                                                               \
  }                                                                                 \
  static UK_INLINE Vector load(const char* in) {                                    \
    return prefix##_loadu_##suffix(reinterpret_cast<const Vector*>(in));            \
  }                                                                                 \
  static UK_INLINE void store(char* out, Vector v) {                                \
    prefix##_storeu_##suffix(reinterpret_cast<Vector*>(out), v);                    \
  }

template <>
struct Lanes<1> {
  using Vector = __m128i;
  UK_INTERLEAVE(_mm, si128)
  static UK_INLINE Vector gather(const char* const* in, uk_index_t offset) {
    return load_lane(in[0] + offset);
  }
  static UK_INLINE __m128i lane(Vector v, int) { return v; }
};

template <>
struct Lanes<2> {
  using Vector = __m256i;
  UK_INTERLEAVE(_mm256, si256)
  static UK_INLINE Vector gather(const char* const* in, uk_index_t offset) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_lane(in[0] + offset)),
                                   load_lane(in[1] + offset), 1);
  }
  static UK_INLINE __m128i lane(Vector v, int i) {
    return i == 0 ? _mm256_castsi256_si128(v) : _mm256_extracti128_si256(v, 1);
  }
};

#if defined(__AVX512BW__)
template <>
struct Lanes<4> {
  using Vector = __m512i;
  UK_INTERLEAVE(_mm512, si512)
  static UK_INLINE Vector gather(const char* const* in, uk_index_t offset) {
    Vector v = _mm512_castsi128_si512(load_lane(in[0] + offset));
    v = _mm512_inserti32x4(v, load_lane(in[1] + offset), 1);
    v = _mm512_inserti32x4(v, load_lane(in[2] + offset), 2);
    return _mm512_inserti32x4(v, load_lane(in[3] + offset), 3);
  }
  static UK_INLINE __m128i lane(Vector v, int i) {
    return i == 0   ? _mm512_castsi512_si128(v)
           : i == 1 ? _mm512_extracti32x4_epi32(v, 1)
           : i == 2 ? _mm512_extracti32x4_epi32(v, 2)
                    : _mm512_extracti32x4_epi32(v, 3);
  }
};
#endif
#undef UK_INTERLEAVE

// Interleaves kCount vectors in every lane. With one lane and kUnit = 4, kCount = 4:
//
//   a0 a1 a2 a3      a0 b0 a1 b1      a0 b0 c0 d0
//   b0 b1 b2 b3  ->  a2 b2 a3 b3  ->  a1 b1 c1 d1
//   c0 c1 c2 c3      c0 d0 c1 d1      a2 b2 c2 d2
//   d0 d1 d2 d3      c2 d2 c3 d3      a3 b3 c3 d3
//
// and with kCount = 2 the first of the two rounds: lane 0 of v[k] holds columns 2k and 2k + 1.
// kMerged rows have been interleaved by earlier rounds.
template <class V, int kUnit, int kCount, int kMerged = 1>
UK_INLINE void interleave(typename V::Vector (&v)[kCount]) {
  if constexpr (kMerged < kCount) {
    typename V::Vector merged[kCount];
    UK_UNROLL for (int i = 0; i < kCount / 2; ++i) {
      const int group = i / kMerged * 2 * kMerged, k = i % kMerged;
      const auto a = v[group + k], b = v[group + kMerged + k];
      merged[group + 2 * k] = V::template interleave<kUnit * kMerged, 0>(a, b);
      merged[group + 2 * k + 1] = V::template interleave<kUnit * kMerged, 1>(a, b);
    }
    interleave<V, kUnit, kCount, 2 * kMerged>(merged);
    UK_UNROLL for (int i = 0; i < kCount; ++i) v[i] = merged[i];
  }
}

UK_INLINE uk_index_t min(uk_index_t a, uk_index_t b) { return a < b ? a : b; }

// ---------------------------------------------------------------- copies

// kBytes bytes: whole pieces, the last one moved back where they do not divide kBytes.
template <int kBytes>
UK_INLINE void copy(char* out, const char* in) {
  constexpr int kMost = kBytes < kVectorBytes ? kBytes : kVectorBytes;
  constexpr int kPiece = kMost >= 64   ? 64
                         : kMost >= 32 ? 32
                         : kMost >= 16 ? 16
                         : kMost >= 8  ? 8
                         : kMost >= 4  ? 4
                         : kMost >= 2  ? 2
                                       : 1;
  UK_UNROLL for (int done = 0; done < kBytes; done += kPiece) {
    const int at = done < kBytes - kPiece ? done : kBytes - kPiece;
    if constexpr (kPiece >= kLaneBytes) {
      using V = Lanes<kPiece / kLaneBytes>;
      V::store(out + at, V::load(in + at));
    } else {
      __builtin_memcpy(out + at, in + at, kPiece);
    }
  }
}

// A run of any length, at least kPiece bytes, by whole pieces; shorter ones by smaller pieces.
template <int kPiece = kVectorBytes>
UK_INLINE void copy_run(char* out, const char* in, uk_index_t bytes) {
  if (bytes < kPiece) {
    if constexpr (kPiece > 1) copy_run<kPiece / 2>(out, in, bytes);
    return;
  }
  uk_index_t at = 0;
  if constexpr (kPiece == kVectorBytes) {
    for (; at + 4 * kPiece <= bytes; at += 4 * kPiece) copy<4 * kPiece>(out + at, in + at);
  }
  for (; at + kPiece <= bytes; at += kPiece) copy<kPiece>(out + at, in + at);
  if (at < bytes) copy<kPiece>(out + bytes - kPiece, in + bytes - kPiece);
}

// `count` tiles of kRows runs of kRun bytes, all strides in bytes.
template <int kRun, int kRows>
UK_INLINE void copy_tiles(char* out, uk_index_t out_tile, uk_index_t out_row, const char* in,
                          uk_index_t in_tile, uk_index_t in_row, uk_index_t count) {
  // Short runs: the tiles of one cache line of each row together, since rows a power of two apart
  // share their cache sets.
  constexpr int kTogether = kRows > 1 && kRun < kLineBytes ? kLineBytes / kRun : 1;
  for (; count >= kTogether; count -= kTogether) {
    for (int row = 0; row < kRows; ++row) {
      UK_UNROLL for (int t = 0; t < kTogether; ++t) {
        copy<kRun>(out + t * out_tile + row * out_row, in + t * in_tile + row * in_row);
      }
    }
    out += kTogether * out_tile;
    in += kTogether * in_tile;
  }
  if constexpr (kTogether > 1) {
    for (int row = 0; row < kRows; ++row) {
      for (uk_index_t t = 0; t < count; ++t) {
        copy<kRun>(out + t * out_tile + row * out_row, in + t * in_tile + row * in_row);
      }
    }
  }
}

// ---------------------------------------------------------------- transposes

// The columns of the tile side, `stride` bytes apart.
template <class Pointer>
struct EvenColumns {
  Pointer base;
  uk_index_t stride;
  UK_INLINE Pointer at(uk_index_t column) const { return base + column * stride; }
  UK_INLINE uk_index_t step() const { return stride; }
};

// The columns of the tile side, kTileColumns contiguous ones of kColumnBytes each to a tile. A lane
// of columns never straddles two tiles.
template <class Pointer, int kTileColumns, int kColumnBytes>
struct TileColumns {
  Pointer base;
  uk_index_t tile_stride;
  UK_INLINE Pointer at(uk_index_t column) const {
    const auto c = static_cast<uint64_t>(column);
    return base + static_cast<uk_index_t>(c / kTileColumns) * tile_stride +
           static_cast<uk_index_t>(c % kTileColumns) * kColumnBytes;
  }
  UK_INLINE uk_index_t step() const { return kColumnBytes; }
};

// Rows -> columns, kRows of two lanes' units or more. The lanes of a vector come from different
// rows, so that it ends up as a long piece of one column; a cache line of each row is used up
// before the next rows are touched, since rows a power of two apart share their cache sets.
template <class V, int kLanes, int kUnit, int kRows, class Columns>
UK_INLINE void transpose_tall(const Columns& out, const char* in, uk_index_t in_stride,
                              uk_index_t columns) {
  constexpr int kSide = kLaneBytes / kUnit, kBlockRows = kLanes * kSide;
  constexpr int kLineColumns = kLineBytes / kUnit;
  for (uk_index_t line = 0; line < columns; line += kLineColumns) {
    const uk_index_t line_end = min(line + kLineColumns, columns);
    for (int block = 0; block < kRows; block += kBlockRows) {
      const int row = block < kRows - kBlockRows ? block : kRows - kBlockRows;
      const char* lanes[kLanes];
      UK_UNROLL for (int i = 0; i < kLanes; ++i) lanes[i] = in + (row + i * kSide) * in_stride;
      for (uk_index_t c = line; c < line_end; c += kSide) {
        const uk_index_t column = min(c, columns - kSide);
        char* to = out.at(column) + row * kUnit;
        typename V::Vector v[kSide];
        UK_UNROLL for (int k = 0; k < kSide; ++k) {
          v[k] = V::gather(lanes, column * kUnit + k * in_stride);
        }
        interleave<V, kUnit>(v);
        UK_UNROLL for (int k = 0; k < kSide; ++k) V::store(to + k * out.step(), v[k]);
      }
    }
  }
}

// Stores to one cache line are twice as fast next to each other, and compilers do not know it.
UK_INLINE void keep_store_order() { __asm__ volatile("" ::: "memory"); }

constexpr int power_of_two_in(int n) { return n < 2 ? 1 : 2 * power_of_two_in(n / 2); }

// Rows -> columns for fewer rows. The lanes of a vector come from one row. With fewer than kSide
// rows a lane of the result holds several columns; it goes out whole if no row is left over (the
// columns of a lane must be contiguous then), column by column otherwise.
template <class V, int kLanes, int kUnit, int kRows, class Columns>
UK_INLINE void transpose_flat(const Columns& out, const char* in, uk_index_t in_stride,
                              uk_index_t columns) {
  constexpr int kSide = kLaneBytes / kUnit, kBlockColumns = kLanes * kSide;
  constexpr int kBlockRows = kRows < kSide ? power_of_two_in(kRows) : kSide;
  constexpr int kLaneColumns = kSide / kBlockRows, kPieceBytes = kBlockRows * kUnit;
  for (uk_index_t c = 0; c < columns; c += kBlockColumns) {
    const uk_index_t column = min(c, columns - kBlockColumns);
    UK_UNROLL for (int block = 0; block < kRows; block += kBlockRows) {
      const int row = block < kRows - kBlockRows ? block : kRows - kBlockRows;
      const char* from = in + row * in_stride + column * kUnit;
      typename V::Vector v[kBlockRows];
      UK_UNROLL for (int k = 0; k < kBlockRows; ++k) v[k] = V::load(from + k * in_stride);
      interleave<V, kUnit>(v);
      UK_UNROLL for (int lane = 0; lane < kLanes; ++lane) {
        char* to = out.at(column + lane * kSide) + row * kUnit;
        UK_UNROLL for (int k = 0; k < kBlockRows; ++k) {
          const __m128i piece = V::lane(v[k], lane);
          char* first = to + k * kLaneColumns * out.step();
          if constexpr (kLaneColumns == 1 || kBlockRows == kRows) {
            store_lane(first, piece);
          } else {
            char pieces[kLaneBytes];
            store_lane(pieces, piece);
            UK_UNROLL for (int i = 0; i < kLaneColumns; ++i) {
              copy<kPieceBytes>(first + i * out.step(), pieces + i * kPieceBytes);
            }
          }
          keep_store_order();
        }
      }
    }
  }
}

// Columns -> rows, kRows of one lane's units or more: the mirror image. kBlockLanes lanes of
// columns make one piece of a row, a cache line where there are enough columns.
template <class V, int kLanes, int kBlockLanes, int kUnit, int kRows, class Columns>
UK_INLINE void transpose_back(char* out, uk_index_t out_stride, const Columns& in,
                              uk_index_t columns) {
  constexpr int kSide = kLaneBytes / kUnit, kBlockColumns = kBlockLanes * kSide;
  const uk_index_t step = in.step();
  for (uk_index_t c = 0; c < columns; c += kBlockColumns) {
    const uk_index_t column = min(c, columns - kBlockColumns);
    const char* lanes[kBlockLanes];
    UK_UNROLL for (int i = 0; i < kBlockLanes; ++i) lanes[i] = in.at(column + i * kSide);
    for (int block = 0; block < kRows; block += kSide) {
      const int row = block < kRows - kSide ? block : kRows - kSide;
      char* to = out + row * out_stride + column * kUnit;
      UK_UNROLL for (int i = 0; i < kBlockLanes; i += kLanes) {
        typename V::Vector v[kSide];
        UK_UNROLL for (int k = 0; k < kSide; ++k) {
          v[k] = V::gather(lanes + i, row * kUnit + k * step);
        }
        interleave<V, kUnit>(v);
        UK_UNROLL for (int k = 0; k < kSide; ++k) {
          V::store(to + k * out_stride + i * kLaneBytes, v[k]);
        }
      }
    }
  }
}

// Pieces of whole cache lines are worth the widest vectors; shorter ones are bound by the stores.
constexpr int tall_lanes(int column_bytes) {
  return column_bytes % kVectorBytes == 0 ? kVectorBytes / kLaneBytes : 2;
}
constexpr int kFlatLanes = 2;
constexpr int kBackLanes = kVectorBytes / kLaneBytes, kLineLanes = kLineBytes / kLaneBytes;

// Not inlined: many tiles share each of these, and they are entered once for many tiles.
template <int kUnit, int kRows, class Columns>
__attribute__((noinline)) void rows_to_columns(Columns out, const char* in, uk_index_t in_stride,
                                               uk_index_t columns) {
  constexpr int kSide = kLaneBytes / kUnit, kTallLanes = tall_lanes(kRows * kUnit);
  if (columns < kSide) {
    for (uk_index_t column = 0; column < columns; ++column) {
      for (int row = 0; row < kRows; ++row) {
        copy<kUnit>(out.at(column) + row * kUnit, in + row * in_stride + column * kUnit);
      }
    }
  } else if constexpr (kRows >= kTallLanes * kSide) {
    transpose_tall<Lanes<kTallLanes>, kTallLanes, kUnit, kRows>(out, in, in_stride, columns);
  } else if (columns >= kFlatLanes * kSide) {
    transpose_flat<Lanes<kFlatLanes>, kFlatLanes, kUnit, kRows>(out, in, in_stride, columns);
  } else {
    transpose_flat<Lanes<1>, 1, kUnit, kRows>(out, in, in_stride, columns);
  }
}

template <int kUnit, int kRows, class Columns>
__attribute__((noinline)) void columns_to_rows(char* out, uk_index_t out_stride, const Columns& in,
                                               uk_index_t columns) {
  constexpr int kSide = kLaneBytes / kUnit;
  static_assert(kRows >= kSide, "unpack tiles have at least a lane of rows");
  if (columns < kSide) {
    for (uk_index_t column = 0; column < columns; ++column) {
      for (int row = 0; row < kRows; ++row) {
        copy<kUnit>(out + row * out_stride + column * kUnit, in.at(column) + row * kUnit);
      }
    }
  } else if (columns >= kLineLanes * kSide) {
    transpose_back<Lanes<kBackLanes>, kBackLanes, kLineLanes, kUnit, kRows>(out, out_stride, in,
                                                                            columns);
  } else {
    transpose_back<Lanes<1>, 1, 1, kUnit, kRows>(out, out_stride, in, columns);
  }
}

// ---------------------------------------------------------------- tiles

// Tiles that a lane of columns would straddle are transposed between the matrix and this much of
// the stack as one dense run of columns, and copied tile by tile.
constexpr int kStageBytes = 2 << 10;

constexpr int staged_tiles(int tile_bytes) {
  return tile_bytes < kStageBytes ? kStageBytes / tile_bytes : 1;
}

template <int kUnit, int kRows, int kTileColumns>
UK_INLINE void pack_staged(char* out, uk_index_t out_tile, const char* in, uk_index_t in_stride,
                           uk_index_t count) {
  constexpr int kColumnBytes = kUnit * kRows, kTileBytes = kColumnBytes * kTileColumns;
  constexpr int kTiles = staged_tiles(kTileBytes);
  char stage[kTiles * kTileBytes];
  const bool dense = out_tile == kTileBytes;
  const uk_index_t step = dense ? count : kTiles;
  for (uk_index_t t = 0; t < count; t += step) {
    const uk_index_t tiles = min(step, count - t);
    const EvenColumns<char*> columns = {dense ? out : stage, kColumnBytes};
    rows_to_columns<kUnit, kRows>(columns, in + t * kTileColumns * kUnit, in_stride,
                                  tiles * kTileColumns);
    if (!dense) {
      copy_tiles<kTileBytes, 1>(out + t * out_tile, out_tile, 0, stage, kTileBytes, 0, tiles);
    }
  }
}

template <int kUnit, int kRows, int kTileColumns>
UK_INLINE void unpack_staged(char* out, uk_index_t out_stride, const char* in, uk_index_t in_tile,
                             uk_index_t count) {
  constexpr int kColumnBytes = kUnit * kRows, kTileBytes = kColumnBytes * kTileColumns;
  constexpr int kTiles = staged_tiles(kTileBytes);
  char stage[kTiles * kTileBytes];
  const bool dense = in_tile == kTileBytes;
  const uk_index_t step = dense ? count : kTiles;
  for (uk_index_t t = 0; t < count; t += step) {
    const uk_index_t tiles = min(step, count - t);
    if (!dense) {
      copy_tiles<kTileBytes, 1>(stage, kTileBytes, 0, in + t * in_tile, in_tile, 0, tiles);
    }
    const EvenColumns<const char*> columns = {dense ? in : stage, kColumnBytes};
    columns_to_rows<kUnit, kRows>(out + t * kTileColumns * kUnit, out_stride, columns,
                                  tiles * kTileColumns);
  }
}

template <int kBits, int kTile0, int kTile1>
UK_INLINE void pack_straight(void* out_tiles, const void* in_rows, uk_index_t count,
                             uk_index_t out_stride1, uk_index_t in_stride0) {
  constexpr int kElement = kBits / 8, kUnit = kTile1 * kElement;
  char* out = static_cast<char*>(out_tiles);
  const char* in = static_cast<const char*>(in_rows);
  const uk_index_t out_tile = out_stride1 * kElement, in_row = in_stride0 * kElement;
  if constexpr (kUnit >= kLaneBytes || kTile0 == 1) {
    if (kTile0 == 1 && out_tile == kUnit) return copy_run(out, in, count * kUnit);
    copy_tiles<kUnit, kTile0>(out, out_tile, kUnit, in, kUnit, in_row, count);
  } else if constexpr (kTile0 * kUnit >= kLaneBytes) {
    rows_to_columns<kUnit, kTile0>(EvenColumns<char*>{out, out_tile}, in, in_row, count);
  } else {
    pack_staged<kUnit, kTile0, 1>(out, out_tile, in, in_row, count);
  }
}

template <int kBits, int kTile0, int kTile1>
UK_INLINE void pack_transposed(void* out_tiles, const void* in_rows, uk_index_t count,
                               uk_index_t out_stride1, uk_index_t in_stride0) {
  constexpr int kElement = kBits / 8, kColumnBytes = kTile1 * kElement;
  char* out = static_cast<char*>(out_tiles);
  const char* in = static_cast<const char*>(in_rows);
  const uk_index_t out_tile = out_stride1 * kElement, in_row = in_stride0 * kElement;
  if constexpr (kTile0 == 1 || kTile1 == 1) {  // a vector is its own transpose
    pack_straight<kBits, kTile1, kTile0>(out, in, count, out_stride1, in_stride0);
  } else if constexpr (kTile0 * kElement % kLaneBytes == 0) {
    const TileColumns<char*, kTile0, kColumnBytes> columns = {out, out_tile};
    rows_to_columns<kElement, kTile1>(columns, in, in_row, count * kTile0);
  } else {
    pack_staged<kElement, kTile1, kTile0>(out, out_tile, in, in_row, count);
  }
}

template <int kBits, int kTile0, int kTile1>
UK_INLINE void unpack_straight(void* out_rows, const void* in_tiles, uk_index_t count,
                               uk_index_t out_stride0, uk_index_t in_stride1) {
  constexpr int kElement = kBits / 8, kUnit = kTile1 * kElement;
  char* out = static_cast<char*>(out_rows);
  const char* in = static_cast<const char*>(in_tiles);
  const uk_index_t out_row = out_stride0 * kElement, in_tile = in_stride1 * kElement;
  if constexpr (kUnit >= kLaneBytes || kTile0 == 1) {
    if (kTile0 == 1 && in_tile == kUnit) return copy_run(out, in, count * kUnit);
    copy_tiles<kUnit, kTile0>(out, kUnit, out_row, in, in_tile, kUnit, count);
  } else {
    const EvenColumns<const char*> columns = {in, in_tile};
    columns_to_rows<kUnit, kTile0>(out, out_row, columns, count);
  }
}

template <int kBits, int kTile0, int kTile1>
UK_INLINE void unpack_transposed(void* out_rows, const void* in_tiles, uk_index_t count,
                                 uk_index_t out_stride0, uk_index_t in_stride1) {
  constexpr int kElement = kBits / 8, kColumnBytes = kTile1 * kElement;
  char* out = static_cast<char*>(out_rows);
  const char* in = static_cast<const char*>(in_tiles);
  const uk_index_t out_row = out_stride0 * kElement, in_tile = in_stride1 * kElement;
  if constexpr (kTile0 == 1 || kTile1 == 1) {
    unpack_straight<kBits, kTile1, kTile0>(out, in, count, out_stride0, in_stride1);
  } else if constexpr (kTile0 * kElement % kLaneBytes == 0) {
    const TileColumns<const char*, kTile0, kColumnBytes> columns = {in, in_tile};
    columns_to_rows<kElement, kTile1>(out, out_row, columns, count * kTile0);
  } else {
    unpack_staged<kElement, kTile1, kTile0>(out, out_row, in, in_tile, count);
  }
}

}  // namespace

#endif  // UKERNEL_ARCH_X86_64_PACK_TILE_H_
