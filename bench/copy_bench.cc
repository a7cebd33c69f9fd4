// uk_pack and uk_unpack as whole ops, timed in turns with memcpy of the same bytes.
//
// A benchmark's name is
//
//   op/width/tile/order/size        pack/x32/32x1/n/256KiB
//
//   op     pack or unpack
//   width  of the elements: x4, x8, x16, x32, x64
//   tile   tile0 x tile1 as stored
//   order  n   a row-major matrix, no flag (weights N x K, LHS M x K, results)
//          i   TRANSPOSE_INNER alone
//          o   TRANSPOSE_OUTER alone
//          io  both: weights K x N. A column-major matrix is its transpose with both flags toggled,
//              and the ops treat it so: column-major n is io, and so on.
//   size   of the matrix: 256KiB for L2, 4MiB for L3, 256MiB for memory, where every pass finds the
//          caches full of something else
//
// Counter memcpy%: memcpy's time / the op's, the median over adjacent slices; the bytes of the
// matrix count once for both. Each has an output of its own: what writes past the caches takes the
// other's out of them. Results whose tile has no function on this CPU are not there.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/google_benchmark.h"
#include "bench/in_turns.h"
#include "bench/machine.h"
#include "ukernel/internal.h"

namespace uk::bench {
namespace {

constexpr char kHelp[] =
    "Times pack and unpack against memcpy of the same bytes.\n"
    "\n"
    "  --level=LEVEL   tiles of this level and those below it; the CPU's best by default\n"
    "  --small-pages   buffers in pages of 4 KiB instead of large ones\n"
    "\n"
    "Exit codes: 0; 2 a wrong option; 77 this CPU lacks the level. The options below are Google\n"
    "Benchmark's.\n\n";

constexpr double kSecondsPerBenchmark = 0.02;
constexpr size_t kMinPairs = 3;

struct Width {
  const char* name;
  uint32_t type;
  int bits;
};
constexpr Width kWidths[] = {{"x4", UK_PACK_TYPE_I4, 4},
                             {"x8", UK_PACK_TYPE_I8, 8},
                             {"x16", UK_PACK_TYPE_F16, 16},
                             {"x32", UK_PACK_TYPE_F32, 32},
                             {"x64", UK_PACK_TYPE_F64, 64}};

struct Order {
  const char* name;
  uint32_t flags;
};
constexpr Order kOrders[] = {{"n", 0},
                             {"i", UK_PACK_TRANSPOSE_INNER},
                             {"o", UK_PACK_TRANSPOSE_OUTER},
                             {"io", UK_PACK_TRANSPOSE_INNER | UK_PACK_TRANSPOSE_OUTER}};

struct Tile {
  uk_index_t tile0, tile1;
};
// N0 x K0 of weights, M0 x K0 of a narrow LHS and of one in the tiles of most rows, M0 x N0 of
// results.
constexpr Tile kTiles[] = {{1, 1},  {4, 1},  {8, 1},  {13, 1},  {16, 1}, {32, 1},  {1, 2},
                           {4, 2},  {8, 2},  {13, 2}, {16, 2},  {32, 2}, {1, 4},   {4, 4},
                           {8, 4},  {13, 4}, {16, 4}, {32, 4},  {8, 8},  {16, 8},  {32, 8},
                           {1, 16}, {4, 16}, {8, 16}, {16, 16}, {8, 32}, {16, 32}, {1, 64}};

// Rows a power of two apart, like those of most real matrices.
struct Size {
  const char* name;
  size_t bytes, row_bytes;
};
constexpr Size kSizes[] = {{"256KiB", 256u << 10, 4u << 10},
                           {"4MiB", 4u << 20, 4u << 10},
                           {"256MiB", 256u << 20, 16u << 10}};
constexpr size_t kBufferBytes = 3 * kSizes[2].bytes;

struct Free {
  void operator()(char* memory) const { std::free(memory); }
};
using Buffers = std::unique_ptr<char, Free>;

// What is read, what the op writes right behind it, and then what memcpy does; there the last tiles
// of 13 rows end, too.
Buffers buffers(bool small_pages) {
  constexpr size_t kLargePage = 2u << 20;
  void* const p = std::aligned_alloc(kLargePage, kBufferBytes);
  if (!p) {
    std::fprintf(stderr, "No memory for buffers of %zu MiB.\n", kBufferBytes >> 20);
    std::exit(1);
  }
  madvise(p, kBufferBytes, small_pages ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
  std::memset(p, 1, kBufferBytes);
  return Buffers(static_cast<char*>(p));
}

struct Case {
  uint32_t op, flags;
  int bits;
  Tile tile;
  size_t bytes, row_bytes;
  const uint64_t* cpu_data;
};

// A tensor's half of the params, for either side of either op.
struct Matrix {
  uk_index_t size0, size1, stride0, stride1;
};
struct Tiles {
  uk_index_t size0, size1, size2, size3, stride0, stride1;
};

Matrix matrix_of(const Case& c) {
  const uk_index_t size0 = static_cast<uk_index_t>(c.bytes / c.row_bytes);
  const uk_index_t size1 = static_cast<uk_index_t>(c.row_bytes * 8) / c.bits;
  return {size0, size1, size1, 1};
}

Tiles tiles_of(const Case& c) {
  const Matrix matrix = matrix_of(c);
  const bool inner = (c.flags & UK_PACK_TRANSPOSE_INNER) != 0;
  const uk_index_t down = ceil_div(matrix.size0, inner ? c.tile.tile1 : c.tile.tile0);
  const uk_index_t across = ceil_div(matrix.size1, inner ? c.tile.tile0 : c.tile.tile1);
  const bool outer = (c.flags & UK_PACK_TRANSPOSE_OUTER) != 0;
  const uk_index_t size0 = outer ? across : down, size1 = outer ? down : across;
  const uk_index_t tile_size = c.tile.tile0 * c.tile.tile1;
  return {size0, size1, c.tile.tile0, c.tile.tile1, size1 * tile_size, tile_size};
}

uk_pack_params_t pack_params(const Case& c, const char* matrix_data, char* tiles_data) {
  const Matrix in = matrix_of(c);
  const Tiles out = tiles_of(c);
  uk_pack_params_t p = {};
  p.struct_size = sizeof(p);
  p.flags = c.flags;
  p.cpu_data = c.cpu_data;
  p.in = matrix_data, p.in_size0 = in.size0, p.in_size1 = in.size1;
  p.in_stride0 = in.stride0, p.in_stride1 = in.stride1;
  p.out = tiles_data, p.out_size0 = out.size0, p.out_size1 = out.size1;
  p.out_size2 = out.size2, p.out_size3 = out.size3;
  p.out_stride0 = out.stride0, p.out_stride1 = out.stride1;
  return p;
}

uk_unpack_params_t unpack_params(const Case& c, const char* tiles_data, char* matrix_data) {
  const Tiles in = tiles_of(c);
  const Matrix out = matrix_of(c);
  uk_unpack_params_t p = {};
  p.struct_size = sizeof(p);
  p.flags = c.flags;
  p.cpu_data = c.cpu_data;
  p.in = tiles_data, p.in_size0 = in.size0, p.in_size1 = in.size1;
  p.in_size2 = in.size2, p.in_size3 = in.size3;
  p.in_stride0 = in.stride0, p.in_stride1 = in.stride1;
  p.out = matrix_data, p.out_size0 = out.size0, p.out_size1 = out.size1;
  p.out_stride0 = out.stride0, p.out_stride1 = out.stride1;
  return p;
}

uk_status_t run_op(const Case& c, const char* from, char* to) {
  if (c.op == UK_OP_PACK) {
    const uk_pack_params_t p = pack_params(c, from, to);
    return uk_pack(&p);
  }
  const uk_unpack_params_t p = unpack_params(c, from, to);
  return uk_unpack(&p);
}

void bench_copy(benchmark::State& state, const Case& c, char* memory) {
  char* const from = memory;
  char* const to = memory + c.bytes;
  char* const copied_to = to + c.bytes;
  const auto op = [&](uint64_t n) {
    for (; n > 0; --n) {
      const uk_status_t status = run_op(c, from, to);
      if (status != UK_STATUS_OK) state.SkipWithError(uk_status_string(status));
    }
  };
  const auto copy = [&](uint64_t n) {
    for (; n > 0; --n) {
      std::memcpy(copied_to, from, c.bytes);
      benchmark::ClobberMemory();
    }
  };
  for (auto _ : state) {
    const Pair pair = time_in_turns(op, copy, kSecondsPerBenchmark, kMinPairs);
    state.SetIterationTime(pair.seconds);
    state.counters["memcpy%"] = 100 * pair.speed;
    state.SetBytesProcessed(static_cast<int64_t>(c.bytes));
  }
}

// Whether the op has a tile function for it: four-bit elements that keep their order are bytes.
bool has_tile(uint32_t op, const Width& width, const Order& order, Tile tile,
              const uint64_t* cpu_data) {
  uint32_t type = width.type;
  uk_index_t tile1 = tile.tile1;
  if (width.bits == 4 && !(order.flags & UK_PACK_TRANSPOSE_INNER)) {
    if (tile1 % 2 != 0) return false;
    type = UK_PACK_TYPE_I8;
    tile1 /= 2;
  }
  return select_tile(op, type | (order.flags & UK_PACK_TRANSPOSE_INNER),
                     static_cast<int32_t>(tile.tile0), static_cast<int32_t>(tile1), 0, cpu_data);
}

void register_benchmarks(const uint64_t* cpu_data, char* memory) {
  for (const uint32_t op : {UK_OP_PACK, UK_OP_UNPACK}) {
    for (const Width& width : kWidths) {
      for (const Tile& tile : kTiles) {
        for (const Order& order : kOrders) {
          if (!has_tile(op, width, order, tile, cpu_data)) continue;
          for (const Size& size : kSizes) {
            const std::string name = std::string(op == UK_OP_PACK ? "pack/" : "unpack/") +
                                     width.name + "/" + std::to_string(tile.tile0) + "x" +
                                     std::to_string(tile.tile1) + "/" + order.name + "/" +
                                     size.name;
            const Case c = {op,         width.type | order.flags, width.bits, tile,
                            size.bytes, size.row_bytes,           cpu_data};
            benchmark::RegisterBenchmark(name.c_str(), bench_copy, c, memory)
                ->UseManualTime()
                ->Iterations(1);
          }
        }
      }
    }
  }
}

int run(int argc, char** argv) {
  std::vector<char*> arguments;
  const char* level = nullptr;
  bool small_pages = false;
  for (int i = 0; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) std::fputs(kHelp, stdout);
    if (const char* value = value_of(argv[i], "--level=")) {
      level = value;
    } else if (std::strcmp(argv[i], "--small-pages") == 0) {
      small_pages = true;
    } else {
      arguments.push_back(argv[i]);
    }
  }
  if (!initialize(std::move(arguments))) return 2;

  uint64_t host[UK_CPU_DATA_FIELDS] = {}, wanted[UK_CPU_DATA_FIELDS] = {};
  if (uk_cpu_detect(host, UK_CPU_DATA_FIELDS) != UK_STATUS_OK) return 1;
  if (level) {
    if (uk_cpu_level(level, wanted, UK_CPU_DATA_FIELDS) != UK_STATUS_OK) {
      std::fprintf(stderr, "%s: no level '%s'.\n", argv[0], level);
      return 2;
    }
    if (!uk_cpu_has_level(level, host)) {
      std::fprintf(stderr, "%s: this CPU does not have %s; nothing measured.\n", argv[0], level);
      return 77;
    }
  }
  benchmark::AddCustomContext("cpu", cpu_name());
  const Buffers memory = buffers(small_pages);
  register_benchmarks(level ? wanted : host, memory.get());
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace uk::bench

int main(int argc, char** argv) { return uk::bench::run(argc, argv); }
