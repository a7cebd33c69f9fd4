// OpenBLAS.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <cblas.h>

#include "bench/peers/sgemm.h"

namespace {

void set_threads(int threads) { openblas_set_num_threads(threads); }

void multiply(const uk_problem_t& p, const float* lhs, const float* weights, float* out) {
  const auto m = static_cast<blasint>(p.m), n = static_cast<blasint>(p.n),
             k = static_cast<blasint>(p.k);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, p.weights_are_k_by_n ? CblasNoTrans : CblasTrans, m, n,
              k, 1, lhs, k, weights, p.weights_are_k_by_n ? n : k, 0, out, n);
}

}  // namespace

extern "C" const uk_contestant_t* uk_contestant() {
  static const uk_contestant_t contestant =
      uk::bench::sgemm_contestant<set_threads, multiply>("openblas", UK_PEER_VERSION);
  return &contestant;
}
