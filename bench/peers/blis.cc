// BLIS, by its typed interface: it has a stride for rows and one for columns.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <blis.h>

#include "bench/peers/sgemm.h"

namespace {

void set_threads(int threads) { bli_thread_set_num_threads(threads); }

void multiply(const uk_problem_t& p, const float* lhs, const float* weights, float* out) {
  float one = 1, zero = 0;
  // The interface takes pointers to what it does not write.
  bli_sgemm(BLIS_NO_TRANSPOSE, BLIS_NO_TRANSPOSE, p.m, p.n, p.k, &one, const_cast<float*>(lhs), p.k,
            1, const_cast<float*>(weights), p.weights_are_k_by_n ? p.n : 1,
            p.weights_are_k_by_n ? 1 : p.k, &zero, out, p.n, 1);
}

}  // namespace

extern "C" const uk_contestant_t* uk_contestant() {
  static const uk_contestant_t contestant =
      uk::bench::sgemm_contestant<set_threads, multiply>("blis", bli_info_get_version_str());
  return &contestant;
}
