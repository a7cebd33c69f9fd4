// Several threads inside one op, each with a part of M1, of N1 or of a matrix: no race, and the
// same bits as one thread alone.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <functional>
#include <thread>

#include "tests/ops/harness.h"

namespace uk_test {
namespace {

constexpr int kThreads = 4;

// Calls part(0) to part(kThreads - 1) at once.
void run_threads(const std::function<void(int)>& part) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(part, i);
  for (std::thread& thread : threads) thread.join();
}

class Mmt4dThreads : public ::testing::TestWithParam<std::string> {};

TEST_P(Mmt4dThreads, SplitMAndN) {
  UK_SKIP_WITHOUT_LEVEL(GetParam());
  const CpuData cpu = level_cpu_data(GetParam());
  for (const uint32_t type : {UK_MMT4D_TYPE_F32F32F32, UK_MMT4D_TYPE_S8S8S32,
                              UK_MMT4D_TYPE_BF16BF16F32, UK_MMT4D_TYPE_F16F16F16}) {
    const MatmulType& matmul = *uk_conformance::find_matmul_type(type);
    uk_mmt4d_params_t p = {};
    p.struct_size = sizeof(p);
    p.flags = type | UK_MMT4D_ALLOW_GENERIC_FALLBACK;
    p.cpu_data = cpu.data();
    uk_tile_sizes_t tile = {};
    ASSERT_EQ(UK_STATUS_OK, uk_query_tile_sizes(p.flags, 64, 64, 64, nullptr, cpu.data(), &tile));
    p.m = 2 * kThreads;
    p.n = 3 * kThreads;
    p.k = 40;
    p.m0 = tile.m0;
    p.n0 = tile.n0;
    p.k0 = tile.k0;
    p.lhs_stride0 = p.k * p.m0 * p.k0;
    p.rhs_stride0 = p.k * p.n0 * p.k0;
    p.out_stride0 = p.n * p.m0 * p.n0;
    // Any bits will do where both sides run the same code, but no NaN: its payload is free.
    const auto operand = [](uk_index_t elements, int bits, uint64_t seed) {
      Bytes bytes = random_bytes(bytes_of(elements, bits), seed);
      for (uint8_t& byte : bytes) byte &= 0x3F;
      return bytes;
    };
    const Bytes lhs = operand(p.m * p.lhs_stride0, bits_of(matmul.lhs), 1);
    const Bytes rhs = operand(p.n * p.rhs_stride0, bits_of(matmul.rhs), 2);
    const int out_bits = bits_of(matmul.out);
    const Bytes before = operand(p.m * p.out_stride0, out_bits, 3);
    p.lhs = lhs.data();
    p.rhs = rhs.data();
    p.flags |= UK_MMT4D_ACCUMULATE;

    Bytes alone = before;
    p.out = alone.data();
    ASSERT_EQ(UK_STATUS_OK, uk_mmt4d(&p));
    ASSERT_NE(before, alone);

    Bytes by_rows = before, by_columns = before;
    run_threads([&](int i) {
      uk_mmt4d_params_t part = p;
      part.out = by_rows.data();
      part.m = p.m / kThreads;
      part.lhs_offset = i * part.m * p.lhs_stride0;
      part.out_offset = i * part.m * p.out_stride0;
      EXPECT_EQ(UK_STATUS_OK, uk_mmt4d(&part));
    });
    EXPECT_EQ(alone, by_rows) << matmul.name;
    run_threads([&](int i) {
      uk_mmt4d_params_t part = p;
      part.out = by_columns.data();
      part.n = p.n / kThreads;
      part.rhs_offset = i * part.n * p.rhs_stride0;
      part.out_offset = i * part.n * p.m0 * p.n0;
      EXPECT_EQ(UK_STATUS_OK, uk_mmt4d(&part));
    });
    EXPECT_EQ(alone, by_columns) << matmul.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Mmt4dThreads, ::testing::ValuesIn(level_names()),
                         [](const auto& tested) { return tested.param; });

// Packs a matrix in tiles of 16x4, then unpacks it, each thread its rows of tiles.
TEST(PackThreads, SplitRowsOfTiles) {
  const CpuData cpu = host_cpu_data();
  constexpr uk_index_t kRows = 16 * 3 * kThreads, kColumns = 70, kTiles1 = 18;
  const Bytes matrix = random_bytes(kRows * kColumns, 4);
  Bytes alone(kRows * 4 * kTiles1), together(alone.size()), back(matrix.size());
  const auto pack = [&](Bytes& tiles, uk_index_t first, uk_index_t count) {
    uk_pack_params_t p = {};
    p.struct_size = sizeof(p);
    p.in = matrix.data();
    p.in_offset = first * 16 * kColumns;
    p.in_stride0 = kColumns;
    p.in_stride1 = 1;
    p.in_size0 = count * 16;
    p.in_size1 = kColumns;
    p.out = tiles.data();
    p.out_offset = first * 64 * kTiles1;
    p.out_stride0 = 64 * kTiles1;
    p.out_stride1 = 64;
    p.out_size0 = count;
    p.out_size1 = kTiles1;
    p.out_size2 = 16;
    p.out_size3 = 4;
    p.padding_value = 0x77;
    p.flags = UK_PACK_TYPE_I8;
    p.cpu_data = cpu.data();
    EXPECT_EQ(UK_STATUS_OK, uk_pack(&p));
  };
  const auto unpack = [&](uk_index_t first, uk_index_t count) {
    uk_unpack_params_t p = {};
    p.struct_size = sizeof(p);
    p.in = together.data();
    p.in_offset = first * 64 * kTiles1;
    p.in_stride0 = 64 * kTiles1;
    p.in_stride1 = 64;
    p.in_size0 = count;
    p.in_size1 = kTiles1;
    p.in_size2 = 16;
    p.in_size3 = 4;
    p.out = back.data();
    p.out_offset = first * 16 * kColumns;
    p.out_stride0 = kColumns;
    p.out_stride1 = 1;
    p.out_size0 = count * 16;
    p.out_size1 = kColumns;
    p.flags = UK_PACK_TYPE_I8;
    p.cpu_data = cpu.data();
    EXPECT_EQ(UK_STATUS_OK, uk_unpack(&p));
  };
  pack(alone, 0, 3 * kThreads);
  run_threads([&](int i) { pack(together, 3 * i, 3); });
  EXPECT_EQ(alone, together);
  run_threads([&](int i) { unpack(3 * i, 3); });
  EXPECT_EQ(matrix, back);
}

// Selection, the query and the levels keep no state.
TEST(QueryThreads, GiveOneAnswer) {
  const CpuData cpu = host_cpu_data();
  std::vector<std::vector<uk_tile_sizes_t>> answers(kThreads);
  run_threads([&](int i) {
    for (const MatmulType& type : mmt4d_types()) {
      uk_tile_sizes_t sizes = {};
      EXPECT_EQ(UK_STATUS_OK, uk_query_tile_sizes(type.flag | UK_MMT4D_ALLOW_GENERIC_FALLBACK, 17,
                                                  100, 100, nullptr, cpu.data(), &sizes));
      EXPECT_EQ(cpu, host_cpu_data());
      answers[static_cast<size_t>(i)].push_back(sizes);
    }
  });
  for (const auto& answer : answers) {
    ASSERT_EQ(answers[0].size(), answer.size());
    EXPECT_EQ(0, memcmp(answers[0].data(), answer.data(), answer.size() * sizeof(answer[0])));
  }
}

}  // namespace
}  // namespace uk_test
