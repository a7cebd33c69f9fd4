// The shape of every pack and unpack tile. Not included by itself: arch/<arch>/pack_tile.h defines
// before it, with the vectors of its architecture,
//   kVectorBytes, kLaneBytes of the widest vector, of a lane: 16
//   Lane, load_lane, store_lane
//                            a vector of 16 bytes, integers of 64 bits to the operators
//   load_halves, store_halves
//                            of a lane, from and to two places
//   low_bytes(a, b)          the words of two lanes, none above 255, as bytes
//   Lanes<n>                 vectors of n lanes:
//     Vector, load, store
//     interleave<kUnit, 0>   takes units from the lower half of each lane of a and b, a first;
//     interleave<kUnit, 1>   from the upper half
//     gather, first, put     lanes -> vector: from places, the first alone, one more
//     lane, half             vector -> a lane, a vector of half as many
//     collect<g, p>          of g equal groups of lanes, each a list of pieces of p bytes:
//                            the first piece of each group, then the second of each, ...
//     repeat                 eight bytes in every half of a lane
//
// Seen by a copy, the matrix is rows of units and a tile side is columns of units: kRows units of
// one column are contiguous in the tiles. A straight tile0 x tile1 tile has tile0 rows of units of
// tile1 elements, one column a tile; a transposed one has tile1 rows of single elements, tile0
// columns a tile. Units of 1, 2, 4 and 8 bytes are transposed in registers: 16-byte lanes of
// 16 / kUnit units each, by rounds of interleaving. Units of other sizes are copied one by one.
// Four-bit elements are copied as the bytes that pairs of them make in the tiles.
//
// What is left over at the end of a row (or of the rows of a tile) is covered by a last block that
// starts early and writes some bytes twice, with the same value: nothing is read or written outside
// the operands, and no path needs masks. A unit or column whose size is no power of two may be
// moved loosely, in one piece of the next power of two, where the bytes after it belong to the
// operands too and are written later.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_PACK_TILE_H_
#define UKERNEL_ARCH_PACK_TILE_H_

#include "ukernel/tile.h"

