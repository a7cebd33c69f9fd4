// uk_pack and uk_unpack against their definition, one element at a time: every type, flag and kind
// of strides, ragged edges and padding, at each CPU level.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <algorithm>
#include <numeric>
#include <set>

#include "tests/ops/harness.h"
#include "ukernel/copy_rows.h"
#include "ukernel/stream.h"
#include "ukernel/tile_walk.h"

namespace uk_test {
namespace {

enum class MatrixLayout {
  kRowMajor,
  kColumnMajor,
  kRowsOfALargerMatrix,
  kColumnsOfALargerMatrix,
  kLoose,       // neither dimension is contiguous
  kRowsUpward,  // negative strides
  kReversed,
  kOneRow,  // stride zero: the same row again and again, for a source only
  kOneColumn,
};
constexpr MatrixLayout kMatrixLayouts[] = {
    MatrixLayout::kRowMajor,
    MatrixLayout::kColumnMajor,
    MatrixLayout::kRowsOfALargerMatrix,
    MatrixLayout::kColumnsOfALargerMatrix,
    MatrixLayout::kLoose,
    MatrixLayout::kRowsUpward,
    MatrixLayout::kReversed,
    MatrixLayout::kOneRow,
    MatrixLayout::kOneColumn,
};

enum class TilesLayout {
  kTight,
  kTightTransposed,
  kLoose,
  kLooseTransposed,
  kUpward,
  kTightColumns,  // of tiles, each starting off the lines and wider elements of the one before
};
// Those of small cases.
constexpr TilesLayout kTilesLayouts[] = {TilesLayout::kTight, TilesLayout::kTightTransposed,
                                         TilesLayout::kLoose, TilesLayout::kLooseTransposed,
                                         TilesLayout::kUpward};

constexpr uint32_t kFlags[] = {0, UK_PACK_TRANSPOSE_INNER, UK_PACK_TRANSPOSE_OUTER,
                               UK_PACK_TRANSPOSE_INNER | UK_PACK_TRANSPOSE_OUTER};

// Bytes that differ and bytes that do not, with bits above the element's that must not matter.
constexpr uint64_t kPaddings[] = {0, UINT64_C(0xFEDCBA9876543217), UINT64_C(0x7B7B7B7B7B7B7B7B),
                                  UINT64_C(0xFFFFFFFF00000080)};

struct Strides {
  uk_index_t stride0, stride1;
};

struct Case {
  uint32_t op;
  PackType type;
  uint32_t flags;  // TRANSPOSE_*
  uk_index_t size0, size1;
  uk_index_t tile0, tile1;
  uk_index_t more0, more1;  // tiles beyond those that the matrix fills
  MatrixLayout matrix;
  TilesLayout tiles;
  Edge edge;
  uint64_t padding;

  bool transposes_inner() const { return (flags & UK_PACK_TRANSPOSE_INNER) != 0; }
  bool transposes_outer() const { return (flags & UK_PACK_TRANSPOSE_OUTER) != 0; }
  // The tile as the matrix sees it, and the outer sizes as stored.
  uk_index_t rows() const { return transposes_inner() ? tile1 : tile0; }
  uk_index_t columns() const { return transposes_inner() ? tile0 : tile1; }
  uk_index_t outer0() const { return (transposes_outer() ? tiles1() : tiles0()) + more0; }
  uk_index_t outer1() const { return (transposes_outer() ? tiles0() : tiles1()) + more1; }

  Strides matrix_strides() const {
    const uk_index_t even0 = type.bits == 4 ? size0 + size0 % 2 : size0;
    const uk_index_t even1 = type.bits == 4 ? size1 + size1 % 2 : size1;
    switch (matrix) {
      case MatrixLayout::kRowMajor:
        return {even1, 1};
      case MatrixLayout::kColumnMajor:
        return {1, even0};
      case MatrixLayout::kRowsOfALargerMatrix:
        return {even1 + 6, 1};
      case MatrixLayout::kColumnsOfALargerMatrix:
        return {1, even0 + 4};
      case MatrixLayout::kLoose:
        return {2 * even1 + 4, 2};
      case MatrixLayout::kRowsUpward:
        return {-even1 - 2, 1};
      case MatrixLayout::kReversed:
        return {-2 * even1, -2};
      case MatrixLayout::kOneRow:
        return {0, 1};
      case MatrixLayout::kOneColumn:
        return {2, 0};
    }
    return {};
  }

  Strides tiles_strides() const {
    const uk_index_t tile = tile0 * tile1;
    switch (tiles) {
      case TilesLayout::kTight:
        return {outer1() * tile, tile};
      case TilesLayout::kTightTransposed:
        return {tile, outer0() * tile};
      case TilesLayout::kLoose:
        return {outer1() * (tile + 6) + 10, tile + 6};
      case TilesLayout::kLooseTransposed:
        return {tile + 2, outer0() * (tile + 2) + 6};
      case TilesLayout::kUpward:
        return {-outer1() * tile - 2, tile};
      case TilesLayout::kTightColumns:
        return {tile, outer0() * tile + (type.bits == 4 ? 2 : 1)};
    }
    return {};
  }

