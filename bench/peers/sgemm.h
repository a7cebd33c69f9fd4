// A library that multiplies unpacked f32 matrices, as a contestant. It has nothing to pack ahead:
// every form is one call.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_PEERS_SGEMM_H_
#define UKERNEL_BENCH_PEERS_SGEMM_H_

#include <vector>

#include "bench/peers/contestant.h"
#include "ukernel/ukernel.h"

namespace uk::bench {

struct Sgemm {
  uk_problem_t problem;
  const float *lhs, *weights;
  float* out;
  std::vector<std::vector<float>> copies;  // of the weights, but for the first

  const float* copy(int index) const { return index == 0 ? weights : copies[index - 1].data(); }
};

// kMultiply(problem, lhs, weights, out)
template <void (*kSetThreads)(int),
          void (*kMultiply)(const uk_problem_t&, const float*, const float*, float*)>
uk_contestant_t sgemm_contestant(const char* name, const char* version) {
  uk_contestant_t contestant = {};
  contestant.name = name;
  contestant.version = version;
  contestant.callers_split = 0;
  contestant.make = [](const uk_problem_t* problem) -> void* {
    if (problem->type != UK_MMT4D_TYPE_F32F32F32) return nullptr;
    kSetThreads(problem->threads);
    auto* op = new Sgemm{*problem,
                         static_cast<const float*>(problem->lhs),
                         static_cast<const float*>(problem->weights),
                         static_cast<float*>(problem->out),
                         {}};
    op->copies.assign(problem->copies - 1, {op->weights, op->weights + problem->n * problem->k});
    return op;
  };
  contestant.run = [](void* operation, int copy, int) {
    const Sgemm& op = *static_cast<Sgemm*>(operation);
    kMultiply(op.problem, op.lhs, op.copy(copy), op.out);
  };
  contestant.write_out = [](void*) {};
  contestant.destroy = [](void* operation) { delete static_cast<Sgemm*>(operation); };
  return contestant;
}

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_PEERS_SGEMM_H_
