// unpack tiles of avx2_fma. The rows are in tiles.inc, the code in pack_tile.h.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/x86_64/pack_tile.h"

#define UK_MMT4D_TILE UK_IGNORE_ROW
#define UK_UNPACK_TILE UK_DEFINE_UNPACK_TILE
#define UK_PACK_TILE UK_IGNORE_ROW
#include "arch/x86_64/avx2_fma/tiles.inc"
