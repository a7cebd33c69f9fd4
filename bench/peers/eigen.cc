// Eigen, compiled for the CPU that compiles it: it chooses its instructions at compile time.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <Eigen/Core>

#include "bench/peers/sgemm.h"

namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using In = Eigen::Map<const Matrix>;

void multiply(const uk_problem_t& p, const float* lhs, const float* weights, float* out) {
  Eigen::Map<Matrix> product(out, p.m, p.n);
  if (p.weights_are_k_by_n) {
    product.noalias() = In(lhs, p.m, p.k) * In(weights, p.k, p.n);
  } else {
    product.noalias() = In(lhs, p.m, p.k) * In(weights, p.n, p.k).transpose();
  }
}

}  // namespace

extern "C" const uk_contestant_t* uk_contestant() {
  static const uk_contestant_t contestant =
      uk::bench::sgemm_contestant<Eigen::setNbThreads, multiply>("eigen", UK_PEER_VERSION);
  return &contestant;
}
