// How far the ops grow the stack, against what ukernel.h promises: each of the table's tiles, on a
// stack whose bytes are known.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <pthread.h>
#include <sys/mman.h>

#include <functional>

#include "tests/ops/harness.h"
#include "ukernel/internal.h"

namespace uk_test {
namespace {

constexpr size_t kPromised = 48 << 10, kPromisedToUnpackOut = 72 << 10;
constexpr size_t kStackBytes = 256 << 10;
constexpr uint8_t kUntouched = 0xA5;

// Runs what it is given on a stack of its own.
class MeasuredStack {
 public:
  MeasuredStack()
      : stack_(static_cast<uint8_t*>(mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    EXPECT_NE(MAP_FAILED, static_cast<void*>(stack_));
  }
  ~MeasuredStack() { munmap(stack_, kStackBytes); }
  MeasuredStack(const MeasuredStack&) = delete;
  MeasuredStack& operator=(const MeasuredStack&) = delete;

  // How many bytes of stack `op` takes below its caller's frame.
  size_t growth(const std::function<uk_status_t()>& op) {
    Run run = {this, &op, 0, UK_STATUS_BAD_ARGUMENT};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    EXPECT_EQ(0, pthread_attr_setstack(&attributes, stack_, kStackBytes));
    pthread_t thread;
    EXPECT_EQ(0, pthread_create(&thread, &attributes, call, &run));
    EXPECT_EQ(0, pthread_join(thread, nullptr));
    pthread_attr_destroy(&attributes);
    EXPECT_EQ(UK_STATUS_OK, run.status);
    return run.growth;
  }

 private:
  struct Run {
    MeasuredStack* stack;
    const std::function<uk_status_t()>* op;
    size_t growth;
    uk_status_t status;
  };

  // The frame of the call lies above everything that is painted; the memset is gone by the time
  // that the op runs.
  static void* call(void* argument) {
    Run& run = *static_cast<Run*>(argument);
    const auto* frame = static_cast<const uint8_t*>(__builtin_frame_address(0));
    uint8_t* const bottom = run.stack->stack_;
    constexpr size_t kOwnFrames = 1024;  // this function's and the memset's
    const auto above = static_cast<size_t>(frame - bottom);
    memset(bottom, kUntouched, above - kOwnFrames);
    run.status = (*run.op)();
    size_t untouched = 0;
    while (untouched < above - kOwnFrames && bottom[untouched] == kUntouched) ++untouched;
    run.growth = above - untouched;
    return nullptr;
  }

  uint8_t* const stack_;
};

class StackAtLevel : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
#ifdef UK_SANITIZED
    GTEST_SKIP() << "instrumented code has other frames";
#endif
    UK_SKIP_WITHOUT_LEVEL(GetParam());
  }
  bool has(const uk_tile_row_t& row) const {
    return row.isa == GetParam() && row.origin != UK_ORIGIN_GENERIC;
  }

  // Of so many tiles each way, for which the op takes more than `least` for itself.
  void check_mmt4d(const uk_tile_row_t& row, uk_index_t m, uk_index_t n, uk_index_t least) {
    const MatmulType& type = *uk_conformance::find_matmul_type(row.flags);
    uk_mmt4d_params_t p = {};
    p.struct_size = sizeof(p);
    p.flags = row.flags;
    p.cpu_data = cpu.data();
    p.m = m;
    p.n = n;
    p.k = 70;
    p.m0 = row.m0;
    p.n0 = row.n0;
    p.k0 = row.k0;
    p.lhs_stride0 = p.k * p.m0 * p.k0;
    p.rhs_stride0 = p.k * p.n0 * p.k0;
    p.out_stride0 = p.n * p.m0 * p.n0;
    const Bytes lhs(bytes_of(p.m * p.lhs_stride0, bits_of(type.lhs)));
    const Bytes rhs(bytes_of(p.n * p.rhs_stride0, bits_of(type.rhs)));
    Bytes out(bytes_of(p.m * p.out_stride0, bits_of(type.out)));
    p.lhs = lhs.data();
    p.rhs = rhs.data();
    p.out = out.data();
    const size_t growth = stack.growth([&] { return uk_mmt4d(&p); });
    EXPECT_LE(growth, kPromised) << row.symbol;
    EXPECT_GT(growth, static_cast<size_t>(least)) << row.symbol;
    p.flags |= UK_MMT4D_UNPACK_OUT;
    p.out_size0 = p.m * p.m0 - p.m0 / 2;
    p.out_size1 = p.n * p.n0 - p.n0 / 2;
    p.out_stride0 = p.out_size1;
    EXPECT_LE(stack.growth([&] { return uk_mmt4d(&p); }), kPromisedToUnpackOut) << row.symbol;
  }

