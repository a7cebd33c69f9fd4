// OpenBLAS. For the weights in its favourite layout it has none; N x K is what a caller keeps.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <openblas_config.h>

#include "bench/peers/cblas.h"

namespace {

void* make(const uk_problem_t* problem) {
  return uk::bench::make_sgemm(problem, openblas_set_num_threads);
}

const uk_contestant_t kContestant = {"openblas",
                                     OPENBLAS_VERSION,
                                     0,
                                     make,
                                     uk::bench::run_sgemm,
                                     uk::bench::write_sgemm,
                                     uk::bench::destroy_sgemm};

}  // namespace

extern "C" const uk_contestant_t* uk_contestant() { return &kContestant; }
