// linalg.mmt4d and linalg.batch_mmt4d on memrefs.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "generator/memref/memref.h"
#include "ukernel/mmt4d_walk.h"

namespace uk {
namespace {

struct Place {
  char* data;
  uk_index_t row, column;  // strides in bytes
};

template <class Element>
void copy_elements(const Place& to, const Place& from, int rows, int columns) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      __builtin_memcpy(to.data + i * to.row + j * to.column,
                       from.data + i * from.row + j * from.column, sizeof(Element));
    }
  }
}

void copy_elements(const Place& to, const Place& from, int rows, int columns, int bytes) {
  with_element(bytes, [&](auto zero) { copy_elements<decltype(zero)>(to, from, rows, columns); });
}

// Columns of ukernel/isa.inc, at their least: which CPU will run this is not known.
constexpr int kPanelsInTurns = 1;
constexpr bool kL3Feeds = false;

constexpr int kMaxTile = 64, kMaxK0 = 16, kMaxBytes = 8;  // of what the generator makes

// An operand as tiles of rows x columns.
class Tiles {
 public:
  Tiles(const Memref<4>& memref, int rows, int columns, int bytes)
      : data_(static_cast<char*>(memref.aligned) + memref.offset * bytes),
        rows_(rows),
        columns_(columns),
        bytes_(bytes) {
    for (int d = 0; d < 4; ++d) strides_[d] = memref.strides[d] * bytes;
  }

  uk_index_t tile_bytes() const { return uk_index_t{rows_} * columns_ * bytes_; }

  // Whether the elements of a tile lie behind each other.
  bool has_dense_tiles() const {
    return (columns_ == 1 || strides_[3] == bytes_) &&
           (rows_ == 1 || strides_[2] == uk_index_t{columns_} * bytes_);
  }

  // Whether `count` tiles along dimension 1 lie behind each other as well.
  bool has_dense_panels(uk_index_t count) const {
    return has_dense_tiles() && (count <= 1 || strides_[1] == tile_bytes());
  }

  char* at(uk_index_t i, uk_index_t j) const { return data_ + i * strides_[0] + j * strides_[1]; }

  void gather(char* to, uk_index_t i, uk_index_t j, uk_index_t count) const {
    for (uk_index_t t = 0; t < count; ++t) {
      copy_elements(dense(to + t * tile_bytes()), strided(i, j + t), rows_, columns_, bytes_);
    }
  }

  void scatter(char* from, uk_index_t i, uk_index_t j) const {
    copy_elements(strided(i, j), dense(from), rows_, columns_, bytes_);
  }

 private:
  Place dense(char* data) const { return {data, uk_index_t{columns_} * bytes_, bytes_}; }
  Place strided(uk_index_t i, uk_index_t j) const { return {at(i, j), strides_[2], strides_[3]}; }

  char* data_;
  uk_index_t strides_[4];  // in bytes
  int rows_, columns_, bytes_;
};

// Tile functions read panels and write tiles that are dense. Others are copied, a few steps of K at
// a time: OUT holds the exact intermediate result, or, of 16 bits, the one that is rounded at each
// step anyway.
class StridedTiles {
 public:
  StridedTiles(const Tiles& lhs, const Tiles& rhs, const Tiles& out, uk_index_t k)
      : lhs_(lhs),
        rhs_(rhs),
        out_(out),
        lhs_is_dense_(lhs.has_dense_panels(k)),
        rhs_is_dense_(rhs.has_dense_panels(k)),
        out_is_dense_(out.has_dense_tiles()) {}

  bool all_dense() const { return lhs_is_dense_ && rhs_is_dense_ && out_is_dense_; }

