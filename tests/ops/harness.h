// What the op tests share: CPU levels, and what the conformance checks lend: the
// oracle, elements of any width, buffers between unmapped pages.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_TESTS_OPS_HARNESS_H_
#define UKERNEL_TESTS_OPS_HARNESS_H_

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "tests/conformance/guard.h"
#include "tests/conformance/matmul.h"
#include "ukernel/ukernel.h"

namespace uk_test {

using uk_conformance::bits_of;
using uk_conformance::load_bits;
using uk_conformance::MatmulType;
using uk_conformance::Random;
using uk_conformance::random_bytes;
using uk_conformance::store_bits;

// ---------------------------------------------------------------- CPU levels

using CpuData = std::array<uint64_t, UK_CPU_DATA_FIELDS>;

// The library's levels, lowest rank first.
const std::vector<std::string>& level_names();
// Position in level_names(), -1 for a name that is not there ("generic").
int level_rank(const std::string& isa);
CpuData level_cpu_data(const std::string& isa);
// The union of the levels' features.
CpuData cpu_with(const std::vector<std::string>& levels);
CpuData host_cpu_data();
bool host_has_level(const std::string& isa);

// For the body of a TEST: a level that this machine lacks shows as skipped, by name.
#define UK_SKIP_WITHOUT_LEVEL(isa) \
  if (!uk_test::host_has_level(isa)) GTEST_SKIP() << "this CPU has no " << (isa)

// ---------------------------------------------------------------- the table

const std::vector<const uk_tile_row_t*>& table_rows();

const std::vector<MatmulType>& mmt4d_types();
inline bool has_four_bit_operand(const MatmulType& type) {
  return bits_of(type.lhs) == 4 || bits_of(type.rhs) == 4;
}

struct PackType {
  uint32_t flag;
  const char* name;
  int bits;
};
inline std::ostream& operator<<(std::ostream& out, const PackType& type) {
  return out << type.name;
}
const std::vector<PackType>& pack_types();

// A test's parameter.
struct Mmt4dTypeAtLevel {
  MatmulType type;
  std::string isa;
};
inline std::ostream& operator<<(std::ostream& out, const Mmt4dTypeAtLevel& t) {
  return out << t.type.name << "_" << t.isa;
}
inline std::string test_name(const ::testing::TestParamInfo<Mmt4dTypeAtLevel>& tested) {
  return tested.param.type.name + ("_" + tested.param.isa);
}

inline bool rounds_once(const uk_tile_row_t& row) {
  return row.numerics == UK_NUMERICS_F32ACC || row.numerics == UK_NUMERICS_BF16_DOT_F32ACC;
}

// ---------------------------------------------------------------- memory

using uk_conformance::FaultCatcher;
using uk_conformance::GuardedBuffer;
using Edge = uk_conformance::Placement::Edge;
using Bytes = std::vector<uint8_t>;

inline size_t bytes_of(uk_index_t elements, int bits) {
  return (static_cast<size_t>(elements) * static_cast<size_t>(bits) + 7) / 8;
}

// Fails on the first byte that differs.
::testing::AssertionResult same_bytes(const Bytes& expected, const uint8_t* actual);

// Calls an op; a fault, a write into an input or a changed floating-point environment fails the
// test instead of ending it. Until then the buffers are named in the report.
template <class Params>
uk_status_t call(uk_status_t (*op)(const Params*), const Params& params,
                 const std::vector<const GuardedBuffer*>& buffers) {
  uk_status_t status = UK_STATUS_OK;
  FaultCatcher catcher(buffers);
  EXPECT_EQ("", catcher.run([&] { status = op(&params); }));
  return status;
}

// An operand of `size0` x `size1` runs somewhere in a tensor of its own. `lead` elements lie before
// the lowest one used and `tail` after the highest.
struct Extent {
  uk_index_t offset;    // of entry (0, 0)
  uk_index_t elements;  // of the whole tensor
};
Extent extent_of(uk_index_t size0, uk_index_t stride0, uk_index_t size1, uk_index_t stride1,
                 uk_index_t run, uk_index_t lead, uk_index_t tail);

}  // namespace uk_test

#endif  // UKERNEL_TESTS_OPS_HARNESS_H_
