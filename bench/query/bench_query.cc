// What uk_query_tile_sizes returns against the other tiles that it could have returned.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bench/google_benchmark.h"
#include "bench/machine.h"
#include "bench/median.h"
#include "bench/packed_product.h"
#include "bench/peers/contest.h"
#include "bench/peers/trial.h"
#include "ukernel/internal.h"

namespace uk::bench {
namespace {

constexpr char kHelp[] =
    "Times the tile shape that uk_query_tile_sizes returns in turns with the other shapes of the\n"
    "library, each in whole calls of uk_mmt4d on packed operands.\n"
    "\n"
    "  names    <level>/<type>[_f32acc]/<M>x<N>x<K>/<free|packed>[/cold]\n"
    "    level    host: the CPU at hand with all that it has, all types; else as if it had this\n"
    "             level's features and no others, types for which the level then has tiles\n"
    "    _f32acc  one rounding at the end is permitted (SKIP_INTERMEDIATE_ROUNDINGS)\n"
    "    free     any shape; packed: N0 and K0 are what the query returns for M = 512\n"
    "    cold     each call takes the next of more copies of the weights than the last-level\n"
    "             cache holds\n"
    "  label    the shape that the query returns, and the level of its tile\n"
    "  GFLOP/s  of that shape, median; padding does not count, integer operations count alike\n"
    "  <shape>  the speed of the query's shape by this one's, the median of pairs of adjacent\n"
    "           slices; _q1 and _q3 are the quartiles\n"
    "  shapes   how many had a trial. Those that multiply more than twice what is asked for,\n"
    "           padding included, have none; what a trial finds 1.5 times as slow as the fastest\n"
    "           is not timed any further\n"
    "\n"
    "Of a large product only the first columns are multiplied, as by one of several threads; the\n"
    "query gets all of it.\n"
    "Memory is in large pages where the kernel grants them, unless GLIBC_TUNABLES is set.\n"
    "  --pairs=N  at least N pairs, 7 by default\n"
    "\n"
    "Exit codes: 0; 1 a CPU whose features cannot be told; 2 a wrong option. The other options\n"
    "are Google Benchmark's:\n\n";

constexpr int64_t kM[] = {1, 2, 4, 8, 13, 16, 17, 32, 64, 128, 512};
constexpr int64_t kNAndK[] = {4096, 256};
constexpr int64_t kMostColdRows = 16, kLeastColdN = 4096;
constexpr int64_t kPackedForM = 512;
constexpr int64_t kMostProducts = INT64_C(1) << 29, kLeastColumns = 512;
constexpr int64_t kMostPaddedWork = 2;
constexpr double kMostTrialTime = 1.5;
constexpr double kSliceSeconds = 2e-3;
constexpr double kPatiencePerPair = 0.25;
// Every element type has an ordinary number for this: subnormals have a speed of their own.
constexpr int kOrdinaryByte = 0x3C;

struct Type {
  uint32_t flag;
  const char* name;
};
constexpr Type kTypes[] = {
#define UK_MMT4D_TYPE(lhs, rhs, out, FLAG, ...) {UK_MMT4D_TYPE_##FLAG, #lhs #rhs #out},
#include "ukernel/mmt4d_types.inc"
};

constexpr char kHost[] = "host";  // the level of the CPU at hand

struct Level {
  const char* name;
  uint64_t cpu_data[UK_CPU_DATA_FIELDS];
};

struct Product {
  int64_t m, n, k;
  double ops() const {
    return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

struct Cell {
  Level level;
  Type type;
  bool skip;
  Product product;
  bool packed;

  uint32_t flags() const { return type.flag | (skip ? UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS : 0); }
  bool cold() const { return product.m <= kMostColdRows && product.n >= kLeastColdN; }
  std::string name() const {
    return std::string(level.name) + "/" + type.name + (skip ? "_f32acc" : "") + "/" +
           std::to_string(product.m) + "x" + std::to_string(product.n) + "x" +
           std::to_string(product.k) + (packed ? "/packed" : "/free") + (cold() ? "/cold" : "");
  }
};

struct Setting {
  int pairs = 7;
  Buffer lhs, weights, out;
};

// ---------------------------------------------------------------- tiles

std::string shape_name(const uk_tile_row_t& tile) {
  return std::to_string(tile.m0) + "x" + std::to_string(tile.n0) + "x" + std::to_string(tile.k0);
}

// Those that uk_mmt4d uses for their shapes.
std::vector<const uk_tile_row_t*> tiles_of(const Cell& cell) {
  std::vector<const uk_tile_row_t*> tiles;
  for (size_t i = 0; i < uk_tile_count(); ++i) {
    const uk_tile_row_t* const tile = uk_tile_at(i);
    if (tile->origin != UK_ORIGIN_GENERIC &&
        row_is_eligible(*tile, UK_OP_MMT4D, cell.flags(), cell.level.cpu_data) &&
        select_tile(UK_OP_MMT4D, cell.flags(), tile->m0, tile->n0, tile->k0, cell.level.cpu_data) ==
            tile) {
      tiles.push_back(tile);
    }
  }
  return tiles;
}

// What the query has to keep to.
uk_tile_sizes_t fixed_sizes(const Cell& cell) {
  if (!cell.packed) return {0, 0, 0};
  uk_tile_sizes_t sizes = {};
  uk_query_tile_sizes(cell.flags(), kPackedForM, cell.product.n, cell.product.k, nullptr,
                      cell.level.cpu_data, &sizes);
  return {0, sizes.n0, sizes.k0};
}

const uk_tile_row_t* queried_tile(const Cell& cell, const uk_tile_sizes_t& fixed) {
  const Product& p = cell.product;
  uk_tile_sizes_t sizes = {};
  if (uk_query_tile_sizes(cell.flags(), p.m, p.n, p.k, &fixed, cell.level.cpu_data, &sizes)) {
    return nullptr;
  }
  return select_tile(UK_OP_MMT4D, cell.flags(), sizes.m0, sizes.n0, sizes.k0, cell.level.cpu_data);
}

bool is_worth_a_trial(const uk_tile_row_t& tile, const Product& p, const uk_tile_sizes_t& fixed) {
  const auto padded = [](int64_t size, int64_t tile_size) {
    return ceil_div(size, tile_size) * tile_size;
  };
  return (fixed.n0 == 0 || tile.n0 == fixed.n0) && (fixed.k0 == 0 || tile.k0 == fixed.k0) &&
         padded(p.m, tile.m0) * padded(p.n, tile.n0) * padded(p.k, tile.k0) <=
             kMostPaddedWork * p.m * p.n * p.k;
}

// ---------------------------------------------------------------- operations

// The product in one shape. Operands are the same bytes in any shape.
struct Operation {
  const uk_tile_row_t* tile;
  uk_mmt4d_params_t params;

  // As if the tile were the matrices' layout.
  Operation(const Cell& cell, const Product& timed, const uk_tile_row_t* row) : tile(row) {
    const Packing lhs = {{timed.m, timed.k, 0, 0, 0}, 1, row->m0, row->k0, 0};
    const Packing rhs = {{timed.n, timed.k, 0, 0, 0}, 1, row->n0, row->k0, 0};
    params = mmt4d_params(lhs, rhs, cell.flags(), cell.level.cpu_data);
  }
  size_t lhs_bytes(const Mmt4dType& type) const {
    return static_cast<size_t>(params.m * params.lhs_stride0 * type.lhs_bits / 8);
  }
  size_t weight_bytes(const Mmt4dType& type) const {
    return static_cast<size_t>(params.n * params.rhs_stride0 * type.rhs_bits / 8);
  }
  size_t out_bytes(const Mmt4dType& type) const {
    return static_cast<size_t>(params.m * params.out_stride0 * type.out_bits / 8);
  }
};

// The operands of all operations, whose calls share the copies of the weights: whoever comes next
// takes the one that was used the longest ago.
class Operands {
 public:
  Operands(const Cell& cell, const std::vector<Operation>& operations, Setting& setting) {
    const Mmt4dType& type = *find_mmt4d_type(cell.type.flag);
    size_t lhs_bytes = 0, weight_bytes = 0, out_bytes = 0;
    for (const Operation& operation : operations) {
      lhs_bytes = std::max(lhs_bytes, operation.lhs_bytes(type));
      weight_bytes = std::max(weight_bytes, operation.weight_bytes(type));
      out_bytes = std::max(out_bytes, operation.out_bytes(type));
    }
    copy_bytes_ = round_up(weight_bytes, 64);
    if (cell.cold()) copies_ = std::max<size_t>((bytes_beyond_cache() - 1) / copy_bytes_ + 1, 2);
    const auto filled = [](Buffer& buffer, size_t bytes) {
      return static_cast<char*>(std::memset(buffer.reserve(bytes), kOrdinaryByte, bytes));
    };
    lhs_ = filled(setting.lhs, lhs_bytes);
    weights_ = filled(setting.weights, copies_ * copy_bytes_);
    out_ = filled(setting.out, out_bytes);
  }
  void multiply(uk_mmt4d_params_t params) {
    params.lhs = lhs_;
    params.rhs = weights_ + next_ * copy_bytes_;
    params.out = out_;
    next_ = (next_ + 1) % copies_;
    const uk_status_t status = uk_mmt4d(&params);
    if (status == UK_STATUS_OK) return;
    std::fprintf(stderr, "bench_query: %s\n", uk_status_string(status));  // the query's bug
    std::exit(1);
  }

 private:
  size_t copies_ = 1, copy_bytes_ = 0, next_ = 0;
  char *lhs_ = nullptr, *weights_ = nullptr, *out_ = nullptr;
};

// The product whose time counts.
Product timed_part(const Product& p) {
  return {p.m, std::min(p.n, std::max(kMostProducts / (p.m * p.k), kLeastColumns)), p.k};
}

// The first operation, and those others that are not far behind the fastest. Two trials of each,
// some time apart: a disturbance does not hit both.
std::vector<Operation> after_trials(const std::vector<Operation>& operations, Operands& operands) {
  std::vector<double> seconds(operations.size(), 1e9);
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < operations.size(); ++i) {
      const double trial = trial_seconds([&] { operands.multiply(operations[i].params); });
      seconds[i] = std::min(seconds[i], trial);
    }
  }
  const double most = kMostTrialTime * *std::min_element(seconds.begin(), seconds.end());
  std::vector<Operation> kept;
  for (size_t i = 0; i < operations.size(); ++i) {
    if (i == 0 || seconds[i] <= most) kept.push_back(operations[i]);
  }
  return kept;
}

// ---------------------------------------------------------------- a cell

double median_seconds(const std::vector<std::vector<SlicePair>>& pairs) {
  std::vector<double> seconds;
  for (const auto& rounds : pairs) {
    for (const SlicePair& pair : rounds) seconds.push_back(pair.own);
  }
  return median(std::move(seconds));
}

void run_cell(benchmark::State& state, const Cell& cell, Setting* setting) {
  const uk_tile_sizes_t fixed = fixed_sizes(cell);
  const uk_tile_row_t* const own_tile = queried_tile(cell, fixed);
  if (!own_tile) {
    state.SkipWithError("the query finds no tile");
    return;
  }
  const Product timed = timed_part(cell.product);
  std::vector<Operation> operations = {Operation(cell, timed, own_tile)};
  for (const uk_tile_row_t* const tile : tiles_of(cell)) {
    if (tile != own_tile && is_worth_a_trial(*tile, timed, fixed)) {
      operations.emplace_back(cell, timed, tile);
    }
  }
  Operands operands(cell, operations, *setting);
  const std::vector<Operation> kept = after_trials(operations, operands);
  std::vector<Entrant> entrants;
  for (const Operation& operation : kept) {
    entrants.emplace_back(1, kSliceSeconds, [&operands, params = operation.params](int, int64_t) {
      operands.multiply(params);
    });
  }
  Entrant own = std::move(entrants.front());
  entrants.erase(entrants.begin());
  for (auto _ : state) {
    const auto pairs =
        time_in_pairs(own, entrants, {setting->pairs, 0, 0, kPatiencePerPair * setting->pairs});
    const double seconds = pairs.empty() ? own.time_slice(1) : median_seconds(pairs);
    auto& counters = state.counters;
    state.SetIterationTime(seconds);
    counters["GFLOP/s"] = timed.ops() / seconds / 1e9;
    counters["pairs"] = setting->pairs;
    counters["shapes"] = static_cast<double>(operations.size());
    for (size_t i = 0; i < pairs.size(); ++i) {
      const std::string name = shape_name(*kept[i + 1].tile);
      const Quartiles ratio = ratio_quartiles(pairs[i]);
      counters[name] = ratio.median;
      counters[name + "_q1"] = ratio.lower;
      counters[name + "_q3"] = ratio.upper;
    }
  }
  state.SetLabel(shape_name(*own_tile) + " " + own_tile->isa);
}

// ---------------------------------------------------------------- the binary

// The types at a level are those for which it has tiles of its own: others have been measured on a
// level below. At hand are all.
bool is_measured(const Cell& cell) {
  const bool is_host = std::strcmp(cell.level.name, kHost) == 0;
  const auto tiles = tiles_of(cell);
  return std::any_of(tiles.begin(), tiles.end(), [&](const uk_tile_row_t* tile) {
    return (is_host || std::strcmp(tile->isa, cell.level.name) == 0) &&
           (!cell.skip || (tile->flags & UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS));
  });
}

std::vector<Cell> all_cells(const std::vector<Level>& levels) {
  std::vector<Cell> cells;
  for (const Level& level : levels) {
    for (const Type& type : kTypes) {
      for (const bool skip : {false, true}) {
        if (!is_measured({level, type, skip, {}, false})) continue;
        for (const int64_t n_and_k : kNAndK) {
          for (const bool packed : {false, true}) {
            for (const int64_t m : kM) {
              cells.push_back({level, type, skip, {m, n_and_k, n_and_k}, packed});
            }
          }
        }
      }
    }
  }
  return cells;
}

// Of this CPU; none if they cannot be told.
std::vector<Level> levels_at_hand() {
  Level host = {kHost, {}};
  if (uk_cpu_detect(host.cpu_data, UK_CPU_DATA_FIELDS) != UK_STATUS_OK) return {};
  std::vector<Level> levels = {host};
  for (size_t i = 0; const char* const name = uk_isa_level_at(i); ++i) {
    if (!uk_cpu_has_level(name, host.cpu_data)) continue;
    Level level = {name, {}};
    uk_cpu_level(name, level.cpu_data, UK_CPU_DATA_FIELDS);
    // No features, but what this CPU makes of one (with it no tile of that level is used), of
    // prefetches, and of blocks.
    level.cpu_data[7] |=
        host.cpu_data[7] & (UK_CPU_FIELD7_X86_64_SLOW_AVX512BF16 |
                            UK_CPU_FIELD7_X86_64_READS_AHEAD | UK_CPU_FIELD7_X86_64_SMALL_L2);
    levels.push_back(level);
  }
  return levels;
}

int run_all(int argc, char** argv) {
  Setting setting;
  std::vector<char*> arguments;
  for (int i = 0; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) std::fputs(kHelp, stdout);
    if (const char* value = value_of(argv[i], "--pairs=")) {
      setting.pairs = count_of("bench_query", argv[i], value);
      if (setting.pairs == 0) return 2;
    } else {
      arguments.push_back(argv[i]);
    }
  }
  if (!initialize(std::move(arguments))) return 2;
  const std::vector<Level> levels = levels_at_hand();
  if (levels.empty()) {
    std::fprintf(stderr, "bench_query: the CPU's features cannot be told\n");
    return 1;
  }
  benchmark::AddCustomContext("cpu", cpu_name());
  for (const Cell& cell : all_cells(levels)) {
    benchmark::RegisterBenchmark(
        cell.name().c_str(),
        [cell, &setting](benchmark::State& state) { run_cell(state, cell, &setting); })
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace uk::bench

int main(int argc, char** argv) {
  uk::bench::start_with_large_pages(argv);
  return uk::bench::run_all(argc, argv);
}
