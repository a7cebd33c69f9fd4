// Tiles timed side by side with the peak of their instruction, or with memcpy.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "bench/tile_bench.h"

#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/google_benchmark.h"
#include "bench/in_turns.h"
#include "bench/machine.h"
#include "bench/peak.h"
#include "ukernel/internal.h"

namespace uk::bench {
namespace {

constexpr char kHelp[] =
    "Times every tile of one ISA level; which one is in the binary's name.\n"
    "\n"
    "  mmt4d   /L1   both panels together fill half of the L1 data cache\n"
    "          /L2   one longer K, so that both panels together fill half of the L2 cache and\n"
    "                every call streams both from there\n"
    "          peak% of the rate of the best instruction for the type on this level, running on\n"
    "                registers alone, measured in turn with the tile\n"
    "          /mem  tiles with M0 = 1: RHS panels of K = 4096, each read once,\n"
    "                together twice as large as the last-level cache, 64 MiB at least\n"
    "          read% of the rate of reading the same bytes, measured in turn\n"
    "  pack,   /L2   a matrix and its tiles together fill half of the L2 cache\n"
    "  unpack  /mem  they fill as much as those panels do\n"
    "          memcpy% of the rate of memcpy from one to the other, measured in turn\n"
    "\n"
    "A tile above its peak is an error of measurement and fails the run.\n"
    "  --against=FILE  only the mmt4d tiles that this shared object has as well, by their symbols, "
    "in\n"
    "                  L1: library% is its speed, measured in turn with the library's own\n"
    "\n"
    "Exit codes: 0; 1 a type without a peak; 2 a wrong option; 3 a tile above its peak; 77 this "
    "CPU\n"
    "lacks the level and nothing was measured. The options are Google Benchmark's:\n\n";

constexpr char kAgainst[] = "--against=";
constexpr double kSecondsPerBenchmark = 0.025;
constexpr size_t kMinPairs = 3;
constexpr uk_index_t kStreamedK = 4096;
// A power of two apart, like the rows of most real matrices.
constexpr size_t kMatrixRowBytes = 4096;

// ---------------------------------------------------------------- memory

// Large pages, so that a small working set does not depend on which physical pages it got.
char* arena() {
  static char* const memory = [] {
    constexpr size_t kHugePage = 2u << 20;
    const size_t bytes = round_up(bytes_beyond_cache(), kHugePage);
    void* p = std::aligned_alloc(kHugePage, bytes);
    if (!p) {
      std::fprintf(stderr, "No memory for buffers of %zu MiB.\n", bytes >> 20);
      std::exit(1);
    }
#ifdef MADV_HUGEPAGE
    madvise(p, bytes, MADV_HUGEPAGE);
#endif
    std::memset(p, 1, bytes);
    return static_cast<char*>(p);
  }();
  return memory;
}

template <class Run, class Reference>
Pair time_in_turns(const Run& run, const Reference& reference) {
  return bench::time_in_turns(run, reference, kSecondsPerBenchmark, kMinPairs);
}

// Any bits for integers; for floats, signed values in [0.5, 2), [0.5, 1) in f16, whose sums stay
// ordinary numbers: subnormals and infinities have speeds of their own.
struct Element {
  const char* name;
  size_t bytes;
  uint64_t fixed, random;
};
constexpr Element kElements[] = {
    {"f16", 2, 0x3800, 0x83FF},
    {"bf16", 2, 0x3F00, 0x80FF},
    {"f32", 4, 0x3F000000, 0x80FFFFFF},
    {"f64", 8, 0x3FE0000000000000, 0x801FFFFFFFFFFFFF},
};

void fill(char* data, size_t bytes, const std::string& type) {
  Element element = {nullptr, 1, 0, 0xFF};
  for (const Element& e : kElements) {
    if (type == e.name) element = e;
  }
  std::mt19937_64 random(1);
  for (size_t i = 0; i + element.bytes <= bytes; i += element.bytes) {
    const uint64_t value = element.fixed | (random() & element.random);
    std::memcpy(data + i, &value, element.bytes);
  }
}

// ---------------------------------------------------------------- mmt4d

struct Mmt4dTypeNames {
  uint32_t flag;
  const char *lhs, *rhs, *out;
};
constexpr Mmt4dTypeNames kTypeNames[] = {
#define UK_MMT4D_TYPE(lhs, rhs, out, FLAG, ...) {UK_MMT4D_TYPE_##FLAG, #lhs, #rhs, #out},
#include "ukernel/mmt4d_types.inc"
};

const Mmt4dTypeNames& names_of(const uk_tile_row_t& row) {
  const Mmt4dTypeNames* found = kTypeNames;
  while (found->flag != (row.flags & UK_MMT4D_TYPE_MASK)) ++found;
  return *found;
}

// For the summary: of each type, and each way of rounding it, the best tile in L1.
struct Best {
  const uk_tile_row_t* row;
  const char* instruction;
  double percent, ops_per_second;
};
struct Outcome {
  std::map<std::string, Best> best;
  bool no_peak = false;     // a type for which there is no peak loop
  bool above_peak = false;  // a figure above kMaxPercentOfPeak
};

void note_best(Outcome& outcome, const Best& now) {
  const Mmt4dTypeNames& names = names_of(*now.row);
  std::string type = std::string(names.lhs) + names.rhs + names.out;
  if (now.row->numerics == UK_NUMERICS_ROUND_EACH_STEP) type += " (rounds each step)";
  Best& best = outcome.best.insert({type, now}).first->second;
  if (now.percent > best.percent) best = now;
}

// Operands of one tile.
struct Panels {
  char *lhs, *rhs, *out;
  uk_index_t k1;

