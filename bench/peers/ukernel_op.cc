// Query, pack, mmt4d, unpack; callers split N.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "bench/peers/ukernel_op.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "bench/machine.h"
#include "bench/threads.h"
#include "ukernel/internal.h"

namespace uk::bench {
namespace {

// Of an element that is only copied the width is all that matters.
uint32_t pack_type_of(int bits) {
  switch (bits) {
    case 4:
      return UK_PACK_TYPE_I4;
    case 8:
      return UK_PACK_TYPE_I8;
    case 16:
      return UK_PACK_TYPE_I16;
    default:
      return UK_PACK_TYPE_I32;
  }
}

// The shapes and types have been checked by `make`: what fails here is a bug.
void must(uk_status_t status) {
  if (status == UK_STATUS_OK) return;
  std::fprintf(stderr, "bench_ops: %s\n", uk_status_string(status));
  std::exit(1);
}

struct Operation {
  uk_problem_t problem;
  Mmt4dType type;
  uk_mmt4d_params_t mmt4d = {};  // of all N; rhs is the first copy
  const uk_tile_row_t* tile = nullptr;
  size_t copy_bytes = 0;
  Buffer lhs, weights, out;
  SpinBarrier barrier;

  explicit Operation(const uk_problem_t& p)
      : problem(p), type(*find_mmt4d_type(p.type)), barrier(p.threads) {}

