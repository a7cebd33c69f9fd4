/* Calls one tile by its symbol, TILE, and nothing else of the library.
 *
 * Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
 */
#include "ukernel/ukernel.h"

extern TILE_FN TILE;

int main(int argc, char** argv) {
  /* The test runs it without arguments, on a CPU that may lack the tile's instructions; the linker
   * does not know. The arguments suit every tile type: the third is a pointer or a count. */
  if (argc > 1) TILE(argv, argv, 0, 0, 0);
  return 0;
}
