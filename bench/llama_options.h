// The command line of llama_layers.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_LLAMA_OPTIONS_H_
#define UKERNEL_BENCH_LLAMA_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bench/llama_model.h"
#include "ukernel/ukernel.h"

namespace uk::bench {

struct Options {
  std::vector<const Type*> types;
  std::vector<const Product*> products;
  std::vector<int64_t> m;
  std::string level;  // empty: all that the CPU has
  uint64_t cpu_data[UK_CPU_DATA_FIELDS] = {};
  int threads = 1;
  int64_t repeat = 3;
  bool json = false;
  std::string json_path;  // empty: standard output
};

// Does not return if the command line is wrong (one line on stderr, exit code 2) or asks for help.
Options parse_options(int argc, char** argv);

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_LLAMA_OPTIONS_H_
