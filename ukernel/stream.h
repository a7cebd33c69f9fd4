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

// Of an address that may be past the end of everything, which no pointer may be.
template <int kLocality>
UK_INLINE void prefetch_line(uintptr_t address) {
  __builtin_prefetch(reinterpret_cast<const char*>(address), 0, kLocality);
  __asm__ volatile("");  // GCC drops calls of a function that does nothing but prefetch
}
inline void prefetch_to_l2(uintptr_t address) { prefetch_line<2>(address); }

// Of a run of bytes every line, but for the last if it does not start with one.
inline void prefetch_run_to_l2(uintptr_t start, uk_index_t bytes) {
  for (uk_index_t at = 0; at < bytes; at += kLineBytes) prefetch_line<2>(start + at);
}
inline void prefetch_run_to_l1(uintptr_t start, uk_index_t bytes) {
  for (uk_index_t at = 0; at < bytes; at += kLineBytes) prefetch_line<3>(start + at);
}

}  // namespace uk

#endif  // UKERNEL_STREAM_H_
