// mmt4d tiles of amx_bf16. The rows are in tiles.inc.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/x86_64/amx_tile.h"

namespace {

// Of each 16 steps the products of even k are summed in order, those of odd k too, and both sums
// are added to the result: all in f32, with subnormals flushed.
UK_AMX_PRIMITIVE(Bf16, 2, _tile_dpbf16ps)

UK_MMT4D_BODY(bf16bf16f32, Bf16)

}  // namespace

#define UK_MMT4D_TILE UK_DEFINE_MMT4D_TILE
#define UK_PACK_TILE UK_IGNORE_ROW
#define UK_UNPACK_TILE UK_IGNORE_ROW
#include "arch/x86_64/amx_bf16/tiles.inc"
