// Whole operations of this library against other libraries, in one run.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/google_benchmark.h"
#include "bench/machine.h"
#include "bench/median.h"
#include "bench/peak.h"
#include "bench/peers/contest.h"
#include "bench/peers/contestant.h"
#include "bench/peers/problems.h"
#include "bench/peers/ukernel_op.h"
#include "bench/threads.h"

namespace uk::bench {
namespace {

constexpr char kHelp[] =
    "Times whole matrix products of ukernel in turns with other implementations.\n"
    "\n"
    "  names     <type>/<M>x<N>x<K>/<what is done>[/cold]/threads:<1 or 2>\n"
    "    packed    operands and result in the layouts that the contestant likes best\n"
    "    rows      only the weights: packing or reading the row-major LHS and result counts too\n"
    "    nk, kn    nothing is packed: row-major weights, N x K or K x N\n"
    "    cold      each call takes the next of more copies of the weights than the last-level\n"
    "              cache holds\n"
    "  GFLOP/s   of ukernel, median; integer operations are counted alike\n"
    "  peak%     of the rate of the best instruction, on registers alone, on as many threads\n"
    "  read%     of the rate of reading the same packed weights (cold)\n"
    "  bound%    of what the lower of the two permits (cold)\n"
    "  pack      the time to pack all weights ahead, by ukernel's (nk and kn, one thread)\n"
    "  scaling   ukernel's gain from the second thread, by the peak's (two threads)\n"
    "  <name>    ukernel's speed by that contestant's, the median of pairs of adjacent slices;\n"
    "            <name>_GFLOP/s is its own. 'naive' is ukernel's tile in two plain loops.\n"
    "  *_q1, *_q3  the quartiles of the pairs whose median that figure is\n"
    "  cells_of_kind  how many cells differ from this one in their shape alone\n"
    "\n"
    "Before a contestant is timed, its result is compared with ukernel's.\n"
    "Memory is in large pages where the kernel grants them, unless GLIBC_TUNABLES is set.\n"
    "  --pairs=N  at least N pairs, 7 by default\n"
    "\n"
    "Exit codes: 0; 1 a wrong result, or a library that does not load; 2 a wrong option; 3 a\n"
    "figure above what the machine can do. The other options are Google Benchmark's:\n\n";

constexpr double kSliceSeconds = 4e-3;
constexpr double kSecondsPerPair = 0.04;  // at least: a short call gets more pairs instead
constexpr double kPatiencePerPair = 0.5;
constexpr int64_t kMostColdRows = 16;
// The other libraries' threads spin for up to 27 ms (OpenBLAS) after their work is done.
constexpr double kRestSeconds = 0.04;

struct Cell {
  const OpType* type;
  OpShape shape;
  uk_form_t form;
  bool weights_are_k_by_n;
  bool cold;
  int threads;

