/* Uses ukernel::ukernel without the host archive.
 *
 * Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
 */
#include "ukernel/ukernel.h"

int main(void) { return uk_tile_count() > 0 && uk_abi_version() == UK_ABI_VERSION ? 0 : 1; }
