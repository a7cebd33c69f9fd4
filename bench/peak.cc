// The fastest of many short slices: what the machine does when nothing disturbs it.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "bench/peak.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "bench/median.h"

namespace uk::bench {
namespace {

// Seconds of one repetition in the fastest slice.
template <class Run>
double fastest(double seconds, const Run& run) {
  double best = 1e9, spent = 0;
  const uint64_t n = repetitions_per_slice(run);
  do {
    const double slice = seconds_of([&] { run(n); });
    best = std::min(best, slice / static_cast<double>(n));
    spent += slice;
  } while (spent < seconds);
  return best;
}

}  // namespace

Peak measure_peak(uint32_t mmt4d_type, const char* isa, double seconds) {
  const PeakLoop* loop = find_peak_loop(mmt4d_type, isa);
  if (!loop) return {nullptr, 0};
  return {loop->instruction, loop->ops_per_iteration / fastest(seconds, loop->run)};
}

double measure_read_bandwidth(const void* data, size_t bytes, double seconds) {
  const size_t blocks = bytes / kReadBlock;
  if (blocks == 0) return 0;
  const std::vector<ReadLoop> loops = read_loops();
  double best = 1e9;
  for (const ReadLoop loop : loops) {
    best = std::min(best, fastest(seconds / static_cast<double>(loops.size()), [&](uint64_t n) {
                      for (; n > 0; --n) loop(data, blocks);
                    }));
  }
  return static_cast<double>(blocks * kReadBlock) / best;
}

ReadLoop fastest_read_loop(const void* data, size_t bytes) {
  constexpr int kRounds = 9;
  const std::vector<ReadLoop> loops = read_loops();
  std::vector<std::vector<double>> seconds(loops.size());
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < loops.size(); ++i) {
      seconds[i].push_back(seconds_of([&] { loops[i](data, bytes / kReadBlock); }));
    }
  }
  ReadLoop best = nullptr;
  double least = 0;
  for (size_t i = 0; i < loops.size(); ++i) {
    const double usual = median(seconds[i]);
    if (!best || usual < least) best = loops[i], least = usual;
  }
  return best;
}

double measure_memcpy(size_t bytes, double seconds) {
  if (bytes == 0) return 0;
  const std::unique_ptr<char[]> from(new char[bytes]), to(new char[bytes]);
  // Touched, so that the pages exist and are not all the same zero page.
  std::memset(from.get(), 1, bytes);
  std::memset(to.get(), 2, bytes);
  return static_cast<double>(bytes) / fastest(seconds, [&](uint64_t n) {
           for (; n > 0; --n) {
             std::memcpy(to.get(), from.get(), bytes);
             // Keeps the compiler from dropping copies that the next one overwrites.
             __asm__ volatile("" : : "r"(to.get()) : "memory");
           }
         });
}

}  // namespace uk::bench
