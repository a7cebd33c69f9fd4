// The part of a tile benchmark that is compiled once per level.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "bench/tile_bench.h"

int main(int argc, char** argv) {
  return uk::bench::run_tile_bench(UK_BENCH_ARCH, UK_BENCH_ISA, argc, argv);
}
