// uk_memref_unpack.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "generator/memref/copy.h"

namespace uk {

void unpack_memrefs(const CopyTile<uk_unpack_tile_fn>& tile, const Memref<4>& tiles,
                    const Memref<2>& matrix, bool transposes_outer) {
  const TiledMatrix m(tile, matrix, tiles, transposes_outer);
  for (uk_index_t i = 0; i < m.whole0; ++i) {
    tile.function(m.element(i * m.rows, 0), m.tile(i, 0), m.whole1, m.stride0, m.tiles_stride1);
  }
  with_element(tile.bytes, [&](auto element) {
    m.for_each_other_place([&](const char* place, uk_index_t r, uk_index_t c) {
      if (r >= m.size0 || c >= m.size1) return;
      __builtin_memcpy(&element, place, sizeof(element));
      __builtin_memcpy(m.element(r, c), &element, sizeof(element));
    });
  });
}

}  // namespace uk
