/* How to check tile functions of your own: one row each, and the command line around them.
 *
 * Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
 */
#include "ukernel/ukernel_conformance.h"

/* A 2x3x1 tile of integers: LHS [k1][2], RHS [k1][3], OUT [2][3]. */
static void my_tile(void* out_tile, const void* lhs_panel, const void* rhs_panel, uk_index_t k1,
                    uint32_t flags) {
  uint32_t* out = out_tile;
  const uint8_t* lhs = lhs_panel;
  const int8_t* rhs = rhs_panel;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      uint32_t acc = flags & UK_MMT4D_ACCUMULATE ? out[i * 3 + j] : 0;
      for (uk_index_t k = 0; k < k1; ++k) acc += (uint32_t)(lhs[k * 2 + i] * rhs[k * 3 + j]);
      out[i * 3 + j] = acc;
    }
  }
}

/* Tiles of one row and four columns, 32 bits wide. */
static void my_pack(void* out, const void* in, uk_index_t count, uk_index_t out_stride1,
                    uk_index_t in_stride0) {
  (void)in_stride0; /* a tile of one row needs no other */
  for (uk_index_t t = 0; t < count; ++t) {
    for (int j = 0; j < 4; ++j) {
      ((uint32_t*)out)[t * out_stride1 + j] = ((const uint32_t*)in)[t * 4 + j];
    }
  }
}

int main(int argc, char** argv) {
  const uk_tile_row_t rows[] = {{.symbol = "my_tile",
                                 .op = UK_OP_MMT4D,
                                 .flags = UK_MMT4D_TYPE_U8S8S32,
                                 .m0 = 2,
                                 .n0 = 3,
                                 .k0 = 1,
                                 .numerics = UK_NUMERICS_EXACT,
                                 .function = (void (*)(void))my_tile},
                                {.symbol = "my_pack",
                                 .op = UK_OP_PACK,
                                 .flags = UK_PACK_TYPE_I32,
                                 .m0 = 1,
                                 .n0 = 4,
                                 .numerics = UK_NUMERICS_EXACT,
                                 .function = (void (*)(void))my_pack}};
  return uk_conformance_main(rows, sizeof(rows) / sizeof(rows[0]), argc, argv);
}
