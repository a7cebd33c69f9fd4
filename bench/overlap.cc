// How well a core overlaps two things that a loop needs for nearly as long as each other: the
// measured_contention of generator/isa_x86.py. And how long it takes to round a sum to 16 bits, and
// to widen f16: its _ROUNDING_CYCLES and _WIDENING.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "bench/peak.h"
#include "bench/rounding_loops.h"
#include "ukernel/ukernel.h"

namespace uk::bench {
namespace {

#define UK_LOOP(symbol, body, clean_up)                                                       \
  __attribute__((noinline)) void symbol(const void* data, uint64_t rounds) {                  \
    __asm__ volatile(".p2align 6\n1:\n" body "dec %0\njnz 1b\n" clean_up                      \
                     : "+r"(rounds)                                                           \
                     : "r"(data)                                                              \
                     : "rax", "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", \
                       "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",    \
                       "xmm14", "xmm15");                                                     \
  }

// One a cycle: each waits for the one before. Of a register: small constants Intel's cores, since
// Golden Cove, add while they rename registers, several a cycle.
constexpr int kAdditions = 64;
UK_LOOP(additions, ".rept 64\nadd %1, %%rax\n.endr\n", "")

// K steps of two rows by six vectors of columns, their products apart from their sums.
#define UK_SSE2_ROW(place, row, accumulators, first)                                      \
  "movss " place "(%1), %%" row "\nshufps $0, %%" row ", %%" row "\n.irp a," accumulators \
  "\n"                                                                                    \
  "movups 16*(\\a-" first ")(%1), %%xmm15\nmulps %%" row                                  \
  ", %%xmm15\naddps %%xmm15, %%xmm\\a\n"                                                  \
  ".endr\n"
UK_LOOP(products_and_sums,
        UK_SSE2_ROW("0", "xmm12", "0,1,2,3,4,5", "0")
            UK_SSE2_ROW("4", "xmm13", "6,7,8,9,10,11", "6"),
        "")

// Of four rows by two vectors, each accumulator once.
#define UK_FMA_ROW(row, a, b)                                                 \
  "vbroadcastss 4*" row "(%1), %%ymm10\nvfmadd231ps %%ymm8, %%ymm10, %%ymm" a \
  "\nvfmadd231ps %%ymm9, %%ymm10, %%ymm" b "\n"
UK_LOOP(chains,
        "vmovups (%1), %%ymm8\nvmovups 32(%1), %%ymm9\n" UK_FMA_ROW("0", "0", "1")
            UK_FMA_ROW("1", "2", "3") UK_FMA_ROW("2", "4", "5") UK_FMA_ROW("3", "6", "7"),
        "vzeroupper\n")

// Of one row by twelve vectors of bytes.
UK_LOOP(widened,
        ".irp a,0,1,2,3,4,5,6,7,8,9,10,11\n"
        "vpmovsxbw 16*\\a(%1), %%ymm15\n"
        "vfmadd231ps %%ymm15, %%ymm14, %%ymm\\a\n.endr\n",
        "vzeroupper\n")

// Of one row by twelve vectors of f32, each an operand in memory.
UK_LOOP(loaded,
        ".irp a,0,1,2,3,4,5,6,7,8,9,10,11\n"
        "vfmadd231ps 32*\\a(%1), %%ymm14, %%ymm\\a\n.endr\n",
        "vzeroupper\n")

// What a loop needs for the longest, and what for nearly as long.
struct Needs {
  const char *most, *next;
  double most_cycles, next_cycles;
};

// By the Cores of generator/isa_x86.py.
struct Row {
  const char* loop;
  const char* isa;
  void (*run)(const void* data, uint64_t rounds);
  Needs zen5, golden_cove, cascade_lake;
};
constexpr Row kRows[] = {
    {"products and sums, xmm",
     "sse2",
     products_and_sums,
     {"issue", "ports", 40 / 6.0, 26 / 4.0},
     {"ports", "issue", 26 / 3.0, 40 / 6.0},
     {"ports", "issue", 24 / 2.0, 40 / 4.0}},
    {"chains of 4 cycles, ymm",
     "avx2_fma",
     chains,
     {"chain", "ports", 4, 4},
     {"chain", "ports", 4, 4},
     {"chain", "ports", 4, 4}},
    {"widened columns, ymm",
     "avx2_fma",
     widened,
     {"ports", "loads", 24 / 3.0, 12 / 2.0},
     {"ports", "loads", 12 / 1.0, 12 / 2.0},   // one port widens
     {"ports", "loads", 12 / 1.0, 12 / 2.0}},  // likewise
    {"columns from memory, ymm",
     "avx2_fma",
     loaded,
     {"ports", "loads", 12 / 2.0, 12 / 2.0},
     {"ports", "loads", 12 / 2.0, 12 / 3.0},
     {"ports", "loads", 12 / 2.0, 12 / 2.0}},
};

const Needs& needs_of_host(const Row& row, const uint64_t* host) {
  if (!__builtin_cpu_is("intel")) return row.zen5;
  // Intel's cores had AVX-VNNI since Golden Cove.
  return uk_cpu_has_level("avx_vnni", host) ? row.golden_cove : row.cascade_lake;
}

// The least of many tries, in cycles of the clock that the core has at the time. Wide vectors lower
// it on some cores, a while after the first of them, and for a while after the last: until then a
// cycle would be of another clock than the loop.
template <class Run>
double least_cycles(const Run& run) {
  constexpr uint64_t kRounds = 2000;
  constexpr double kSecondsToSettle = 2e-3;
  alignas(64) static float data[96];
  std::fill(data, data + 96, 0.5F);
  for (double spent = 0; spent < kSecondsToSettle;)
    spent += seconds_of([&] { run(data, kRounds); });
  double loop = std::numeric_limits<double>::infinity(), cycle = loop;
  for (int i = 0; i < 400; ++i) {
    cycle = std::min(cycle, seconds_of([&] { additions(data, kRounds); }) / kRounds / kAdditions);
    loop = std::min(loop, seconds_of([&] { run(data, kRounds); }) / kRounds);
  }
  return loop / cycle;
}

void print_overlap(const uint64_t* host) {
  std::printf("| loop | needs, cycles | and | measured | which adds of the second |\n");
  std::printf("|---|---|---|---|---|\n");
  for (const Row& row : kRows) {
    if (!uk_cpu_has_level(row.isa, host)) continue;
    const Needs& needs = needs_of_host(row, host);
    const double cycles = least_cycles(row.run);
    std::printf("| %s | %s %.2f | %s %.2f | %.2f | %.0f %% |\n", row.loop, needs.most,
                needs.most_cycles, needs.next, needs.next_cycles, cycles,
                100 * (cycles - needs.most_cycles) / needs.next_cycles);
  }
}

const RoundingLoops* const kLevels[] = {&UK_ROUNDING_LOOPS(sse2), &UK_ROUNDING_LOOPS(avx2_fma),
                                        &UK_ROUNDING_LOOPS(avx512_base)};

void print_rounding(const uint64_t* host) {
  std::printf("| cycles of a sum rounded to | level |");
  for (const int chains : kChains) std::printf(" of %d |", chains);
  std::printf("\n|---|---|");
  for (int i = 0; i < kLoops; ++i) std::printf("---|");
  std::printf("\n");
  for (const RoundingLoops* loops : kLevels) {
    if (!uk_cpu_has_level(loops->isa, host)) continue;
    const auto print = [&](const char* type, RoundingLoop* const(&of_type)[kLoops]) {
      std::printf("| %s | %s |", type, loops->isa);
      for (int i = 0; i < kLoops; ++i)
        std::printf(" %.1f |", least_cycles(of_type[i]) / kChains[i]);
      std::printf("\n");
    };
    print("f16", loops->f16);
    print("bf16", loops->bf16);
  }
}

void print_widening(const uint64_t* host) {
  std::printf("| level | cycles of widening a vector from f16 |\n|---|---|\n");
  for (const RoundingLoops* loops : kLevels) {
    if (!uk_cpu_has_level(loops->isa, host)) continue;
    std::printf("| %s | %.2f |\n", loops->isa, least_cycles(loops->widen_f16) / kWidened);
  }
}

}  // namespace
}  // namespace uk::bench

int main() {
  using namespace uk::bench;
  uint64_t host[UK_CPU_DATA_FIELDS];
  if (uk_cpu_detect(host, UK_CPU_DATA_FIELDS) != UK_STATUS_OK) return 1;
  print_overlap(host);
  std::printf("\n");
  print_rounding(host);
  std::printf("\n");
  print_widening(host);
  return 0;
}