  // Four-bit elements start on bytes, and an unpack writes whole ones. An output has no zero
  // stride.
  bool is_legal() const {
    const bool is_output = op == UK_OP_UNPACK;
    if (is_output && (matrix == MatrixLayout::kOneRow || matrix == MatrixLayout::kOneColumn)) {
      return false;
    }
    if (type.bits != 4) return true;
    if (tile1 % 2 != 0) return false;
    if (!is_output || size0 == 0 || size1 == 0) return true;
    const bool by_columns =
        matrix == MatrixLayout::kColumnMajor || matrix == MatrixLayout::kColumnsOfALargerMatrix;
    const bool loose = matrix == MatrixLayout::kLoose || matrix == MatrixLayout::kReversed;
    return !loose && (by_columns ? size0 : size1) % 2 == 0;
  }

 private:
  static uk_index_t tiles_for(uk_index_t size, uk_index_t tile) { return (size + tile - 1) / tile; }
  uk_index_t tiles0() const { return tiles_for(size0, rows()); }
  uk_index_t tiles1() const { return tiles_for(size1, columns()); }
};

std::string describe(const Case& c) {
  const auto text = [](uk_index_t a, uk_index_t b) {
    return std::to_string(a) + "x" + std::to_string(b);
  };
  return std::string(c.op == UK_OP_PACK ? "pack " : "unpack ") + c.type.name + " " +
         text(c.size0, c.size1) + ", tiles of " + text(c.tile0, c.tile1) + ", outer " +
         text(c.outer0(), c.outer1()) + (c.transposes_inner() ? ", inner transposed" : "") +
         (c.transposes_outer() ? ", outer transposed" : "") + ", matrix strides " +
         text(c.matrix_strides().stride0, c.matrix_strides().stride1) + ", tile strides " +
         text(c.tiles_strides().stride0, c.tiles_strides().stride1) +
         (c.edge == Edge::start ? ", at the start of a page" : ", at the end of a page");
}

// A case in memory, with both of its tensors and what the output must be.
class Call {
 public:
  Call(const Case& c, const uint64_t* cpu_data) : case_(c), cpu_data_(cpu_data) {
    const Strides m = c.matrix_strides(), t = c.tiles_strides();
    const bool in_larger =
        c.matrix != MatrixLayout::kRowMajor && c.matrix != MatrixLayout::kColumnMajor;
    const bool tiles_in_larger = c.tiles == TilesLayout::kLoose ||
                                 c.tiles == TilesLayout::kLooseTransposed ||
                                 c.tiles == TilesLayout::kUpward;
    matrix_extent_ =
        extent_of(c.size0, m.stride0, c.size1, m.stride1, 1, in_larger ? 6 : 0, in_larger ? 4 : 0);
    tiles_extent_ = extent_of(c.outer0(), t.stride0, c.outer1(), t.stride1, c.tile0 * c.tile1,
                              tiles_in_larger ? 2 : 0, tiles_in_larger ? 8 : 0);
    matrix_ = random_bytes(bytes_of(matrix_extent_.elements, c.type.bits), 11);
    tiles_ = random_bytes(bytes_of(tiles_extent_.elements, c.type.bits), 12);
  }

  void run_and_check() {
    SCOPED_TRACE(describe(case_));
    const bool packs = case_.op == UK_OP_PACK;
    GuardedBuffer in("in"), out("out");
    in.place(packs ? matrix_ : tiles_, {case_.edge, 0}, GuardedBuffer::read_only);
    out.place(packs ? tiles_ : matrix_, {case_.edge, 0}, GuardedBuffer::writable);
    const uk_status_t status = packs ? call(uk_pack, pack_params(in, out), {&in, &out})
                                     : call(uk_unpack, unpack_params(in, out), {&in, &out});
    ASSERT_EQ(UK_STATUS_OK, status);
    ASSERT_TRUE(same_bytes(expected(), out.data()));
    ASSERT_EQ("", out.damage_outside());
    const uk::TileCopy copy =
        packs ? copy_of(pack_params(in, out)) : copy_of(unpack_params(in, out));
    ASSERT_EQ(UK_STATUS_OK, uk::plan_tiles(copy, &plan_));
  }

  // How it ran.
  const uk::TilePlan& plan() const { return plan_; }

  uk_pack_params_t pack_params(const GuardedBuffer& in, const GuardedBuffer& out) const {
    uk_pack_params_t p = {};
    set_common(p);
    p.in = in.data();
    p.in_offset = matrix_extent_.offset;
    p.in_stride0 = case_.matrix_strides().stride0;
    p.in_stride1 = case_.matrix_strides().stride1;
    p.in_size0 = case_.size0;
    p.in_size1 = case_.size1;
    p.out = out.data();
    p.out_offset = tiles_extent_.offset;
    p.out_stride0 = case_.tiles_strides().stride0;
    p.out_stride1 = case_.tiles_strides().stride1;
    p.out_size0 = case_.outer0();
    p.out_size1 = case_.outer1();
    p.out_size2 = case_.tile0;
    p.out_size3 = case_.tile1;
    p.padding_value = case_.padding;
    return p;
  }

  uk_unpack_params_t unpack_params(const GuardedBuffer& in, const GuardedBuffer& out) const {
    uk_unpack_params_t p = {};
    set_common(p);
    p.in = in.data();
    p.in_offset = tiles_extent_.offset;
    p.in_stride0 = case_.tiles_strides().stride0;
    p.in_stride1 = case_.tiles_strides().stride1;
    p.in_size0 = case_.outer0();
    p.in_size1 = case_.outer1();
    p.in_size2 = case_.tile0;
    p.in_size3 = case_.tile1;
    p.out = out.data();
    p.out_offset = matrix_extent_.offset;
    p.out_stride0 = case_.matrix_strides().stride0;
    p.out_stride1 = case_.matrix_strides().stride1;
    p.out_size0 = case_.size0;
    p.out_size1 = case_.size1;
    return p;
  }

