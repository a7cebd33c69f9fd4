// mmt4d tiles of amx_int8. The rows are in tiles.inc.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/x86_64/amx_tile.h"

namespace {

UK_AMX_PRIMITIVE(S8S8, 4, _tile_dpbssd)
UK_AMX_PRIMITIVE(U8S8, 4, _tile_dpbusd)

UK_MMT4D_BODY(s8s8s32, S8S8)
UK_MMT4D_BODY(u8s8s32, U8S8)

}  // namespace

#define UK_MMT4D_TILE UK_DEFINE_MMT4D_TILE
#define UK_PACK_TILE UK_IGNORE_ROW
#define UK_UNPACK_TILE UK_IGNORE_ROW
#include "arch/x86_64/amx_int8/tiles.inc"
