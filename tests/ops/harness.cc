// Levels, the table and extents for the op tests.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "tests/ops/harness.h"

#include <algorithm>

namespace uk_test {

const std::vector<std::string>& level_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (size_t i = 0; uk_isa_level_at(i); ++i) all.push_back(uk_isa_level_at(i));
    return all;
  }();
  return names;
}

int level_rank(const std::string& isa) {
  const std::vector<std::string>& names = level_names();
  const auto found = std::find(names.begin(), names.end(), isa);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

CpuData level_cpu_data(const std::string& isa) {
  CpuData cpu = {};
  EXPECT_EQ(UK_STATUS_OK, uk_cpu_level(isa.c_str(), cpu.data(), cpu.size())) << isa;
  return cpu;
}

CpuData cpu_with(const std::vector<std::string>& levels) {
  CpuData cpu = {};
  for (const std::string& level : levels) {
    const CpuData one = level_cpu_data(level);
    for (size_t i = 0; i < cpu.size(); ++i) cpu[i] |= one[i];
  }
  return cpu;
}

CpuData host_cpu_data() {
  CpuData cpu = {};
  EXPECT_EQ(UK_STATUS_OK, uk_cpu_detect(cpu.data(), cpu.size()));
  return cpu;
}

bool host_has_level(const std::string& isa) {
  return uk_cpu_has_level(isa.c_str(), host_cpu_data().data()) != 0;
}

const std::vector<const uk_tile_row_t*>& table_rows() {
  static const std::vector<const uk_tile_row_t*> rows = [] {
    std::vector<const uk_tile_row_t*> all;
    for (size_t i = 0; i < uk_tile_count(); ++i) all.push_back(uk_tile_at(i));
    return all;
  }();
  return rows;
}

const std::vector<MatmulType>& mmt4d_types() {
  static const std::vector<MatmulType> types = [] {
    std::vector<MatmulType> all;
    for (uint32_t flag = 0; flag <= UK_MMT4D_TYPE_MASK; ++flag) {
      const MatmulType* type = uk_conformance::find_matmul_type(flag);
      if (type) all.push_back(*type);
    }
    return all;
  }();
  return types;
}

const std::vector<PackType>& pack_types() {
  static const std::vector<PackType> types = {
      {0x01, "f32", 32},  {0x02, "i8", 8},   {0x03, "i32", 32}, {0x04, "f16", 16},
      {0x05, "bf16", 16}, {0x40, "i16", 16}, {0x41, "i4", 4},   {0x42, "f64", 64},
  };
  return types;
}

::testing::AssertionResult same_bytes(const Bytes& expected, const uint8_t* actual) {
  const auto differ = std::mismatch(expected.begin(), expected.end(), actual);
  if (differ.first == expected.end()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "byte " << differ.first - expected.begin() << " of " << expected.size() << " is "
         << int{*differ.second} << ", expected " << int{*differ.first};
}

Extent extent_of(uk_index_t size0, uk_index_t stride0, uk_index_t size1, uk_index_t stride1,
                 uk_index_t run, uk_index_t lead, uk_index_t tail) {
  uk_index_t low = 0, high = 0;
  for (const uk_index_t reach : {(size0 - 1) * stride0, (size1 - 1) * stride1}) {
    low += std::min<uk_index_t>(reach, 0);
    high += std::max<uk_index_t>(reach, 0);
  }
  if (size0 <= 0 || size1 <= 0) low = high = run = 0;
  return {lead - low, lead - low + high + run + tail};
}

}  // namespace uk_test
