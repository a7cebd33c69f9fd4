// uk_query_tile_sizes: what it returns is served, honours what is fixed, and suits the sizes.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "tests/ops/harness.h"
#include "ukernel/internal.h"

namespace uk_test {
namespace {

constexpr uint32_t kFallback = UK_MMT4D_ALLOW_GENERIC_FALLBACK;
constexpr uint32_t kSkip = UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS;
constexpr uk_index_t kUnknown = 0;
const uk_tile_sizes_t kUntouched = {-7, -8, -9};

bool operator==(const uk_tile_sizes_t& a, const uk_tile_sizes_t& b) {
  return a.m0 == b.m0 && a.n0 == b.n0 && a.k0 == b.k0;
}

std::string text(const uk_tile_sizes_t& s) {
  return std::to_string(s.m0) + "x" + std::to_string(s.n0) + "x" + std::to_string(s.k0);
}

uk_status_t serve(uint32_t flags, const uk_tile_sizes_t& sizes, const CpuData& cpu,
                  const uk_tile_row_t** row) {
  uk_mmt4d_params_t p = {};
  p.struct_size = sizeof(p);
  p.m0 = sizes.m0;
  p.n0 = sizes.n0;
  p.k0 = sizes.k0;
  p.flags = flags;
  p.cpu_data = cpu.data();
  return uk_mmt4d_info(&p, row);
}

// Shapes that tiles serve under these flags at a level.
std::vector<uk_tile_sizes_t> served_shapes(uint32_t flags, const CpuData& cpu) {
  std::vector<uk_tile_sizes_t> shapes;
  for (const uk_tile_row_t* row : table_rows()) {
    if (row->op != UK_OP_MMT4D || row->origin == UK_ORIGIN_GENERIC ||
        (row->flags & UK_MMT4D_TYPE_MASK) != (flags & UK_MMT4D_TYPE_MASK)) {
      continue;
    }
    const uk_tile_sizes_t shape = {row->m0, row->n0, row->k0};
    const uk_tile_row_t* chosen = nullptr;
    if (serve(flags & ~kFallback, shape, cpu, &chosen) == UK_STATUS_OK) shapes.push_back(shape);
  }
  return shapes;
}

std::vector<Mmt4dTypeAtLevel> types_at_levels() {
  std::vector<Mmt4dTypeAtLevel> all;
  for (const MatmulType& type : mmt4d_types()) {
    for (const std::string& isa : level_names()) all.push_back({type, isa});
  }
  return all;
}

// The query computes and does not run tiles, so every level is tested on every machine.
class Query : public ::testing::TestWithParam<Mmt4dTypeAtLevel> {
 protected:
  const MatmulType type = GetParam().type;
  const CpuData cpu = level_cpu_data(GetParam().isa);
};

TEST_P(Query, ReturnsAShapeThatIsServed) {
  for (const uint32_t more : {0u, kSkip, kFallback, kSkip | kFallback, UK_MMT4D_ACCUMULATE}) {
    const uint32_t flags = type.flag | more;
    const bool any_tile = !served_shapes(flags, cpu).empty();
    for (const uk_index_t m : {INT64_C(-1), INT64_C(0), INT64_C(1), INT64_C(2), INT64_C(3),
                               INT64_C(5), INT64_C(8), INT64_C(15), INT64_C(16), INT64_C(17),
                               INT64_C(33), INT64_C(512), INT64_C(4097), INT64_MAX}) {
      for (const uk_index_t n : {INT64_MIN, INT64_C(1), INT64_C(7), INT64_C(64), INT64_C(100),
                                 INT64_C(11008), INT64_MAX}) {
        for (const uk_index_t k : {INT64_C(0), INT64_C(1), INT64_C(3), INT64_C(4096), INT64_MAX}) {
          uk_tile_sizes_t sizes = kUntouched;
          const uk_status_t status =
              uk_query_tile_sizes(flags, m, n, k, nullptr, cpu.data(), &sizes);
          if (!any_tile && !(more & kFallback)) {
            ASSERT_EQ(UK_STATUS_NO_TILE, status);
            ASSERT_TRUE(sizes == kUntouched);
            continue;
          }
          ASSERT_EQ(UK_STATUS_OK, status) << m << " " << n << " " << k;
          const uk_tile_row_t* row = nullptr;
          ASSERT_EQ(UK_STATUS_OK, serve(flags, sizes, cpu, &row)) << text(sizes);
          ASSERT_EQ(any_tile, row->origin != UK_ORIGIN_GENERIC)
              << "the scalar path only where there is nothing else: " << text(sizes);
        }
      }
    }
  }
}

TEST_P(Query, HonoursFixedMembers) {
  for (const uint32_t skip : {0u, kSkip}) {
    for (const uk_tile_sizes_t& shape : served_shapes(type.flag | skip, cpu)) {
      for (int members = 0; members < 8; ++members) {
        const uk_tile_sizes_t fixed = {members & 1 ? shape.m0 : 0, members & 2 ? shape.n0 : 0,
                                       members & 4 ? shape.k0 : 0};
        for (const uk_index_t m : {kUnknown, INT64_C(1), INT64_C(17), INT64_C(512)}) {
          uk_tile_sizes_t sizes = kUntouched;
          ASSERT_EQ(UK_STATUS_OK, uk_query_tile_sizes(type.flag | skip, m, 4096, 4096, &fixed,
                                                      cpu.data(), &sizes))
              << "fixed " << text(fixed);
          EXPECT_TRUE(fixed.m0 == 0 || fixed.m0 == sizes.m0) << text(fixed) << " " << text(sizes);
          EXPECT_TRUE(fixed.n0 == 0 || fixed.n0 == sizes.n0) << text(fixed) << " " << text(sizes);
          EXPECT_TRUE(fixed.k0 == 0 || fixed.k0 == sizes.k0) << text(fixed) << " " << text(sizes);
          const uk_tile_row_t* row = nullptr;
          EXPECT_EQ(UK_STATUS_OK, serve(type.flag | skip, sizes, cpu, &row)) << text(sizes);
        }
      }
    }
  }
}

TEST_P(Query, FixedMembersThatNoTileHasAreForTheFallback) {
  for (int member = 0; member < 3; ++member) {
    uk_tile_sizes_t fixed = {0, 0, 0};
    (member == 0 ? fixed.m0 : member == 1 ? fixed.n0 : fixed.k0) = 1234;
    uk_tile_sizes_t sizes = kUntouched;
    EXPECT_EQ(UK_STATUS_NO_TILE,
              uk_query_tile_sizes(type.flag, 64, 64, 64, &fixed, cpu.data(), &sizes));
    EXPECT_TRUE(sizes == kUntouched);
    ASSERT_EQ(UK_STATUS_OK,
              uk_query_tile_sizes(type.flag | kFallback, 64, 64, 64, &fixed, cpu.data(), &sizes));
    EXPECT_EQ(1234, member == 0 ? sizes.m0 : member == 1 ? sizes.n0 : sizes.k0);
    const uk_tile_row_t* row = nullptr;
    ASSERT_EQ(UK_STATUS_OK, serve(type.flag | kFallback, sizes, cpu, &row)) << text(sizes);
    EXPECT_EQ(UK_ORIGIN_GENERIC, row->origin);
  }
}

TEST_P(Query, OneRowGetsAGemvTile) {
  for (const uint32_t skip : {0u, kSkip}) {
    const std::vector<uk_tile_sizes_t> shapes = served_shapes(type.flag | skip, cpu);
    const bool any_gemv = std::any_of(shapes.begin(), shapes.end(),
                                      [](const uk_tile_sizes_t& shape) { return shape.m0 == 1; });
    if (!any_gemv) {
      if (!shapes.empty()) ADD_FAILURE() << "there is no GEMV tile";
      continue;
    }
    for (const uk_index_t n : {kUnknown, INT64_C(64), INT64_C(4096), INT64_C(11008)}) {
      uk_tile_sizes_t sizes = kUntouched;
      ASSERT_EQ(UK_STATUS_OK,
                uk_query_tile_sizes(type.flag | skip, 1, n, 4096, nullptr, cpu.data(), &sizes));
      EXPECT_EQ(1, sizes.m0) << text(sizes) << " for n = " << n;
      // Independent columns hide the latency of the multiply-adds, as far as there are registers.
      int32_t widest = 8;
#ifdef __x86_64__
      if (cpu[0] & UK_CPU_X86_64_AVX2) widest = 16;
      if (cpu[0] & UK_CPU_X86_64_AVX512F) widest = 64;
#endif
      for (const uk_tile_sizes_t& shape : shapes) {
        if (shape.m0 != 1 || shape.k0 != sizes.k0 || shape.n0 > widest) continue;
        EXPECT_GE(sizes.n0, shape.n0) << text(shape) << " is wider, for n = " << n;
      }
    }
  }
}

// Weights packed for a large matmul meet 17 rows: two tiles of 16 compute 32 of them.
TEST_P(Query, SeventeenRowsDoNotGetSixteen) {
  for (const uint32_t skip : {0u, kSkip}) {
    const std::vector<uk_tile_sizes_t> shapes = served_shapes(type.flag | skip, cpu);
    for (const uk_tile_sizes_t& weights : shapes) {
      const auto waste_less = [&](const uk_tile_sizes_t& shape) {
        return shape.n0 == weights.n0 && shape.k0 == weights.k0 && shape.m0 >= 4 && shape.m0 <= 9;
      };
      if (!std::any_of(shapes.begin(), shapes.end(), waste_less)) continue;
      const uk_tile_sizes_t fixed = {0, weights.n0, weights.k0};
      uk_tile_sizes_t sizes = kUntouched;
      ASSERT_EQ(UK_STATUS_OK,
                uk_query_tile_sizes(type.flag | skip, 17, 4096, 4096, &fixed, cpu.data(), &sizes));
      const uk_tile_row_t* row =
          uk::select_tile(UK_OP_MMT4D, type.flag | skip, sizes.m0, sizes.n0, sizes.k0, cpu.data());
      if (uk::tile_steps(*row) > 1) continue;  // 16 rows are one instruction
      EXPECT_LT((17 + sizes.m0 - 1) / sizes.m0 * sizes.m0, 32) << text(sizes);
    }
  }
}

// Weights packed with any n0 and k0 that has a tile for one row are multiplied by one row with it.
TEST_P(Query, OneRowAfterFixedWeightsIsNotPadded) {
  const std::vector<uk_tile_sizes_t> shapes = served_shapes(type.flag, cpu);
  for (const uk_tile_sizes_t& gemv : shapes) {
    if (gemv.m0 != 1) continue;
    const uk_tile_sizes_t fixed = {0, gemv.n0, gemv.k0};
    uk_tile_sizes_t sizes = kUntouched;
    ASSERT_EQ(UK_STATUS_OK,
              uk_query_tile_sizes(type.flag, 1, 4096, 4096, &fixed, cpu.data(), &sizes));
    EXPECT_EQ(1, sizes.m0) << text(sizes);
  }
}

// Nothing falls to the scalar path for want of a tile of any shape.
TEST_P(Query, AnswersWithoutTheFallback) {
  const auto& rows = table_rows();
  if (std::none_of(rows.begin(), rows.end(),
                   [](const uk_tile_row_t* row) { return row->origin == UK_ORIGIN_GENERATED; })) {
    GTEST_SKIP() << "this build has hand-written tiles only";
  }
  const CpuData none = {};
  for (const CpuData& each : {cpu, none}) {
    for (const uint32_t skip : {0u, kSkip}) {
      uk_tile_sizes_t sizes = kUntouched;
      EXPECT_EQ(UK_STATUS_OK, uk_query_tile_sizes(type.flag | skip, kUnknown, kUnknown, kUnknown,
                                                  nullptr, each.data(), &sizes));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Query, ::testing::ValuesIn(types_at_levels()), test_name);

// What one instruction of the level takes. The levels of x86-64 that widen operands first multiply
// a K0 of one dot and of two about as fast: there either may be the answer.
TEST(QueryK0, IsThatOfOneDot) {
  struct {
    const char* isa;
    uint32_t type;
    int32_t k0;
  } const expected[] = {
#if defined(__x86_64__)
    {"avx512_vnni", UK_MMT4D_TYPE_S8S8S32, 4},
    {"avx512_vnni", UK_MMT4D_TYPE_U8S8S32, 4},
    {"avx512_vnni", UK_MMT4D_TYPE_S16S16S32, 2},
    {"avx512_bf16", UK_MMT4D_TYPE_BF16BF16F32, 2},
#elif defined(__aarch64__)
    {"i8mm", UK_MMT4D_TYPE_S8S8S32, 8},
    {"i8mm", UK_MMT4D_TYPE_U8S8S32, 8},
    {"dotprod", UK_MMT4D_TYPE_S8S8S32, 4},
    {"neon", UK_MMT4D_TYPE_S8S8S32, 1},
    {"neon", UK_MMT4D_TYPE_U8S8S32, 1},
    {"neon", UK_MMT4D_TYPE_S16S16S32, 1},
    {"bf16", UK_MMT4D_TYPE_BF16BF16F32, 4},
    {"neon", UK_MMT4D_TYPE_BF16BF16F32, 1},
#endif
  };
  for (const auto& e : expected) {
    const CpuData cpu = level_cpu_data(e.isa);
    for (const uk_index_t m : {kUnknown, INT64_C(1), INT64_C(4), INT64_C(17), INT64_C(4096)}) {
      uk_tile_sizes_t sizes = kUntouched;
      ASSERT_EQ(UK_STATUS_OK,
                uk_query_tile_sizes(e.type, m, 4096, 4096, nullptr, cpu.data(), &sizes));
      EXPECT_EQ(e.k0, sizes.k0) << e.isa << " " << text(sizes) << " of type " << e.type;
    }
  }
}

#if defined(__x86_64__)
// Tiles of one vector load a row for each dot: bench_query finds them a fifth behind those of two.
TEST(QueryN0, IsTwoVectorsWhereRowsAreMany) {
  struct {
    const char* isa;
    uint32_t type;
    int32_t n0;
  } const expected[] = {
      {"avx512_base", UK_MMT4D_TYPE_F32F32F32, 32},   {"avx512_base", UK_MMT4D_TYPE_F16F16F32, 32},
      {"avx512_base", UK_MMT4D_TYPE_BF16BF16F32, 32}, {"avx512_base", UK_MMT4D_TYPE_S8S8S32, 32},
      {"avx512_vnni", UK_MMT4D_TYPE_S8S8S32, 32},     {"avx512_vnni", UK_MMT4D_TYPE_U8S8S32, 32},
      {"avx2_fma", UK_MMT4D_TYPE_F32F32F32, 16},      {"avx2_fma", UK_MMT4D_TYPE_F16F16F32, 16},
  };
  for (const auto& e : expected) {
    const CpuData cpu = level_cpu_data(e.isa);
    for (const uk_index_t m : {INT64_C(16), INT64_C(64), INT64_C(512)}) {
      uk_tile_sizes_t sizes = kUntouched;
      ASSERT_EQ(UK_STATUS_OK,
                uk_query_tile_sizes(e.type, m, 4096, 4096, nullptr, cpu.data(), &sizes));
      EXPECT_EQ(e.n0, sizes.n0) << e.isa << " " << text(sizes) << " of type " << e.type;
    }
  }
}

// Of free weights.
void expect_answer(const CpuData& cpu, uint32_t type, uk_index_t m, uk_index_t n, uk_index_t k,
                   const uk_tile_sizes_t& expected) {
  uk_tile_sizes_t sizes = kUntouched;
  ASSERT_EQ(UK_STATUS_OK, uk_query_tile_sizes(type, m, n, k, nullptr, cpu.data(), &sizes));
  EXPECT_TRUE(sizes == expected) << text(sizes) << " for " << m << " x " << n << " x " << k;
}

// Tiles of one row do no more work for two rows of bf16 than one of two does, but read the weights
// twice: from memory bench_query finds them a third behind.
TEST(QueryFromMemory, TwoRowsReadTheWeightsOnce) {
  const CpuData cpu = level_cpu_data("avx512_fp16");  // the least that decodes beside loads
  uk_tile_sizes_t sizes = kUntouched;
  ASSERT_EQ(UK_STATUS_OK, uk_query_tile_sizes(UK_MMT4D_TYPE_BF16BF16F32, 2, 4096, 4096, nullptr,
                                              cpu.data(), &sizes));
  EXPECT_EQ(2, sizes.m0) << text(sizes);
}

// Of few sums, where several panels come sooner: not of short panels.
TEST(QueryFromMemory, EightRowsHaveFewSumsOnLongPanels) {
  const CpuData cpu = cpu_with({"avx512_bf16", "avx_vnni"});
  for (const auto& [k, n0] : {std::make_pair(4096, 16), std::make_pair(1024, 16),
                              std::make_pair(1023, 32), std::make_pair(256, 32)}) {
    expect_answer(cpu, UK_MMT4D_TYPE_F32F32F32, 8, (16 << 20) / k, k, {8, n0, 1});
  }
}

// Whether their panels are as long as those of few sums would have to be or not.
TEST(QueryFromMemory, MoreRowsDoNotHavePanelsOfOneVector) {
  const CpuData cpu = cpu_with({"avx512_bf16", "avx512_vnni", "avx_vnni"});
  for (const uk_index_t k : {1024, 2048, 4096, 8192}) {
    for (const int32_t m : {9, 13}) {
      expect_answer(cpu, UK_MMT4D_TYPE_U8S8S32, m, (16 << 20) / k, k, {m, 32, 4});
    }
  }
}

// Long panels, which do not stay in L2 for the second block of a tile.
TEST(QueryFromMemory, LongPanelsAreReadByOneBlock) {
  const CpuData cpu = cpu_with({"avx512_bf16", "avx_vnni"}), other = cpu_with({"avx512_bf16"});
  struct {
    const CpuData& cpu;
    uint32_t type;
    uk_index_t m, k;
    uk_tile_sizes_t sizes;
  } const expected[] = {
      {cpu, UK_MMT4D_TYPE_F32F32F32, 512, 4096, {14, 32, 1}},
      {cpu, UK_MMT4D_TYPE_F32F32F32, 512, 2048, {14, 32, 1}},
      {cpu, UK_MMT4D_TYPE_F32F32F32, 512, 2047, {16, 32, 1}},
      {other, UK_MMT4D_TYPE_F32F32F32, 512, 4096, {16, 32, 1}},
      // Nor of so few rows, or those of which 14 leave more padding.
      {cpu, UK_MMT4D_TYPE_F32F32F32, 224, 4096, {16, 32, 1}},
      {cpu, UK_MMT4D_TYPE_F32F32F32, 288, 4096, {16, 32, 1}},
      {cpu, UK_MMT4D_TYPE_F64F64F64, 512, 4096, {14, 16, 1}},
      {cpu, UK_MMT4D_TYPE_BF16BF16F32, 512, 8192, {14, 32, 2}},
  };
  for (const auto& e : expected) expect_answer(e.cpu, e.type, e.m, 4096, e.k, e.sizes);
}

// In the caches tiles of few sums take several panels at once, if there are several.
TEST(QueryInCaches, FewRowsHaveFewSumsOnSeveralPanels) {
  const CpuData cpu = cpu_with({"avx512_bf16", "avx_vnni"}), other = cpu_with({"avx512_bf16"});
  struct {
    const CpuData& cpu;
    uint32_t type;
    uk_index_t m, n;
    uk_tile_sizes_t sizes;
  } const expected[] = {
      {cpu, UK_MMT4D_TYPE_F32F32F32, 6, 256, {6, 16, 1}},
      {cpu, UK_MMT4D_TYPE_F32F32F32, 6, 48, {6, 16, 1}},
      {cpu, UK_MMT4D_TYPE_F32F32F32, 6, 32, {8, 32, 1}},
      {other, UK_MMT4D_TYPE_F32F32F32, 6, 256, {8, 32, 1}},
      {cpu, UK_MMT4D_TYPE_BF16BF16F32, 4, 256, {4, 16, 2}},
      {other, UK_MMT4D_TYPE_BF16BF16F32, 4, 256, {4, 32, 2}},
      // Where sums are rounded each step, of more LHS panels, too.
      {cpu, UK_MMT4D_TYPE_BF16BF16BF16, 12, 256, {4, 16, 1}},
      {other, UK_MMT4D_TYPE_BF16BF16BF16, 12, 256, {8, 16, 1}},
      {cpu, UK_MMT4D_TYPE_BF16BF16BF16, 8, 256, {8, 16, 1}},
      {cpu, UK_MMT4D_TYPE_F16F16F16, 8, 256, {8, 32, 1}},
      // Else of more where that saves padding, but not of one or two rows.
      {cpu, UK_MMT4D_TYPE_F32F32F32, 246, 47, {6, 16, 1}},
      {other, UK_MMT4D_TYPE_F32F32F32, 246, 47, {13, 32, 1}},
      {cpu, UK_MMT4D_TYPE_F32F32F32, 512, 256, {16, 32, 1}},
      {cpu, UK_MMT4D_TYPE_F32F32F32, 3, 362, {4, 16, 1}},
      // The last panel of four would wait for one dot after the other.
      {cpu, UK_MMT4D_TYPE_F32F32F32, 4, 64, {4, 32, 1}},
      {cpu, UK_MMT4D_TYPE_F32F32F32, 4, 48, {4, 16, 1}},
  };
  for (const auto& e : expected) expect_answer(e.cpu, e.type, e.m, e.n, 256, e.sizes);
}

// AMX multiplies 16 rows at a time. Of few rows most would be padding.
TEST(QueryAmx, IsForMoreThanAFewRows) {
  for (const auto& [isa, type, k0] : {std::make_tuple("amx_int8", UK_MMT4D_TYPE_S8S8S32, 4),
                                      std::make_tuple("amx_int8", UK_MMT4D_TYPE_U8S8S32, 4),
                                      std::make_tuple("amx_bf16", UK_MMT4D_TYPE_BF16BF16F32, 2)}) {
    const CpuData cpu = level_cpu_data(isa);
    for (const auto& [m, m0] :
         {std::make_pair(1, 0), std::make_pair(3, 0), std::make_pair(4, 16), std::make_pair(16, 16),
          std::make_pair(32, 32), std::make_pair(512, 32), std::make_pair(-1, 32)}) {
      uk_tile_sizes_t sizes = kUntouched;
      ASSERT_EQ(UK_STATUS_OK,
                uk_query_tile_sizes(type, m, 4096, 4096, nullptr, cpu.data(), &sizes));
      const uk_tile_row_t* row =
          uk::select_tile(UK_OP_MMT4D, type, sizes.m0, sizes.n0, sizes.k0, cpu.data());
      ASSERT_TRUE(row);
      EXPECT_EQ(m0 > 0, uk::tile_steps(*row) > 1) << isa << " " << text(sizes) << " for " << m;
      if (m0 > 0) {
        EXPECT_TRUE(sizes == (uk_tile_sizes_t{m0, 32, k0})) << text(sizes) << " for " << m;
      }
    }
  }
}
#endif

struct QueryError {
  const char* name;
  uint32_t flags;
  uk_tile_sizes_t fixed;
  uk_status_t expected;
};

class QueryErrors : public ::testing::TestWithParam<QueryError> {};

TEST_P(QueryErrors, LeaveTheSizesAlone) {
  const QueryError& e = GetParam();
  uk_tile_sizes_t sizes = kUntouched;
  EXPECT_EQ(e.expected, uk_query_tile_sizes(e.flags, 8, 8, 8, &e.fixed, nullptr, &sizes));
  EXPECT_TRUE(sizes == kUntouched);
}

INSTANTIATE_TEST_SUITE_P(
    All, QueryErrors,
    ::testing::Values(
        QueryError{"TypeZero", kFallback, {}, UK_STATUS_BAD_TYPE},
        QueryError{"TypeUnknown", 0x0B | kFallback, {}, UK_STATUS_BAD_TYPE},
        QueryError{"FlagUnknown", 0x01 | kFallback | 0x800, {}, UK_STATUS_BAD_FLAGS},
        QueryError{"Prefetch", 0x01 | kFallback | UK_MMT4D_PREFETCH_RHS, {}, UK_STATUS_BAD_FLAGS},
        QueryError{"NegativeM0", 0x01 | kFallback, {-1, 0, 0}, UK_STATUS_BAD_TILE_SHAPE},
        QueryError{"NegativeN0", 0x01 | kFallback, {0, -1, 0}, UK_STATUS_BAD_TILE_SHAPE},
        QueryError{"NegativeK0", 0x01 | kFallback, {0, 0, -1}, UK_STATUS_BAD_TILE_SHAPE},
        QueryError{"OddK0", 0x08 | kFallback, {0, 0, 3}, UK_STATUS_SPLIT_BYTE},
        QueryError{"NoTile", 0x01, {63, 0, 0}, UK_STATUS_NO_TILE}),
    [](const auto& tested) { return tested.param.name; });

TEST(QueryArguments, NullSizes) {
  EXPECT_EQ(UK_STATUS_NULL_POINTER, uk_query_tile_sizes(UK_MMT4D_TYPE_F32F32F32 | kFallback, 1, 1,
                                                        1, nullptr, nullptr, nullptr));
}

TEST(QueryArguments, NullCpuDataIsTheBaseline) {
  const CpuData none = {};
  for (const MatmulType& type : mmt4d_types()) {
    uk_tile_sizes_t a = kUntouched, b = kUntouched;
    EXPECT_EQ(uk_query_tile_sizes(type.flag | kFallback, 9, 9, 9, nullptr, nullptr, &a),
              uk_query_tile_sizes(type.flag | kFallback, 9, 9, 9, nullptr, none.data(), &b));
    EXPECT_TRUE(a == b);
  }
}

}  // namespace
}  // namespace uk_test
