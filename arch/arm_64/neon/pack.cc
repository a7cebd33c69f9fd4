// pack tiles of neon. The rows are in tiles.inc, the code in pack_tile.h.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/arm_64/pack_tile.h"

#define UK_MMT4D_TILE UK_IGNORE_ROW
#define UK_PACK_TILE UK_DEFINE_PACK_TILE
#define UK_UNPACK_TILE UK_IGNORE_ROW
#include "arch/arm_64/neon/tiles.inc"
