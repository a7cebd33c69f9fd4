// The bits of whole matmuls, as recorded once: they are the same on every CPU and architecture.
//
// Of the types whose numerics do not depend on the CPU: integers, and floats that are one chain of
// fused multiply-adds for each element, or round at each step. pack, mmt4d and unpack together,
// with the tile sizes that the library chooses, so the digest is of the matrix and not of any tile.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <algorithm>
#include <cinttypes>

#include "tests/ops/harness.h"
#include "ukernel/internal.h"

namespace uk_test {
namespace {

struct Sizes {
  uk_index_t m, n, k;
};
constexpr Sizes kSizes[] = {{1, 33, 40}, {17, 23, 38}, {64, 48, 130}};

struct Recorded {
  const char* type;
  uint64_t digests[std::size(kSizes)];
};
constexpr Recorded kRecorded[] = {
    {"f32f32f32", {0x39247df7171244e6, 0x0fc2c26ab6cb6d9e, 0x9d9fbccc3374db37}},
    {"s8s8s32", {0x3fdd56aa4bb191c5, 0x405543e12c7b23b7, 0x4d9f1b93ebf49ef5}},
    {"f16f16f32", {0x96c542fa42b30486, 0x58f0f1aa45114755, 0x4cd983b1f4fd4f04}},
    {"f16f16f16", {0x63e3df7cfd20299e, 0xad6fa07b333e9838, 0x43c521248ed4abba}},
    {"bf16bf16f32", {0xfeaf92bebf3694c9, 0x25b3aca8a47a7e10, 0x221a17f4426de131}},
    {"bf16bf16bf16", {0x8135aac568396b7a, 0x573382b81e3c2a5c, 0xfe20cca5dbc9b24c}},
    {"s16s16s32", {0xeac9520137870154, 0x0789e3431c77d964, 0x6c264c8fd7413e7d}},
    {"s16u4s32", {0xcacd85bdbafcb2ef, 0xb8205951b22c4cde, 0x448ef88f928c6498}},
    {"s16s8s32", {0x45a581ecc89f00cb, 0xa61d4d3b762bcba4, 0xe848e8b014fb6d0c}},
    {"s8s4s32", {0xfa253d049f31b0d2, 0xad45e7e71c3765c6, 0x36ed705aa35c5a30}},
    {"u8s8s32", {0xc0d0087f40020990, 0x2da8cda36498e139, 0x1c254cd37a1b84e4}},
    {"f64f64f64", {0xcb379401db5fde3d, 0xdf3626f07d4bf948, 0x513f17077b8b771c}},
};

// Any sign and mantissa, exponents around 1 so that sums neither overflow nor lose all of an
// addend, and now and then a subnormal number.
uint64_t float_bits(Random& random, int mantissa_bits, int bias) {
  const uint64_t bits = random.bits();
  const uint64_t mantissa = bits & ((UINT64_C(1) << mantissa_bits) - 1);
  const uint64_t exponent =
      bits >> 59 == 0 ? 0 : static_cast<uint64_t>(bias) - 4 + (bits >> 56) % 7;
  const int sign_bit = bias == 15 ? 15 : bias == 1023 ? 63 : mantissa_bits + 8;
  return (random.bits() >> 63) << sign_bit | exponent << mantissa_bits | mantissa;
}

uint64_t element_bits(Random& random, uk_conformance::Element element) {
  using uk_conformance::Element;
  switch (element) {
    case Element::f16:
      return float_bits(random, 10, 15);
    case Element::bf16:
      return float_bits(random, 7, 127);
    case Element::f32:
      return float_bits(random, 23, 127);
    case Element::f64:
      return float_bits(random, 52, 1023);
    default:
      return random.bits();
  }
}

// A matrix, and room for its tiles.
struct Operand {
  Operand(uk_conformance::Element element, uk_index_t rows_, uk_index_t columns_, int32_t tile0_,
          int32_t tile1_, const CpuData& cpu_)
      : bits(bits_of(element)),
        rows(rows_),
        columns(columns_),
        tile0(tile0_),
        tile1(tile1_),
        matrix(bytes_of(rows * columns, bits)),
        tiles(bytes_of(panels() * panel_elements(), bits)),
        cpu(cpu_) {}

  uk_index_t panels() const { return (rows + tile0 - 1) / tile0; }
  uk_index_t steps() const { return (columns + tile1 - 1) / tile1; }
  uk_index_t panel_elements() const { return steps() * tile0 * tile1; }

  void fill(uk_conformance::Element element, uint64_t seed) {
    Random random(seed);
    for (uk_index_t i = 0; i < rows * columns; ++i) {
      store_bits(matrix.data(), i, bits, element_bits(random, element));
    }
  }

  void pack() {
    uk_pack_params_t p = {};
    p.struct_size = sizeof(p);
    p.in = matrix.data();
    p.in_stride0 = columns;
    p.in_stride1 = 1;
    p.in_size0 = rows;
    p.in_size1 = columns;
    p.out = tiles.data();
    p.out_stride0 = panel_elements();
    p.out_stride1 = uk_index_t{tile0} * tile1;
    p.out_size0 = panels();
    p.out_size1 = steps();
    p.out_size2 = tile0;
    p.out_size3 = tile1;
    p.flags = uk::pack_row_type(bits);
    p.cpu_data = cpu.data();
    ASSERT_EQ(UK_STATUS_OK, uk_pack(&p));
  }

