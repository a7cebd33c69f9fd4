// mmt4d tiles of amx_int8. The rows are in tiles.inc.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "arch/x86_64/amx_tile.h"

namespace {

struct S8S8 {
  static constexpr int kK0 = 4;
  static UK_INLINE void multiply_00() { _tile_dpbssd(0, 4, 6); }
  static UK_INLINE void multiply_01() { _tile_dpbssd(1, 4, 7); }
  static UK_INLINE void multiply_10() { _tile_dpbssd(2, 5, 6); }
  static UK_INLINE void multiply_11() { _tile_dpbssd(3, 5, 7); }
};

struct U8S8 {
  static constexpr int kK0 = 4;
  static UK_INLINE void multiply_00() { _tile_dpbusd(0, 4, 6); }
  static UK_INLINE void multiply_01() { _tile_dpbusd(1, 4, 7); }
  static UK_INLINE void multiply_10() { _tile_dpbusd(2, 5, 6); }
  static UK_INLINE void multiply_11() { _tile_dpbusd(3, 5, 7); }
};

UK_MMT4D_BODY(s8s8s32, S8S8)
UK_MMT4D_BODY(u8s8s32, U8S8)

}  // namespace

#define UK_MMT4D_TILE UK_DEFINE_MMT4D_TILE
#define UK_PACK_TILE UK_IGNORE_ROW
#define UK_UNPACK_TILE UK_IGNORE_ROW
#include "arch/x86_64/amx_int8/tiles.inc"