  // The definition in ukernel.h: each place of each tile is an element of the matrix or padding.
  Bytes expected() const {
    const Case& c = case_;
    const Strides m = c.matrix_strides(), t = c.tiles_strides();
    const bool packs = c.op == UK_OP_PACK;
    const bool swaps_outer = c.transposes_outer(), swaps_inner = c.transposes_inner();
    Bytes out = packs ? tiles_ : matrix_;
    uk_conformance::with_constant_width(c.type.bits, [&](auto bits) {
      const uint64_t padding = low_bits(c.padding, bits);
      for (uk_index_t o0 = 0; o0 < c.outer0(); ++o0) {
        for (uk_index_t o1 = 0; o1 < c.outer1(); ++o1) {
          const uk_index_t first_row = (swaps_outer ? o1 : o0) * c.rows();
          const uk_index_t first_column = (swaps_outer ? o0 : o1) * c.columns();
          const uk_index_t tile = tiles_extent_.offset + o0 * t.stride0 + o1 * t.stride1;
          for (uk_index_t t0 = 0; t0 < c.tile0; ++t0) {
            // What lies along t1: a part of a column if transposed, else of a row.
            const uk_index_t row = first_row + (swaps_inner ? 0 : t0);
            const uk_index_t column = first_column + (swaps_inner ? t0 : 0);
            const uk_index_t left = swaps_inner ? c.size0 - row : c.size1 - column;
            const bool has_any = row < c.size0 && column < c.size1;
            const uk_index_t elements = has_any ? std::min(left, c.tile1) : 0;
            const uk_index_t step = swaps_inner ? m.stride0 : m.stride1;
            const uk_index_t place = tile + t0 * c.tile1;
            uk_index_t element = matrix_extent_.offset + row * m.stride0 + column * m.stride1;
            for (uk_index_t t1 = 0; t1 < elements; ++t1, element += step) {
              if (packs) {
                store_bits(out.data(), place + t1, bits, load_bits(matrix_.data(), element, bits));
              } else {
                store_bits(out.data(), element, bits, load_bits(tiles_.data(), place + t1, bits));
              }
            }
            for (uk_index_t t1 = elements; packs && t1 < c.tile1; ++t1) {
              store_bits(out.data(), place + t1, bits, padding);
            }
          }
        }
      }
    });
    return out;
  }

  const Bytes& matrix() const { return matrix_; }
  const Bytes& tiles() const { return tiles_; }

 private:
  static uint64_t low_bits(uint64_t value, int bits) {
    return bits == 64 ? value : value & ((UINT64_C(1) << bits) - 1);
  }

  static uk::TileCopy copy_of(const uk_pack_params_t& p) {
    return {UK_OP_PACK,  p.flags,       p.cpu_data,    p.in,        p.in_offset,  p.in_size0,
            p.in_size1,  p.in_stride0,  p.in_stride1,  p.out,       p.out_offset, p.out_size0,
            p.out_size1, p.out_stride0, p.out_stride1, p.out_size2, p.out_size3};
  }
  static uk::TileCopy copy_of(const uk_unpack_params_t& p) {
    return {UK_OP_UNPACK, p.flags,       p.cpu_data,    p.out,      p.out_offset, p.out_size0,
            p.out_size1,  p.out_stride0, p.out_stride1, p.in,       p.in_offset,  p.in_size0,
            p.in_size1,   p.in_stride0,  p.in_stride1,  p.in_size2, p.in_size3};
  }

  template <class Params>
  void set_common(Params& p) const {
    p.struct_size = sizeof(p);
    p.flags = case_.type.flag | case_.flags;
    p.cpu_data = cpu_data_;
  }