  void unpack() {
    uk_unpack_params_t p = {};
    p.struct_size = sizeof(p);
    p.in = tiles.data();
    p.in_stride0 = panel_elements();
    p.in_stride1 = uk_index_t{tile0} * tile1;
    p.in_size0 = panels();
    p.in_size1 = steps();
    p.in_size2 = tile0;
    p.in_size3 = tile1;
    p.out = matrix.data();
    p.out_stride0 = columns;
    p.out_stride1 = 1;
    p.out_size0 = rows;
    p.out_size1 = columns;
    p.flags = uk::pack_row_type(bits);
    p.cpu_data = cpu.data();
    ASSERT_EQ(UK_STATUS_OK, uk_unpack(&p));
  }

  int bits;
  uk_index_t rows, columns;
  int32_t tile0, tile1;
  Bytes matrix, tiles;
  CpuData cpu;
};

// Twice the product, the second time added to the first.
Bytes product(const MatmulType& type, const Sizes& sizes, const CpuData& cpu) {
  uk_tile_sizes_t tile = {};
  EXPECT_EQ(UK_STATUS_OK,
            uk_query_tile_sizes(type.flag, sizes.m, sizes.n, sizes.k, nullptr, cpu.data(), &tile));
  if (tile.k0 == 0) return {};
  Operand lhs(type.lhs, sizes.m, sizes.k, tile.m0, tile.k0, cpu);
  Operand rhs(type.rhs, sizes.n, sizes.k, tile.n0, tile.k0, cpu);
  Operand out(type.out, sizes.m, sizes.n, tile.m0, tile.n0, cpu);
  lhs.fill(type.lhs, 1);
  rhs.fill(type.rhs, 2);
  lhs.pack();
  rhs.pack();
  uk_mmt4d_params_t p = {};
  p.struct_size = sizeof(p);
  p.lhs = lhs.tiles.data();
  p.lhs_stride0 = lhs.panel_elements();
  p.rhs = rhs.tiles.data();
  p.rhs_stride0 = rhs.panel_elements();
  p.out = out.tiles.data();
  p.out_stride0 = out.panel_elements();
  p.m = lhs.panels();
  p.n = rhs.panels();
  p.k = lhs.steps();
  p.m0 = tile.m0;
  p.n0 = tile.n0;
  p.k0 = tile.k0;
  p.cpu_data = cpu.data();
  for (const uint32_t accumulate : {0u, UK_MMT4D_ACCUMULATE}) {
    p.flags = type.flag | accumulate;
    EXPECT_EQ(UK_STATUS_OK, uk_mmt4d(&p));
  }
  out.unpack();
  return out.matrix;
}

uint64_t digest(const Bytes& bytes) {  // FNV-1a
  uint64_t hash = UINT64_C(0xCBF29CE484222325);
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * UINT64_C(0x100000001B3);
  return hash;
}

// Without an FMA the chains of f32 and f64 have other bits, and so have bf16's on SSE2.
bool is_comparable(const MatmulType& type, const std::string& isa) {
  const bool multiplies_in_f32 = type.flag == UK_MMT4D_TYPE_F32F32F32 ||
                                 type.flag == UK_MMT4D_TYPE_F64F64F64 ||
                                 type.flag == UK_MMT4D_TYPE_BF16BF16F32;
  return isa != "sse2" || !multiplies_in_f32;
}

std::vector<Mmt4dTypeAtLevel> types_at_levels() {
  std::vector<Mmt4dTypeAtLevel> all;
  for (const MatmulType& type : mmt4d_types()) {
    for (const std::string& isa : level_names()) {
      if (is_comparable(type, isa)) all.push_back({type, isa});
    }
  }
  return all;
}

class Digest : public ::testing::TestWithParam<Mmt4dTypeAtLevel> {};

TEST_P(Digest, IsTheSameEverywhere) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  const MatmulType& type = GetParam().type;
  CpuData cpu = level_cpu_data(GetParam().isa);
  // Instructions for bf16 dots have an order of their own.
#if defined(__x86_64__)
  if (type.flag == UK_MMT4D_TYPE_BF16BF16F32) {
    cpu[0] &= ~(UK_CPU_X86_64_AVX512BF16 | UK_CPU_X86_64_AMXBF16);
  }
#elif defined(__aarch64__)
  if (type.flag == UK_MMT4D_TYPE_BF16BF16F32) cpu[0] &= ~UK_CPU_ARM_64_BF16;
#endif
  const auto recorded =
      std::find_if(std::begin(kRecorded), std::end(kRecorded),
                   [&](const Recorded& r) { return std::string(type.name) == r.type; });
  ASSERT_NE(std::end(kRecorded), recorded);
  for (size_t i = 0; i < std::size(kSizes); ++i) {
    const Sizes& s = kSizes[i];
    EXPECT_EQ(recorded->digests[i], digest(product(type, s, cpu)))
        << s.m << "x" << s.n << "x" << s.k;
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Digest, ::testing::ValuesIn(types_at_levels()), test_name);

}  // namespace
}  // namespace uk_test
