// A library with cblas_sgemm as a contestant. It has nothing to pack ahead: every form is one call.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_PEERS_CBLAS_H_
#define UKERNEL_BENCH_PEERS_CBLAS_H_

#include <cblas.h>

#include <vector>

#include "bench/peers/contestant.h"
#include "ukernel/ukernel.h"

namespace uk::bench {

struct Sgemm {
  uk_problem_t problem;
  std::vector<std::vector<float>> copies;  // of the weights, but for the first
};

inline void* make_sgemm(const uk_problem_t* problem, void (*set_threads)(int)) {
  if (problem->type != UK_MMT4D_TYPE_F32F32F32) return nullptr;
  set_threads(problem->threads);
  const auto* weights = static_cast<const float*>(problem->weights);
  const std::vector<float> copy(weights, weights + problem->n * problem->k);
  return new Sgemm{*problem, std::vector<std::vector<float>>(problem->copies - 1, copy)};
}

inline void run_sgemm(void* operation, int copy, int) {
  const Sgemm& op = *static_cast<Sgemm*>(operation);
  const uk_problem_t& p = op.problem;
  const auto* lhs = static_cast<const float*>(p.lhs);
  const auto* weights =
      copy == 0 ? static_cast<const float*>(p.weights) : op.copies[copy - 1].data();
  cblas_sgemm(CblasRowMajor, CblasNoTrans, p.weights_are_k_by_n ? CblasNoTrans : CblasTrans, p.m,
              p.n, p.k, 1.0f, lhs, p.k, weights, p.weights_are_k_by_n ? p.n : p.k, 0.0f,
              static_cast<float*>(p.out), p.n);
}

inline void write_sgemm(void*) {}

inline void destroy_sgemm(void* operation) { delete static_cast<Sgemm*>(operation); }

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_PEERS_CBLAS_H_
