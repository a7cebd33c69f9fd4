// Copies that leave no trace in the caches: their lines are written without being read first, and
// push out nothing. And prefetches of what they read.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_STREAM_H_
#define UKERNEL_STREAM_H_

#include "ukernel/internal.h"

namespace uk {

// `runs` runs of `bytes` each, one behind the other at `in`, and `stride` bytes apart at `out`.
struct StreamedRuns {
  char* out;
  uk_index_t stride;
  const char* in;
  uk_index_t bytes, runs;
};

// Whole lines of `out` past the caches, by the widest such stores that the CPU has; what is left at
// the ends of runs the ordinary way.
void stream_runs(const uint64_t* cpu_data, const StreamedRuns& runs);

// After the last of them, before the op returns.
void end_streams();

// Localities of __builtin_prefetch.
constexpr int kIntoL2 = 2, kIntoL1 = 3;

// Of an address that may be past the end of everything, which no pointer may be.
template <int kLocality>
UK_INLINE void prefetch(uintptr_t address) {
  __builtin_prefetch(reinterpret_cast<const char*>(address), 0, kLocality);
  __asm__ volatile("");  // GCC drops calls of a function that does nothing but prefetch
}

// Of a run of bytes every line, but for the last if it does not start with one.
template <int kLocality>
UK_INLINE void prefetch_run(uintptr_t start, uk_index_t bytes) {
  for (uk_index_t at = 0; at < bytes; at += kLineBytes) prefetch<kLocality>(start + at);
}

}  // namespace uk

#endif  // UKERNEL_STREAM_H_