  double ops() const {
    return 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
           static_cast<double>(shape.k);
  }
  size_t weight_bytes() const { return element_bytes(type->weights, shape.n * shape.k); }
  std::string name() const {
    const char* form_name = form == UK_FORM_PACKED ? "packed"
                            : form == UK_FORM_ROWS ? "rows"
                            : weights_are_k_by_n   ? "kn"
                                                   : "nk";
    return std::string(type->name) + "/" + shape.name() + "/" + form_name + (cold ? "/cold" : "") +
           "/threads:" + std::to_string(threads);
  }
  // Whether the question is after how many calls that pays.
  bool packs_weights_ahead() const { return form == UK_FORM_WHOLE && threads == 1; }
  // All but the shape.
  auto kind() const { return std::tuple(type, form, weights_are_k_by_n, cold, threads); }
};

// What all cells use.
struct Setting {
  uint64_t cpu_data[UK_CPU_DATA_FIELDS] = {};
  std::vector<const uk_contestant_t*> others;
  int pairs = 7;
  Buffer lhs, weights, out, expected;
  bool wrong_result = false, above_peak = false;
};

// An operation of a contestant, while it is timed.
class Operation {
 public:
  Operation(const uk_contestant_t* contestant, const uk_problem_t& problem)
      : contestant_(contestant), problem_(problem), data_(contestant->make(&problem_)) {}
  ~Operation() {
    if (data_) contestant_->destroy(data_);
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  const uk_contestant_t& contestant() const { return *contestant_; }
  void* data() const { return data_; }  // NULL: it has none for this problem
  Entrant entrant() const {
    if (problem_.copies > 1) {  // of one thread
      return Entrant(1, kSliceSeconds,
                     [this](int, int64_t) { contestant_->run(data_, next_copy(), 0); });
    }
    return Entrant(callers(), kSliceSeconds,
                   [this](int thread, int64_t) { contestant_->run(data_, 0, thread); });
  }
  // Of this library's: reads its packed weights. The copy that comes next is read by either in
  // turn, so that both find as little of it in the caches, and the same pages.
  Entrant read_entrant() const {
    const PackedWeights weights = packed_weights_of(data_);
    const size_t bytes = weights.copy_bytes * static_cast<size_t>(weights.copies);
    return Entrant(1, kSliceSeconds,
                   [this, weights, read = fastest_read_loop(weights.data, bytes)](int, int64_t) {
                     const auto copy = static_cast<size_t>(next_copy());
                     read(weights.data + copy * weights.copy_bytes,
                          weights.copy_bytes / kReadBlock);
                   });
  }
  Entrant pack_entrant() const {
    return Entrant(1, kSliceSeconds, [this](int, int64_t) { pack_weights(data_); });
  }
  void compute() const {
    run_on_threads(callers(), [this](int thread) { contestant_->run(data_, 0, thread); });
    contestant_->write_out(data_);
  }

 private:
  int callers() const { return contestant_->callers_split ? problem_.threads : 1; }
  int next_copy() const { return next_copy_ = (next_copy_ + 1) % problem_.copies; }

  const uk_contestant_t* contestant_;
  uk_problem_t problem_;
  void* data_;
  mutable int next_copy_ = 0;
};

// A register-only loop, for as long as a slice of the clock needs.
class PeakEntrant {
 public:
  explicit PeakEntrant(const PeakLoop& loop)
      : loop_(loop), rounds_(repetitions_per_slice(loop.run)) {}
  Entrant on(int threads) const {
    return Entrant(threads, kSliceSeconds,
                   [run = loop_.run, rounds = rounds_](int, int64_t) { run(rounds); });
  }
  // Of a call on one thread.
  double ops() const { return loop_.ops_per_iteration * static_cast<double>(rounds_); }

 private:
  const PeakLoop& loop_;
  uint64_t rounds_;
};

uk_problem_t make_problem(const Cell& cell, Setting& setting) {
  const OpShape& s = cell.shape;
  uk_problem_t problem = {};
  problem.type = cell.type->mmt4d_type;
  problem.form = cell.form;
  problem.m = s.m, problem.n = s.n, problem.k = s.k;
  char* const lhs = setting.lhs.reserve(element_bytes(cell.type->lhs, s.m * s.k));
  char* const weights = setting.weights.reserve(cell.weight_bytes());
  fill_random(cell.type->lhs, lhs, s.m * s.k, 1);
  fill_random(cell.type->weights, weights, s.n * s.k, 2);
  problem.lhs = lhs;
  problem.weights = weights;
  problem.weights_are_k_by_n = cell.weights_are_k_by_n;
  problem.out = setting.out.reserve(static_cast<size_t>(4 * s.m * s.n));
  problem.copies = 1;
  if (cell.cold) {
    const size_t enough = (bytes_beyond_cache() - 1) / cell.weight_bytes() + 1;
    problem.copies = static_cast<int>(std::max<size_t>(enough, 2));
  }
  problem.threads = cell.threads;
  problem.cpu_data = setting.cpu_data;
  return problem;
}

// The other contestants that have an operation for the problem; empty, and an error, if one of
// them does not agree with `own`.
std::vector<std::unique_ptr<Operation>> make_others(const Cell& cell, const uk_problem_t& problem,
                                                    const Operation& own, Setting& setting,
                                                    std::string* error) {
  const size_t out_bytes = static_cast<size_t>(4 * problem.m * problem.n);
  own.compute();
  char* const expected = setting.expected.reserve(out_bytes);
  std::memcpy(expected, problem.out, out_bytes);
  std::vector<std::unique_ptr<Operation>> others;
  for (const uk_contestant_t* contestant : setting.others) {
    auto operation = std::make_unique<Operation>(contestant, problem);
    if (!operation->data()) continue;
    std::memset(problem.out, 0xA5, out_bytes);  // old results must not pass for new ones
    operation->compute();
    const std::string difference = first_difference(*cell.type, cell.shape, problem.out, expected);
    if (!difference.empty()) {
      *error = std::string(contestant->name) + " is wrong: " + difference;
      return {};
    }
    others.push_back(std::move(operation));
  }
  return others;
}

// The median, and the quartiles that tell whether to trust it.
double report_ratio(benchmark::UserCounters& counters, const std::string& name,
                    const std::vector<SlicePair>& pairs, double unit) {
  const Quartiles ratio = ratio_quartiles(pairs);
  counters[name] = unit * ratio.median;
  counters[name + "_q1"] = unit * ratio.lower;
  counters[name + "_q3"] = unit * ratio.upper;
  return unit * ratio.median;
}

// What an operation is compared with, beside other contestants, and the figures that come of it.
class Yardsticks {
 public:
  Yardsticks(const Cell& cell, const uk_problem_t& problem, const PeakLoop& loop,
             const Operation& own)
      : cell_(cell), peak_(loop) {
    entrants_.push_back(peak_.on(cell.threads));
    if (cell.cold) entrants_.push_back(own.read_entrant());
    if (cell.packs_weights_ahead()) entrants_.push_back(own.pack_entrant());
    if (cell.threads > 1) {
      uk_problem_t on_one = problem;
      on_one.threads = 1;
      on_one_thread_ = std::make_unique<Operation>(&kUkernel, on_one);
      entrants_.push_back(peak_.on(1));
      entrants_.push_back(on_one_thread_->entrant());
    }
  }
  const std::vector<Entrant>& entrants() const { return entrants_; }