  const Case case_;
  const uint64_t* const cpu_data_;
  Extent matrix_extent_, tiles_extent_;
  Bytes matrix_, tiles_;
  uk::TilePlan plan_ = {};
};

// Sizes in terms of the tile: none, less than one, some, some and a bit.
std::vector<std::array<uk_index_t, 2>> matrix_sizes(uk_index_t rows, uk_index_t columns) {
  return {{0, columns},
          {rows, 0},
          {1, 1},
          {rows, columns},
          {2 * rows, 3 * columns},
          {2 * rows + 1, 3 * columns - 1},
          {std::max<uk_index_t>(rows - 1, 1), 2 * columns + 2},
          {3 * rows - 1, 2},
          {rows + 2, 20 * columns + 2},
          {20 * rows + 2, columns + 2}};
}

struct TileShape {
  uk_index_t tile0, tile1;
};

// A row-major matrix and as many dense tiles as it fills, which end at the end of a page.
Case dense_case(uint32_t op, const PackType& type, uint32_t flags, uk_index_t size0,
                uk_index_t size1, const TileShape& shape) {
  return {op,
          type,
          flags,
          size0,
          size1,
          shape.tile0,
          shape.tile1,
          0,
          0,
          MatrixLayout::kRowMajor,
          TilesLayout::kTight,
          Edge::end,
          kPaddings[1]};
}

// `every`: each layout for each size; else a few of them in turn.
void check_shape(const PackType& type, const TileShape& shape, bool every,
                 const uint64_t* cpu_data) {
  size_t turn = 0;
  for (const uint32_t op : {UK_OP_PACK, UK_OP_UNPACK}) {
    for (const uint32_t flags : kFlags) {
      const bool transposed = (flags & UK_PACK_TRANSPOSE_INNER) != 0;
      for (const auto& size : matrix_sizes(transposed ? shape.tile1 : shape.tile0,
                                           transposed ? shape.tile0 : shape.tile1)) {
        for (const MatrixLayout layout : kMatrixLayouts) {
          ++turn;
          if (!every && turn % 4 != 0) continue;
          const size_t draw = turn / 4;
          const Case c = {op,
                          type,
                          flags,
                          size[0],
                          size[1],
                          shape.tile0,
                          shape.tile1,
                          draw % 3 == 0 ? 1 : 0,
                          draw % 7 == 0 ? 2 : 0,
                          layout,
                          kTilesLayouts[draw % 5],
                          draw % 2 == 0 ? Edge::start : Edge::end,
                          kPaddings[draw % 4]};
          if (!c.is_legal()) continue;
          Call(c, cpu_data).run_and_check();
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

// Edges of more tiles than an op's scratch holds at once, and each part of a tile's columns.
void check_edges(const PackType& type, const TileShape& shape, const uint64_t* cpu_data) {
  const uk_index_t tile_bytes = shape.tile0 * shape.tile1 * type.bits / 8;
  const uk_index_t tiles = uk::kScratchBytes / tile_bytes + 2;
  for (const uint32_t op : {UK_OP_PACK, UK_OP_UNPACK}) {
    for (const uint32_t flags : {0u, UK_PACK_TRANSPOSE_INNER}) {
      const uk_index_t rows = flags == 0 ? shape.tile0 : shape.tile1;
      const uk_index_t columns = flags == 0 ? shape.tile1 : shape.tile0;
      const auto check = [&](uk_index_t size0, uk_index_t size1) {
        const Case c = dense_case(op, type, flags, size0, size1, shape);
        if (c.is_legal()) Call(c, cpu_data).run_and_check();
      };
      check(std::max<uk_index_t>(rows - 1, 1), (tiles * columns - 1) & ~uk_index_t{1});
      check(tiles * rows, columns + (columns + 1) / 2);
      for (uk_index_t left = 1; left < columns; ++left) check(3 * rows, columns + left);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// ---------------------------------------------------------------- shapes that have no tile
// function

class PackAnyShape : public ::testing::TestWithParam<PackType> {};

TEST_P(PackAnyShape, EveryLayout) {
  for (const TileShape& shape : {TileShape{3, 5}, {1, 1}, {7, 4}, {5, 6}, {1, 2}, {2, 13}}) {
    check_shape(GetParam(), shape, true, nullptr);
    if (HasFatalFailure()) return;
  }
}

// Tiles of more than any scratch that an op could have.
TEST_P(PackAnyShape, LargeTiles) {
  for (const uint32_t op : {UK_OP_PACK, UK_OP_UNPACK}) {
    for (const uint32_t flags : kFlags) {
      for (const auto& [size0, size1, tile0, tile1] :
           {std::array<uk_index_t, 4>{158, 164, 150, 130}, {3, 4, 1, 20000}, {4, 6, 20000, 2}}) {
        const Case c = {op,
                        GetParam(),
                        flags,
                        size0,
                        size1,
                        tile0,
                        tile1,
                        0,
                        0,
                        MatrixLayout::kRowMajor,
                        TilesLayout::kTight,
                        Edge::end,
                        kPaddings[1]};
        Call(c, nullptr).run_and_check();
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(PackAnyShape, RoundTrip) {
  for (const uint32_t flags : kFlags) {
    const Case c = {
        UK_OP_PACK,          GetParam(), flags,       38, 54, 6, 8, 0, 0, MatrixLayout::kRowMajor,
        TilesLayout::kTight, Edge::end,  kPaddings[1]};
    const Call calls(c, nullptr);
    GuardedBuffer matrix("matrix"), tiles("tiles"), back("back");
    matrix.place(calls.matrix(), {Edge::end, 0}, GuardedBuffer::read_only);
    tiles.place(calls.tiles(), {Edge::end, 0}, GuardedBuffer::writable);
    back.place(Bytes(calls.matrix().size()), {Edge::end, 0}, GuardedBuffer::writable);
    ASSERT_EQ(UK_STATUS_OK, call(uk_pack, calls.pack_params(matrix, tiles), {&matrix, &tiles}));
    ASSERT_EQ(UK_STATUS_OK, call(uk_unpack, calls.unpack_params(tiles, back), {&tiles, &back}));
    EXPECT_TRUE(same_bytes(calls.matrix(), back.data()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PackAnyShape, ::testing::ValuesIn(pack_types()),
                         [](const auto& tested) { return tested.param.name; });

// ---------------------------------------------------------------- large outputs

// Outputs written past the caches, and the largest that are not.
class PackLarge : public ::testing::TestWithParam<PackType> {};

// Of elements of any width, tiles that stack to a tall one of wider elements, as far as the table
// has it: of an operand, of a result.
TileShape operand_tile(int bits) { return {4, std::max(32 / bits, 1)}; }
TileShape result_tile(int bits) { return {2, bits == 64 ? 16 : 32}; }
// Of an operand, narrower.
TileShape narrow_tile(int bits) { return {4, std::max(16 / bits, 1)}; }
// And tiles that stack to no tall one.
TileShape odd_operand_tile(int bits) { return {14, std::max(16 / bits, 1)}; }
TileShape row_tile(int) { return {1, 64}; }
// A result's, transposed into rows of the matrix that are more than stack; a column of a result.
TileShape tall_tile(int) { return {16, 32}; }
TileShape column_tile(int bits) { return {1, bits == 4 ? 32 : 16}; }
TileShape square_tile(int bits) { return {16, bits == 4 ? 32 : 16}; }

// The columns of an even row are whole tiles but, of narrow elements, not whole blocks, so that
// what lies past the last block is past the buffer, and its strides are whole lines. Those of an
// odd row are neither. Four-bit elements count in pairs.
constexpr uk_index_t kEvenRow = 1088, kOddRow = 1061;

struct LargeCase {
  const char* what;
  TileShape (*shape)(int bits);
  uk_index_t columns;
  MatrixLayout matrix;
  TilesLayout tiles;
  uint32_t flags;
  Edge edge;  // the start where a size is odd, so that only the strides are
  bool is_large, is_streamed;
};

// In those that are not rows of tiles the tiles of one column follow each other.
constexpr LargeCase kLargePacks[] = {
    {"tall tiles in odd columns, not streamed", operand_tile, kEvenRow, MatrixLayout::kRowMajor,
     TilesLayout::kTightColumns, 0, Edge::start, false, false},
    {"tall tiles", operand_tile, kEvenRow, MatrixLayout::kRowMajor, TilesLayout::kTightTransposed,
     0, Edge::end, true, true},
    {"tall tiles of odd rows", operand_tile, kOddRow, MatrixLayout::kRowMajor,
     TilesLayout::kTightTransposed, 0, Edge::start, true, true},
    {"tall tiles in odd columns", operand_tile, kEvenRow, MatrixLayout::kRowMajor,
     TilesLayout::kTightColumns, 0, Edge::start, true, true},
    {"stacked tiles", odd_operand_tile, kOddRow, MatrixLayout::kRowsUpward, TilesLayout::kTight,
     UK_PACK_TRANSPOSE_OUTER, Edge::end, true, true},
    {"restacked tiles, not streamed", operand_tile, kEvenRow, MatrixLayout::kRowsOfALargerMatrix,
     TilesLayout::kTight, UK_PACK_TRANSPOSE_INNER | UK_PACK_TRANSPOSE_OUTER, Edge::end, false,
     false},
    {"narrow tiles restacked, not streamed", narrow_tile, kOddRow, MatrixLayout::kRowMajor,
     TilesLayout::kTight, UK_PACK_TRANSPOSE_INNER | UK_PACK_TRANSPOSE_OUTER, Edge::start, false,
     false},
    {"tiles restacked in odd columns, not streamed", narrow_tile, kEvenRow, MatrixLayout::kRowMajor,
     TilesLayout::kTightColumns, UK_PACK_TRANSPOSE_INNER, Edge::start, false, false},
    {"transposed tiles", operand_tile, kEvenRow, MatrixLayout::kRowsOfALargerMatrix,
     TilesLayout::kTight, UK_PACK_TRANSPOSE_INNER | UK_PACK_TRANSPOSE_OUTER, Edge::end, true, true},
    {"tiles of columns", square_tile, kEvenRow, MatrixLayout::kColumnsOfALargerMatrix,
     TilesLayout::kTight, 0, Edge::end, true, true},
    {"rows of tiles", operand_tile, kOddRow, MatrixLayout::kRowsOfALargerMatrix,
     TilesLayout::kTight, 0, Edge::end, true, true},
    {"rows of tiles, upward", operand_tile, kOddRow, MatrixLayout::kRowMajor, TilesLayout::kUpward,
     0, Edge::start, true, true},
    {"rows of tiles of one row", row_tile, kOddRow, MatrixLayout::kRowMajor, TilesLayout::kUpward,
     0, Edge::end, true, true},
    {"rows of transposed tiles", operand_tile, kEvenRow, MatrixLayout::kRowMajor,
     TilesLayout::kTight, UK_PACK_TRANSPOSE_INNER, Edge::end, true, true},
    {"rows of large tiles", square_tile, kEvenRow, MatrixLayout::kRowMajor, TilesLayout::kTight, 0,
     Edge::end, true, true},
    {"columns of long rows", row_tile, kEvenRow, MatrixLayout::kRowMajor,
     TilesLayout::kTightTransposed, 0, Edge::end, true, true},
};
constexpr LargeCase kLargeUnpacks[] = {
    {"not streamed", result_tile, kEvenRow, MatrixLayout::kRowMajor, TilesLayout::kTightTransposed,
     0, Edge::end, false, false},
    {"tall tiles", result_tile, kEvenRow, MatrixLayout::kRowMajor, TilesLayout::kTightTransposed, 0,
     Edge::end, true, true},
    {"tall tiles in odd columns", result_tile, kEvenRow, MatrixLayout::kRowMajor,
     TilesLayout::kTightColumns, 0, Edge::start, true, true},
    {"stacked tiles", square_tile, kEvenRow, MatrixLayout::kRowMajor, TilesLayout::kTight,
     UK_PACK_TRANSPOSE_OUTER, Edge::end, true, true},
    {"stacked tiles, odd rows", square_tile, kOddRow, MatrixLayout::kRowsUpward,
     TilesLayout::kTight, UK_PACK_TRANSPOSE_OUTER, Edge::end, true, false},
    {"tiles of columns, not in lines", square_tile, kEvenRow, MatrixLayout::kColumnsOfALargerMatrix,
     TilesLayout::kTight, 0, Edge::end, true, false},
    {"rows of tiles", result_tile, kEvenRow, MatrixLayout::kRowMajor, TilesLayout::kTight, 0,
     Edge::end, true, true},
    {"rows of large tiles", square_tile, kEvenRow, MatrixLayout::kRowMajor, TilesLayout::kTight, 0,
     Edge::end, true, true},
    {"rows of transposed tiles", square_tile, kEvenRow, MatrixLayout::kRowMajor,
     TilesLayout::kTight, UK_PACK_TRANSPOSE_INNER, Edge::end, true, true},
    {"rows of tall transposed tiles", tall_tile, kEvenRow, MatrixLayout::kRowMajor,
     TilesLayout::kTight, UK_PACK_TRANSPOSE_INNER, Edge::end, true, true},
    {"columns of tall transposed tiles", tall_tile, kEvenRow, MatrixLayout::kRowMajor,
     TilesLayout::kTight, UK_PACK_TRANSPOSE_INNER | UK_PACK_TRANSPOSE_OUTER, Edge::end, true, true},
    {"many narrow columns", column_tile, kEvenRow, MatrixLayout::kRowMajor, TilesLayout::kTight,
     UK_PACK_TRANSPOSE_INNER | UK_PACK_TRANSPOSE_OUTER, Edge::end, true, true},
    {"rows of tiles, not in lines", result_tile, kOddRow, MatrixLayout::kRowMajor,
     TilesLayout::kTight, 0, Edge::end, true, false},
    {"long rows, not in lines", row_tile, kOddRow, MatrixLayout::kRowMajor, TilesLayout::kTight, 0,
     Edge::end, true, true},
};

void check_large(uint32_t op, const PackType& type, const LargeCase& large, const CpuData& cpu) {
  SCOPED_TRACE(large.what);
  const uk_index_t columns = type.bits == 4 ? 2 * large.columns : large.columns;
  const uk_index_t rows = uk::kStreamedCopyBytes * 8 / type.bits / columns;
  // Not whole blocks of tall tiles, and whole tiles only of two rows: there a block that reads too
  // far finds no part-full tile.
  const uk_index_t blocks = rows / uk::kTallRows + (large.is_large ? 2 : 0);
  const TileShape shape = large.shape(type.bits);
  const Case c = {op,          type,         large.flags, blocks * uk::kTallRows - 6,
                  columns,     shape.tile0,  shape.tile1, 0,
                  0,           large.matrix, large.tiles, large.edge,
                  kPaddings[1]};
  ASSERT_TRUE(c.is_legal());
  Call call(c, cpu.data());
  call.run_and_check();
  if (::testing::Test::HasFatalFailure() || !call.plan().row) return;
  EXPECT_EQ(large.is_streamed, call.plan().blocks.output == uk::BlockOutput::kStreamed);
}

void check_both_sides_of_the_streamed_size(const PackType& type, const CpuData& cpu) {
  for (const LargeCase& large : kLargePacks) {
    check_large(UK_OP_PACK, type, large, cpu);
    if (::testing::Test::HasFatalFailure()) return;
  }
  for (const LargeCase& large : kLargeUnpacks) {
    check_large(UK_OP_UNPACK, type, large, cpu);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST_P(PackLarge, BothSidesOfTheStreamedSize) {
  check_both_sides_of_the_streamed_size(GetParam(), host_cpu_data());
}

// Streamed by stores of its own.
TEST_P(PackLarge, BothSidesOfTheStreamedSizeAtTheBaseline) {
  check_both_sides_of_the_streamed_size(GetParam(), CpuData{});
}

// In the blocks of cores that prefetch nothing, or little.
TEST_P(PackLarge, BothSidesOfTheStreamedSizeWhereL3FeedsTiles) {
  for (const std::string& level : level_names()) {
    const CpuData cpu = level_cpu_data(level);
    if (!uk::l3_feeds_tiles(cpu.data()) || !host_has_level(level)) continue;
    return check_both_sides_of_the_streamed_size(GetParam(), cpu);
  }
  GTEST_SKIP() << "this CPU has no level whose tiles L3 feeds";
}

#if defined(__x86_64__)
// What is streamed in turns to many places, on a CPU whose stores wait for each other so.
TEST(PackLargePlaces, AreFewerWhereTheCoreReadsAhead) {
  const auto types = pack_types();
  const auto f32 = std::find_if(types.begin(), types.end(),
                                [](const PackType& type) { return type.bits == 32; });
  struct Streamed {
    uint32_t op, flags;
    TileShape shape;
  };
  for (const Streamed& s : {Streamed{UK_OP_PACK, 0, {1, 16}}, Streamed{UK_OP_UNPACK, 0, {16, 16}},
                            Streamed{UK_OP_UNPACK, 0, {32, 32}},
                            Streamed{UK_OP_UNPACK, UK_PACK_TRANSPOSE_OUTER, {8, 16}}}) {
    uk::Blocks found[2];
    for (const bool reads_ahead : {false, true}) {
      CpuData cpu = {};
      if (reads_ahead) cpu[7] = uk::kReadsAhead;
      Call call(dense_case(s.op, *f32, s.flags, 1030, 2064, s.shape), cpu.data());
      call.run_and_check();
      ASSERT_NE(nullptr, call.plan().row);
      found[reads_ahead] = call.plan().blocks;
      EXPECT_EQ(uk::BlockOutput::kStreamed, found[reads_ahead].output);
    }
    SCOPED_TRACE(s.shape.tile0);
    if (s.op == UK_OP_PACK) {
      EXPECT_EQ(uk::kRowsInTurns, found[false].tile_rows);
      EXPECT_EQ(uk::kRowsInFewTurns, found[true].tile_rows);
    } else {
      EXPECT_GE(found[true].tiles, 2 * found[false].tiles);
    }
  }
}

// What is streamed of a row of tiles at a time ends where a line does, though few of its tiles do.
TEST(PackLargeOddTiles, AreStreamedInWholeLines) {
  const CpuData cpu = host_cpu_data();
  const auto types = pack_types();
  const auto f32 = std::find_if(types.begin(), types.end(),
                                [](const PackType& type) { return type.bits == 32; });
  for (const TileShape& shape : {TileShape{6, 1}, TileShape{9, 1}, TileShape{13, 1}}) {
    Call call(dense_case(UK_OP_PACK, *f32, 0, 1030, 2064, shape), cpu.data());
    call.run_and_check();
    ASSERT_NE(nullptr, call.plan().row);
    const uk::Blocks& blocks = call.plan().blocks;
    SCOPED_TRACE(shape.tile0);
    EXPECT_EQ(uk::BlockOutput::kStreamed, blocks.output);
    EXPECT_EQ(0, blocks.tiles * shape.tile0 * 4 % kLineBytes);
  }
}
#endif

// Tiles one element wide, taller than those that stack: of a strip of them so many fit the scratch.
// The debug build has one.
TEST(PackStrip, FitsTheScratch) {
  const CpuData cpu = host_cpu_data();
  const auto types = pack_types();
  const auto bytes =
      std::find_if(types.begin(), types.end(), [](const PackType& type) { return type.bits == 8; });
  Call call(dense_case(UK_OP_PACK, *bytes, UK_PACK_TRANSPOSE_OUTER, 96, 600, {48, 1}), cpu.data());
  call.run_and_check();
  if (!call.plan().row) GTEST_SKIP() << "such a tile is not in this build";
  EXPECT_EQ(uk::BlockOutput::kGathered, call.plan().blocks.output);
}

// Rows that end in the low half of a byte are no reason to go element by element, whether that byte
// ends a tile or not.
TEST(PackOddRowsOfFourBits, HaveATile) {
  const CpuData cpu = host_cpu_data();
  const PackType type = {UK_PACK_TYPE_I4, "i4", 4};
  const TileShape shape = {16, 8};
  const uk_index_t most_rows = 259;
  const uk_index_t streamed = uk::kStreamedCopyBytes * 2 / (most_rows - 3);
  for (const uint32_t flags : {0u, uint32_t{UK_PACK_TRANSPOSE_OUTER}}) {
    for (const uk_index_t size0 : {uk_index_t{1}, uk_index_t{16}, uk_index_t{33}, most_rows}) {
      for (const uk_index_t size1 : {uk_index_t{1}, uk_index_t{7}, uk_index_t{9}, uk_index_t{2047},
                                     streamed - 1, streamed + 1}) {
        Call call(dense_case(UK_OP_PACK, type, flags, size0, size1, shape), cpu.data());
        call.run_and_check();
        if (::testing::Test::HasFatalFailure()) return;
        EXPECT_NE(nullptr, call.plan().row);
      }
    }
  }
}

// Columns of tiles a multiple of kSetsBytes apart, by way of the scratch: tiles that stack to a
// tall one, or to none, and transposed ones; blocks that end within the matrix both ways.
TEST_P(PackLarge, ColumnsThatShareSets) {
  const CpuData cpu = host_cpu_data();
  const PackType& type = GetParam();
  for (const auto shape_of : {operand_tile, narrow_tile, odd_operand_tile, square_tile}) {
    for (const uint32_t inner : {0u, uint32_t{UK_PACK_TRANSPOSE_INNER}}) {
      TileShape shape = shape_of(type.bits);
      const uk_index_t tile_bits = shape.tile0 * shape.tile1 * type.bits;
      const uk_index_t tile_rows =
          3 * uk::kSetsBytes * 8 / std::gcd(3 * uk::kSetsBytes * 8, tile_bits);
      const uk_index_t rows = tile_rows * (inner ? shape.tile1 : shape.tile0) - 1;
      const uk_index_t columns = (uk::kGatheredCopyBytes * 8 / type.bits / rows + 31) / 2 * 2;
      const Case c =
          dense_case(UK_OP_PACK, type, inner | UK_PACK_TRANSPOSE_OUTER, rows, columns, shape);
      ASSERT_TRUE(c.is_legal());
      Call call(c, cpu.data());
      call.run_and_check();
      if (HasFatalFailure()) return;
      // Square tiles may be as wide as a line, and transposing takes as long anyway.
      if (!call.plan().row || inner != 0 || shape_of == square_tile) continue;
      EXPECT_EQ(uk::BlockOutput::kGathered, call.plan().blocks.output);
    }
  }
}

// From L3 in blocks of few columns, which end within the matrix both ways.
TEST_P(PackLarge, ShortBlocks) {
  const CpuData cpu = host_cpu_data();
  const PackType& type = GetParam();
  for (const uint32_t op : {UK_OP_PACK, UK_OP_UNPACK}) {
    for (const uk_index_t tile_rows : {1, 4, 8, 16}) {
      for (const uk_index_t row_bytes : {16, 32, 64}) {
        for (const uint32_t inner : {0u, uint32_t{UK_PACK_TRANSPOSE_INNER}}) {
          const uk_index_t tile_columns = row_bytes * 8 / type.bits;
          TileShape shape = {tile_rows, tile_columns};
          if (inner) std::swap(shape.tile0, shape.tile1);
          if (type.bits == 4 && shape.tile1 % 2 != 0) continue;  // splits bytes
          // Columns of tiles a multiple of kSetsBytes apart.
          const uk_index_t rows = uk::kSetsBytes / 16 * 3 - (op == UK_OP_PACK ? tile_rows / 2 : 0);
          const uk_index_t columns =
              (uk::kGatheredCopyBytes * 8 / type.bits / rows + 11 * tile_columns) / 2 * 2 - 2;
          const Case c =
              dense_case(op, type, inner | UK_PACK_TRANSPOSE_OUTER, rows, columns, shape);
          ASSERT_TRUE(c.is_legal());
          Call call(c, cpu.data());
          call.run_and_check();
          if (HasFatalFailure()) return;
          // Which transposed tiles a level has differs; of straight rows the narrowest are always
          // moved so.
          if (!call.plan().row || inner || row_bytes > 16) continue;
          const uk::Blocks& blocks = call.plan().blocks;
          EXPECT_EQ(uk::BlockOutput::kDirect, blocks.output);
          EXPECT_FALSE(blocks.down);
          EXPECT_LT(blocks.tiles, call.plan().tiles1);
        }
      }
    }
  }
}

std::vector<PackType> one_type_of_each_width() {
  std::vector<PackType> types;
  for (const PackType& type : pack_types()) {
    const bool is_new = std::none_of(types.begin(), types.end(),
                                     [&](const PackType& t) { return t.bits == type.bits; });
    if (is_new) types.push_back(type);
  }
  return types;
}

INSTANTIATE_TEST_SUITE_P(Widths, PackLarge, ::testing::ValuesIn(one_type_of_each_width()),
                         [](const auto& tested) { return tested.param.name; });

// ---------------------------------------------------------------- shapes that have tile functions

struct TypeAtLevel {
  PackType type;
  std::string isa;
};

std::ostream& operator<<(std::ostream& out, const TypeAtLevel& t) {
  return out << t.type << " at " << t.isa;
}

int width_of_row(const uk_tile_row_t& row) {
  for (const PackType& type : pack_types()) {
    if (type.flag == (row.flags & UK_PACK_TYPE_MASK)) return type.bits;
  }
  return 0;
}

bool is_copy_row(const uk_tile_row_t& row, int bits) {
  return row.op != UK_OP_MMT4D && row.origin != UK_ORIGIN_GENERIC && width_of_row(row) == bits;
}

std::vector<TypeAtLevel> types_at_levels() {
  std::vector<TypeAtLevel> all;
  for (const PackType& type : pack_types()) {
    std::set<std::string> levels;
    for (const uk_tile_row_t* row : table_rows()) {
      if (is_copy_row(*row, type.bits)) levels.insert(row->isa);
    }
    for (const std::string& isa : levels) all.push_back({type, isa});
  }
  return all;
}

// Whatever their length, and nothing beside them.
TEST(CopyRowParts, CopiesTheseBytesAlone) {
  constexpr uk_index_t kRows = 3, kToStride = 300, kFromStride = 280;
  std::vector<char> from(kRows * kFromStride);
  std::iota(from.begin(), from.end(), 0);
  for (uk_index_t bytes = 1; bytes <= 270; ++bytes) {
    std::vector<char> to(kRows * kToStride, 'x'), expected = to;
    for (uk_index_t r = 0; r < kRows; ++r) {
      std::copy_n(&from[r * kFromStride], bytes, &expected[r * kToStride]);
    }
    uk::copy_row_parts(to.data(), from.data(), {kRows, bytes, kToStride, kFromStride});
    ASSERT_EQ(expected, to) << bytes << " bytes";
  }
}

class PackAtLevel : public ::testing::TestWithParam<TypeAtLevel> {};

TEST_P(PackAtLevel, EveryShapeOfTheTable) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  const CpuData cpu = level_cpu_data(GetParam().isa);
  std::set<std::array<int32_t, 2>> shapes;
  for (const uk_tile_row_t* row : table_rows()) {
    if (is_copy_row(*row, GetParam().type.bits) && row->isa == GetParam().isa) {
      shapes.insert({row->m0, row->n0});
    }
  }
  for (const auto& shape : shapes) {
    check_shape(GetParam().type, {shape[0], shape[1]}, false, cpu.data());
    if (HasFatalFailure()) return;
    check_edges(GetParam().type, {shape[0], shape[1]}, cpu.data());
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PackAtLevel, ::testing::ValuesIn(types_at_levels()),
                         [](const auto& tested) {
                           return std::string(tested.param.type.name) + "_" + tested.param.isa;
                         });

}  // namespace
}  // namespace uk_test
