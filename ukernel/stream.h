// Copies that leave no trace in the caches: their lines are written without being read first, and
// push out nothing. By instructions of the baseline; where there are none, ordinary copies.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_STREAM_H_
#define UKERNEL_STREAM_H_

#include "ukernel/internal.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace uk {

constexpr uk_index_t kLineBytes = 64;

#if defined(__SSE2__)
// `out` starts a line.
inline void stream_line(char* out, const char* in) {
  const auto* from = reinterpret_cast<const __m128i*>(in);
  auto* to = reinterpret_cast<__m128i*>(out);
  const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
  const __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
  _mm_stream_si128(to, a);
  _mm_stream_si128(to + 1, b);
  _mm_stream_si128(to + 2, c);
  _mm_stream_si128(to + 3, d);
}
// Such stores are weakly ordered: another thread that hears of the result has to find it.
inline void end_streams() { _mm_sfence(); }
#elif defined(__aarch64__)
inline void stream_line(char* out, const char* in) {
  typedef uint64_t Lane __attribute__((vector_size(16)));
  Lane lanes[4];
  __builtin_memcpy(lanes, in, kLineBytes);
  __asm__ volatile(
      "stnp %q1, %q2, [%0]\n\t"
      "stnp %q3, %q4, [%0, #32]"
      :
      : "r"(out), "w"(lanes[0]), "w"(lanes[1]), "w"(lanes[2]), "w"(lanes[3])
      : "memory");
}
inline void end_streams() {}  // ordered like any store
#else
inline void stream_line(char* out, const char* in) { __builtin_memcpy(out, in, kLineBytes); }
inline void end_streams() {}
#endif

// Whole lines of `out` past the caches, what is left at its ends the ordinary way.
inline void stream_run(char* out, const char* in, uk_index_t bytes) {
  const auto past_line = static_cast<uk_index_t>(reinterpret_cast<uintptr_t>(out) % kLineBytes);
  uk_index_t done = past_line == 0 ? 0 : smaller(kLineBytes - past_line, bytes);
  if (done > 0) __builtin_memcpy(out, in, static_cast<size_t>(done));
  for (; done + kLineBytes <= bytes; done += kLineBytes) stream_line(out + done, in + done);
  if (done < bytes) __builtin_memcpy(out + done, in + done, static_cast<size_t>(bytes - done));
}

}  // namespace uk

#endif  // UKERNEL_STREAM_H_
