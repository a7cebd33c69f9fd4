// The table's rows agree with their columns, and a request gets the one row it should.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <map>
#include <set>
#include <tuple>

#include "tests/ops/harness.h"

namespace uk_test {
namespace {

std::string shape_name(int32_t a, int32_t b) { return std::to_string(a) + "x" + std::to_string(b); }

int pack_bits(uint32_t flags) {
  for (const PackType& type : pack_types()) {
    if (type.flag == (flags & UK_PACK_TYPE_MASK)) return type.bits;
  }
  return 0;
}

std::string mmt4d_type_name(uint32_t flags) {
  const MatmulType* type = uk_conformance::find_matmul_type(flags);
  return type ? type->name : "no type";
}

bool is_subset(const uint64_t* features, const CpuData& cpu) {
  for (size_t i = 0; i < cpu.size(); ++i) {
    if ((features[i] & ~cpu[i]) != 0) return false;
  }
  return true;
}

uk_status_t info(uint32_t flags, const uk_tile_row_t& shape, const uint64_t* cpu_data,
                 const uk_tile_row_t** row) {
  uk_mmt4d_params_t p = {};
  p.struct_size = sizeof(p);
  p.m = p.n = p.k = 1;
  p.m0 = shape.m0;
  p.n0 = shape.n0;
  p.k0 = shape.k0;
  p.flags = flags;
  p.cpu_data = cpu_data;
  *row = nullptr;
  return uk_mmt4d_info(&p, row);
}

bool same_shape(const uk_tile_row_t& a, const uk_tile_row_t& b) {
  return a.op == b.op && (a.flags & 0xFF) == (b.flags & 0xFF) && a.m0 == b.m0 && a.n0 == b.n0 &&
         a.k0 == b.k0;
}

// Of field 7: that a CPU is slow at what a row needs.
uint64_t slow_bits(const uk_tile_row_t& row) {
#if defined(__x86_64__)
  if (row.features[0] & UK_CPU_X86_64_AVX512BF16) return UK_CPU_FIELD7_X86_64_SLOW_AVX512BF16;
#endif
  static_cast<void>(row);
  return 0;
}

// The rule of selection, said once more: of the rows that the CPU can run and the flags permit, one
// that rounds once goes first, then one that the CPU is not slow at, then the highest rank.
const uk_tile_row_t* expected_row(const uk_tile_row_t& wanted, bool skip, const CpuData& cpu) {
  const uk_tile_row_t* best = nullptr;
  for (const uk_tile_row_t* row : table_rows()) {
    if (row->origin == UK_ORIGIN_GENERIC || !same_shape(*row, wanted)) continue;
    if (!is_subset(row->features, cpu) || (rounds_once(*row) && !skip)) continue;
    const auto key = [&](const uk_tile_row_t& r) {
      return std::make_tuple(rounds_once(r), (cpu[7] & slow_bits(r)) == 0, level_rank(r.isa));
    };
    if (!best || key(*row) > key(*best)) best = row;
  }
  return best;
}

std::vector<const uk_tile_row_t*> mmt4d_tile_rows() {
  std::vector<const uk_tile_row_t*> rows;
  for (const uk_tile_row_t* row : table_rows()) {
    if (row->op == UK_OP_MMT4D && row->origin != UK_ORIGIN_GENERIC) rows.push_back(row);
  }
  return rows;
}

CpuData every_feature() {
  CpuData cpu;
  cpu.fill(~UINT64_C(0));
  return cpu;
}

// ---------------------------------------------------------------- rows

TEST(Table, EnumerationEnds) {
  EXPECT_GT(uk_tile_count(), 0u);
  EXPECT_EQ(nullptr, uk_tile_at(uk_tile_count()));
  EXPECT_EQ(nullptr, uk_tile_at(SIZE_MAX));
  for (const uk_tile_row_t* row : table_rows()) ASSERT_NE(nullptr, row);
}

TEST(Table, ColumnsAreConsistent) {
  for (const uk_tile_row_t* row : table_rows()) {
    SCOPED_TRACE(row->symbol);
    if (row->origin == UK_ORIGIN_GENERIC) {
      EXPECT_EQ(nullptr, row->function);
      EXPECT_TRUE(row->m0 == 0 && row->n0 == 0 && row->k0 == 0);
      EXPECT_STREQ("generic", row->isa);
      EXPECT_TRUE(is_subset(row->features, CpuData{}));
      continue;
    }
    EXPECT_TRUE(row->origin == UK_ORIGIN_HAND || row->origin == UK_ORIGIN_GENERATED);
    EXPECT_NE(nullptr, row->function);
    EXPECT_GT(row->m0, 0);
    EXPECT_GT(row->n0, 0);
    ASSERT_GE(level_rank(row->isa), 0) << "no such level: " << row->isa;
    const CpuData level = level_cpu_data(row->isa);
    EXPECT_TRUE(std::equal(level.begin(), level.end(), row->features))
        << "a row needs what its level needs";
    if (row->op == UK_OP_MMT4D) {
      EXPECT_GT(row->k0, 0);
      EXPECT_EQ(rounds_once(*row), (row->flags & UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS) != 0);
      EXPECT_EQ(0u, row->flags & ~(UK_MMT4D_TYPE_MASK | UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS));
    } else {
      EXPECT_EQ(0, row->k0);
      EXPECT_EQ(UK_NUMERICS_EXACT, row->numerics);
      EXPECT_EQ(0u, row->flags & ~(UK_PACK_TYPE_MASK | UK_PACK_TRANSPOSE_INNER));
    }
  }
}

TEST(Table, NumericsFitTheTypes) {
  for (const uk_tile_row_t* row : table_rows()) {
    if (row->op != UK_OP_MMT4D) continue;
    SCOPED_TRACE(row->symbol);
    const uint32_t type = row->flags & UK_MMT4D_TYPE_MASK, numerics = row->numerics;
    switch (type) {
      case UK_MMT4D_TYPE_F32F32F32:
      case UK_MMT4D_TYPE_F64F64F64:
        EXPECT_TRUE(numerics == UK_NUMERICS_FMA_CHAIN || numerics == UK_NUMERICS_MUL_ADD_CHAIN);
        break;
      case UK_MMT4D_TYPE_F16F16F32:
        EXPECT_EQ(UK_NUMERICS_FMA_CHAIN, numerics);
        break;
      case UK_MMT4D_TYPE_BF16BF16F32:
        EXPECT_TRUE(numerics == UK_NUMERICS_FMA_CHAIN || numerics == UK_NUMERICS_BF16_DOT ||
                    (numerics == UK_NUMERICS_MUL_ADD_CHAIN && std::string(row->isa) == "sse2"));
        break;
      case UK_MMT4D_TYPE_F16F16F16:
        EXPECT_TRUE(numerics == UK_NUMERICS_ROUND_EACH_STEP || numerics == UK_NUMERICS_F32ACC);
        break;
      case UK_MMT4D_TYPE_BF16BF16BF16:
        EXPECT_TRUE(numerics == UK_NUMERICS_ROUND_EACH_STEP || rounds_once(*row));
        break;
      default:
        EXPECT_EQ(UK_NUMERICS_EXACT, numerics);
    }
  }
}

TEST(Table, NoTies) {
  std::map<std::tuple<uint32_t, uint32_t, int32_t, int32_t, int32_t, bool, std::string>,
           std::string>
      seen;
  std::set<std::string> symbols;
  for (const uk_tile_row_t* row : table_rows()) {
    EXPECT_TRUE(symbols.insert(row->symbol).second) << "twice: " << row->symbol;
    if (row->origin == UK_ORIGIN_GENERIC) continue;
    const uint32_t order = row->op == UK_OP_MMT4D ? 0 : row->flags & UK_PACK_TRANSPOSE_INNER;
    const auto key = std::make_tuple(row->op, (row->flags & 0xFF) | order, row->m0, row->n0,
                                     row->k0, rounds_once(*row), std::string(row->isa));
    const auto inserted = seen.emplace(key, row->symbol);
    EXPECT_TRUE(inserted.second) << row->symbol << " ties with " << inserted.first->second;
  }
}

TEST(Table, EveryTypeHasAGenericRow) {
  std::set<std::string> generic;
  for (const uk_tile_row_t* row : table_rows()) {
    if (row->origin == UK_ORIGIN_GENERIC) generic.insert(row->symbol);
  }
  for (const MatmulType& type : mmt4d_types()) {
    EXPECT_EQ(1u, generic.count(std::string("generic_mmt4d_") + type.name)) << type.name;
  }
  for (const int bits : {4, 8, 16, 32, 64}) {
    EXPECT_EQ(1u, generic.count("generic_pack_x" + std::to_string(bits)));
    EXPECT_EQ(1u, generic.count("generic_unpack_x" + std::to_string(bits)));
  }
}

// ---------------------------------------------------------------- selection

TEST(Selection, EveryRowIsChosenAtItsOwnLevel) {
  for (const uk_tile_row_t* row : mmt4d_tile_rows()) {
    const CpuData cpu = level_cpu_data(row->isa);
    const uk_tile_row_t* chosen = nullptr;
    EXPECT_EQ(UK_STATUS_OK, info(row->flags, *row, cpu.data(), &chosen)) << row->symbol;
    EXPECT_EQ(row, chosen) << row->symbol << " lost to " << (chosen ? chosen->symbol : "nothing");
  }
}

TEST(Selection, FollowsFeaturesFlagsAndRank) {
  std::vector<CpuData> cpus = {CpuData{}, every_feature(), host_cpu_data()};
  for (const std::string& a : level_names()) {
    for (const std::string& b : level_names()) {
      const CpuData both = cpu_with({a, b}), other = level_cpu_data(b);
      cpus.push_back(both);
      CpuData slow = both;
      for (const uk_tile_row_t* row : mmt4d_tile_rows()) slow[7] |= slow_bits(*row);
      cpus.push_back(slow);
      // Every feature but those of one level.
      CpuData without = every_feature();
      for (size_t i = 0; i < both.size(); ++i) without[i] = ~other[i] | level_cpu_data(a)[i];
      cpus.push_back(without);
    }
  }
  std::set<std::tuple<uint32_t, int32_t, int32_t, int32_t>> done;
  for (const uk_tile_row_t* row : mmt4d_tile_rows()) {
    const uint32_t type = row->flags & UK_MMT4D_TYPE_MASK;
    if (!done.insert({type, row->m0, row->n0, row->k0}).second) continue;
    for (const CpuData& cpu : cpus) {
      for (const uint32_t skip : {0u, UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS}) {
        const uk_tile_row_t* expected = expected_row(*row, skip != 0, cpu);
        const uk_tile_row_t* chosen = nullptr;
        const uk_status_t status = info(type | skip, *row, cpu.data(), &chosen);
        ASSERT_EQ(expected ? UK_STATUS_OK : UK_STATUS_NO_TILE, status) << row->symbol;
        ASSERT_EQ(expected, chosen) << row->symbol << " skip " << skip;
        if (!chosen) continue;
        EXPECT_TRUE(is_subset(chosen->features, cpu));
        EXPECT_NE(UK_ORIGIN_GENERIC, chosen->origin);
        EXPECT_TRUE(skip || !rounds_once(*chosen)) << chosen->symbol;
        // Accumulation and the permission to fall back change nothing where a tile exists.
        const uint32_t more = UK_MMT4D_ACCUMULATE | UK_MMT4D_ALLOW_GENERIC_FALLBACK;
        ASSERT_EQ(UK_STATUS_OK, info(type | skip | more, *row, cpu.data(), &chosen));
        ASSERT_EQ(expected, chosen);
      }
    }
  }
}

#if defined(__aarch64__)
// The levels of Arm are no chain: what is masked takes its own level away and no other.
TEST(Selection, AMaskedFeatureTakesItsOwnLevelAway) {
  constexpr uint64_t kFp16 = UK_CPU_ARM_64_FULLFP16, kFml = UK_CPU_ARM_64_FP16FML,
                     kDot = UK_CPU_ARM_64_DOTPROD, kI8mm = UK_CPU_ARM_64_I8MM,
                     kBf16 = UK_CPU_ARM_64_BF16;
  const struct {
    uint32_t type;
    uint64_t masked;
    const char* isa;
  } cases[] = {
      {UK_MMT4D_TYPE_S8S8S32, 0, "i8mm"},
      {UK_MMT4D_TYPE_S8S8S32, kDot | kBf16, "i8mm"},
      {UK_MMT4D_TYPE_S8S8S32, kI8mm, "dotprod"},
      {UK_MMT4D_TYPE_S8S8S32, kI8mm | kBf16 | kFp16, "dotprod"},
      {UK_MMT4D_TYPE_S8S8S32, kI8mm | kDot, "neon"},
      {UK_MMT4D_TYPE_S8S4S32, kDot, "i8mm"},
      {UK_MMT4D_TYPE_S8S4S32, kI8mm, "dotprod"},
      {UK_MMT4D_TYPE_U8S8S32, kDot, "i8mm"},
      {UK_MMT4D_TYPE_U8S8S32, kI8mm | kDot, "neon"},
      {UK_MMT4D_TYPE_BF16BF16F32, 0, "bf16"},
      {UK_MMT4D_TYPE_BF16BF16F32, kI8mm | kDot, "bf16"},
      {UK_MMT4D_TYPE_BF16BF16F32, kBf16, "neon"},
      {UK_MMT4D_TYPE_F16F16F32, 0, "fp16fml"},
      {UK_MMT4D_TYPE_F16F16F32, kFml, "neon"},
      {UK_MMT4D_TYPE_F16F16F32, kFp16, "neon"},
      {UK_MMT4D_TYPE_F16F16F16, kFml, "fullfp16"},
      {UK_MMT4D_TYPE_F16F16F16, kFp16, "neon"},
      {UK_MMT4D_TYPE_F32F32F32, 0, "neon"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(mmt4d_type_name(c.type) + " without " + std::to_string(c.masked));
    CpuData cpu = every_feature();
    cpu[0] &= ~c.masked;
    uk_tile_sizes_t sizes = {};
    ASSERT_EQ(UK_STATUS_OK,
              uk_query_tile_sizes(c.type, 128, 128, 128, nullptr, cpu.data(), &sizes));
    uk_tile_row_t shape = {};
    shape.m0 = sizes.m0;
    shape.n0 = sizes.n0;
    shape.k0 = sizes.k0;
    const uk_tile_row_t* chosen = nullptr;
    ASSERT_EQ(UK_STATUS_OK, info(c.type, shape, cpu.data(), &chosen));
    EXPECT_STREQ(c.isa, chosen->isa) << chosen->symbol;
  }
}
#endif

#if defined(__x86_64__)
TEST(Selection, ASlowFeatureIsTakenLast) {
  CpuData cpu = level_cpu_data("avx512_bf16");
  const struct {
    uint64_t slow;
    const char* isa;
  } cases[] = {{0, "avx512_bf16"}, {UK_CPU_FIELD7_X86_64_SLOW_AVX512BF16, "avx512_base"}};
  for (const auto& c : cases) {
    cpu[7] = c.slow;
    EXPECT_EQ(1, uk_cpu_has_level("avx512_bf16", cpu.data()));
    for (const uint32_t type :
         {UK_MMT4D_TYPE_BF16BF16F32,
          UK_MMT4D_TYPE_BF16BF16BF16 | UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS}) {
      uk_tile_row_t shape = {};
      shape.m0 = 16;
      shape.n0 = 32;
      shape.k0 = 2;
      const uk_tile_row_t* chosen = nullptr;
      if (info(type, shape, level_cpu_data("avx512_base").data(), &chosen) != UK_STATUS_OK) {
        GTEST_SKIP() << "this library has hand-written tiles only";
      }
      ASSERT_EQ(UK_STATUS_OK, info(type, shape, cpu.data(), &chosen));
      EXPECT_STREQ(c.isa, chosen->isa) << chosen->symbol;
    }
  }
}
#endif

TEST(Selection, WithoutFeaturesNothingButTheBaseline) {
  const CpuData none = {};
  for (const uk_tile_row_t* row : mmt4d_tile_rows()) {
    if (expected_row(*row, true, none)) continue;
    for (const uint64_t* cpu_data : {static_cast<const uint64_t*>(nullptr), none.data()}) {
      const uk_tile_row_t* chosen = nullptr;
      EXPECT_EQ(UK_STATUS_NO_TILE, info(row->flags, *row, cpu_data, &chosen)) << row->symbol;
      EXPECT_EQ(nullptr, chosen);
      EXPECT_EQ(UK_STATUS_OK,
                info(row->flags | UK_MMT4D_ALLOW_GENERIC_FALLBACK, *row, cpu_data, &chosen));
      ASSERT_NE(nullptr, chosen) << row->symbol;
      EXPECT_EQ(UK_ORIGIN_GENERIC, chosen->origin);
      EXPECT_EQ("generic_mmt4d_" + mmt4d_type_name(row->flags), chosen->symbol);
    }
  }
}

TEST(Selection, IgnoresBitsThatNobodyNames) {
  CpuData noise = every_feature();
  for (const std::string& name : level_names()) {
    const CpuData level = level_cpu_data(name);
    for (size_t i = 0; i < noise.size(); ++i) noise[i] &= ~level[i];
  }
  for (const uk_tile_row_t* row : mmt4d_tile_rows()) noise[7] &= ~slow_bits(*row);
  for (const uk_tile_row_t* row : mmt4d_tile_rows()) {
    CpuData cpu = level_cpu_data(row->isa);
    for (size_t i = 0; i < cpu.size(); ++i) cpu[i] |= noise[i];
    const uk_tile_row_t* chosen = nullptr;
    EXPECT_EQ(UK_STATUS_OK, info(row->flags, *row, cpu.data(), &chosen));
    EXPECT_EQ(row, chosen) << row->symbol;
  }
}

TEST(Selection, ShapesBeyondAnyTileHaveNone) {
  const CpuData all = every_feature();
  for (const MatmulType& type : mmt4d_types()) {
    // 0x10001 equals 1 in its low 16 bits, where a narrow search key would find a tile.
    for (const int32_t huge : {0x10000, 0x10001, 0x10008, INT32_MAX - 1}) {
      for (int member = 0; member < 3; ++member) {
        uk_tile_row_t shape = {};
        shape.m0 = member == 0 ? huge : 1;
        shape.n0 = member == 1 ? huge : 16;
        shape.k0 = member == 2 ? huge & ~1 : 2;
        const uk_tile_row_t* chosen = nullptr;
        EXPECT_EQ(UK_STATUS_NO_TILE, info(type.flag, shape, all.data(), &chosen)) << type.name;
      }
    }
  }
}

// ---------------------------------------------------------------- pack tiles for mmt4d tiles

// A matmul whose operands fall back to scalar packing is slow at the seams, so a new mmt4d row
// brings its pack and unpack tiles along.
class PackTilesFor : public ::testing::TestWithParam<std::string> {};

TEST_P(PackTilesFor, EveryOperandOfEveryMmt4dTile) {
  const std::string isa = GetParam();
  const CpuData cpu = level_cpu_data(isa);
  std::set<std::string> missing;
  const auto require = [&](uint32_t op, int bits, int32_t tile0, int32_t tile1, bool transposed) {
    if (bits < 8 && !transposed) {  // two four-bit elements move as a byte, in the byte's tiles
      tile1 = tile1 * bits / 8;
      bits = 8;
    }
    for (const uk_tile_row_t* row : table_rows()) {
      const bool row_transposed = (row->flags & UK_PACK_TRANSPOSE_INNER) != 0;
      if (row->op == op && pack_bits(row->flags) == bits && row->m0 == tile0 && row->n0 == tile1 &&
          row_transposed == transposed && is_subset(row->features, cpu)) {
        return;
      }
    }
    missing.insert(std::string(op == UK_OP_PACK ? "pack" : "unpack") + " x" + std::to_string(bits) +
                   " " + shape_name(tile0, tile1) + (transposed ? " transposed" : ""));
  };
  for (const uk_tile_row_t* row : mmt4d_tile_rows()) {
    if (isa != row->isa) continue;
    const MatmulType* type = uk_conformance::find_matmul_type(row->flags);
    ASSERT_NE(nullptr, type) << row->symbol;
    for (const bool transposed : {false, true}) {
      require(UK_OP_PACK, bits_of(type->lhs), row->m0, row->k0, transposed);
      require(UK_OP_PACK, bits_of(type->rhs), row->n0, row->k0, transposed);
    }
    require(UK_OP_PACK, bits_of(type->out), row->m0, row->n0, false);
    require(UK_OP_UNPACK, bits_of(type->out), row->m0, row->n0, false);
  }
  for (const std::string& tile : missing) ADD_FAILURE() << isa << " lacks " << tile;
}

INSTANTIATE_TEST_SUITE_P(Levels, PackTilesFor, ::testing::ValuesIn(level_names()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace uk_test
