// The roofs of a roofline: what registers alone reach, by type and level, and how fast each level
// of the memory is read.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/google_benchmark.h"
#include "bench/machine.h"
#include "bench/peak.h"
#include "ukernel/ukernel.h"

namespace uk::bench {
namespace {

constexpr double kPeakSeconds = 0.1, kReadSeconds = 0.6;
constexpr size_t kHugePage = 2u << 20;

struct Type {
  const char* name;
  uint32_t flag;
};
constexpr Type kTypes[] = {
#define UK_MMT4D_TYPE(lhs, rhs, out, FLAG, ...) {#lhs #rhs #out, UK_MMT4D_TYPE_##FLAG},
#include "ukernel/mmt4d_types.inc"
};
constexpr const char* kLevels[] = {
#define UK_ISA_LEVEL(arch, isa, ...) #isa,
#include "ukernel/isa.inc"
};

void bench_peak(benchmark::State& state, uint32_t type, const char* isa) {
  for (auto _ : state) {
    const Peak peak = measure_peak(type, isa, kPeakSeconds);
    state.SetIterationTime(kPeakSeconds);
    state.counters["GOP/s"] = peak.ops_per_second / 1e9;
    state.SetLabel(peak.instruction);
  }
}

void bench_read(benchmark::State& state, size_t bytes) {
  const std::unique_ptr<void, decltype(&std::free)> data(
      std::aligned_alloc(kHugePage, round_up(bytes, kHugePage)), &std::free);
  if (!data) {
    state.SkipWithError("no memory for the buffer");
    return;
  }
  std::memset(data.get(), 1, bytes);
  for (auto _ : state) {
    const double speed = measure_read_bandwidth(data.get(), bytes, kReadSeconds);
    state.SetIterationTime(kReadSeconds);
    state.counters["GB/s"] = speed / 1e9;
  }
}

int run(int argc, char** argv) {
  if (!initialize_for_one_iteration({argv, argv + argc})) return 2;
  uint64_t host[UK_CPU_DATA_FIELDS] = {};
  if (uk_cpu_detect(host, UK_CPU_DATA_FIELDS) != UK_STATUS_OK) return 1;
  for (const Type& type : kTypes) {
    for (const char* isa : kLevels) {
      if (!uk_cpu_has_level(isa, host) || !find_peak_loop(type.flag, isa)) continue;
      const std::string name = std::string("peak/") + type.name + "/" + isa;
      benchmark::RegisterBenchmark(name.c_str(), bench_peak, type.flag, isa)->UseManualTime();
    }
  }
  // Half of a cache, as much as the panels fill that tiles are timed with.
  benchmark::RegisterBenchmark("read/L1", bench_read, cache_bytes(1) / 2)->UseManualTime();
  benchmark::RegisterBenchmark("read/L2", bench_read, cache_bytes(2) / 2)->UseManualTime();
  benchmark::RegisterBenchmark("read/mem", bench_read, bytes_beyond_cache())->UseManualTime();

  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace uk::bench

int main(int argc, char** argv) { return uk::bench::run(argc, argv); }
