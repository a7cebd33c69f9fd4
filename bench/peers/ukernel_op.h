// This library's operations as contestants.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_PEERS_UKERNEL_OP_H_
#define UKERNEL_BENCH_PEERS_UKERNEL_OP_H_

#include "bench/peers/contestant.h"
#include "ukernel/ukernel.h"

namespace uk::bench {

extern const uk_contestant_t kUkernel;
// The tile function of kUkernel in the plain loop over rows and columns of tiles: what blocking for
// the caches and prefetching add. Packed operands alone.
extern const uk_contestant_t kNaive;

// The tile that either uses in an operation.
const uk_tile_row_t* tile_of(const void* operation);

// Packs all weights of kUkernel's operation, to where those of several products would stay.
void pack_weights(void* operation);

// All copies of an operation's packed weights, one behind the other.
struct PackedWeights {
  const char* data;
  size_t copy_bytes;
  int copies;
};
PackedWeights packed_weights_of(const void* operation);

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_PEERS_UKERNEL_OP_H_
