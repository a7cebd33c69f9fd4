/* Uses ukernel::iree.
 *
 * Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
 */
#include "ukernel/iree/iree_ukernel.h"
#include "ukernel/ukernel.h"

int main(void) {
  const float lhs[2] = {2, 3}, rhs[2] = {5, 7};
  float out = -1;
  iree_uk_mmt4d(lhs, 0, 0, rhs, 0, 0, &out, 0, 0, 1, 1, 2, 1, 1, 1,
                UK_MMT4D_TYPE_F32F32F32 | UK_MMT4D_ALLOW_GENERIC_FALLBACK, 0);
  return out == 31 ? 0 : 1;
}