  // False if one is higher than the machine allows.
  bool report(const std::vector<std::vector<SlicePair>>& pairs,
              benchmark::UserCounters& counters) const {
    double highest = report_ratio(counters, "peak%", pairs[0],
                                  100 * cell_.ops() / (peak_.ops() * cell_.threads));
    if (cell_.cold) {
      highest = std::max(highest, report_ratio(counters, "read%", pairs[1], 100));
      counters["bound%"] = highest;
    }
    if (cell_.packs_weights_ahead()) report_ratio(counters, "pack", pairs[1], 1);
    if (cell_.threads > 1) {
      // Both peaks are known by the same operation, whose time cancels out.
      const double peak_gain =
          cell_.threads * ratio_quartiles(pairs[1]).median / ratio_quartiles(pairs[0]).median;
      counters["peak_gain"] = peak_gain;
      counters["scaling"] = report_ratio(counters, "gain", pairs[2], 1) / peak_gain;
    }
    return highest <= kMaxPercentOfPeak;
  }

 private:
  const Cell& cell_;
  PeakEntrant peak_;
  std::unique_ptr<Operation> on_one_thread_;
  std::vector<Entrant> entrants_;
};

double median_seconds(const std::vector<std::vector<SlicePair>>& pairs, double SlicePair::*whose) {
  std::vector<double> seconds;
  for (const auto& rounds : pairs) {
    for (const SlicePair& pair : rounds) seconds.push_back(pair.*whose);
  }
  return median(std::move(seconds));
}

void run_cell(benchmark::State& state, const Cell& cell, int64_t cells_of_kind, Setting* setting) {
  const uk_problem_t problem = make_problem(cell, *setting);
  const Operation own(&kUkernel, problem);
  const uk_tile_row_t* const tile = own.data() ? tile_of(own.data()) : nullptr;
  const PeakLoop* const loop = tile ? find_peak_loop(problem.type, tile->isa) : nullptr;
  if (!loop) {
    state.SkipWithError(tile ? "no peak loop for this type" : "no tile for this type");
    return;
  }
  std::string error;
  const auto others = make_others(cell, problem, own, *setting, &error);
  if (!error.empty()) {
    setting->wrong_result = true;
    state.SkipWithError(error.c_str());
    return;
  }
  const Yardsticks yardsticks(cell, problem, *loop, own);
  std::vector<Entrant> entrants = yardsticks.entrants();
  for (const auto& other : others) entrants.push_back(other->entrant());
  // What two threads run on is not told by one core.
  const bool one_thread = cell.threads == 1;
  const Pace pace = {setting->pairs, kSecondsPerPair * setting->pairs,
                     one_thread ? 0 : kRestSeconds,
                     one_thread ? kPatiencePerPair * setting->pairs : 0};
  for (auto _ : state) {
    Entrant own_entrant = own.entrant();
    const auto pairs = time_in_pairs(own_entrant, entrants, pace);
    const double seconds = median_seconds(pairs, &SlicePair::own);
    auto& counters = state.counters;
    state.SetIterationTime(seconds);
    counters["GFLOP/s"] = cell.ops() / seconds / 1e9;
    counters["cells_of_kind"] = static_cast<double>(cells_of_kind);
    counters["pairs"] = static_cast<double>(pairs[0].size());
    if (!yardsticks.report(pairs, counters)) setting->above_peak = true;
    for (size_t i = 0; i < others.size(); ++i) {
      const std::string name = others[i]->contestant().name;
      const auto& with = pairs[yardsticks.entrants().size() + i];
      report_ratio(counters, name, with, 1);
      counters[name + "_GFLOP/s"] = cell.ops() / median_seconds({with}, &SlicePair::other) / 1e9;
    }
  }
  state.SetLabel(std::to_string(tile->m0) + "x" + std::to_string(tile->n0) + "x" +
                 std::to_string(tile->k0) + " " + tile->isa + ", of " + loop->instruction);
}

// ---------------------------------------------------------------- the binary

std::vector<Cell> all_cells() {
  std::vector<Cell> cells;
  for (const int threads : {1, 2}) {
    for (const OpType& type : kOpTypes) {
      for (const OpShape& shape : kOpShapes) {
        // Rows of half bytes do not make a matrix.
        if (type.weights == Element::kS4 && shape.k % 2 != 0) continue;
        const Cell cell = {&type, shape, UK_FORM_PACKED, false, false, threads};
        cells.push_back(cell);
        Cell other = cell;
        if (shape.m <= kMostColdRows && threads == 1) {
          other.cold = true;
          cells.push_back(other);
          other.cold = false;
        }
        other.form = UK_FORM_ROWS;
        cells.push_back(other);
        other.form = UK_FORM_WHOLE;
        cells.push_back(other);
        other.weights_are_k_by_n = true;
        cells.push_back(other);
      }
    }
  }
  return cells;
}

void register_cells(Setting& setting) {
  const std::vector<Cell> cells = all_cells();
  for (const Cell& cell : cells) {
    const int64_t of_kind = std::count_if(cells.begin(), cells.end(),
                                          [&](const Cell& c) { return c.kind() == cell.kind(); });
    benchmark::RegisterBenchmark(
        cell.name().c_str(),
        [=, &setting](benchmark::State& state) { run_cell(state, cell, of_kind, &setting); })
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
}

// The modules lie beside the program. Exits if one does not load.
void load_others(Setting& setting) {
  // Variables that choose other kernels or block sizes than OpenBLAS would by itself; set in the
  // environment, they have been seen to halve its speed.
  unsetenv("OPENBLAS_CORETYPE");
  unsetenv("OPENBLAS_L2_SIZE");
  const std::filesystem::path directory =
      std::filesystem::read_symlink("/proc/self/exe").parent_path();
  setting.others = {&kNaive};
  std::string names;
  for (const char* const name : {UK_PEERS}) {
    if (!*name) continue;
    const std::string path = directory / ("peer_" + std::string(name) + ".so");
    void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const symbol = module ? dlsym(module, UK_CONTESTANT_SYMBOL) : nullptr;
    if (!symbol) {
      std::fprintf(stderr, "bench_ops: %s\n", dlerror());
      std::exit(1);
    }
    const uk_contestant_t* const contestant = reinterpret_cast<uk_contestant_fn*>(symbol)();
    setting.others.push_back(contestant);
    names +=
        (names.empty() ? "" : ", ") + std::string(contestant->name) + " " + contestant->version;
  }
  benchmark::AddCustomContext("peers", names.empty() ? "none" : names);
}

int run_all(int argc, char** argv) {
  Setting setting;
  std::vector<char*> arguments;
  for (int i = 0; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) std::fputs(kHelp, stdout);
    if (const char* value = value_of(argv[i], "--pairs=")) {
      setting.pairs = count_of("bench_ops", argv[i], value);
      if (setting.pairs == 0) return 2;
    } else {
      arguments.push_back(argv[i]);
    }
  }
  if (!initialize(std::move(arguments))) return 2;
  if (uk_cpu_detect(setting.cpu_data, UK_CPU_DATA_FIELDS) != UK_STATUS_OK) {
    std::fprintf(stderr, "bench_ops: the CPU's features cannot be told\n");
    return 1;
  }
  load_others(setting);
  benchmark::AddCustomContext("cpu", cpu_name());
  register_cells(setting);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  if (setting.above_peak)
    std::fprintf(stderr, "bench_ops: a figure above %g %%\n", kMaxPercentOfPeak);
  return setting.wrong_result ? 1 : setting.above_peak ? 3 : 0;
}

}  // namespace
}  // namespace uk::bench

int main(int argc, char** argv) {
  uk::bench::start_with_large_pages(argv);
  return uk::bench::run_all(argc, argv);
}
