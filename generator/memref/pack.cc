// uk_memref_pack.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "generator/memref/copy.h"

namespace uk {

void pack_memrefs(const CopyTile<uk_pack_tile_fn>& tile, const Memref<2>& matrix,
                  const Memref<4>& tiles, uint64_t padding, bool transposes_outer) {
  const TiledMatrix m(tile, matrix, tiles, transposes_outer);
  for (uk_index_t i = 0; i < m.whole0; ++i) {
    tile.function(m.tile(i, 0), m.element(i * m.rows, 0), m.whole1, m.tiles_stride1, m.stride0);
  }
  with_element(tile.bytes, [&](auto zero) {
    m.for_each_other_place([&](char* place, uk_index_t r, uk_index_t c) {
      auto value = static_cast<decltype(zero)>(padding);
      if (r < m.size0 && c < m.size1) __builtin_memcpy(&value, m.element(r, c), sizeof(value));
      __builtin_memcpy(place, &value, sizeof(value));
    });
  });
}

}  // namespace uk
