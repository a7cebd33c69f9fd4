// The order in which the tiles of an mmt4d are computed.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_MMT4D_WALK_H_
#define UKERNEL_MMT4D_WALK_H_

#include "ukernel/internal.h"

namespace uk {

struct Mmt4dWalk {
  uk_index_t m, n, k;                                         // in tiles
  uk_index_t lhs_step_bytes, rhs_step_bytes, out_tile_bytes;  // > 0
  bool can_split_k;  // whether the accumulator holds the exact intermediate result

  // Calls one_tile(i, j, k, k1, prefetch_rhs) for each tile (i, j) of OUT, where the k1 steps from
  // k on come in increasing order of k. Blocks of tiles keep the panels in cache. K = 0 makes one
  // call for each tile too.
  template <class OneTile>
  void for_each_tile(OneTile one_tile) const {
    // An RHS panel that meets one LHS panel is read once in any order: splitting K would only add
    // traffic on OUT.
    uk_index_t k_block = k;
    if (m > 1 && can_split_k) {
      const uk_index_t most = larger(kPanelBytes / (lhs_step_bytes + rhs_step_bytes), 16);
      const uk_index_t blocks = ceil_div(k, most);
      if (blocks > 1) k_block = ceil_div(k, blocks);  // equal, so that no short one remains
    }
    k_block = larger(k_block, 1);
    const uk_index_t m_block = larger(kLhsBlockBytes / (lhs_step_bytes * k_block), 1);
    const uk_index_t out_column_bytes = smaller(m_block, m) * out_tile_bytes;
    const uk_index_t n_block = larger(kOutBlockBytes / larger(out_column_bytes, 1), 1);
    const bool rhs_streams = n * k * rhs_step_bytes >= kStreamBytes;

    for (uk_index_t i0 = 0; i0 < m; i0 += m_block) {
      for (uk_index_t j0 = 0; j0 < n; j0 += n_block) {
        for (uk_index_t k_from = 0; k_from == 0 || k_from < k; k_from += k_block) {
          const uk_index_t k1 = smaller(k_block, k - k_from);
          for (uk_index_t j = j0; j < smaller(j0 + n_block, n); ++j) {
            for (uk_index_t i = i0; i < smaller(i0 + m_block, m); ++i) {
              // Only the first LHS panel finds the RHS panel in memory.
              one_tile(i, j, k_from, k1, rhs_streams && i == i0);
            }
          }
        }
      }
    }
  }
};

}  // namespace uk

#endif  // UKERNEL_MMT4D_WALK_H_
