// What pack and unpack of memrefs share.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef GENERATOR_MEMREF_COPY_H_
#define GENERATOR_MEMREF_COPY_H_

#include "generator/memref/memref.h"
#include "ukernel/internal.h"

namespace uk {

// A matrix and its tiles, where tile (i, j) covers `rows` x `columns` of the matrix.
class TiledMatrix {
 public:
  template <class Function>
  TiledMatrix(const CopyTile<Function>& tile, const Memref<2>& matrix, const Memref<4>& tiles,
              bool transposes_outer)
      : rows(tile.transposes_inner ? tile.tile1 : tile.tile0),
        columns(tile.transposes_inner ? tile.tile0 : tile.tile1),
        size0(matrix.sizes[0]),
        size1(matrix.sizes[1]),
        tiles0(tiles.sizes[transposes_outer]),
        tiles1(tiles.sizes[!transposes_outer]),
        stride0(matrix.strides[0]),
        tiles_stride1(tiles.strides[!transposes_outer]),
        bytes_(tile.bytes),
        stride1_(matrix.strides[1]),
        tiles_stride0_(tiles.strides[transposes_outer]),
        row_step_(tiles.strides[tile.transposes_inner ? 3 : 2]),
        column_step_(tiles.strides[tile.transposes_inner ? 2 : 3]),
        matrix_(static_cast<char*>(matrix.aligned) + matrix.offset * tile.bytes),
        tiles_(static_cast<char*>(tiles.aligned) + tiles.offset * tile.bytes) {
    // A tile function wants the matrix's rows dense, and its own elements.
    const bool is_dense = (size1 <= 1 || stride1_ == 1) &&
                          (tile.tile1 == 1 || tiles.strides[3] == 1) &&
                          (tile.tile0 == 1 || tiles.strides[2] == tile.tile1);
    if (is_dense) {
      whole0 = smaller(size0 / rows, tiles0);
      whole1 = smaller(size1 / columns, tiles1);
    }
  }

  char* element(uk_index_t r, uk_index_t c) const {
    return matrix_ + (r * stride0 + c * stride1_) * bytes_;
  }
  char* tile(uk_index_t i, uk_index_t j) const {
    return tiles_ + (i * tiles_stride0_ + j * tiles_stride1) * bytes_;
  }

  // Calls visit(place, r, c) for each place of the tiles that are not among the whole ones: that of
  // element (r, c), if the matrix reaches so far.
  template <class Visit>
  void for_each_other_place(Visit visit) const {
    for (uk_index_t i = 0; i < tiles0; ++i) {
      for (uk_index_t j = i < whole0 ? whole1 : 0; j < tiles1; ++j) {
        for (uk_index_t r = 0; r < rows; ++r) {
          for (uk_index_t c = 0; c < columns; ++c) {
            visit(tile(i, j) + (r * row_step_ + c * column_step_) * bytes_, i * rows + r,
                  j * columns + c);
          }
        }
      }
    }
  }

  const uk_index_t rows, columns, size0, size1, tiles0, tiles1, stride0, tiles_stride1;
  uk_index_t whole0 = 0, whole1 = 0;  // tiles that the tile function can copy

 private:
  const uk_index_t bytes_, stride1_, tiles_stride0_, row_step_, column_step_;
  char* const matrix_;
  char* const tiles_;
};

}  // namespace uk

#endif  // GENERATOR_MEMREF_COPY_H_
