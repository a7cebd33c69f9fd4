// What the machine can do at most: the denominators of every percentage in this project.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_PEAK_H_
#define UKERNEL_BENCH_PEAK_H_

#include <cstddef>
#include <cstdint>

namespace uk::bench {

struct Peak {
  const char* instruction;  // as an assembler spells it, with its register width: "vpdpbusd zmm"
  double ops_per_second;    // a multiply and an add count one each
};

// The register-only rate of the instruction that a matmul of this type can do best with on this
// level: independent accumulators, no memory. Runs for about `seconds` on the calling thread and
// reports its fastest slice. The caller has checked that the host has the level.
Peak measure_peak(uint32_t mmt4d_type, const char* isa, double seconds);

// Bytes per second, the best of plain and prefetched reads of one pass over `bytes` at `data`.
double measure_read_bandwidth(const void* data, size_t bytes, double seconds);

// Bytes copied per second (counted once) by memcpy between two buffers of `bytes`.
double measure_memcpy(size_t bytes, double seconds);

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_PEAK_H_
