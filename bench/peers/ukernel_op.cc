// Query, pack, mmt4d, unpack; callers split N.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "bench/peers/ukernel_op.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "bench/machine.h"
#include "bench/packed_product.h"
#include "bench/threads.h"
#include "ukernel/internal.h"

namespace uk::bench {
namespace {

// The shapes and types have been checked by `make`: what fails here is a bug.
void must(uk_status_t status) {
  if (status == UK_STATUS_OK) return;
  std::fprintf(stderr, "bench_ops: %s\n", uk_status_string(status));
  std::exit(1);
}

// Weights that are packed for one product are multiplied in blocks of as many bytes, which stay in
// the caches meanwhile.
constexpr int64_t kPackedBlockBytes = 4 << 20;

struct Range {  // of tiles
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

struct Operation {
  uk_problem_t problem;
  Mmt4dType type;
  Packing lhs = {}, rhs = {};
  uk_mmt4d_params_t mmt4d = {};
  Result result = {};
  const uk_tile_row_t* tile = nullptr;
  size_t copy_bytes = 0;
  Buffer packed_lhs, packed_weights, packed_out;
  SpinBarrier barrier;

  explicit Operation(const uk_problem_t& p)
      : problem(p), type(*find_mmt4d_type(p.type)), barrier(p.threads) {}