  bool choose_tile();
  void pack_lhs(int64_t begin, int64_t end);
  void pack_weights(int copy, int64_t begin, int64_t end);
  void unpack(int64_t begin, int64_t end);
  uk_mmt4d_params_t part(int copy, int64_t begin, int64_t end) const;
  void allocate_and_pack();
};

// The part of `count` that a thread has.
struct Range {
  int64_t begin, end;
  Range(int64_t count, int thread, int threads)
      : begin(count * thread / threads), end(count * (thread + 1) / threads) {}
};

// The weights are packed for any M, so their tile is chosen for a large one.
bool Operation::choose_tile() {
  const uk_problem_t& p = problem;
  uk_tile_sizes_t sizes = {};
  if (uk_query_tile_sizes(p.type, 0, p.n, p.k, nullptr, p.cpu_data, &sizes)) return false;
  const uk_tile_sizes_t fixed = {0, sizes.n0, sizes.k0};
  if (uk_query_tile_sizes(p.type, p.m, p.n, p.k, &fixed, p.cpu_data, &sizes)) return false;
  mmt4d.struct_size = sizeof(mmt4d);
  mmt4d.m = ceil_div(p.m, sizes.m0), mmt4d.m0 = sizes.m0;
  mmt4d.n = ceil_div(p.n, sizes.n0), mmt4d.n0 = sizes.n0;
  mmt4d.k = ceil_div(p.k, sizes.k0), mmt4d.k0 = sizes.k0;
  mmt4d.lhs_stride0 = mmt4d.k * sizes.m0 * sizes.k0;
  mmt4d.rhs_stride0 = mmt4d.k * sizes.n0 * sizes.k0;
  mmt4d.out_stride0 = mmt4d.n * sizes.m0 * sizes.n0;
  mmt4d.flags = p.type;
  mmt4d.cpu_data = p.cpu_data;
  return uk_mmt4d_info(&mmt4d, &tile) == UK_STATUS_OK;
}

void Operation::allocate_and_pack() {
  const auto bytes = [](int64_t elements, int bits) {
    return static_cast<size_t>(elements * bits / 8);
  };
  copy_bytes = round_up(bytes(mmt4d.n * mmt4d.rhs_stride0, type.rhs_bits), 64);
  mmt4d.lhs = lhs.reserve(bytes(mmt4d.m * mmt4d.lhs_stride0, type.lhs_bits));
  mmt4d.rhs = weights.reserve(copy_bytes * static_cast<size_t>(problem.copies));
  mmt4d.out = out.reserve(bytes(mmt4d.m * mmt4d.out_stride0, type.out_bits));
  pack_lhs(0, mmt4d.m);
  for (int copy = 0; copy < problem.copies; ++copy) pack_weights(copy, 0, mmt4d.n);
}

void Operation::pack_lhs(int64_t begin, int64_t end) {
  uk_pack_params_t params = {};
  params.struct_size = sizeof(params);
  params.in = problem.lhs;
  params.in_offset = begin * mmt4d.m0 * problem.k;
  params.in_stride0 = problem.k;
  params.in_stride1 = 1;
  params.in_size0 = std::min(end * mmt4d.m0, problem.m) - begin * mmt4d.m0;
  params.in_size1 = problem.k;
  params.out = lhs.data();
  params.out_offset = begin * mmt4d.lhs_stride0;
  params.out_stride0 = mmt4d.lhs_stride0;
  params.out_stride1 = int64_t{mmt4d.m0} * mmt4d.k0;
  params.out_size0 = end - begin;
  params.out_size1 = mmt4d.k;
  params.out_size2 = mmt4d.m0;
  params.out_size3 = mmt4d.k0;
  params.flags = pack_type_of(type.lhs_bits);
  params.cpu_data = problem.cpu_data;
  must(uk_pack(&params));
}

void Operation::pack_weights(int copy, int64_t begin, int64_t end) {
  const int64_t rows = std::min(end * mmt4d.n0, problem.n) - begin * mmt4d.n0;
  const bool transposed = problem.weights_are_k_by_n != 0;
  uk_pack_params_t params = {};
  params.struct_size = sizeof(params);
  params.in = problem.weights;
  params.in_offset = begin * mmt4d.n0 * (transposed ? 1 : problem.k);
  params.in_stride0 = transposed ? problem.n : problem.k;
  params.in_stride1 = 1;
  params.in_size0 = transposed ? problem.k : rows;
  params.in_size1 = transposed ? rows : problem.k;
  params.out = weights.data() + static_cast<size_t>(copy) * copy_bytes;
  params.out_offset = begin * mmt4d.rhs_stride0;
  params.out_stride0 = mmt4d.rhs_stride0;
  params.out_stride1 = int64_t{mmt4d.n0} * mmt4d.k0;
  params.out_size0 = end - begin;
  params.out_size1 = mmt4d.k;
  params.out_size2 = mmt4d.n0;
  params.out_size3 = mmt4d.k0;
  params.flags = pack_type_of(type.rhs_bits);
  if (transposed) params.flags |= UK_PACK_TRANSPOSE_INNER | UK_PACK_TRANSPOSE_OUTER;
  params.cpu_data = problem.cpu_data;
  must(uk_pack(&params));
}

void Operation::unpack(int64_t begin, int64_t end) {
  uk_unpack_params_t params = {};
  params.struct_size = sizeof(params);
  params.in = out.data();
  params.in_offset = begin * mmt4d.m0 * mmt4d.n0;
  params.in_stride0 = mmt4d.out_stride0;
  params.in_stride1 = int64_t{mmt4d.m0} * mmt4d.n0;
  params.in_size0 = mmt4d.m;
  params.in_size1 = end - begin;
  params.in_size2 = mmt4d.m0;
  params.in_size3 = mmt4d.n0;
  params.out = problem.out;
  params.out_offset = begin * mmt4d.n0;
  params.out_stride0 = problem.n;
  params.out_stride1 = 1;
  params.out_size0 = problem.m;
  params.out_size1 = std::min(end * mmt4d.n0, problem.n) - begin * mmt4d.n0;
  params.flags = pack_type_of(type.out_bits);
  params.cpu_data = problem.cpu_data;
  must(uk_unpack(&params));
}

uk_mmt4d_params_t Operation::part(int copy, int64_t begin, int64_t end) const {
  uk_mmt4d_params_t params = mmt4d;
  params.rhs = weights.data() + static_cast<size_t>(copy) * copy_bytes;
  params.rhs_offset = begin * mmt4d.rhs_stride0;
  params.out_offset = begin * mmt4d.m0 * mmt4d.n0;
  params.n = end - begin;
  return params;
}

Operation& as_operation(void* operation) { return *static_cast<Operation*>(operation); }

void* make(const uk_problem_t* problem) {
  auto operation = std::make_unique<Operation>(*problem);
  if (!operation->choose_tile()) return nullptr;
  operation->allocate_and_pack();
  return operation.release();
}

void run(void* operation, int copy, int thread) {
  Operation& op = as_operation(operation);
  const int threads = op.problem.threads;
  const Range columns(op.mmt4d.n, thread, threads);
  if (op.problem.form == UK_FORM_WHOLE) op.pack_weights(copy, columns.begin, columns.end);
  if (op.problem.form != UK_FORM_PACKED) {
    const Range rows(op.mmt4d.m, thread, threads);
    if (rows.begin < rows.end) op.pack_lhs(rows.begin, rows.end);
    op.barrier.wait();  // every thread reads all of the LHS
  }
  const uk_mmt4d_params_t params = op.part(copy, columns.begin, columns.end);
  must(uk_mmt4d(&params));
  if (op.problem.form != UK_FORM_PACKED) op.unpack(columns.begin, columns.end);
}

void write_out(void* operation) {
  Operation& op = as_operation(operation);
  if (op.problem.form == UK_FORM_PACKED) op.unpack(0, op.mmt4d.n);
}

void destroy(void* operation) { delete static_cast<Operation*>(operation); }

void* make_naive(const uk_problem_t* problem) {
  return problem->form == UK_FORM_PACKED ? make(problem) : nullptr;
}

void run_naive(void* operation, int copy, int thread) {
  const Operation& op = as_operation(operation);
  const Range columns(op.mmt4d.n, thread, op.problem.threads);
  const uk_mmt4d_params_t p = op.part(copy, columns.begin, columns.end);
  const auto tile = reinterpret_cast<uk_mmt4d_tile_fn*>(op.tile->function);
  const auto at = [](const void* base, int64_t element, int bits) {
    return static_cast<const char*>(base) + element * bits / 8;
  };
  for (int64_t i = 0; i < p.m; ++i) {
    char* const out_row =
        static_cast<char*>(p.out) + (p.out_offset + i * p.out_stride0) * op.type.out_bits / 8;
    const char* const lhs = at(p.lhs, i * p.lhs_stride0, op.type.lhs_bits);
    for (int64_t j = 0; j < p.n; ++j) {
      tile(out_row + j * p.m0 * p.n0 * op.type.out_bits / 8, lhs,
           at(p.rhs, p.rhs_offset + j * p.rhs_stride0, op.type.rhs_bits), p.k, 0);
    }
  }
}

}  // namespace

const uk_contestant_t kUkernel = {"ukernel", "", 1, make, run, write_out, destroy};
const uk_contestant_t kNaive = {"naive", "", 1, make_naive, run_naive, write_out, destroy};

const uk_tile_row_t* tile_of(const void* operation) {
  return static_cast<const Operation*>(operation)->tile;
}

}  // namespace uk::bench
