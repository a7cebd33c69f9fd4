// Every tile of one ISA level against what the machine can do; one binary per level.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_TILE_BENCH_H_
#define UKERNEL_BENCH_TILE_BENCH_H_

namespace uk::bench {

// Runs the benchmarks of the level's rows and returns the process's exit code, which --help lists.
int run_tile_bench(const char* arch, const char* isa, int argc, char** argv);

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_TILE_BENCH_H_
