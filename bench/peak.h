// What the machine can do at most: the denominators of every percentage in this project.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_PEAK_H_
#define UKERNEL_BENCH_PEAK_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace uk::bench {

struct Peak {
  const char* instruction;  // as an assembler spells it, with its register width: "vpdpbusd zmm"
  double ops_per_second;    // a multiply and an add count one each
};

// The register-only rate of the instruction that a matmul of this type can do best with on this
// level: independent accumulators, no memory. Runs for about `seconds` on the calling thread and
// reports its fastest slice. The caller has checked that the host has the level. A level whose
// peak nobody knows gets {nullptr, 0}.
Peak measure_peak(uint32_t mmt4d_type, const char* isa, double seconds);

// A figure above this is an error of measurement: clocks are exact to a percent at best.
constexpr double kMaxPercentOfPeak = 101;

// Bytes per second, by the best of read_loops, of one pass over `bytes` at `data`.
double measure_read_bandwidth(const void* data, size_t bytes, double seconds);

// Bytes copied per second (counted once) by memcpy between two buffers of `bytes`.
double measure_memcpy(size_t bytes, double seconds);

// ---------------------------------------------------------------- the loops themselves

// For whoever times peak and kernel side by side, and for the test of the loops' assembly.
struct PeakLoop {
  const char* symbol;            // of `run`
  const char* instruction;       // as in Peak; what makes one product together is joined by '+'
  const char* isa;               // the lowest level that has it
  int instructions;              // of each mnemonic in one iteration
  double ops_per_iteration;      // multiplies and adds
  void (*run)(uint64_t rounds);  // rounds > 0
};

// The loop behind measure_peak, NULL if there is none.
const PeakLoop* find_peak_loop(uint32_t mmt4d_type, const char* isa);
std::vector<PeakLoop> all_peak_loops();

// One pass over whole blocks of kReadBlock bytes; some of them prefetch, some read several streams
// side by side. Only loops that this host can run.
using ReadLoop = void (*)(const void* data, size_t blocks);
constexpr size_t kReadBlock = 512;
std::vector<ReadLoop> read_loops();

// The one that reads `bytes` at `data` the fastest at present.
ReadLoop fastest_read_loop(const void* data, size_t bytes);

// ---------------------------------------------------------------- time

template <class F>
double seconds_of(const F& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Short enough that many fall between two disturbances, long enough for the clock.
constexpr double kSliceSeconds = 60e-6;

// How many repetitions fill a slice, by the seconds that n take; at least 1. Of three tries the
// fastest counts: a first call that waits for its page, or a disturbance, would pass for a slice,
// and what is measured in so short ones is the cost of a call.
template <class SecondsOf>
uint64_t repetitions_per_slice_by(const SecondsOf& seconds_of_repetitions) {
  for (uint64_t n = 1;; n *= 2) {
    const double seconds =
        std::min({seconds_of_repetitions(n), seconds_of_repetitions(n), seconds_of_repetitions(n)});
    if (seconds >= kSliceSeconds / 4) {
      const double wanted = static_cast<double>(n) * kSliceSeconds / seconds;
      return wanted < 1 ? 1 : static_cast<uint64_t>(wanted);
    }
  }
}

// The same of what takes `run(n)` for n repetitions. Also warms up whatever it runs.
template <class Run>
uint64_t repetitions_per_slice(const Run& run) {
  return repetitions_per_slice_by([&](uint64_t n) { return seconds_of([&] { run(n); }); });
}

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_PEAK_H_
