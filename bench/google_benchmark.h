// What the programs on Google Benchmark have in common.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_GOOGLE_BENCHMARK_H_
#define UKERNEL_BENCH_GOOGLE_BENCHMARK_H_

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace uk::bench {

// What follows `option`, which ends in "=", in an argument that starts with it; else NULL.
inline const char* value_of(const char* argument, const char* option) {
  const size_t length = std::strlen(option);
  return std::strncmp(argument, option, length) == 0 ? argument + length : nullptr;
}

// The number from 1 to 1000 that `value` of an argument is; 0, which it has said, if it is none.
inline int count_of(const char* program, const char* argument, const char* value) {
  char* end = nullptr;
  const long count = std::strtol(value, &end, 10);
  if (*end == 0 && 1 <= count && count <= 1000) return static_cast<int>(count);
  std::fprintf(stderr, "%s: '%s' wants a number from 1 to 1000\n", program, argument);
  return 0;
}

// Gives Google Benchmark the program's name and the options that are not the program's own. False:
// it has said that it does not know one of them.
inline bool initialize(std::vector<char*> arguments) {
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
  return !benchmark::ReportUnrecognizedArguments(count, arguments.data());
}

// The same for programs whose benchmarks take the time that they need in one iteration. Google
// Benchmark counts as its time what one call takes: to reach a least time it would take hours.
inline bool initialize_for_one_iteration(std::vector<char*> arguments) {
  for (const char* argument : arguments) {
    if (!value_of(argument, "--benchmark_min_time=")) continue;
    std::fprintf(stderr,
                 "%s: '%s': a benchmark takes the time that it needs; --benchmark_repetitions=N "
                 "repeats it\n",
                 arguments[0], argument);
    return false;
  }
  static char one_iteration[] = "--benchmark_min_time=0";
  arguments.insert(arguments.begin() + 1, one_iteration);
  return initialize(std::move(arguments));
}

// Of the data cache. What is assumed of an unknown one is said.
inline size_t cache_bytes(int level) {
  for (const benchmark::CPUInfo::CacheInfo& cache : benchmark::CPUInfo::Get().caches) {
    if (cache.level == level && cache.type != "Instruction") return cache.size;
  }
  const size_t assumed = level == 1 ? 32u << 10 : 512u << 10;
  std::fprintf(stderr, "The size of the L%d cache is unknown; %zu KiB assumed.\n", level,
               assumed >> 10);
  return assumed;
}

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_GOOGLE_BENCHMARK_H_