namespace {

constexpr int least(int a, int b) { return a < b ? a : b; }
constexpr int larger(int a, int b) { return a < b ? b : a; }
constexpr int log2(int n) { return n < 2 ? 0 : 1 + log2(n / 2); }
constexpr int power_of_two_in(int n) { return 1 << log2(n); }
constexpr bool is_power_of_two(int n) { return n == power_of_two_in(n); }
constexpr int power_of_two_from(int n) { return is_power_of_two(n) ? n : 2 * power_of_two_in(n); }

// ---------------------------------------------------------------- vectors of 16-byte lanes

constexpr int kVectorLanes = kVectorBytes / kLaneBytes;

// Of L1: lines this far apart share a set, of this many lines.
constexpr int kWayBytes = 4 << 10, kWays = 8;

// A distance between lines; one that goes back is as far as any.
UK_INLINE uk_index_t within_a_way(uk_index_t stride) {
  return stride < 0 || stride > kWayBytes ? kWayBytes : stride;
}

// Rows -> columns: interleaves kCount vectors in every lane. With one lane and kUnit = 4,
// kCount = 4:
//
//   a0 a1 a2 a3      a0 b0 a1 b1      a0 b0 c0 d0
//   b0 b1 b2 b3  ->  a2 b2 a3 b3  ->  a1 b1 c1 d1
//   c0 c1 c2 c3      c0 d0 c1 d1      a2 b2 c2 d2
//   d0 d1 d2 d3      c2 d2 c3 d3      a3 b3 c3 d3
//
// and with kCount = 2 the first of the two rounds: lane 0 of v[k] holds columns 2k and 2k + 1.
// kMerged rows have been interleaved by earlier rounds. With as many rows as columns it is also the
// way back.
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

// Columns of kCount units -> rows, kRounds times two units further apart. With kUnit = 4,
// kCount = 2:
//
//   a0 b0 a1 b1      a0 a2 b0 b2      a0 a1 a2 a3
//   a2 b2 a3 b3  ->  a1 a3 b1 b3  ->  b0 b1 b2 b3
template <int kUnit, int kRounds, int kCount>
UK_INLINE void deinterleave(Lane (&v)[kCount]) {
  if constexpr (kRounds > 0) {
    Lane mixed[kCount];
    UK_UNROLL for (int i = 0; i < kCount / 2; ++i) {
      const Lane a = v[i], b = v[i + kCount / 2];
      mixed[2 * i] = Lanes<1>::interleave<kUnit, 0>(a, b);
      mixed[2 * i + 1] = Lanes<1>::interleave<kUnit, 1>(a, b);
    }
    deinterleave<kUnit, kRounds - 1>(mixed);
    UK_UNROLL for (int i = 0; i < kCount; ++i) v[i] = mixed[i];
  }
}

UK_INLINE uk_index_t min(uk_index_t a, uk_index_t b) { return a < b ? a : b; }

// ---------------------------------------------------------------- copies

template <int kBytes>
UK_INLINE void copy_piece(char* out, const char* in) {
  if constexpr (kBytes >= kLaneBytes) {
    using V = Lanes<kBytes / kLaneBytes>;
    V::store(out, V::load(in));
  } else {
    __builtin_memcpy(out, in, kBytes);
  }
}

// kBytes bytes: whole pieces, the last one moved back where they do not divide kBytes.
template <int kBytes>
UK_INLINE void copy(char* out, const char* in) {
  constexpr int kPiece = power_of_two_in(least(kBytes, kVectorBytes));
  UK_UNROLL for (int done = 0; done < kBytes; done += kPiece) {
    const int at = least(done, kBytes - kPiece);
    copy_piece<kPiece>(out + at, in + at);
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

// What is moved of each row in one visit, before the next row's turn: where rows are a power of two
// apart, what was prefetched behind it is lost to the many rows that share its cache sets.
constexpr int kPatchBytes = 8 * kLineBytes;

// `count` tiles of kRows runs of kRun bytes, all strides in bytes.
template <int kRun, int kRows>
UK_INLINE void copy_tiles(char* out, uk_index_t out_tile, uk_index_t out_row, const char* in,
                          uk_index_t in_tile, uk_index_t in_row, uk_index_t count) {
  // Tiles of a few cache lines of each row together, since rows a power of two apart share their
  // cache sets.
  constexpr int kPatch = kRun < kLaneBytes ? kLineBytes : kPatchBytes;
  constexpr int kTogether = kRows > 1 && kRun < kPatch ? kPatch / kRun : 1;
  // A run is followed by the tile's next row on the tiles' side and by the next tile on the
  // matrix's. Where it has both it may be moved loosely.
  constexpr int kPiece = power_of_two_from(kRun);
  if constexpr (kRows > 1 && kPiece > kRun && kPiece <= least(kVectorBytes, 32)) {
    for (; count > kTogether; count -= kTogether) {
      for (int row = 0; row < kRows - 1; ++row) {
        UK_UNROLL for (int t = 0; t < kTogether; ++t) {
          copy_piece<kPiece>(out + t * out_tile + row * out_row, in + t * in_tile + row * in_row);
        }
      }
      UK_UNROLL for (int t = 0; t < kTogether; ++t) {
        copy<kRun>(out + t * out_tile + (kRows - 1) * out_row,
                   in + t * in_tile + (kRows - 1) * in_row);
      }
      out += kTogether * out_tile;
      in += kTogether * in_tile;
    }
  }
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

// Runs that several of fill a vector, and that are whole lanes.
template <int kRun>
constexpr bool kRunsShareVectors = kRun >= kLaneBytes&& kRun < kVectorBytes&& is_power_of_two(kRun);

// A vector of runs `stride` bytes apart.
template <int kRun>
UK_INLINE auto gather_runs(const char* in, uk_index_t stride) {
  constexpr int kRunLanes = kRun / kLaneBytes;
  const char* lanes[kVectorLanes];
  UK_UNROLL for (int i = 0; i < kVectorLanes; ++i) {
    lanes[i] = in + i / kRunLanes * stride + i % kRunLanes * kLaneBytes;
  }
  return Lanes<kVectorLanes>::gather(lanes, 0);
}

// A line of runs `stride` bytes apart.
template <int kRun>
UK_INLINE void join_runs(char* out, const char* in, uk_index_t stride) {
  constexpr int kPiece = larger(kRun, least(kVectorBytes, kLineBytes));
  UK_UNROLL for (int at = 0; at < kLineBytes; at += kPiece) {
    const char* from = in + at / kRun * stride;
    if constexpr (kRunsShareVectors<kRun>) {
      Lanes<kVectorLanes>::store(out + at, gather_runs<kRun>(from, stride));
    } else {
      copy<kRun>(out + at, from);
    }
  }
}

// Dense rows of a tile from rows of the matrix: whole lines of the tiles, which may be far apart.
template <int kRun, int kRows>
UK_INLINE void pack_runs(char* out, uk_index_t out_tile, const char* in, uk_index_t in_row,
                         uk_index_t count) {
  constexpr int kTogether = larger(kPatchBytes / kRun, 1);
  constexpr int kLineRows = larger(kLineBytes / kRun, 1);
  if constexpr (kRun >= kLaneBytes && kLineRows > 1 && is_power_of_two(kRun) &&
                kRows % kLineRows == 0) {
    for (uk_index_t t = 0; t < count; t += kTogether) {
      const uk_index_t end = min(t + kTogether, count);
      for (int row = 0; row < kRows; row += kLineRows) {
        for (uk_index_t i = t; i < end; ++i) {
          join_runs<kRun>(out + i * out_tile + row * kRun, in + row * in_row + i * kRun, in_row);
        }
      }
    }
  } else {
    copy_tiles<kRun, kRows>(out, out_tile, kRun, in, kRun, in_row, count);
  }
}

// The other way: whole lines of the tiles, whole vectors of the matrix's rows.
template <int kRun, int kRows>
UK_INLINE void unpack_runs(char* out, uk_index_t out_row, const char* in, uk_index_t in_tile,
                           uk_index_t count) {
  constexpr int kLineRows = larger(kLineBytes / kRun, 1);
  if constexpr (kRunsShareVectors<kRun> && kRows % kLineRows == 0) {
    constexpr int kTogether = kPatchBytes / kRun, kVectorTiles = kVectorBytes / kRun;
    while (count >= kVectorTiles) {
      const uk_index_t tiles = min(kTogether, count - count % kVectorTiles);
      for (int row = 0; row < kRows; row += kLineRows) {
        for (uk_index_t i = 0; i < tiles; i += kVectorTiles) {
          UK_UNROLL for (int r = row; r < row + kLineRows; ++r) {
            Lanes<kVectorLanes>::store(out + r * out_row + i * kRun,
                                       gather_runs<kRun>(in + i * in_tile + r * kRun, in_tile));
          }
        }
      }
      out += tiles * kRun;
      in += tiles * in_tile;
      count -= tiles;
    }
  }
  copy_tiles<kRun, kRows>(out, kRun, out_row, in, in_tile, kRun, count);
}

// ---------------------------------------------------------------- transposes

// The columns of the tile side, `stride` bytes apart.
template <class Pointer>
struct EvenColumns {
  Pointer base;
  uk_index_t stride;
  UK_INLINE Pointer at(uk_index_t column) const { return base + column * stride; }
  UK_INLINE uk_index_t step() const { return stride; }
  // From one column to the next, on average, as far as cache sets tell.
  UK_INLINE uk_index_t spread() const { return within_a_way(stride); }
  // Bytes that are surely contiguous, from the start of some columns of kColumnBytes.
  template <int kColumnBytes>
  static constexpr int run() {
    return kColumnBytes;
  }
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
  UK_INLINE uk_index_t spread() const {
    return static_cast<uk_index_t>(static_cast<uint64_t>(within_a_way(tile_stride)) / kTileColumns);
  }
  template <int>
  static constexpr int run() {
    return kTileColumns * kColumnBytes;
  }
};

// The same, all contiguous.
template <class Pointer, int kColumnBytes>
struct DenseColumns {
  Pointer base;
  UK_INLINE Pointer at(uk_index_t column) const { return base + column * kColumnBytes; }
  UK_INLINE uk_index_t step() const { return kColumnBytes; }
  template <int>
  static constexpr int run() {
    return kVectorBytes;
  }
};

// The same, each stored with what follows it in a slot of kSlotBytes, before the next one is.
template <int kColumnBytes, int kSlotBytes>
struct OverlappingColumns {
  char* base;
  UK_INLINE char* at(uk_index_t column) const { return base + column * kColumnBytes; }
  UK_INLINE uk_index_t step() const { return kColumnBytes; }
  template <int>
  static constexpr int run() {
    return kSlotBytes;
  }
};

// Some rows of other columns.
template <class Columns>
struct SomeRows {
  const Columns& columns;
  int offset;
  UK_INLINE char* at(uk_index_t column) const { return columns.at(column) + offset; }
  UK_INLINE uk_index_t step() const { return columns.step(); }
  template <int kColumnBytes>
  static constexpr int run() {
    return kColumnBytes;
  }
};
template <bool kSome, class Columns>
UK_INLINE auto some_rows(const Columns& columns, int offset) {
  if constexpr (kSome) {
    return SomeRows<Columns>{columns, offset};
  } else {
    return columns;
  }
}

// Columns shorter than a lane are contiguous, and lie in lanes as slots of this many units.
template <int kUnit, int kRows>
constexpr int kSlotUnits = least(power_of_two_from(kRows), kLaneBytes / kUnit);

// Whether moving such a column moves bytes behind it as well, less than a lane of them.
template <int kUnit, int kRows>
constexpr bool kColumnsAreLoose = kUnit* kRows < kLaneBytes && !is_power_of_two(kRows);

// Stores to one cache line are twice as fast next to each other, and compilers do not know it.
UK_INLINE void keep_store_order() { __asm__ volatile("" ::: "memory"); }

// The pointer to what is `stride` further on. Compilers would keep one for each row or column, in
// more registers than there are.
template <class Pointer>
UK_INLINE Pointer step(Pointer at, uk_index_t stride) {
  at += stride;
  __asm__("" : "+r"(at));
  return at;
}

// A core does not see in time where so many rows go on: each line read asks for one further on, to
// L2: rows a power of two apart would push each other out of L1.
constexpr int kAheadBytes = 512;

UK_INLINE void prefetch_ahead(const char* row) {  // perhaps past the end, which no pointer may be
  __builtin_prefetch(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(row) + kAheadBytes),
                     0, 2);
}

// Rows -> columns. The lanes of a vector come from different rows, so that it ends up as a long
// piece of the output: of one column if a block of rows fills a vector, else of several columns.
// With two lanes, two rows and units of 4:
//
//   a0 a1 a2 a3 | b0 b1 b2 b3  ->  a0 b0 a1 b1 | a2 b2 a3 b3
//
// and with four rows, of which two were interleaved in each lane: see interleave, then
//
//   a0 b0 a1 b1 | c0 d0 c1 d1  ->  a0 b0 c0 d0 | a1 b1 c1 d1
//
// Rows from kLoaded on are not there: whatever is in the vectors ends up in their places.
template <int kLanes, int kUnit, int kRows, int kLoaded = kRows>
struct LaneBlock {
  using V = Lanes<kLanes>;
  // Rows fewer than lanes: so many lanes of each.
  static constexpr int kRowLanes = kRows < kLanes ? kLanes / kRows : 1;
  static constexpr int kVectors = kRows * kRowLanes / kLanes;
  static constexpr int kColumns = kRowLanes * kLaneBytes / kUnit;
  static_assert(kLoaded * kRowLanes >= kVectors, "every vector starts with a row");

  // kSets blocks side by side, of rows from `from` on: all that is wanted of a row is read in one
  // visit, since rows a power of two apart share their cache sets.
  template <int kSets, class Columns>
  static UK_INLINE void transpose(const Columns& out, uk_index_t column, const char* from,
                                  uk_index_t stride) {
    typename V::Vector v[kSets][kVectors];
    UK_UNROLL for (int r = 0; r < kLoaded; ++r) {
      UK_UNROLL for (int i = 0; i < kSets * kRowLanes; ++i) {
        const int lane = r / kVectors * kRowLanes + i % kRowLanes;
        auto& to = v[i / kRowLanes][r % kVectors];
        const Lane loaded = load_lane(from + i * kLaneBytes);
        to = lane == 0 ? V::first(loaded) : V::put(to, lane, loaded);
      }
      if constexpr (kSets * kRowLanes * kLaneBytes == kLineBytes) prefetch_ahead(from);
      from = step(from, stride);
    }
    UK_UNROLL for (int set = 0; set < kSets; ++set) {
      char* to = out.at(column + set * kColumns);
      interleave<V, kUnit>(v[set]);
      UK_UNROLL for (int i = 0; i < kVectors; ++i) {
        const auto whole = V::template collect<kLanes / kRowLanes, kVectors * kUnit>(v[set][i]);
        if constexpr (kRows * kUnit == kLanes * kLaneBytes) {
          V::store(to, whole);
          to = step(to, out.step());
        } else {
          store(out, column + set * kColumns + i * (kColumns / kVectors), whole);
        }
      }
    }
  }

  template <class Columns>
  static UK_INLINE void store(const Columns& out, uk_index_t column, typename V::Vector v) {
    constexpr int kBytes = kLanes * kLaneBytes;
    constexpr int kRun = Columns::template run<kRows * kUnit>();
    if constexpr (kRun % kBytes == 0) {
      V::store(out.at(column), v);
    } else {
      constexpr int kPiece = kRun & -kRun, kPieceColumns = kPiece / (kRows * kUnit);
      static_assert(kPiece >= kLaneBytes, "no lane straddles two places");
      UK_UNROLL for (int i = 0; i < kBytes / kPiece; ++i) {
        char* to = out.at(column + i * kPieceColumns);
        if constexpr (kPiece == kLaneBytes) {
          store_lane(to, V::lane(v, i));
        } else {
          Lanes<kPiece / kLaneBytes>::store(to, V::half(v, i));
        }
        keep_store_order();
      }
    }
  }
};

// The vectors that the transposes may hold at a time. A few that are spilled cost less than a line
// of a row that is visited twice.
constexpr int kHeldVectors = kVectorBytes == 64 ? 32 : 16;

// What a run makes of the tiles, where blocks make parts of their lines: it stays in L1 until all
// rows have come. Whole lines need not wait, and from memory a core reads 16 rows that go on twice
// as fast as 32.
constexpr int kRunTilesBytes = 16 << 10;
constexpr int kWholeRunBytes = 1 << 30;

// Rows that share sets of L1, more of them than it has ways, where vectors cannot hold a line of
// each: a line that is visited again has been pushed out. So parts of rows are copied to a stage,
// where each starts in another set: of four lines each, which Zen 4 reads from L2 in half the time
// of one line of each row in turn.
constexpr int kStagedRowBytes = 4 * kLineBytes, kStageStride = kStagedRowBytes + kLineBytes;

template <int kRows>
UK_INLINE bool rows_share_sets(uk_index_t stride) {
  const uk_index_t apart = within_a_way(stride & -stride);  // at least, as far as sets tell
  return kRows * apart > kWayBytes * kWays;
}

template <int kRows>
UK_NOINLINE void stage_rows(char* stage, const char* in, uk_index_t stride) {
  for (int r = 0; r < kRows; ++r, in += stride, stage += kStageStride) {
    copy<kStagedRowBytes>(stage, in);
    UK_UNROLL for (int at = 0; at < kStagedRowBytes; at += kLineBytes) prefetch_ahead(in + at);
  }
}

// In blocks of kBlockRows rows by a cache line, the last block moved back where they do not divide
// kRows. The next block follows after a run of lines.
template <int kLanes, int kUnit, int kBlockRows, int kRows, int kLoaded = kBlockRows, class Columns>
UK_INLINE void transpose_lanes(const Columns& out, const char* in, uk_index_t in_stride,
                               uk_index_t columns) {
  using Block = LaneBlock<kLanes, kUnit, kBlockRows, kLoaded>;
  constexpr int kLineColumns = kLineBytes / kUnit;
  constexpr int kSets =
      least(kLineColumns / Block::kColumns, larger(kHeldVectors / Block::kVectors, 1));
  constexpr bool kWholeLines = kRows <= kBlockRows || kBlockRows * kUnit % kLineBytes == 0;
  constexpr int kRunBytes = kWholeLines ? kWholeRunBytes : kRunTilesBytes;
  constexpr int kRunColumns = larger(kRunBytes / (kRows * kLineBytes), 1) * kLineColumns;
  constexpr int kTogether = kSets * Block::kColumns, kStagedColumns = kStagedRowBytes / kUnit;
  constexpr bool kMayStage = kLoaded > kWays && kTogether < kLineColumns;
  alignas(kLineBytes) char stage[kMayStage ? kLoaded * kStageStride : 1];
  const uk_index_t whole = columns & -kLineColumns;
  // An op takes fewer columns at a time where rows come from memory, faster line by line.
  const bool staged = rows_share_sets<kLoaded>(in_stride) && whole >= 2 * kStagedColumns;
  for (uk_index_t run = 0; run < whole; run += kRunColumns) {
    const uk_index_t end = min(run + kRunColumns, whole);
    for (int block = 0; block < kRows; block += kBlockRows) {
      const int row = least(block, kRows - kBlockRows);
      const auto rows = some_rows<(kBlockRows < kRows)>(out, row * kUnit);
      const char* const from = in + row * in_stride;
      uk_index_t c = run;
      if constexpr (kMayStage) {
        for (; staged && c + kStagedColumns <= end; c += kStagedColumns) {
          stage_rows<kLoaded>(stage, from + c * kUnit, in_stride);
          for (int i = 0; i < kStagedColumns; i += kTogether) {
            Block::template transpose<kSets>(rows, c + i, stage + i * kUnit, kStageStride);
          }
        }
      }
      for (; c < end; c += kTogether) {
        Block::template transpose<kSets>(rows, c, from + c * kUnit, in_stride);
      }
    }
  }
  for (int block = 0; block < kRows; block += kBlockRows) {
    const int row = least(block, kRows - kBlockRows);
    const auto rows = some_rows<(kBlockRows < kRows)>(out, row * kUnit);
    for (uk_index_t c = whole; c < columns; c += Block::kColumns) {
      const uk_index_t column = min(c, columns - Block::kColumns);
      const char* const from = in + row * in_stride + column * kUnit;
      Block::template transpose<1>(rows, column, from, in_stride);
    }
  }
}

// Three bytes and one that is dropped, eight times -> three bytes, twice in each half of the lane.
UK_INLINE Lane close_gaps(Lane lane) {
  const Lane first = Lanes<1>::repeat(0xFFFFFF), second = Lanes<1>::repeat(0xFFFFFF000000);
  return (lane & first) | (lane >> 8 & second);
}
UK_INLINE Lane open_gaps(Lane lane) {
  const Lane first = Lanes<1>::repeat(0xFFFFFF), second = Lanes<1>::repeat(0xFFFFFF000000);
  return (lane & first) | (lane & second) << 8;
}

// A lane of contiguous columns, each in a slot.
template <int kSlotBytes, int kColumnBytes>
UK_INLINE void store_columns(char* out, Lane lane) {
  if constexpr (kSlotBytes == kColumnBytes || kSlotBytes == kLaneBytes) {
    store_lane(out, lane);
  } else {
    static_assert(kSlotBytes == 8 || (kSlotBytes == 4 && kColumnBytes == 3), "8- or 4-byte slots");
    constexpr int kHalfBytes = 8 / kSlotBytes * kColumnBytes;
    if constexpr (kSlotBytes == 4) lane = close_gaps(lane);
    store_halves(out, out + kHalfBytes, lane);
  }
}
template <int kSlotBytes, int kColumnBytes>
UK_INLINE Lane load_columns(const char* in) {
  if constexpr (kSlotBytes == kColumnBytes || kSlotBytes == kLaneBytes) {
    return load_lane(in);
  } else {
    static_assert(kSlotBytes == 8 || (kSlotBytes == 4 && kColumnBytes == 3), "8- or 4-byte slots");
    constexpr int kHalfBytes = 8 / kSlotBytes * kColumnBytes;
    const Lane lane = load_halves(in, in + kHalfBytes);
    return kSlotBytes == 4 ? open_gaps(lane) : lane;
  }
}

// Rows -> columns for fewer rows. The lanes of a vector come from one row.
template <int kLanes, int kUnit, int kRows, class Columns>
UK_INLINE void transpose_flat(const Columns& out, const char* in, uk_index_t in_stride,
                              uk_index_t columns) {
  using V = Lanes<kLanes>;
  constexpr int kSide = kLaneBytes / kUnit, kBlockColumns = kLanes * kSide;
  constexpr int kSlot = kSlotUnits<kUnit, kRows>, kLaneColumns = kSide / kSlot;
  for (uk_index_t c = 0; c < columns; c += kBlockColumns) {
    const uk_index_t column = min(c, columns - kBlockColumns);
    UK_UNROLL for (int block = 0; block < kRows; block += kSlot) {
      const int row = kRows < kSlot ? 0 : least(block, kRows - kSlot);
      const char* from = in + row * in_stride + column * kUnit;
      typename V::Vector v[kSlot];
      UK_UNROLL for (int k = 0; k < kSlot; ++k) {
        v[k] = V::load(from + least(k, kRows - 1) * in_stride);
      }
      interleave<V, kUnit>(v);
      UK_UNROLL for (int lane = 0; lane < kLanes; ++lane) {
        char* to = out.at(column + lane * kSide) + row * kUnit;
        UK_UNROLL for (int k = 0; k < kSlot; ++k) {
          constexpr int kColumnBytes = least(kRows, kSlot) * kUnit;
          store_columns<kSlot * kUnit, kColumnBytes>(to + k * kLaneColumns * out.step(),
                                                     V::lane(v[k], lane));
          keep_store_order();
        }
      }
    }
  }
}

// Columns -> rows, kRows of one lane's units or more: the mirror image. kBlockLanes lanes of
// columns make one piece of a row, a cache line where there are enough columns. These go through
// some rows for a whole run; if a block has more rows than those, the others wait in a stage.
template <int kLanes, int kBlockLanes, int kUnit, int kRows, class Columns>
UK_INLINE void transpose_back(char* out, uk_index_t out_stride, const Columns& in,
                              uk_index_t columns) {
  using V = Lanes<kLanes>;
  constexpr int kSide = kLaneBytes / kUnit, kBlockColumns = kBlockLanes * kSide;
  constexpr int kRunBytes = kBlockLanes > 1 ? kPatchBytes : kLaneBytes;
  constexpr int kStagedRows = kBlockLanes > 1 && kSide > 4 ? kSide / 2 : 0;
  constexpr int kStoredRows = kSide - kStagedRows;
  alignas(kLineBytes) char stage[larger(kStagedRows, 1) * kRunBytes];
  const uk_index_t step = in.step(), spread = in.spread();
  uk_index_t run_columns = kRunBytes / kUnit;
  while (run_columns > kBlockColumns && run_columns * spread > kWayBytes * kWays) run_columns /= 2;
  for (uk_index_t run = 0; run < columns; run += run_columns) {
    const uk_index_t first = min(run, columns - kBlockColumns);
    const uk_index_t end = min(run + run_columns, columns);
    for (int block = 0; block < kRows; block += kSide) {
      const int row = least(block, kRows - kSide);
      char* const rows = out + row * out_stride;
      for (uk_index_t c = run; c < end; c += kBlockColumns) {
        const uk_index_t column = min(c, columns - kBlockColumns);
        const char* lanes[kBlockLanes];
        UK_UNROLL for (int i = 0; i < kBlockLanes; ++i) lanes[i] = in.at(column + i * kSide);
        UK_UNROLL for (int i = 0; i < kBlockLanes; i += kLanes) {
          typename V::Vector v[kSide];
          UK_UNROLL for (int k = 0; k < kSide; ++k) {
            v[k] = V::gather(lanes + i, row * kUnit + k * step);
          }
          interleave<V, kUnit>(v);
          char* const to = rows + column * kUnit + i * kLaneBytes;
          char* const staged = stage + (column - first) * kUnit + i * kLaneBytes;
          UK_UNROLL for (int k = 0; k < kSide; ++k) {
            V::store(k < kStoredRows ? to + k * out_stride : staged + (k - kStoredRows) * kRunBytes,
                     v[k]);
          }
        }
      }
      for (int k = 0; k < kStagedRows; ++k) {
        copy_run(rows + (kStoredRows + k) * out_stride + first * kUnit, stage + k * kRunBytes,
                 (end - first) * kUnit);
      }
    }
  }
}

// Columns -> rows for fewer rows, a lane of each at a time.
template <int kUnit, int kRows, class Columns>
UK_INLINE void transpose_back_flat(char* out, uk_index_t out_stride, const Columns& in,
                                   uk_index_t columns) {
  constexpr int kSide = kLaneBytes / kUnit, kSlot = kSlotUnits<kUnit, kRows>;
  constexpr int kColumnBytes = kRows * kUnit, kLaneColumns = kSide / kSlot;
  for (uk_index_t c = 0; c < columns; c += kSide) {
    const uk_index_t column = min(c, columns - kSide);
    const char* from = in.at(column);
    Lane v[kSlot];
    UK_UNROLL for (int k = 0; k < kSlot; ++k) {
      v[k] = load_columns<kSlot * kUnit, kColumnBytes>(from + k * kLaneColumns * kColumnBytes);
    }
    deinterleave<kUnit, log2(kSide)>(v);
    UK_UNROLL for (int k = 0; k < kRows; ++k) {
      store_lane(out + k * out_stride + column * kUnit, v[k]);
    }
  }
}

// Pieces of whole cache lines are worth the widest vectors; shorter ones are bound by the stores.
constexpr int kFlatLanes = least(kVectorLanes, 2);
constexpr int tall_lanes(int column_bytes) {
  return column_bytes % kVectorBytes == 0 ? kVectorLanes : kFlatLanes;
}
constexpr int kLineLanes = kLineBytes / kLaneBytes;

// Single bytes of more rows would be in more vectors than there are.
template <int kUnit>
constexpr int kMostBlockRows = kUnit == 1 ? larger(kVectorBytes / 2, kLaneBytes) : 1 << 30;

// Not inlined: many tiles share each of these, and they are entered once for many tiles.
template <int kUnit, int kRows, class Columns>
UK_NOINLINE void rows_to_columns(Columns out, const char* in, uk_index_t in_stride,
                                 uk_index_t columns) {
  constexpr int kSide = kLaneBytes / kUnit, kTallLanes = tall_lanes(kRows * kUnit);
  if (columns < kSide) {
    for (uk_index_t column = 0; column < columns; ++column) {
      for (int row = 0; row < kRows; ++row) {
        copy<kUnit>(out.at(column) + row * kUnit, in + row * in_stride + column * kUnit);
      }
    }
  } else if constexpr (kRows > kMostBlockRows<kUnit>) {
    transpose_lanes<kVectorLanes, kUnit, kMostBlockRows<kUnit>, kRows>(out, in, in_stride, columns);
  } else if constexpr (is_power_of_two(kRows) && kRows * kUnit <= kVectorBytes) {
    using Block = LaneBlock<kVectorLanes, kUnit, kRows>;
    if (columns >= Block::kColumns) {
      transpose_lanes<kVectorLanes, kUnit, kRows, kRows>(out, in, in_stride, columns);
    } else if constexpr (Block::kRowLanes > 1) {
      transpose_lanes<kVectorLanes / Block::kRowLanes, kUnit, kRows, kRows>(out, in, in_stride,
                                                                            columns);
    }
  } else if constexpr (kRows >= kTallLanes * kSide) {
    transpose_lanes<kTallLanes, kUnit, kTallLanes * kSide, kRows>(out, in, in_stride, columns);
  } else if (columns >= kFlatLanes * kSide) {
    transpose_flat<kFlatLanes, kUnit, kRows>(out, in, in_stride, columns);
  } else {
    transpose_flat<1, kUnit, kRows>(out, in, in_stride, columns);
  }
}

// Whether dense columns of no power of two rows are stored in slots of the next one, of two lanes
// at least: each by one store, where blocks of fewer rows would overlap.
template <int kUnit, int kRows>
constexpr bool slots_overlap() {
  constexpr int kSlotRows = power_of_two_from(kRows), kSlotBytes = kSlotRows * kUnit;
  return kSlotRows != kRows && kSlotRows <= kMostBlockRows<kUnit> && kSlotBytes >= 2 * kLaneBytes &&
         kSlotBytes <= kVectorBytes;
}

// All but the last of them, a line or two of each row: what is stored behind these may not be
// theirs.
template <int kUnit, int kRows>
UK_NOINLINE uk_index_t rows_to_slots(char* out, const char* in, uk_index_t in_stride,
                                     uk_index_t columns) {
  constexpr int kSlotRows = power_of_two_from(kRows), kLineColumns = kLineBytes / kUnit;
  const uk_index_t done = (columns - kLineColumns) & -kLineColumns;
  const OverlappingColumns<kRows * kUnit, kSlotRows* kUnit> slots = {out};
  transpose_lanes<kVectorLanes, kUnit, kSlotRows, kSlotRows, kRows>(slots, in, in_stride, done);
  return done;
}

template <int kUnit, int kRows>
UK_INLINE void rows_to_dense_columns(char* out, const char* in, uk_index_t in_stride,
                                     uk_index_t columns) {
  uk_index_t done = 0;
  if constexpr (slots_overlap<kUnit, kRows>()) {
    if (columns * kUnit >= 2 * kLineBytes) {
      done = rows_to_slots<kUnit, kRows>(out, in, in_stride, columns);
    }
  }
  const DenseColumns<char*, kRows* kUnit> rest = {out + done * kRows * kUnit};
  rows_to_columns<kUnit, kRows>(rest, in + done * kUnit, in_stride, columns - done);
}

template <int kUnit, int kRows, class Columns>
UK_NOINLINE void columns_to_rows(char* out, uk_index_t out_stride, const Columns& in,
                                 uk_index_t columns) {
  constexpr int kSide = kLaneBytes / kUnit;
  if (columns < kSide) {
    for (uk_index_t column = 0; column < columns; ++column) {
      for (int row = 0; row < kRows; ++row) {
        copy<kUnit>(out + row * out_stride + column * kUnit, in.at(column) + row * kUnit);
      }
    }
  } else if constexpr (kRows < kSide) {
    transpose_back_flat<kUnit, kRows>(out, out_stride, in, columns);
  } else if (columns >= kLineLanes * kSide) {
    transpose_back<kVectorLanes, kLineLanes, kUnit, kRows>(out, out_stride, in, columns);
  } else {
    transpose_back<1, 1, kUnit, kRows>(out, out_stride, in, columns);
  }
}

// ---------------------------------------------------------------- tiles of units

// Dense tiles are one run of columns. Other tiles that a lane of columns would straddle are
// transposed between the matrix and such a run on the stack of this many bytes, and copied tile by
// tile; large ones have enough columns to be transposed one by one.
constexpr int kStageBytes = 2 << 10, kMostStaged = kStageBytes / 2;

enum class TileWay { tiles_are_columns, lanes_in_tiles, staged, one_by_one };

template <int kUnit, int kRows, int kTileColumns>
constexpr TileWay tile_way() {
  constexpr int kColumnBytes = kUnit * kRows;
  if (kTileColumns == 1 && kColumnBytes >= kLaneBytes) return TileWay::tiles_are_columns;
  if (kTileColumns * kUnit % kLaneBytes == 0 && !kColumnsAreLoose<kUnit, kRows>) {
    return TileWay::lanes_in_tiles;
  }
  return kColumnBytes * kTileColumns <= kMostStaged ? TileWay::staged : TileWay::one_by_one;
}

// How many of the first tiles are dense. Where columns are loose, a stage of tiles is left over:
// what moves behind the columns before them belongs to these.
template <int kUnit, int kRows, int kTileBytes>
UK_INLINE uk_index_t dense_tiles(uk_index_t tile_stride, uk_index_t count) {
  if (tile_stride != kTileBytes) return 0;
  if (!kColumnsAreLoose<kUnit, kRows>) return count;
  return count - min(count, kStageBytes / kTileBytes);
}

template <int kUnit, int kRows, int kTileColumns>
UK_INLINE void pack_units(char* out, uk_index_t out_tile, const char* in, uk_index_t in_stride,
                          uk_index_t count) {
  constexpr int kColumnBytes = kUnit * kRows, kTileBytes = kColumnBytes * kTileColumns;
  constexpr int kInTile = kTileColumns * kUnit;
  constexpr TileWay kWay = tile_way<kUnit, kRows, kTileColumns>();
  if constexpr (kWay != TileWay::staged && kWay != TileWay::one_by_one &&
                (kTileBytes % kVectorBytes != 0 || slots_overlap<kUnit, kRows>())) {
    if (out_tile == kTileBytes) {
      return rows_to_dense_columns<kUnit, kRows>(out, in, in_stride, count * kTileColumns);
    }
  }
  if constexpr (kWay == TileWay::tiles_are_columns) {
    rows_to_columns<kUnit, kRows>(EvenColumns<char*>{out, out_tile}, in, in_stride, count);
  } else if constexpr (kWay == TileWay::lanes_in_tiles) {
    const TileColumns<char*, kTileColumns, kColumnBytes> columns = {out, out_tile};
    rows_to_columns<kUnit, kRows>(columns, in, in_stride, count * kTileColumns);
  } else {
    uk_index_t t = dense_tiles<kUnit, kRows, kTileBytes>(out_tile, count);
    rows_to_dense_columns<kUnit, kRows>(out, in, in_stride, t * kTileColumns);
    if constexpr (kWay == TileWay::staged) {
      constexpr int kTiles = kStageBytes / kTileBytes;
      char stage[kTiles * kTileBytes + kLaneBytes];
      for (; t < count; t += kTiles) {
        const uk_index_t tiles = min(kTiles, count - t);
        rows_to_dense_columns<kUnit, kRows>(stage, in + t * kInTile, in_stride,
                                            tiles * kTileColumns);
        copy_tiles<kTileBytes, 1>(out + t * out_tile, out_tile, 0, stage, kTileBytes, 0, tiles);
      }
    } else {
      for (; t < count; ++t) {
        rows_to_dense_columns<kUnit, kRows>(out + t * out_tile, in + t * kInTile, in_stride,
                                            kTileColumns);
      }
    }
  }
}

template <int kUnit, int kRows, int kTileColumns>
UK_INLINE void unpack_units(char* out, uk_index_t out_stride, const char* in, uk_index_t in_tile,
                            uk_index_t count) {
  constexpr int kColumnBytes = kUnit * kRows, kTileBytes = kColumnBytes * kTileColumns;
  constexpr int kOutTile = kTileColumns * kUnit;
  constexpr TileWay kWay = tile_way<kUnit, kRows, kTileColumns>();
  if constexpr (kWay == TileWay::tiles_are_columns) {
    const EvenColumns<const char*> columns = {in, in_tile};
    columns_to_rows<kUnit, kRows>(out, out_stride, columns, count);
  } else if constexpr (kWay == TileWay::lanes_in_tiles) {
    const TileColumns<const char*, kTileColumns, kColumnBytes> columns = {in, in_tile};
    columns_to_rows<kUnit, kRows>(out, out_stride, columns, count * kTileColumns);
  } else {
    uk_index_t t = dense_tiles<kUnit, kRows, kTileBytes>(in_tile, count);
    const EvenColumns<const char*> dense = {in, kColumnBytes};
    columns_to_rows<kUnit, kRows>(out, out_stride, dense, t * kTileColumns);
    if constexpr (kWay == TileWay::staged) {
      constexpr int kTiles = kStageBytes / kTileBytes;
      char stage[kTiles * kTileBytes + kLaneBytes];
      const EvenColumns<const char*> columns = {stage, kColumnBytes};
      for (; t < count; t += kTiles) {
        const uk_index_t tiles = min(kTiles, count - t);
        copy_tiles<kTileBytes, 1>(stage, kTileBytes, 0, in + t * in_tile, in_tile, 0, tiles);
        columns_to_rows<kUnit, kRows>(out + t * kOutTile, out_stride, columns,
                                      tiles * kTileColumns);
      }
    } else {
      for (; t < count; ++t) {
        const EvenColumns<const char*> columns = {in + t * in_tile, kColumnBytes};
        columns_to_rows<kUnit, kRows>(out + t * kOutTile, out_stride, columns, kTileColumns);
      }
    }
  }
}

// ---------------------------------------------------------------- four-bit elements

// Rows k and k + 1 of the matrix are the low and the high halves of one row of bytes: columns c and
// c + 1 of `low` (l0, l1, in one byte) and of `high` (h0, h1) become the bytes h0 l0 and h1 l1.
// The bytes of such rows go through a stage; an even number of tiles, since an odd tile0 makes odd
// tiles start within a byte of the matrix.
template <int kTileBytes>
constexpr int kTilesOfNibbles = 2 * ((4 << 10) / (2 * kTileBytes));

// The first of two rows of bytes, of which every second is in either: the low nibbles h0 l0 of
// bytes h1h0 and l1l0. The second: their high nibbles h1 l1. No bit that is kept crosses a byte.
template <class Word>
UK_INLINE Word low_nibbles(Word low, Word high, Word mask) {
  return (low & mask) | (high << 4 & ~mask);
}
template <class Word>
UK_INLINE Word high_nibbles(Word low, Word high, Word mask) {
  return (low >> 4 & mask) | (high & ~mask);
}

// kStep bytes of each row.
template <int kStep>
UK_INLINE void join_step(char* out, const char* low, const char* high) {
  if constexpr (kStep < kLaneBytes) {
    static_assert(kStep == 8, "half a lane");
    const Lane mask = Lanes<1>::repeat(0x0F0F0F0F0F0F0F0F);
    const Lane l = load_halves(low, low), h = load_halves(high, high);
    const Lane even = low_nibbles(l, h, mask), odd = high_nibbles(l, h, mask);
    store_lane(out, Lanes<1>::interleave<1, 0>(even, odd));
  } else {
    using V = Lanes<kStep / kLaneBytes>;
    const auto mask = V::repeat(0x0F0F0F0F0F0F0F0F);
    const auto l = V::load(low), h = V::load(high);
    // The halves of a lane go to different vectors: the first halves of all belong to the first.
    const auto even = V::template collect<2, 8>(low_nibbles(l, h, mask));
    const auto odd = V::template collect<2, 8>(high_nibbles(l, h, mask));
    V::store(out, V::template interleave<1, 0>(even, odd));
    V::store(out + kStep, V::template interleave<1, 1>(even, odd));
  }
}

// At least kStep bytes of each row, by whole steps; shorter ones by smaller steps.
template <int kStep = kVectorBytes>
UK_INLINE void join_nibbles(char* out, const char* low, const char* high, uk_index_t bytes) {
  if constexpr (kStep < 8) {
    for (uk_index_t i = 0; i < bytes; ++i) {
      const uint32_t l = static_cast<uint8_t>(low[i]), h = static_cast<uint8_t>(high[i]);
      out[2 * i] = static_cast<char>(low_nibbles(l, h, 0x0Fu));
      out[2 * i + 1] = static_cast<char>(high_nibbles(l, h, 0x0Fu));
    }
  } else if (bytes < kStep) {
    join_nibbles<kStep / 2>(out, low, high, bytes);
  } else {
    for (uk_index_t at = 0; at < bytes; at += kStep) {
      const uk_index_t i = min(at, bytes - kStep);
      join_step<kStep>(out + 2 * i, low + i, high + i);
    }
  }
}

// The other way for `columns` of a row of bytes. The other half of a last byte keeps its value.
UK_INLINE void split_nibbles(char* low, char* high, const char* in, uk_index_t columns) {
  constexpr int kStep = kLaneBytes;
  const uk_index_t bytes = columns / 2;
  uk_index_t at = 0;
  if (bytes >= kStep) {
    const Lane nibbles = Lanes<1>::repeat(0x0F0F0F0F0F0F0F0F);
    const Lane byte_of_word = Lanes<1>::repeat(0x00FF00FF00FF00FF);
    for (; at < bytes; at += kStep) {
      const uk_index_t i = min(at, bytes - kStep);
      Lane l[2], h[2];
      UK_UNROLL for (int k = 0; k < 2; ++k) {
        const Lane pairs = load_lane(in + 2 * i + k * kLaneBytes);
        l[k] = pairs & nibbles;
        h[k] = pairs >> 4 & nibbles;
        l[k] = (l[k] | l[k] >> 4) & byte_of_word;
        h[k] = (h[k] | h[k] >> 4) & byte_of_word;
      }
      store_lane(low + i, low_bytes(l[0], l[1]));
      store_lane(high + i, low_bytes(h[0], h[1]));
    }
    at = bytes;
  }
  for (; at < bytes; ++at) {
    const uint32_t even = static_cast<uint8_t>(in[2 * at]);
    const uint32_t odd = static_cast<uint8_t>(in[2 * at + 1]);
    low[at] = static_cast<char>((even & 0x0F) | odd << 4);
    high[at] = static_cast<char>(even >> 4 | (odd & 0xF0));
  }
  if (columns % 2 != 0) {
    const uint32_t last = static_cast<uint8_t>(in[columns - 1]);
    low[bytes] = static_cast<char>((low[bytes] & 0xF0) | (last & 0x0F));
    high[bytes] = static_cast<char>((high[bytes] & 0xF0) | last >> 4);
  }
}

// ---------------------------------------------------------------- tiles

// Strides are in elements.
template <int kBits, int kTile0, int kTile1>
UK_INLINE void pack_straight(void* out_tiles, const void* in_rows, uk_index_t count,
                             uk_index_t out_stride1, uk_index_t in_stride0) {
  constexpr int kUnit = kTile1 * kBits / 8;
  char* out = static_cast<char*>(out_tiles);
  const char* in = static_cast<const char*>(in_rows);
  const uk_index_t out_tile = out_stride1 * kBits / 8, in_row = in_stride0 * kBits / 8;
  if constexpr (kTile0 == 1 || kUnit >= kLaneBytes || !is_power_of_two(kUnit)) {
    if (kTile0 == 1 && out_tile == kUnit) return copy_run(out, in, count * kUnit);
    pack_runs<kUnit, kTile0>(out, out_tile, in, in_row, count);
  } else {
    pack_units<kUnit, kTile0, 1>(out, out_tile, in, in_row, count);
  }
}

template <int kBits, int kTile0, int kTile1>
UK_INLINE void pack_transposed(void* out_tiles, const void* in_rows, uk_index_t count,
                               uk_index_t out_stride1, uk_index_t in_stride0) {
  if constexpr (kBits == 4) {
    constexpr int kPairs = kTile1 / 2, kTiles = kTilesOfNibbles<kTile0 * kPairs>;
    constexpr int kStageRow = kTiles * kTile0;
    char stage[kPairs * kStageRow + 1];  // a last byte may hold one column
    char* out = static_cast<char*>(out_tiles);
    const char* in = static_cast<const char*>(in_rows);
    for (uk_index_t t = 0; t < count; t += kTiles) {
      const uk_index_t tiles = min(kTiles, count - t);
      for (int k = 0; k < kPairs; ++k) {
        const char* low = in + (t * kTile0 + 2 * k * in_stride0) / 2;
        join_nibbles(stage + k * kStageRow, low, low + in_stride0 / 2, (tiles * kTile0 + 1) / 2);
      }
      pack_transposed<8, kTile0, kPairs>(out + t * out_stride1 / 2, stage, tiles, out_stride1 / 2,
                                         kStageRow);
    }
  } else if constexpr (kTile0 == 1 || kTile1 == 1) {  // a vector is its own transpose
    pack_straight<kBits, kTile1, kTile0>(out_tiles, in_rows, count, out_stride1, in_stride0);
  } else {
    constexpr int kUnit = kBits / 8;
    pack_units<kUnit, kTile1, kTile0>(static_cast<char*>(out_tiles), out_stride1 * kUnit,
                                      static_cast<const char*>(in_rows), in_stride0 * kUnit, count);
  }
}

template <int kBits, int kTile0, int kTile1>
UK_INLINE void unpack_straight(void* out_rows, const void* in_tiles, uk_index_t count,
                               uk_index_t out_stride0, uk_index_t in_stride1) {
  constexpr int kUnit = kTile1 * kBits / 8;
  char* out = static_cast<char*>(out_rows);
  const char* in = static_cast<const char*>(in_tiles);
  const uk_index_t out_row = out_stride0 * kBits / 8, in_tile = in_stride1 * kBits / 8;
  if constexpr (kTile0 == 1 || kUnit >= kLaneBytes || !is_power_of_two(kUnit)) {
    if (kTile0 == 1 && in_tile == kUnit) return copy_run(out, in, count * kUnit);
    unpack_runs<kUnit, kTile0>(out, out_row, in, in_tile, count);
  } else {
    unpack_units<kUnit, kTile0, 1>(out, out_row, in, in_tile, count);
  }
}

template <int kBits, int kTile0, int kTile1>
UK_INLINE void unpack_transposed(void* out_rows, const void* in_tiles, uk_index_t count,
                                 uk_index_t out_stride0, uk_index_t in_stride1) {
  if constexpr (kBits == 4) {
    constexpr int kPairs = kTile1 / 2, kTiles = kTilesOfNibbles<kTile0 * kPairs>;
    constexpr int kStageRow = kTiles * kTile0;
    char stage[kPairs * kStageRow];
    char* out = static_cast<char*>(out_rows);
    const char* in = static_cast<const char*>(in_tiles);
    for (uk_index_t t = 0; t < count; t += kTiles) {
      const uk_index_t tiles = min(kTiles, count - t);
      unpack_transposed<8, kTile0, kPairs>(stage, in + t * in_stride1 / 2, tiles, kStageRow,
                                           in_stride1 / 2);
      for (int k = 0; k < kPairs; ++k) {
        char* low = out + (t * kTile0 + 2 * k * out_stride0) / 2;
        split_nibbles(low, low + out_stride0 / 2, stage + k * kStageRow, tiles * kTile0);
      }
    }
  } else if constexpr (kTile0 == 1 || kTile1 == 1) {
    unpack_straight<kBits, kTile1, kTile0>(out_rows, in_tiles, count, out_stride0, in_stride1);
  } else {
    constexpr int kUnit = kBits / 8;
    unpack_units<kUnit, kTile1, kTile0>(static_cast<char*>(out_rows), out_stride0 * kUnit,
                                        static_cast<const char*>(in_tiles), in_stride1 * kUnit,
                                        count);
  }
}

}  // namespace

#endif  // UKERNEL_ARCH_PACK_TILE_H_