  bool choose_tile();
  void allocate_and_pack();
  char* copy(int index) const {
    return packed_weights.data() + static_cast<size_t>(index) * copy_bytes;
  }
  int64_t panel_bytes() const { return rhs.panel() * type.rhs_bits / 8; }
  uk_mmt4d_params_t with_copy(int index) const {
    uk_mmt4d_params_t params = mmt4d;
    params.rhs = copy(index);
    return params;
  }
};

// The weights are packed for any M, so their tile is chosen for a large one.
bool Operation::choose_tile() {
  const uk_problem_t& p = problem;
  uk_tile_sizes_t sizes = {};
  if (uk_query_tile_sizes(p.type, 0, p.n, p.k, nullptr, p.cpu_data, &sizes)) return false;
  const uk_tile_sizes_t fixed = {0, sizes.n0, sizes.k0};
  if (uk_query_tile_sizes(p.type, p.m, p.n, p.k, &fixed, p.cpu_data, &sizes)) return false;
  const bool transposed = p.weights_are_k_by_n != 0;
  const Operand activations = {p.m, p.k, 0, p.k, 1};
  const Operand weights = {p.n, p.k, 0, transposed ? 1 : p.k, transposed ? p.n : 1};
  lhs = {activations, 1, sizes.m0, sizes.k0, pack_row_type(type.lhs_bits)};
  rhs = {weights, 1, sizes.n0, sizes.k0, pack_row_type(type.rhs_bits)};
  result = {1, p.m, p.n, 0, p.n, pack_row_type(type.out_bits)};
  mmt4d = mmt4d_params(lhs, rhs, p.type, p.cpu_data);
  return uk_mmt4d_info(&mmt4d, &tile) == UK_STATUS_OK;
}

void Operation::allocate_and_pack() {
  const auto bytes = [](int64_t elements, int bits) {
    return static_cast<size_t>(elements * bits / 8);
  };
  copy_bytes = round_up(bytes(rhs.elements(), type.rhs_bits), 64);
  mmt4d.lhs = packed_lhs.reserve(bytes(lhs.elements(), type.lhs_bits));
  if (problem.form == UK_FORM_PACKED) {
    mmt4d.out = packed_out.reserve(bytes(mmt4d.m * mmt4d.out_stride0, type.out_bits));
  }
  packed_weights.reserve(copy_bytes * static_cast<size_t>(problem.copies));
  must(pack_part(lhs, problem.lhs, packed_lhs.data(), problem.cpu_data, 0, 1));
  for (int index = 0; index < problem.copies; ++index) {
    must(pack_part(rhs, problem.weights, copy(index), problem.cpu_data, 0, 1));
  }
}

Operation& as_operation(void* operation) { return *static_cast<Operation*>(operation); }

// In elements.
int64_t columns_of(const Operation& op, const Range& tiles) {
  return std::min(tiles.end * op.mmt4d.n0, op.problem.n) - tiles.begin * op.mmt4d.n0;
}

void* make(const uk_problem_t* problem) {
  auto operation = std::make_unique<Operation>(*problem);
  if (!operation->choose_tile()) return nullptr;
  operation->allocate_and_pack();
  return operation.release();
}

void pack_columns(const Operation& op, const Range& columns, char* packed) {
  Packing rhs = op.rhs;
  rhs.from.rows = columns_of(op, columns);
  const int64_t first = columns.begin * rhs.tile_rows * rhs.from.row_stride;
  must(pack_part(rhs, at(op.problem.weights, first, op.type.rhs_bits), packed, op.problem.cpu_data,
                 0, 1));
}

void multiply(const Operation& op, const Range& columns, const char* packed_weights) {
  const uk_problem_t& p = op.problem;
  uk_mmt4d_params_t params = op.mmt4d;
  params.flags |= UK_MMT4D_UNPACK_OUT;
  params.rhs = packed_weights;
  params.n = columns.size();
  params.out = p.out;
  params.out_offset = columns.begin * params.n0;
  params.out_stride0 = p.n;
  params.out_size0 = p.m;
  params.out_size1 = columns_of(op, columns);
  must(uk_mmt4d(&params));
}

void run(void* operation, int copy, int thread) {
  Operation& op = as_operation(operation);
  const uk_problem_t& p = op.problem;
  if (p.form == UK_FORM_PACKED) return must(mmt4d_part(op.with_copy(copy), 1, thread, p.threads));
  must(pack_part(op.lhs, p.lhs, op.packed_lhs.data(), p.cpu_data, thread, p.threads));
  op.barrier.wait();  // every thread reads all of it
  const Range columns = {op.mmt4d.n * thread / p.threads, op.mmt4d.n * (thread + 1) / p.threads};
  char* const weights = op.copy(copy) + columns.begin * op.panel_bytes();
  if (p.form != UK_FORM_WHOLE) return multiply(op, columns, weights);
  const int64_t block = ceil_div(kPackedBlockBytes, op.panel_bytes());
  for (int64_t j = columns.begin; j < columns.end; j += block) {
    const Range some = {j, std::min(j + block, columns.end)};
    pack_columns(op, some, weights);
    multiply(op, some, weights);
  }
}

void write_out(void* operation) {
  const Operation& op = as_operation(operation);
  if (op.problem.form == UK_FORM_PACKED) {
    must(unpack_part(op.mmt4d, op.result, op.problem.out, 0, 1));
  }
}

void destroy(void* operation) { delete static_cast<Operation*>(operation); }

void* make_naive(const uk_problem_t* problem) {
  return problem->form == UK_FORM_PACKED ? make(problem) : nullptr;
}

void run_naive(void* operation, int copy, int thread) {
  const Operation& op = as_operation(operation);
  const uk_mmt4d_params_t p = op.with_copy(copy);
  const auto tile = reinterpret_cast<uk_mmt4d_tile_fn*>(op.tile->function);
  const auto bytes = [](int64_t elements, int bits) { return elements * bits / 8; };
  const int64_t lhs_panel = bytes(p.lhs_stride0, op.type.lhs_bits),
                rhs_panel = bytes(p.rhs_stride0, op.type.rhs_bits),
                out_row = bytes(p.out_stride0, op.type.out_bits),
                out_tile = bytes(int64_t{p.m0} * p.n0, op.type.out_bits);
  const int64_t begin = p.n * thread / op.problem.threads,
                end = p.n * (thread + 1) / op.problem.threads;
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = begin; j < end; ++j) {
      tile(static_cast<char*>(p.out) + i * out_row + j * out_tile,
           static_cast<const char*>(p.lhs) + i * lhs_panel,
           static_cast<const char*>(p.rhs) + j * rhs_panel, p.k, 0);
    }
  }
}

}  // namespace

const uk_contestant_t kUkernel = {"ukernel", "", 1, make, run, write_out, destroy};
const uk_contestant_t kNaive = {"naive", "", 1, make_naive, run_naive, write_out, destroy};

const uk_tile_row_t* tile_of(const void* operation) {
  return static_cast<const Operation*>(operation)->tile;
}

void pack_weights(void* operation) {
  const Operation& op = as_operation(operation);
  must(pack_part(op.rhs, op.problem.weights, op.copy(0), op.problem.cpu_data, 0, 1));
}

PackedWeights packed_weights_of(const void* operation) {
  const auto& op = *static_cast<const Operation*>(operation);
  return {op.packed_weights.data(), op.copy_bytes, op.problem.copies};
}

}  // namespace uk::bench
