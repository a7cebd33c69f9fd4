// Every status that an op can return, provoked one at a time from a call that is otherwise valid,
// with all memory as it was. And what looks like an error but is none.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <functional>

#include "tests/ops/harness.h"
#include "ukernel/internal.h"

namespace uk_test {
namespace {

constexpr uk_index_t kMax = INT64_MAX, kMin = INT64_MIN;
constexpr uint32_t kF32 = UK_MMT4D_TYPE_F32F32F32;
static_assert(kF32 == UK_PACK_TYPE_F32, "one value serves the three ops");

// An op's params with the memory that they point to.
template <class Params>
struct Valid {
  Params p = {};
  std::vector<Bytes> memory;

  Valid() = default;
  Valid(Valid&&) = default;  // a copy's pointers would be the original's

  uint8_t* add(size_t bytes) {
    memory.push_back(random_bytes(bytes, memory.size() + 1));
    return memory.back().data();
  }
};

using Mmt4d = Valid<uk_mmt4d_params_t>;
using Pack = Valid<uk_pack_params_t>;
using Unpack = Valid<uk_unpack_params_t>;

uk_status_t run(const uk_mmt4d_params_t* p) { return uk_mmt4d(p); }
uk_status_t run(const uk_pack_params_t* p) { return uk_pack(p); }
uk_status_t run(const uk_unpack_params_t* p) { return uk_unpack(p); }

// 2x3x4 tiles of 3x5x2, scalar: every byte of the memory may be read, so that a call that should
// have been refused shows as a change and not as a crash.
Mmt4d valid_mmt4d(uint32_t type) {
  Mmt4d v;
  v.p.struct_size = sizeof(v.p);
  v.p.lhs = v.add(4096);
  v.p.rhs = v.add(4096);
  v.p.out = v.add(4096);
  v.p.lhs_stride0 = 24;
  v.p.rhs_stride0 = 40;
  v.p.out_stride0 = 45;
  v.p.m = 2;
  v.p.n = 3;
  v.p.k = 4;
  v.p.m0 = 3;
  v.p.n0 = 5;
  v.p.k0 = 2;
  v.p.flags = type | UK_MMT4D_ALLOW_GENERIC_FALLBACK;
  return v;
}

// A 5x7 matrix in 2x3 tiles of 4x3 (of 4x4 for four-bit elements).
Pack valid_pack(uint32_t type) {
  const bool four_bit = type == UK_PACK_TYPE_I4;
  Pack v;
  v.p.struct_size = sizeof(v.p);
  v.p.in = v.add(4096);
  v.p.in_stride0 = 8;
  v.p.in_stride1 = 1;
  v.p.in_size0 = 5;
  v.p.in_size1 = 7;
  v.p.out = v.add(4096);
  v.p.out_size0 = 2;
  v.p.out_size1 = 3;
  v.p.out_size2 = 4;
  v.p.out_size3 = four_bit ? 4 : 3;
  v.p.out_stride1 = four_bit ? 16 : 12;
  v.p.out_stride0 = 3 * v.p.out_stride1;
  v.p.flags = type;
  return v;
}

// The same way back; eight columns, since an unpack writes whole bytes.
Unpack valid_unpack(uint32_t type) {
  const Pack pack = valid_pack(type);
  Unpack v;
  v.p.struct_size = sizeof(v.p);
  v.p.in = v.add(4096);
  v.p.in_stride0 = pack.p.out_stride0;
  v.p.in_stride1 = pack.p.out_stride1;
  v.p.in_size0 = 2;
  v.p.in_size1 = 3;
  v.p.in_size2 = 4;
  v.p.in_size3 = pack.p.out_size3;
  v.p.out = v.add(4096);
  v.p.out_stride0 = 8;
  v.p.out_stride1 = 1;
  v.p.out_size0 = 5;
  v.p.out_size1 = 8;
  v.p.flags = type;
  return v;
}

template <class Params>
void expect_refused(Valid<Params>& v, uk_status_t expected) {
  const std::vector<Bytes> before = v.memory;
  EXPECT_EQ(expected, run(&v.p));
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(same_bytes(before[i], v.memory[i].data())) << "buffer " << i;
  }
}

// The valid call succeeds and writes, or no refusal of a variation of it means anything.
template <class Params>
void expect_valid(Valid<Params> v) {
  const std::vector<Bytes> before = v.memory;
  ASSERT_EQ(UK_STATUS_OK, run(&v.p));
  EXPECT_NE(before.back(), v.memory.back());
}

template <class Params>
struct Change {
  const char* name;
  uk_status_t expected;
  void (*change)(Params&);
};

template <class Params>
std::ostream& operator<<(std::ostream& out, const Change<Params>& c) {
  return out << c.name;
}

// Tests of the form: take the valid call, change it so, expect this.
#define UK_ERROR_TESTS(Suite, Params, valid, ...)                                         \
  class Suite : public ::testing::TestWithParam<Change<Params>> {};                       \
  TEST_P(Suite, IsRefused) {                                                              \
    expect_valid(valid);                                                                  \
    auto v = valid;                                                                       \
    GetParam().change(v.p);                                                               \
    expect_refused(v, GetParam().expected);                                               \
  }                                                                                       \
  INSTANTIATE_TEST_SUITE_P(All, Suite,                                                    \
                           ::testing::ValuesIn(std::vector<Change<Params>>{__VA_ARGS__}), \
                           [](const auto& tested) { return tested.param.name; })

#define UK_CHANGE(name, status, statements)               \
  {                                                       \
    name, UK_STATUS_##status, [](auto& p) { statements; } \
  }

// ---------------------------------------------------------------- params structs

// A struct that a newer caller would pass: fields that this library does not know behind its own.
template <class Params>
struct Newer {
  Params p;
  unsigned char tail[64];
};

template <class Params>
void check_struct_sizes(Valid<Params> (*valid)(uint32_t)) {
  EXPECT_EQ(UK_STATUS_BAD_STRUCT_SIZE, run(static_cast<const Params*>(nullptr)));
  expect_valid(valid(kF32));
  constexpr size_t kFirstVersion = offsetof(Params, cpu_data) + sizeof(const uint64_t*);
  for (const size_t size : {size_t{0}, size_t{1}, sizeof(size_t), kFirstVersion - 1, SIZE_MAX,
                            SIZE_MAX / 2, size_t{1} << 20}) {
    Valid<Params> v = valid(kF32);
    v.p.struct_size = size;
    expect_refused(v, UK_STATUS_BAD_STRUCT_SIZE);
  }
  Valid<Params> oldest = valid(kF32);
  oldest.p.struct_size = kFirstVersion;
  expect_valid(std::move(oldest));
  for (const size_t extra : {size_t{1}, size_t{8}, size_t{64}}) {
    for (const bool zero : {true, false}) {
      Valid<Params> v = valid(kF32);
      Newer<Params> newer = {};
      v.p.struct_size = sizeof(Params) + extra;
      newer.p = v.p;
      // The last byte that struct_size counts, and the first that it does not.
      if (!zero) newer.tail[extra - 1] = 1;
      if (extra < sizeof(newer.tail)) newer.tail[extra] = 1;
      const std::vector<Bytes> before = v.memory;
      EXPECT_EQ(zero ? UK_STATUS_OK : UK_STATUS_BAD_STRUCT_SIZE, run(&newer.p)) << extra;
      EXPECT_EQ(zero, before != v.memory) << extra;
    }
  }
}

TEST(StructSize, Mmt4d) { check_struct_sizes(valid_mmt4d); }
TEST(StructSize, Pack) { check_struct_sizes(valid_pack); }
TEST(StructSize, Unpack) { check_struct_sizes(valid_unpack); }

// ---------------------------------------------------------------- mmt4d

// 2x3 tiles of 3x5 as a matrix, with a part of the last ones.
void unpack_out(uk_mmt4d_params_t& p) {
  p.flags |= UK_MMT4D_UNPACK_OUT;
  p.out_size0 = 5;
  p.out_size1 = 14;
  p.out_stride0 = 14;
}

Mmt4d valid_unpacked_mmt4d() {
  Mmt4d v = valid_mmt4d(UK_MMT4D_TYPE_F32F32F32);
  unpack_out(v.p);
  return v;
}

// What uk_mmt4d_info refuses too.
const std::vector<Change<uk_mmt4d_params_t>> kMmt4dShapeErrors = {
    UK_CHANGE("TypeZero", BAD_TYPE, p.flags &= ~UK_MMT4D_TYPE_MASK),
    UK_CHANGE("TypeUnknown", BAD_TYPE, p.flags = UK_MMT4D_ALLOW_GENERIC_FALLBACK | 0x0B),
    UK_CHANGE("TypeUnknownOwn", BAD_TYPE, p.flags = UK_MMT4D_ALLOW_GENERIC_FALLBACK | 0x42),
    UK_CHANGE("FlagUnknown", BAD_FLAGS, p.flags |= 0x800),
    UK_CHANGE("FlagUnknownHigh", BAD_FLAGS, p.flags |= 0x20000000),
    UK_CHANGE("FlagPrefetch", BAD_FLAGS, p.flags |= UK_MMT4D_PREFETCH_RHS),
    UK_CHANGE("NegativeM", BAD_EXTENT, p.m = -1),
    UK_CHANGE("NegativeN", BAD_EXTENT, p.n = -1),
    UK_CHANGE("NegativeK", BAD_EXTENT, p.k = -1),
    UK_CHANGE("SmallestM", BAD_EXTENT, p.m = kMin),
    UK_CHANGE("NegativeMOfNothing", BAD_EXTENT, p.m = -1; p.n = 0),
    UK_CHANGE("ZeroM0", BAD_TILE_SHAPE, p.m0 = 0),
    UK_CHANGE("ZeroN0", BAD_TILE_SHAPE, p.n0 = 0),
    UK_CHANGE("ZeroK0", BAD_TILE_SHAPE, p.k0 = 0),
    UK_CHANGE("NegativeM0", BAD_TILE_SHAPE, p.m0 = -3),
    UK_CHANGE("NegativeN0", BAD_TILE_SHAPE, p.n0 = INT32_MIN),
    UK_CHANGE("NegativeK0", BAD_TILE_SHAPE, p.k0 = -1),
    UK_CHANGE("NoTile", NO_TILE, p.flags &= ~UK_MMT4D_ALLOW_GENERIC_FALLBACK),
    UK_CHANGE("NoTileOfNothing", NO_TILE, p.flags &= ~UK_MMT4D_ALLOW_GENERIC_FALLBACK; p.m = 0),
    UK_CHANGE("UnpackedRowsNegative", BAD_EXTENT, unpack_out(p); p.out_size0 = -1),
    UK_CHANGE("UnpackedColumnsNegative", BAD_EXTENT, unpack_out(p); p.out_size1 = kMin),
    UK_CHANGE("UnpackedRowsNotCovered", BAD_EXTENT, unpack_out(p); p.out_size0 = 7),
    UK_CHANGE("UnpackedColumnsNotCovered", BAD_EXTENT, unpack_out(p); p.out_size1 = 16),
    UK_CHANGE("UnpackedRowsHuge", BAD_EXTENT, unpack_out(p); p.out_size0 = kMax),
};

class Mmt4dShapeErrors : public ::testing::TestWithParam<Change<uk_mmt4d_params_t>> {};

TEST_P(Mmt4dShapeErrors, AreRefusedByTheOpAndByInfo) {
  expect_valid(valid_mmt4d(UK_MMT4D_TYPE_F32F32F32));
  Mmt4d v = valid_mmt4d(UK_MMT4D_TYPE_F32F32F32);
  GetParam().change(v.p);
  expect_refused(v, GetParam().expected);
  const uk_tile_row_t untouched = {};
  const uk_tile_row_t* row = &untouched;
  EXPECT_EQ(GetParam().expected, uk_mmt4d_info(&v.p, &row));
  EXPECT_EQ(&untouched, row);
}

INSTANTIATE_TEST_SUITE_P(All, Mmt4dShapeErrors, ::testing::ValuesIn(kMmt4dShapeErrors),
                         [](const auto& tested) { return tested.param.name; });

UK_ERROR_TESTS(
    Mmt4dBufferErrors, uk_mmt4d_params_t, valid_mmt4d(UK_MMT4D_TYPE_F32F32F32),
    UK_CHANGE("NullLhs", NULL_POINTER, p.lhs = nullptr),
    UK_CHANGE("NullRhs", NULL_POINTER, p.rhs = nullptr),
    UK_CHANGE("NullOut", NULL_POINTER, p.out = nullptr),
    UK_CHANGE("NullOutWithoutK", NULL_POINTER, p.out = nullptr; p.k = 0),
    UK_CHANGE("HugeM", OVERFLOW, p.m = kMax), UK_CHANGE("HugeN", OVERFLOW, p.n = kMax),
    UK_CHANGE("HugeK", OVERFLOW, p.k = kMax),
    UK_CHANGE("HugeTile", OVERFLOW, p.m0 = p.n0 = p.k0 = INT32_MAX),
    UK_CHANGE("HugePanel", OVERFLOW, p.k0 = INT32_MAX; p.k = INT64_C(1) << 33),
    // In elements it fits 64 bits, in bits it does not.
    UK_CHANGE("PanelBeyondMemory", OVERFLOW, p.k = kMax / 32),
    UK_CHANGE("LhsPanelsBeyondMemory", OVERFLOW, p.lhs_stride0 = p.rhs_stride0 = 0;
              p.m = p.k = INT64_C(1) << 30),
    // Nothing is read, but the walk counts what would be.
    UK_CHANGE("LhsStepsBeyondMemory", OVERFLOW, p.k = 0; p.m0 = p.n0 = p.n = 1; p.k0 = INT32_MAX;
              p.m = (INT64_C(1) << 30) + 1; p.out_stride0 = 1),
    UK_CHANGE("UnpackedTilesBeyondMemory", OVERFLOW, unpack_out(p); p.k = 0; p.m0 = INT32_MAX;
              p.n0 = 1 << 20; p.m = 1; p.n = 1 << 10; p.out_size0 = 1;
              p.out_size1 = (INT64_C(1) << 30) - 1),
    // A stride in bits fits 64 bits, four of them do not.
    UK_CHANGE("LhsStridesBeyondMemory", OVERFLOW, p.m = 5; p.lhs_stride0 = INT64_C(1) << 57),
    UK_CHANGE("RhsStridesBeyondMemory", OVERFLOW, p.n = 5; p.rhs_stride0 = INT64_C(1) << 57),
    UK_CHANGE("OutStridesBeyondMemory", OVERFLOW, p.m = 5; p.out_stride0 = INT64_C(1) << 57),
    UK_CHANGE("LhsStrideMax", OVERFLOW, p.lhs_stride0 = kMax),
    UK_CHANGE("LhsStrideMin", OVERFLOW, p.lhs_stride0 = kMin),
    UK_CHANGE("RhsStrideMax", OVERFLOW, p.rhs_stride0 = kMax),
    UK_CHANGE("RhsStrideMin", OVERFLOW, p.rhs_stride0 = kMin),
    UK_CHANGE("OutStrideMax", OVERFLOW, p.out_stride0 = kMax),
    UK_CHANGE("OutStrideMin", OVERFLOW, p.out_stride0 = kMin),
    UK_CHANGE("LhsOffsetMax", OVERFLOW, p.lhs_offset = kMax),
    UK_CHANGE("LhsOffsetMin", OVERFLOW, p.lhs_offset = kMin),
    UK_CHANGE("RhsOffsetMax", OVERFLOW, p.rhs_offset = kMax),
    UK_CHANGE("OutOffsetMax", OVERFLOW, p.out_offset = kMax),
    UK_CHANGE("LhsBelowAddressZero", OVERFLOW, p.lhs_offset = -(kMax / 64)),
    UK_CHANGE("OutStrideZero", BAD_STRIDE, p.out_stride0 = 0),
    UK_CHANGE("OutStrideOneShort", BAD_STRIDE, p.out_stride0 = 44),
    UK_CHANGE("OutStrideOneShortUpward", BAD_STRIDE, p.out_stride0 = -44; p.out_offset = 100),
    UK_CHANGE("OutIsLhs", OVERLAP, p.out = const_cast<void*>(p.lhs)),
    UK_CHANGE("OutIsRhs", OVERLAP, p.out = const_cast<void*>(p.rhs)),
    UK_CHANGE("OutEndsInLhs", OVERLAP, p.out = const_cast<void*>(p.lhs); p.lhs_offset = 89),
    UK_CHANGE("OutStartsInLhs", OVERLAP, p.out = const_cast<void*>(p.lhs); p.out_offset = 47),
    UK_CHANGE("OutStartsInRhs", OVERLAP, p.out = const_cast<void*>(p.rhs); p.out_offset = 119),
    UK_CHANGE("LhsInsideOut", OVERLAP, p.out = const_cast<void*>(p.lhs); p.out_stride0 = 400;
              p.lhs_offset = 420; p.lhs_stride0 = 0));

UK_ERROR_TESTS(Mmt4dUnpackedOutErrors, uk_mmt4d_params_t, valid_unpacked_mmt4d(),
               UK_CHANGE("NullOut", NULL_POINTER, p.out = nullptr),
               UK_CHANGE("OutStrideZero", BAD_STRIDE, p.out_stride0 = 0),
               UK_CHANGE("OutStrideOneShort", BAD_STRIDE, p.out_stride0 = 13),
               UK_CHANGE("OutStrideOneShortUpward", BAD_STRIDE, p.out_stride0 = -13;
                         p.out_offset = 100),
               UK_CHANGE("OutStrideMax", OVERFLOW, p.out_stride0 = kMax),
               UK_CHANGE("OutStridesBeyondMemory", OVERFLOW, p.out_stride0 = INT64_C(1) << 57),
               UK_CHANGE("OutOffsetMin", OVERFLOW, p.out_offset = kMin),
               UK_CHANGE("HugeTile", OVERFLOW, p.flags |= UK_MMT4D_ALLOW_GENERIC_FALLBACK;
                         p.m0 = p.n0 = INT32_MAX; p.k = 0),
               UK_CHANGE("HugeMatrix", OVERFLOW, p.m = p.n = kMax / 8;
                         p.out_size0 = p.out_size1 = p.out_stride0 = kMax / 8),
               UK_CHANGE("OutIsLhs", OVERLAP, p.out = const_cast<void*>(p.lhs)),
               UK_CHANGE("LastRowInRhs", OVERLAP, p.out = const_cast<void*>(p.rhs);
                         p.rhs_offset = 4 * 14 + 13));

TEST(Mmt4dIsNotAnError, InputBehindTheUnpackedMatrix) {
  Mmt4d v = valid_unpacked_mmt4d();
  v.p.out = const_cast<void*>(v.p.rhs);
  v.p.rhs_offset = 4 * 14 + 14;
  EXPECT_EQ(UK_STATUS_OK, run(&v.p));
}

UK_ERROR_TESTS(Mmt4dFourBitRhsErrors, uk_mmt4d_params_t, valid_mmt4d(UK_MMT4D_TYPE_S8S4S32),
               UK_CHANGE("OddK0", SPLIT_BYTE, p.k0 = 3),
               UK_CHANGE("OddOffset", SPLIT_BYTE, p.rhs_offset = 1),
               UK_CHANGE("OddNegativeOffset", SPLIT_BYTE, p.rhs_offset = -1),
               UK_CHANGE("OddStride", SPLIT_BYTE, p.rhs_stride0 = 41),
               UK_CHANGE("OddNegativeStride", SPLIT_BYTE, p.rhs_stride0 = -41; p.rhs_offset = 200));

uk_status_t after(uint32_t type, const std::function<void(Mmt4d&)>& change) {
  Mmt4d v = valid_mmt4d(type);
  change(v);
  const std::vector<Bytes> before = v.memory;
  const uk_status_t status = run(&v.p);
  EXPECT_EQ(status == UK_STATUS_OK && v.p.m > 0 && v.p.n > 0, before != v.memory);
  return status;
}

TEST(Mmt4dIsNotAnError, StridesAndOffsetsThatNothingUses) {
  const auto odd_strides = [](Mmt4d& v) { v.p.lhs_stride0 = v.p.rhs_stride0 = kMin; };
  EXPECT_EQ(UK_STATUS_OK, after(UK_MMT4D_TYPE_S8S4S32, [&](Mmt4d& v) {
              odd_strides(v);
              v.p.m = v.p.n = 1;
              v.p.rhs_stride0 = 41;
              v.p.out_stride0 = 0;
            }));
  // Eight-bit elements have no bytes to split.
  EXPECT_EQ(UK_STATUS_OK, after(UK_MMT4D_TYPE_S8S4S32, [&](Mmt4d& v) {
              v.p.lhs_stride0 = 25;
              v.p.lhs_offset = 3;
              v.p.out_offset = 1;
            }));
}

// Of a matrix of one row.
TEST(Mmt4dIsNotAnError, StrideOfALoneRowOfOut) {
  for (const bool generic : {true, false}) {
    for (const uk_index_t stride : {kMin, uk_index_t{-1}, uk_index_t{0}, kMax}) {
      EXPECT_EQ(UK_STATUS_OK, after(UK_MMT4D_TYPE_S8S8S32, [&](Mmt4d& v) {
                  if (!generic) v.p.m0 = 1, v.p.n0 = 8, v.p.k0 = 2;
                  v.p.flags |= UK_MMT4D_UNPACK_OUT;
                  v.p.out_size0 = 1;
                  v.p.out_size1 = 3 * v.p.n0;
                  v.p.out_stride0 = stride;
                }));
    }
  }
}

TEST(Mmt4dIsNotAnError, NullOperandsOfNothing) {
  for (const uint32_t type : {UK_MMT4D_TYPE_F32F32F32, UK_MMT4D_TYPE_S16U4S32}) {
    EXPECT_EQ(UK_STATUS_OK, after(type, [](Mmt4d& v) {
                v.p.m = 0;
                v.p.lhs = v.p.rhs = v.p.out = nullptr;
              }));
    EXPECT_EQ(UK_STATUS_OK, after(type, [](Mmt4d& v) {
                v.p.n = 0;
                v.p.lhs = v.p.rhs = v.p.out = nullptr;
              }));
    EXPECT_EQ(UK_STATUS_OK, after(type, [](Mmt4d& v) {
                v.p.k = 0;
                v.p.lhs = v.p.rhs = nullptr;
              }));
  }
}

// Sizes whose product has no number, of a matmul that has no work.
TEST(Mmt4dIsNotAnError, HugeExtentsOfNothing) {
  for (const uint32_t type : {UK_MMT4D_TYPE_F32F32F32, UK_MMT4D_TYPE_F64F64F64}) {
    EXPECT_EQ(UK_STATUS_OK, after(type, [](Mmt4d& v) {
                v.p.m = 0;
                v.p.n = v.p.k = kMax;
                v.p.m0 = v.p.n0 = v.p.k0 = INT32_MAX;
              }));
    EXPECT_EQ(UK_STATUS_OK, after(type, [](Mmt4d& v) {
                v.p.n = 0;
                v.p.m = v.p.k = kMax;
                v.p.m0 = v.p.n0 = v.p.k0 = INT32_MAX;
              }));
  }
}

TEST(Mmt4dIsNotAnError, OperandsSideBySideOrInTheGapsOfOut) {
  Mmt4d apart = valid_mmt4d(UK_MMT4D_TYPE_F32F32F32);
  ASSERT_EQ(UK_STATUS_OK, run(&apart.p));
  const Bytes product(apart.memory[2].begin(), apart.memory[2].begin() + 90 * 4);
  const auto product_of = [](const Mmt4d& v) {
    const auto* out = static_cast<const uint8_t*>(v.p.out);
    Bytes rows;
    for (uk_index_t i = 0; i < v.p.m; ++i) {
      const uint8_t* row = out + (v.p.out_offset + i * v.p.out_stride0) * 4;
      rows.insert(rows.end(), row, row + 45 * 4);
    }
    return rows;
  };
  // LHS is 48 elements, OUT 90.
  for (const bool lhs_first : {true, false}) {
    Mmt4d v = valid_mmt4d(UK_MMT4D_TYPE_F32F32F32);
    const uk_index_t lhs_offset = lhs_first ? 0 : 90;
    memmove(v.memory[0].data() + lhs_offset * 4, v.memory[0].data(), 48 * 4);
    v.p.out = v.memory[0].data();
    v.p.lhs_offset = lhs_offset;
    v.p.out_offset = lhs_first ? 48 : 0;
    ASSERT_EQ(UK_STATUS_OK, run(&v.p)) << lhs_first;
    EXPECT_EQ(product, product_of(v)) << lhs_first;
  }
  // Rows of OUT at 0 and 69, LHS panels in between and behind.
  Mmt4d v = valid_mmt4d(UK_MMT4D_TYPE_F32F32F32);
  uint8_t* memory = v.memory[0].data();
  memmove(memory + (69 + 45) * 4, memory + 24 * 4, 24 * 4);
  memmove(memory + 45 * 4, memory, 24 * 4);
  v.p.out = memory;
  v.p.lhs_offset = 45;
  v.p.lhs_stride0 = v.p.out_stride0 = 69;
  ASSERT_EQ(UK_STATUS_OK, run(&v.p));
  EXPECT_EQ(product, product_of(v));
  // One element nearer, and they do overlap.
  v.p.lhs_offset = 44;
  expect_refused(v, UK_STATUS_OVERLAP);
}

TEST(Mmt4dInfo, NeedsNoBuffersButARow) {
  uk_mmt4d_params_t p = {};
  p.struct_size = sizeof(p);
  p.m = p.n = p.k = 7;
  p.m0 = p.n0 = p.k0 = 1;
  p.flags = UK_MMT4D_TYPE_F32F32F32 | UK_MMT4D_ALLOW_GENERIC_FALLBACK;
  const uk_tile_row_t* row = nullptr;
  EXPECT_EQ(UK_STATUS_OK, uk_mmt4d_info(&p, &row));
  EXPECT_NE(nullptr, row);
  EXPECT_EQ(UK_STATUS_NULL_POINTER, uk_mmt4d_info(&p, nullptr));
  EXPECT_EQ(UK_STATUS_BAD_STRUCT_SIZE, uk_mmt4d_info(nullptr, &row));
}

// ---------------------------------------------------------------- pack

UK_ERROR_TESTS(
    PackErrors, uk_pack_params_t, valid_pack(UK_PACK_TYPE_F32),
    UK_CHANGE("TypeZero", BAD_TYPE, p.flags = 0),
    UK_CHANGE("TypeUnknown", BAD_TYPE, p.flags = 0x06),
    UK_CHANGE("TypeUnknownOwn", BAD_TYPE, p.flags = 0x43),
    UK_CHANGE("FlagUnknown", BAD_FLAGS, p.flags |= 0x400),
    UK_CHANGE("FlagUnknownHigh", BAD_FLAGS, p.flags |= 0x80000000u),
    UK_CHANGE("NegativeInSize0", BAD_EXTENT, p.in_size0 = -1),
    UK_CHANGE("NegativeInSize1", BAD_EXTENT, p.in_size1 = -1),
    UK_CHANGE("NegativeOutSize0", BAD_EXTENT, p.out_size0 = -1),
    UK_CHANGE("NegativeOutSize1", BAD_EXTENT, p.out_size1 = kMin),
    UK_CHANGE("ZeroTile0", BAD_TILE_SHAPE, p.out_size2 = 0),
    UK_CHANGE("ZeroTile1", BAD_TILE_SHAPE, p.out_size3 = 0),
    UK_CHANGE("NegativeTile0", BAD_TILE_SHAPE, p.out_size2 = -4),
    UK_CHANGE("NegativeTile1", BAD_TILE_SHAPE, p.out_size3 = kMin),
    UK_CHANGE("TooFewTilesDown", BAD_EXTENT, p.out_size0 = 1),
    UK_CHANGE("TooFewTilesAcross", BAD_EXTENT, p.out_size1 = 2),
    UK_CHANGE("NoTiles", BAD_EXTENT, p.out_size0 = 0),
    UK_CHANGE("OneRowTooMany", BAD_EXTENT, p.in_size0 = 9),
    UK_CHANGE("OneColumnTooMany", BAD_EXTENT, p.in_size1 = 10),
    UK_CHANGE("TooFewTilesTransposed", BAD_EXTENT, p.flags |= UK_PACK_TRANSPOSE_OUTER;
              p.in_size1 = 9; p.in_size0 = 8),
    UK_CHANGE("NullIn", NULL_POINTER, p.in = nullptr),
    UK_CHANGE("NullOut", NULL_POINTER, p.out = nullptr),
    UK_CHANGE("NullOutOfPadding", NULL_POINTER, p.out = nullptr; p.in_size0 = 0),
    UK_CHANGE("HugeOutSize0", OVERFLOW, p.out_size0 = kMax),
    UK_CHANGE("HugeOutSize1", OVERFLOW, p.out_size1 = kMax),
    UK_CHANGE("HugeTile", OVERFLOW, p.out_size2 = p.out_size3 = kMax),
    UK_CHANGE("HugeTileOfNoTiles", OVERFLOW, p.in_size0 = p.out_size0 = 0;
              p.out_size2 = INT64_C(1) << 31; p.out_size3 = INT64_C(1) << 30),
    UK_CHANGE("HugeMatrix", OVERFLOW, p.in_size0 = p.in_size1 = kMax;
              p.out_size0 = p.out_size1 = kMax),
    UK_CHANGE("InStridesBeyondMemory", OVERFLOW, p.in_stride0 = INT64_C(1) << 57),
    UK_CHANGE("InStride0Max", OVERFLOW, p.in_stride0 = kMax),
    UK_CHANGE("InStride0Min", OVERFLOW, p.in_stride0 = kMin),
    UK_CHANGE("InStride1Max", OVERFLOW, p.in_stride1 = kMax),
    UK_CHANGE("InStride1Min", OVERFLOW, p.in_stride1 = kMin),
    // Three columns as far apart as make a number that has no magnitude.
    UK_CHANGE("InReachMin", OVERFLOW, p.in_size1 = 3; p.in_stride0 = p.in_stride1 = kMin / 2),
    UK_CHANGE("OutStride0Max", OVERFLOW, p.out_stride0 = kMax),
    UK_CHANGE("OutStride1Min", OVERFLOW, p.out_stride1 = kMin),
    UK_CHANGE("InOffsetMax", OVERFLOW, p.in_offset = kMax),
    UK_CHANGE("InOffsetMin", OVERFLOW, p.in_offset = kMin),
    UK_CHANGE("OutOffsetMax", OVERFLOW, p.out_offset = kMax),
    UK_CHANGE("OutBelowAddressZero", OVERFLOW, p.out_offset = -(kMax / 64)),
    UK_CHANGE("OutStride0Zero", BAD_STRIDE, p.out_stride0 = 0),
    UK_CHANGE("OutStride1Zero", BAD_STRIDE, p.out_stride1 = 0),
    UK_CHANGE("OutStride0OneShort", BAD_STRIDE, p.out_stride0 = 35),
    UK_CHANGE("OutStride1OneShort", BAD_STRIDE, p.out_stride1 = 11),
    UK_CHANGE("OutStride1OneShortUpward", BAD_STRIDE, p.out_stride1 = -11; p.out_offset = 50),
    UK_CHANGE("OutIsIn", OVERLAP, p.out = const_cast<void*>(p.in)),
    // The matrix spans 39 elements, the tiles 72.
    UK_CHANGE("OutStartsInIn", OVERLAP, p.out = const_cast<void*>(p.in); p.out_offset = 38),
    UK_CHANGE("OutEndsInIn", OVERLAP, p.out = const_cast<void*>(p.in); p.in_offset = 71));

UK_ERROR_TESTS(PackFourBitErrors, uk_pack_params_t, valid_pack(UK_PACK_TYPE_I4),
               UK_CHANGE("OddInOffset", SPLIT_BYTE, p.in_offset = 1),
               UK_CHANGE("OddOutOffset", SPLIT_BYTE, p.out_offset = 1),
               UK_CHANGE("OddInStride0", SPLIT_BYTE, p.in_stride0 = 9),
               UK_CHANGE("OddOutStride0", SPLIT_BYTE, p.out_stride0 = 49),
               UK_CHANGE("OddOutStride1", SPLIT_BYTE, p.out_stride1 = 17),
               UK_CHANGE("OddTile", SPLIT_BYTE, p.out_size2 = 5; p.out_size3 = 3;
                         p.out_stride1 = 16));

TEST(PackIsNotAnError, SourcesAndTilesOfNothing) {
  // Tiles of padding alone need no source.
  for (const int empty : {0, 1}) {
    Pack v = valid_pack(UK_PACK_TYPE_F32);
    (empty == 0 ? v.p.in_size0 : v.p.in_size1) = 0;
    v.p.in = nullptr;
    v.p.in_offset = v.p.in_stride0 = kMax;
    v.p.in_stride1 = empty == 0 ? 1 : kMin;
    v.p.padding_value = UINT64_C(0x1122334455667788);
    Bytes expected = v.memory[1];
    for (uk_index_t i = 0; i < 2 * 3 * 4 * 3; ++i) store_bits(expected.data(), i, 32, 0x55667788);
    EXPECT_EQ(UK_STATUS_OK, run(&v.p));
    EXPECT_TRUE(same_bytes(expected, v.memory[1].data()));
  }
  for (const uint32_t outer : {0u, uint32_t{UK_PACK_TRANSPOSE_OUTER}}) {
    for (const int empty : {0, 1}) {
      Pack v = valid_pack(UK_PACK_TYPE_F32);
      v.p.flags |= outer;
      v.p.in_size0 = v.p.in_size1 = 0;
      (empty == 0 ? v.p.out_size0 : v.p.out_size1) = 0;
      (empty == 0 ? v.p.out_size1 : v.p.out_size0) = kMax;  // not to be counted through
      v.p.in = v.p.out = nullptr;
      EXPECT_EQ(UK_STATUS_OK, run(&v.p));
    }
  }
}

TEST(PackIsNotAnError, StridesThatNothingUses) {
  Pack v = valid_pack(UK_PACK_TYPE_I4);
  v.p.in_size0 = v.p.in_size1 = v.p.out_size0 = v.p.out_size1 = 1;
  v.p.in_stride0 = v.p.in_stride1 = v.p.out_stride0 = v.p.out_stride1 = kMin + 1;
  EXPECT_EQ(UK_STATUS_OK, run(&v.p));
  EXPECT_EQ(v.memory[0][0] & 0xF, v.memory[1][0]);
}

TEST(PackIsNotAnError, SourceBesideTheTilesOrInTheirGaps) {
  Pack apart = valid_pack(UK_PACK_TYPE_F32);
  ASSERT_EQ(UK_STATUS_OK, run(&apart.p));
  const Bytes packed(apart.memory[1].begin(), apart.memory[1].begin() + 72 * 4);
  Pack beside = valid_pack(UK_PACK_TYPE_F32);
  beside.p.out = beside.memory[0].data();
  beside.p.out_offset = 39;
  ASSERT_EQ(UK_STATUS_OK, run(&beside.p));
  EXPECT_EQ(packed, Bytes(beside.memory[0].begin() + 39 * 4, beside.memory[0].begin() + 111 * 4));
  // Rows of tiles at 0 and 75, the matrix from 36.
  Pack between = valid_pack(UK_PACK_TYPE_F32);
  uint8_t* memory = between.memory[0].data();
  memmove(memory + 36 * 4, memory, 39 * 4);
  between.p.out = memory;
  between.p.in_offset = 36;
  between.p.out_stride0 = 75;
  ASSERT_EQ(UK_STATUS_OK, run(&between.p));
  EXPECT_EQ(0, memcmp(packed.data(), memory, 36 * 4));
  EXPECT_EQ(0, memcmp(packed.data() + 36 * 4, memory + 75 * 4, 36 * 4));
  between.p.in_offset = 35;
  expect_refused(between, UK_STATUS_OVERLAP);
}

// ---------------------------------------------------------------- unpack

UK_ERROR_TESTS(
    UnpackErrors, uk_unpack_params_t, valid_unpack(UK_PACK_TYPE_F32),
    UK_CHANGE("TypeZero", BAD_TYPE, p.flags = 0),
    UK_CHANGE("TypeUnknown", BAD_TYPE, p.flags = 0x06),
    UK_CHANGE("FlagUnknown", BAD_FLAGS, p.flags |= 0x400),
    UK_CHANGE("NegativeInSize0", BAD_EXTENT, p.in_size0 = -1),
    UK_CHANGE("NegativeInSize1", BAD_EXTENT, p.in_size1 = kMin),
    UK_CHANGE("NegativeOutSize0", BAD_EXTENT, p.out_size0 = -1),
    UK_CHANGE("NegativeOutSize1", BAD_EXTENT, p.out_size1 = -1),
    UK_CHANGE("ZeroTile0", BAD_TILE_SHAPE, p.in_size2 = 0),
    UK_CHANGE("ZeroTile1", BAD_TILE_SHAPE, p.in_size3 = 0),
    UK_CHANGE("NegativeTile0", BAD_TILE_SHAPE, p.in_size2 = -1),
    UK_CHANGE("TooFewTilesDown", BAD_EXTENT, p.in_size0 = 1),
    UK_CHANGE("TooFewTilesAcross", BAD_EXTENT, p.in_size1 = 2),
    UK_CHANGE("OneRowTooMany", BAD_EXTENT, p.out_size0 = 9),
    UK_CHANGE("OneColumnTooMany", BAD_EXTENT, p.out_size1 = 10),
    UK_CHANGE("NullIn", NULL_POINTER, p.in = nullptr),
    UK_CHANGE("NullOut", NULL_POINTER, p.out = nullptr),
    UK_CHANGE("HugeInSize0", OVERFLOW, p.in_size0 = kMax),
    UK_CHANGE("HugeInSize1", OVERFLOW, p.in_size1 = kMax),
    UK_CHANGE("HugeTile", OVERFLOW, p.in_size2 = p.in_size3 = kMax),
    UK_CHANGE("HugeMatrix", OVERFLOW, p.in_size0 = p.in_size1 = kMax;
              p.out_size0 = p.out_size1 = kMax),
    UK_CHANGE("InStridesBeyondMemory", OVERFLOW, p.in_size0 = 5; p.in_stride0 = INT64_C(1) << 57),
    UK_CHANGE("TilesBeyondMemory", OVERFLOW, p.in_size0 = INT64_C(1) << 55),
    UK_CHANGE("InStride0Max", OVERFLOW, p.in_stride0 = kMax),
    UK_CHANGE("InStride1Min", OVERFLOW, p.in_stride1 = kMin),
    UK_CHANGE("OutStride0Max", OVERFLOW, p.out_stride0 = kMax),
    UK_CHANGE("OutStride0Min", OVERFLOW, p.out_stride0 = kMin),
    UK_CHANGE("OutStride1Max", OVERFLOW, p.out_stride1 = kMax),
    UK_CHANGE("OutStride1Min", OVERFLOW, p.out_stride1 = kMin),
    UK_CHANGE("InOffsetMax", OVERFLOW, p.in_offset = kMax),
    UK_CHANGE("OutOffsetMax", OVERFLOW, p.out_offset = kMax),
    UK_CHANGE("OutBelowAddressZero", OVERFLOW, p.out_offset = -(kMax / 64)),
    UK_CHANGE("OutStride0Zero", BAD_STRIDE, p.out_stride0 = 0),
    UK_CHANGE("OutStride1Zero", BAD_STRIDE, p.out_stride1 = 0),
    UK_CHANGE("OutStride0OneShort", BAD_STRIDE, p.out_stride0 = 7),
    UK_CHANGE("OutStride0OneShortUpward", BAD_STRIDE, p.out_stride0 = -7; p.out_offset = 50),
    UK_CHANGE("OutColumnsOneShort", BAD_STRIDE, p.out_stride0 = 1; p.out_stride1 = 4),
    UK_CHANGE("OutStridesEqual", BAD_STRIDE, p.out_stride0 = p.out_stride1 = 8),
    UK_CHANGE("OutIsIn", OVERLAP, p.out = const_cast<void*>(p.in)),
    // The tiles span 72 elements, the matrix 40.
    UK_CHANGE("OutStartsInIn", OVERLAP, p.out = const_cast<void*>(p.in); p.out_offset = 71),
    UK_CHANGE("OutEndsInIn", OVERLAP, p.out = const_cast<void*>(p.in); p.in_offset = 39));

UK_ERROR_TESTS(UnpackFourBitErrors, uk_unpack_params_t, valid_unpack(UK_PACK_TYPE_I4),
               UK_CHANGE("OddInOffset", SPLIT_BYTE, p.in_offset = 1),
               UK_CHANGE("OddOutOffset", SPLIT_BYTE, p.out_offset = 1),
               UK_CHANGE("OddOutStride0", SPLIT_BYTE, p.out_stride0 = 9),
               UK_CHANGE("OddInStride0", SPLIT_BYTE, p.in_stride0 = 49),
               UK_CHANGE("OddInStride1", SPLIT_BYTE, p.in_stride1 = 17),
               // The other half of the last byte is not the matrix's to write.
               UK_CHANGE("OddRowOfTheMatrix", SPLIT_BYTE, p.out_size1 = 7));

TEST(UnpackIsNotAnError, NothingToWrite) {
  for (const int empty : {0, 1}) {
    Unpack v = valid_unpack(UK_PACK_TYPE_F32);
    (empty == 0 ? v.p.out_size0 : v.p.out_size1) = 0;
    v.p.out = nullptr;
    v.p.out_stride0 = v.p.out_stride1 = 0;
    expect_refused(v, UK_STATUS_OK);
    v.p.out_offset = v.p.out_stride0 = kMax;
    v.p.out_stride1 = 1;
    expect_refused(v, UK_STATUS_OK);
    v.p.in_size0 = 0;
    v.p.in = nullptr;
    expect_refused(v, UK_STATUS_OK);
  }
}

TEST(UnpackIsNotAnError, TilesBesideTheMatrix) {
  Unpack apart = valid_unpack(UK_PACK_TYPE_F32);
  ASSERT_EQ(UK_STATUS_OK, run(&apart.p));
  Unpack beside = valid_unpack(UK_PACK_TYPE_F32);
  beside.p.out = beside.memory[0].data();
  beside.p.out_offset = 72;
  ASSERT_EQ(UK_STATUS_OK, run(&beside.p));
  EXPECT_EQ(0, memcmp(apart.memory[1].data(), beside.memory[0].data() + 72 * 4, 40 * 4));
}

// ---------------------------------------------------------------- tags

#if defined(__aarch64__)
// What these cores ignore in an address. With the upper one it is negative as a number.
constexpr uint64_t kTags[] = {0x34, 0xB4};

template <class T>
T* tagged(T* pointer, uint64_t tag) {
  return reinterpret_cast<T*>(reinterpret_cast<uint64_t>(pointer) | tag << 56);
}

TEST(TaggedAddresses, AreThoseOfTheSameMemory) {
  for (const uint64_t tag : kTags) {
    Mmt4d plain = valid_mmt4d(UK_MMT4D_TYPE_F32F32F32), v = valid_mmt4d(UK_MMT4D_TYPE_F32F32F32);
    ASSERT_EQ(UK_STATUS_OK, run(&plain.p));
    v.p.lhs = tagged(v.p.lhs, tag);
    v.p.rhs = tagged(v.p.rhs, tag);
    void* const out = v.p.out;
    v.p.out = tagged(const_cast<void*>(v.p.lhs), tag ^ 0xFF);
    expect_refused(v, UK_STATUS_OVERLAP);
    v.p.out = tagged(out, tag);
    ASSERT_EQ(UK_STATUS_OK, run(&v.p));
    EXPECT_EQ(plain.memory, v.memory);
  }
}

// Rows of tiles that start within lines.
TEST(TaggedAddresses, OfOutputsThatAreStreamed) {
  constexpr uk_index_t kRows = 1030, kColumns = uk::kStreamedCopyBytes / 4 / kRows / 8 * 8 + 16;
  const Bytes in = random_bytes(kRows * kColumns * 4, 1);
  const CpuData cpu = host_cpu_data();
  const auto packed = [&](const auto& address) {
    Bytes out(kRows * (kColumns + 1) * 4 + 4);
    uk_pack_params_t p = {};
    p.struct_size = sizeof(p);
    p.flags = UK_PACK_TYPE_F32;
    p.cpu_data = cpu.data();
    p.in = address(in.data());
    p.in_stride0 = kColumns;
    p.in_stride1 = 1;
    p.in_size0 = kRows;
    p.in_size1 = kColumns;
    p.out = address(out.data());
    p.out_offset = 1;
    p.out_size0 = kRows;
    p.out_size1 = kColumns / 8;
    p.out_size2 = 1;
    p.out_size3 = 8;
    p.out_stride0 = kColumns + 1;
    p.out_stride1 = 8;
    EXPECT_EQ(UK_STATUS_OK, uk_pack(&p));
    return out;
  };
  const Bytes plain = packed([](auto* pointer) { return pointer; });
  for (const uint64_t tag : kTags) {
    EXPECT_EQ(plain, packed([&](auto* pointer) { return tagged(pointer, tag); }));
  }
}
#endif

}  // namespace
}  // namespace uk_test
