// Instead of the library's: a CPU with AMX beside avx512_vnni, if that is there. After each test
// its registers must be released.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <gtest/gtest.h>

#include "tests/emulated/amx.h"
#include "ukernel/ukernel.h"

namespace {

class ReleasedTiles : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo&) override {
    for (const emulated_amx::Register& r : emulated_amx::registers) {
      EXPECT_EQ(0, r.rows) << "tile registers are still configured";
    }
    emulated_amx::release();
  }
};

[[maybe_unused]] const bool kListens = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new ReleasedTiles);
  return true;
}();

}  // namespace

extern "C" uk_status_t uk_cpu_detect(uint64_t* cpu_data, size_t fields) {
  const bool has_avx512_vnni =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni");
  const uk_status_t status = uk_cpu_level(has_avx512_vnni ? "amx_int8" : "sse2", cpu_data, fields);
  if (status == UK_STATUS_OK && has_avx512_vnni) cpu_data[0] |= UK_CPU_X86_64_AMXBF16;
  return status;
}
