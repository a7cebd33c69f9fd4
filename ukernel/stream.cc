// Copies of whole lines past the caches.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "ukernel/stream.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace uk {
namespace {

// Runs of whole lines of `out`, a line or two each, and many: no call for a run, let alone for a
// line.
#if defined(__x86_64__)
void stream_by_quarters(const StreamedRuns& runs) {
  const auto* from = reinterpret_cast<const __m128i*>(runs.in);
  for (uk_index_t run = 0; run < runs.runs; ++run) {
    auto* to = reinterpret_cast<__m128i*>(runs.out + run * runs.stride);
    for (uk_index_t at = 0; at < runs.bytes; at += kLineBytes, from += 4, to += 4) {
      const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
      const __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
      _mm_stream_si128(to, a);
      _mm_stream_si128(to + 1, b);
      _mm_stream_si128(to + 2, c);
      _mm_stream_si128(to + 3, d);
    }
  }
}

// A core that has wider stores takes a line by fewer: on Zen 4 half as many take a third of the
// time that the bytes take from memory and back, and fewer still gain nothing more; on Golden Cove
// they do, where the transposes before them have filled the buffer of stores. These are the
// functions of the ops that not every CPU can run, so the flags of their file are the baseline's.
__attribute__((target("avx"))) void stream_by_halves(const StreamedRuns& runs) {
  const auto* from = reinterpret_cast<const __m256i*>(runs.in);
  for (uk_index_t run = 0; run < runs.runs; ++run) {
    auto* to = reinterpret_cast<__m256i*>(runs.out + run * runs.stride);
    for (uk_index_t at = 0; at < runs.bytes; at += kLineBytes, from += 2, to += 2) {
      const __m256i a = _mm256_loadu_si256(from), b = _mm256_loadu_si256(from + 1);
      _mm256_stream_si256(to, a);
      _mm256_stream_si256(to + 1, b);
    }
  }
}

__attribute__((target("avx512f"))) void stream_by_wholes(const StreamedRuns& runs) {
  const auto* from = reinterpret_cast<const __m512i*>(runs.in);
  for (uk_index_t run = 0; run < runs.runs; ++run) {
    auto* to = reinterpret_cast<__m512i*>(runs.out + run * runs.stride);
    for (uk_index_t at = 0; at < runs.bytes; at += kLineBytes, ++from, ++to) {
      _mm512_stream_si512(to, _mm512_loadu_si512(from));
    }
  }
}
#else
void stream_by_pairs(const StreamedRuns& runs) {
  typedef uint64_t Lane __attribute__((vector_size(16)));
  const char* from = runs.in;
  for (uk_index_t run = 0; run < runs.runs; ++run) {
    char* to = runs.out + run * runs.stride;
    for (uk_index_t at = 0; at < runs.bytes; at += kLineBytes, from += kLineBytes) {
      Lane lanes[4];
      __builtin_memcpy(lanes, from, kLineBytes);
      __asm__ volatile(
          "stnp %q1, %q2, [%0]\n\t"
          "stnp %q3, %q4, [%0, #32]"
          :
          : "r"(to + at), "w"(lanes[0]), "w"(lanes[1]), "w"(lanes[2]), "w"(lanes[3])
          : "memory");
    }
  }
}
#endif

void stream_lines([[maybe_unused]] const uint64_t* cpu_data, const StreamedRuns& runs) {
#if defined(__x86_64__)
  const uint64_t has = cpu_data ? cpu_data[0] : 0;
  if (has & UK_CPU_X86_64_AVX512F) return stream_by_wholes(runs);
  return has & UK_CPU_X86_64_AVX ? stream_by_halves(runs) : stream_by_quarters(runs);
#else
  return stream_by_pairs(runs);
#endif
}

}  // namespace

void stream_runs(const uint64_t* cpu_data, const StreamedRuns& runs) {
  // Unsigned: an address with a tag (extents.cc) is negative as an index.
  const auto past_line = [](const char* out) {
    return static_cast<uk_index_t>(reinterpret_cast<uintptr_t>(out) % kLineBytes);
  };
  if ((past_line(runs.out) | runs.stride | runs.bytes) % kLineBytes == 0) {
    return stream_lines(cpu_data, runs);
  }
  for (uk_index_t run = 0; run < runs.runs; ++run) {
    char* const out = runs.out + run * runs.stride;
    const char* const in = runs.in + run * runs.bytes;
    const uk_index_t past = past_line(out);
    const uk_index_t head = past == 0 ? 0 : smaller(kLineBytes - past, runs.bytes);
    const uk_index_t lines = (runs.bytes - head) / kLineBytes * kLineBytes, tail = head + lines;
    __builtin_memcpy(out, in, static_cast<size_t>(head));
    if (lines > 0) stream_lines(cpu_data, {out + head, 0, in + head, lines, 1});
    __builtin_memcpy(out + tail, in + tail, static_cast<size_t>(runs.bytes - tail));
  }
}

// Streaming stores of x86 are weakly ordered: another thread that hears of the result has to find
// it. Those of Arm are ordered like any.
void end_streams() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace uk