  void one_tile(uk_mmt4d_tile_fn* tile, uk_index_t i, uk_index_t j, uk_index_t k, uk_index_t k1) {
    const uk_index_t steps =
        uk_index_t{sizeof(lhs_copy_)} / larger(lhs_.tile_bytes(), rhs_.tile_bytes());
    if (!out_is_dense_) out_.gather(out_copy_, i, j, 1);
    for (const uk_index_t end = k + k1; k < end; k += steps) {
      const uk_index_t count = smaller(steps, end - k);
      if (!lhs_is_dense_) lhs_.gather(lhs_copy_, i, k, count);
      if (!rhs_is_dense_) rhs_.gather(rhs_copy_, j, k, count);
      tile(out_is_dense_ ? out_.at(i, j) : out_copy_, lhs_is_dense_ ? lhs_.at(i, k) : lhs_copy_,
           rhs_is_dense_ ? rhs_.at(j, k) : rhs_copy_, count, UK_MMT4D_ACCUMULATE);
    }
    if (!out_is_dense_) out_.scatter(out_copy_, i, j);
  }

 private:
  const Tiles &lhs_, &rhs_, &out_;
  const bool lhs_is_dense_, rhs_is_dense_, out_is_dense_;
  alignas(64) char lhs_copy_[kMaxTile * kMaxK0 * kMaxBytes];
  alignas(64) char rhs_copy_[kMaxTile * kMaxK0 * kMaxBytes];
  alignas(64) char out_copy_[kMaxTile * kMaxTile * kMaxBytes];
};

Memref<4> one_of_batch(const Memref<5>& memref, uk_index_t index) {
  Memref<4> one = {
      memref.allocated, memref.aligned, memref.offset + index * memref.strides[0], {}, {}};
  for (int d = 0; d < 4; ++d) {
    one.sizes[d] = memref.sizes[d + 1];
    one.strides[d] = memref.strides[d + 1];
  }
  return one;
}

}  // namespace

void mmt4d_of_memrefs(const Mmt4dTile& tile, const Memref<4>& lhs_memref,
                      const Memref<4>& rhs_memref, const Memref<4>& out_memref, uk_index_t m,
                      uk_index_t n, uk_index_t k) {
  if (m <= 0 || n <= 0 || k <= 0) return;  // OUT has nothing to add to, or stays as it is
  const Tiles lhs(lhs_memref, tile.m0, tile.k0, tile.lhs_bytes);
  const Tiles rhs(rhs_memref, tile.n0, tile.k0, tile.rhs_bytes);
  const Tiles out(out_memref, tile.m0, tile.n0, tile.out_bytes);
  const Mmt4dWalk walk = {m,
                          n,
                          k,
                          tile.m0,
                          lhs.tile_bytes(),
                          rhs.tile_bytes(),
                          tile.out_bytes > 2,
                          kL3Feeds,
                          tile.step_cost,
                          kPanelsInTurns};
  StridedTiles strided(lhs, rhs, out, k);
  if (!strided.all_dense()) {
    walk.for_all_tiles([&](const TilesOfRhs& tiles) {
      for (uk_index_t i = tiles.i0; i < tiles.i1; ++i) {
        strided.one_tile(tile.function, i, tiles.rhs.j, tiles.rhs.k, tiles.rhs.k1);
      }
    });
    return;
  }
  // Symbols of tiles cannot be told to fetch what comes next.
  walk.for_all_tiles([&](const TilesOfRhs& tiles) {
    for (uk_index_t i = tiles.i0; i < tiles.i1; ++i) {
      const bool prefetch = tiles.prefetch_rhs && i == tiles.i0;
      tile.function(out.at(i, tiles.rhs.j), lhs.at(i, tiles.rhs.k),
                    rhs.at(tiles.rhs.j, tiles.rhs.k), tiles.rhs.k1,
                    UK_MMT4D_ACCUMULATE | (prefetch ? UK_MMT4D_PREFETCH_RHS : 0));
    }
  });
}

void batch_mmt4d_of_memrefs(const Mmt4dTile& tile, const Memref<5>& lhs, const Memref<5>& rhs,
                            const Memref<5>& out, uk_index_t batch, uk_index_t m, uk_index_t n,
                            uk_index_t k) {
  if (m <= 0 || n <= 0 || k <= 0) return;  // however large the batch
  for (uk_index_t i = 0; i < batch; ++i) {
    mmt4d_of_memrefs(tile, one_of_batch(lhs, i), one_of_batch(rhs, i), one_of_batch(out, i), m, n,
                     k);
  }
}

}  // namespace uk
