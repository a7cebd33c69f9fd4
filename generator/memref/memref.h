// Ops on memrefs, as compiled MLIR passes them: what the functions that `python3 -m generator link`
// writes have in common.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef GENERATOR_MEMREF_MEMREF_H_
#define GENERATOR_MEMREF_MEMREF_H_

#include "ukernel/tile.h"

namespace uk {

// MLIR's descriptor; offset and strides in elements.
template <int kRank>
struct Memref {
  void* allocated;  // for free() alone
  void* aligned;
  uk_index_t offset;
  uk_index_t sizes[kRank], strides[kRank];
};

// Calls copy(zero of the element type).
template <class Copy>
void with_element(int bytes, Copy copy) {
  switch (bytes) {
    case 1:
      return copy(uint8_t{});
    case 2:
      return copy(uint16_t{});
    case 4:
      return copy(uint32_t{});
    default:
      return copy(uint64_t{});
  }
}

struct Mmt4dTile {
  uk_mmt4d_tile_fn* function;
  int m0, n0, k0;
  int lhs_bytes, rhs_bytes, out_bytes;  // of an element
  int step_cost;                        // as in Mmt4dWalk
};

// Of m x n tiles and k steps; adds to OUT. Any strides are served, fastest where the elements of a
// tile lie behind each other, and the steps of a panel too. Uses up to 48 KiB of stack beside the
// tile's.
UK_HIDDEN void mmt4d_of_memrefs(const Mmt4dTile& tile, const Memref<4>& lhs, const Memref<4>& rhs,
                                const Memref<4>& out, uk_index_t m, uk_index_t n, uk_index_t k);

// One after the other of `batch` of these.
UK_HIDDEN void batch_mmt4d_of_memrefs(const Mmt4dTile& tile, const Memref<5>& lhs,
                                      const Memref<5>& rhs, const Memref<5>& out, uk_index_t batch,
                                      uk_index_t m, uk_index_t n, uk_index_t k);

template <class Function>
struct CopyTile {
  Function* function;
  int tile0, tile1;
  int bytes;  // of an element
  bool transposes_inner;
};

// Places of tiles that lie beyond the matrix get the padding's low bits, as many as an element has.
// What no tile covers is left alone.
UK_HIDDEN void pack_memrefs(const CopyTile<uk_pack_tile_fn>& tile, const Memref<2>& matrix,
                            const Memref<4>& tiles, uint64_t padding, bool transposes_outer);
UK_HIDDEN void unpack_memrefs(const CopyTile<uk_unpack_tile_fn>& tile, const Memref<4>& tiles,
                              const Memref<2>& matrix, bool transposes_outer);

}  // namespace uk

#endif  // GENERATOR_MEMREF_MEMREF_H_