  Panels(const uk_tile_row_t* row, size_t bytes) {
    const Mmt4dType type = *find_mmt4d_type(row->flags);
    const Mmt4dTypeNames& names = names_of(*row);
    const size_t lhs_step = static_cast<size_t>(row->m0 * row->k0 * type.lhs_bits / 8);
    const size_t rhs_step = static_cast<size_t>(row->n0 * row->k0 * type.rhs_bits / 8);
    const size_t steps = std::max<size_t>(bytes / (lhs_step + rhs_step), 1);
    lhs = arena();
    rhs = lhs + round_up(steps * lhs_step, 64);
    out = rhs + round_up(steps * rhs_step, 64);
    fill(lhs, steps * lhs_step, names.lhs);
    fill(rhs, steps * rhs_step, names.rhs);
    k1 = static_cast<uk_index_t>(steps);
  }
  void run(uk_mmt4d_tile_fn* tile, uint64_t n) const {
    for (; n > 0; --n) tile(out, lhs, rhs, k1, 0);
  }
};

void bench_mmt4d(benchmark::State& state, const uk_tile_row_t* row, size_t panel_bytes,
                 bool in_summary, Outcome* outcome) {
  const PeakLoop* peak = find_peak_loop(row->flags, row->isa);
  if (!peak) {
    outcome->no_peak = true;
    state.SkipWithError("no peak loop for this type on this level");
    return;
  }
  const Panels panels(row, panel_bytes);
  const auto tile = reinterpret_cast<uk_mmt4d_tile_fn*>(row->function);
  const auto run = [&](uint64_t n) { panels.run(tile, n); };
  const double ops = 2.0 * row->m0 * row->n0 * row->k0 * static_cast<double>(panels.k1);
  for (auto _ : state) {
    const Pair pair = time_in_turns(run, peak->run);
    const double percent = 100 * pair.speed * ops / peak->ops_per_iteration;
    state.SetIterationTime(pair.seconds);
    state.counters["GOP/s"] = ops / pair.seconds / 1e9;
    state.counters["peak%"] = percent;
    if (percent > kMaxPercentOfPeak) {
      outcome->above_peak = true;
      state.SkipWithError(
          (std::to_string(percent) + " % of the peak of " + peak->instruction).c_str());
      break;
    }
    if (in_summary) note_best(*outcome, {row, peak->instruction, percent, ops / pair.seconds});
  }
  state.SetLabel("of " + std::string(peak->instruction));
}

// What a product with one row is made of: panels of the RHS, one after another, from memory.
void bench_streaming(benchmark::State& state, const uk_tile_row_t* row) {
  const Mmt4dType type = *find_mmt4d_type(row->flags);
  const uk_index_t k1 = kStreamedK / row->k0;
  const size_t k = static_cast<size_t>(k1 * row->k0), n0 = static_cast<size_t>(row->n0);
  const size_t lhs_bytes = k * static_cast<size_t>(type.lhs_bits) / 8;
  const size_t panel_bytes = k * n0 * static_cast<size_t>(type.rhs_bits) / 8;
  char* const out = arena();
  char* const lhs = out + round_up(n0 * static_cast<size_t>(type.out_bits) / 8, 64);
  char* const rhs = lhs + round_up(lhs_bytes, 64);
  const size_t panels = (bytes_beyond_cache() - static_cast<size_t>(rhs - out)) / panel_bytes;
  fill(lhs, lhs_bytes, names_of(*row).lhs);
  fill(rhs, panels * panel_bytes, names_of(*row).rhs);
  const auto tile = reinterpret_cast<uk_mmt4d_tile_fn*>(row->function);
  const auto run = [&](uint64_t n) {
    for (; n > 0; --n) {
      for (size_t p = 0; p < panels; ++p) {
        tile(out, lhs, rhs + p * panel_bytes, k1, 0);
      }
    }
  };
  const ReadLoop read = fastest_read_loop(rhs, panels * panel_bytes);
  for (auto _ : state) {
    const Pair pair = time_in_turns(run, [&](uint64_t n) {
      for (; n > 0; --n) read(rhs, panels * panel_bytes / kReadBlock);
    });
    state.SetIterationTime(pair.seconds);
    state.counters["GOP/s"] = 2e-9 * static_cast<double>(panels * n0 * k) / pair.seconds;
    state.counters["read%"] = 100 * pair.speed;
  }
  state.SetBytesProcessed(static_cast<int64_t>(panels * panel_bytes));
}

// `other` against the row's own function.
void bench_against(benchmark::State& state, const uk_tile_row_t* row, uk_mmt4d_tile_fn* other,
                   size_t panel_bytes) {
  const Panels panels(row, panel_bytes);
  const auto own = reinterpret_cast<uk_mmt4d_tile_fn*>(row->function);
  for (auto _ : state) {
    const Pair pair = time_in_turns([&](uint64_t n) { panels.run(other, n); },
                                    [&](uint64_t n) { panels.run(own, n); });
    state.SetIterationTime(pair.seconds);
    state.counters["library%"] = 100 * pair.speed;
    state.counters["ns"] = 1e9 * pair.seconds;
  }
}

// ---------------------------------------------------------------- pack, unpack

// `bytes` of matrix and as much of tiles; the tiles lie one after another, in the order in which
// the matrix is walked. What order they have in a whole tensor is the op's business.
void bench_copy(benchmark::State& state, const uk_tile_row_t* row, size_t bytes) {
  const size_t element_bytes = static_cast<size_t>(pack_type_bits(row->flags)) / 8;
  const bool transposed = (row->flags & UK_PACK_TRANSPOSE_INNER) != 0;
  const size_t tile_rows = static_cast<size_t>(transposed ? row->n0 : row->m0);
  const size_t tile_columns = static_cast<size_t>(transposed ? row->m0 : row->n0);
  const size_t calls = std::max<size_t>(bytes / kMatrixRowBytes / tile_rows, 1);
  const size_t stride = kMatrixRowBytes / element_bytes;
  const size_t tiles = stride / tile_columns;
  const size_t copied = calls * tiles * tile_rows * tile_columns * element_bytes;
  char* const matrix = arena();
  char* const packed = matrix + round_up(calls * tile_rows * kMatrixRowBytes, 64);
  const bool packs = row->op == UK_OP_PACK;
  // Tile functions of pack and unpack have one type, with their strides in opposite order.
  const auto tile = reinterpret_cast<uk_pack_tile_fn*>(row->function);
  char* const from = packs ? matrix : packed;
  char* const to = packs ? packed : matrix;
  const size_t matrix_step = tile_rows * kMatrixRowBytes;
  const size_t packed_step = copied / calls;
  const auto tile_stride = static_cast<uk_index_t>(tile_rows * tile_columns);
  const auto run = [&](uint64_t n) {
    for (; n > 0; --n) {
      for (size_t i = 0; i < calls; ++i) {
        tile(to + i * (packs ? packed_step : matrix_step),
             from + i * (packs ? matrix_step : packed_step), static_cast<uk_index_t>(tiles),
             packs ? tile_stride : static_cast<uk_index_t>(stride),
             packs ? static_cast<uk_index_t>(stride) : tile_stride);
      }
    }
  };
  const auto copy = [&](uint64_t n) {
    for (; n > 0; --n) {
      std::memcpy(to, from, copied);
      benchmark::ClobberMemory();
    }
  };
  for (auto _ : state) {
    const Pair pair = time_in_turns(run, copy);
    state.SetIterationTime(pair.seconds);
    state.counters["memcpy%"] = 100 * pair.speed;
    state.SetBytesProcessed(static_cast<int64_t>(copied));
  }
}

// ---------------------------------------------------------------- the binary

void print_summary(const Outcome& outcome) {
  if (outcome.best.empty()) return;
  std::fprintf(stderr, "\nBest tile of each type, panels in L1:\n");
  for (const auto& [type, best] : outcome.best) {
    const std::string shape = std::to_string(best.row->m0) + "x" + std::to_string(best.row->n0) +
                              "x" + std::to_string(best.row->k0);
    std::fprintf(stderr, "  %-33s %-9s %7.1f GOP/s %6.1f %% of %s\n", type.c_str(), shape.c_str(),
                 best.ops_per_second / 1e9, best.percent, best.instruction);
  }
}

void register_benchmarks(const std::string& arch, const std::string& isa, Outcome& outcome) {
  const size_t l1 = cache_bytes(1), l2 = cache_bytes(2);
  for (size_t i = 0; i < uk_tile_count(); ++i) {
    const uk_tile_row_t* row = uk_tile_at(i);
    if (arch != row->arch || isa != row->isa || !row->function) continue;
    const std::string symbol = row->symbol;
    if (row->op == UK_OP_MMT4D) {
      benchmark::RegisterBenchmark((symbol + "/L1").c_str(), bench_mmt4d, row, l1 / 2, true,
                                   &outcome)
          ->UseManualTime();
      benchmark::RegisterBenchmark((symbol + "/L2").c_str(), bench_mmt4d, row, l2 / 2, false,
                                   &outcome)
          ->UseManualTime();
      if (row->m0 == 1) {
        benchmark::RegisterBenchmark((symbol + "/mem").c_str(), bench_streaming, row)
            ->UseManualTime();
      }
    } else {
      benchmark::RegisterBenchmark((symbol + "/L2").c_str(), bench_copy, row, l2 / 4)
          ->UseManualTime();
      benchmark::RegisterBenchmark((symbol + "/mem").c_str(), bench_copy, row,
                                   bytes_beyond_cache() / 2 - kMatrixRowBytes)
          ->UseManualTime();
    }
  }
}

// The functions that `path` has under the symbols of mmt4d rows. Returns how many there are.
size_t register_against(const std::string& arch, const std::string& isa, const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 0;
  }
  size_t found = 0;
  for (size_t i = 0; i < uk_tile_count(); ++i) {
    const uk_tile_row_t* row = uk_tile_at(i);
    if (row->op != UK_OP_MMT4D || arch != row->arch || isa != row->isa) continue;
    const auto other = reinterpret_cast<uk_mmt4d_tile_fn*>(dlsym(library, row->symbol));
    if (!other) continue;
    const std::string name = std::string(row->symbol) + "/against";
    benchmark::RegisterBenchmark(name.c_str(), bench_against, row, other, cache_bytes(1) / 2)
        ->UseManualTime();
    ++found;
  }
  if (found == 0) std::fprintf(stderr, "%s has no mmt4d tile of %s.\n", path, isa.c_str());
  return found;
}

}  // namespace

int run_tile_bench(const char* arch, const char* isa, int argc, char** argv) {
  std::vector<char*> arguments = {argv[0]};
  const char* against = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) std::fputs(kHelp, stdout);
    if (const char* path = value_of(argv[i], kAgainst)) {
      against = path;
    } else {
      arguments.push_back(argv[i]);
    }
  }
  if (!initialize_for_one_iteration(std::move(arguments))) return 2;

  uint64_t host[UK_CPU_DATA_FIELDS] = {};
  const uk_status_t status = uk_cpu_detect(host, UK_CPU_DATA_FIELDS);
  if (status != UK_STATUS_OK || !uk_cpu_has_level(isa, host)) {
    std::fprintf(stderr, "%s: this CPU does not have %s; nothing measured.\n", argv[0], isa);
    return 77;
  }
  Outcome outcome;
  if (!against) {
    register_benchmarks(arch, isa, outcome);
  } else if (register_against(arch, isa, against) == 0) {
    return 2;
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  print_summary(outcome);
  return outcome.no_peak ? 1 : outcome.above_peak ? 3 : 0;
}

}  // namespace uk::bench
