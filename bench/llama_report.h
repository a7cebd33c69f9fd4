// What llama_layers measured, as a table and as JSON.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_LLAMA_REPORT_H_
#define UKERNEL_BENCH_LLAMA_REPORT_H_

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/llama_model.h"
#include "bench/llama_options.h"
#include "bench/peak.h"

namespace uk::bench {

enum class Outcome { kPassed, kFailed, kNoTile };

struct Row {
  const Product* product = nullptr;
  const Type* type = nullptr;
  int64_t m = 0;
  Outcome outcome = Outcome::kFailed;
  std::string reason;  // of a failure
  const uk_tile_row_t* tile = nullptr;
  int64_t calls = 0;
  double seconds = 0;  // of one uk_mmt4d call, or of the calls for all heads
  double ops_per_second = 0;
  Peak peak = {};  // of the tile's ISA, all threads together; {NULL, 0} where it is unknown
  // Bytes per second; the last two are measured where m is 1.
  double pack_weights = 0, pack_activations = 0, unpack = 0;
  double weight_bandwidth = 0, read_bandwidth = 0;
  Accuracy accuracy;
};

// What holds for the whole run.
struct Setting {
  std::string cpu, levels;
  size_t cache_bytes = 0;   // of the last level; 0 if unknown
  size_t weight_bytes = 0;  // the least that all copies of a layer's weights take together
  bool weights_from_memory = false;
  double memcpy_bytes_per_second = 0;
};

void print_header(const Setting& setting, const Options& options);
void print_row(const Row& row, const Setting& setting);
void print_legend(const std::vector<Row>& rows);

void write_json(std::FILE* file, const Setting& setting, const Options& options,
                const std::vector<Row>& rows);

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_LLAMA_REPORT_H_