  const CpuData cpu = level_cpu_data(GetParam());
  MeasuredStack stack;
};

// A few tiles each way, the last ones of them in part: so many that the op would decode a panel in
// its stack; and one row of tiles, whose panels a tile may read abreast.
TEST_P(StackAtLevel, Mmt4d) {
  for (const uk_tile_row_t* row : table_rows()) {
    if (row->op != UK_OP_MMT4D || !has(*row)) continue;
    check_mmt4d(*row, 9, 2, uk::on_decoded_rhs_of_row(*row) ? uk::kDecodedBytes : 0);
    check_mmt4d(*row, 1, 6, uk::on_decoded_lhs_of_row(*row) ? uk::kDecodedBytes : 0);
    if (uk::gains_abreast_in_caches(*row)) check_mmt4d(*row, 1, kPanelsAbreast + 1, 0);
  }
}

// As many tiles each way as fill the widest blocks, and a part of one.
TEST_P(StackAtLevel, PackAndUnpack) {
  constexpr uk_index_t kTiles = 40;
  for (const uk_tile_row_t* row : table_rows()) {
    if (row->op == UK_OP_MMT4D || !has(*row)) continue;
    const int bits = uk::pack_type_bits(row->flags);
    const bool transposed = (row->flags & UK_PACK_TRANSPOSE_INNER) != 0;
    const uk_index_t tile = uk_index_t{row->m0} * row->n0;
    const uk_index_t size0 = (kTiles - 1) * (transposed ? row->n0 : row->m0) + 1;
    const uk_index_t size1 = (kTiles - 1) * (transposed ? row->m0 : row->n0) / 2 * 2;
    Bytes matrix(bytes_of(size0 * size1, bits)), tiles(bytes_of(kTiles * kTiles * tile, bits));
    for (const uint32_t outer : {0u, uint32_t{UK_PACK_TRANSPOSE_OUTER}}) {
      const auto fill = [&](auto& p) {
        p.struct_size = sizeof(p);
        p.flags = row->flags | outer;
        p.cpu_data = cpu.data();
      };
      if (row->op == UK_OP_PACK) {
        uk_pack_params_t p = {};
        fill(p);
        p.in = matrix.data();
        p.in_size0 = size0;
        p.in_size1 = p.in_stride0 = size1;
        p.in_stride1 = 1;
        p.out = tiles.data();
        p.out_size0 = p.out_size1 = kTiles;
        p.out_size2 = row->m0;
        p.out_size3 = row->n0;
        p.out_stride0 = kTiles * tile;
        p.out_stride1 = tile;
        EXPECT_LE(stack.growth([&] { return uk_pack(&p); }), kPromised) << row->symbol;
      } else {
        uk_unpack_params_t p = {};
        fill(p);
        p.in = tiles.data();
        p.in_size0 = p.in_size1 = kTiles;
        p.in_size2 = row->m0;
        p.in_size3 = row->n0;
        p.in_stride0 = kTiles * tile;
        p.in_stride1 = tile;
        p.out = matrix.data();
        p.out_size0 = size0;
        p.out_size1 = p.out_stride0 = size1;
        p.out_stride1 = 1;
        EXPECT_LE(stack.growth([&] { return uk_unpack(&p); }), kPromised) << row->symbol;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, StackAtLevel, ::testing::ValuesIn(level_names()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace uk_test
