// One test per row of the table, so that ctest shows each by name as passed, failed or skipped.
//
// UK_TEST_LEVEL=<isa> in the environment assumes no more of the CPU than that level.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/conformance/cpu.h"
#include "tests/conformance/row_name.h"
#include "tests/conformance/ukernel_conformance.h"

namespace {

class TileTest : public testing::Test {
 public:
  explicit TileTest(const uk_tile_row_t& row) : row_(row) {}

  void TestBody() override {
    uint64_t cpu_data[UK_CPU_DATA_FIELDS] = {};
    const std::string wrong = uk_conformance::detect_cpu(std::getenv("UK_TEST_LEVEL"), cpu_data);
    ASSERT_EQ(wrong, "");
    char report[1024];
    switch (uk_conformance_check(&row_, cpu_data, report, sizeof(report))) {
      case UK_CONFORMANCE_PASS:
        break;
      case UK_CONFORMANCE_SKIP:
        GTEST_SKIP() << report;
      case UK_CONFORMANCE_FAIL:
        FAIL() << row_.symbol << ": " << report;
    }
  }

 private:
  const uk_tile_row_t& row_;
};

// A symbol says what its row is, so that a tool that has only the symbol loses nothing.
TEST(TileTable, SymbolsSayWhatTheRowsAre) {
  for (size_t i = 0; i < uk_tile_count(); ++i) {
    const uk_tile_row_t& row = *uk_tile_at(i);
    if (row.origin == UK_ORIGIN_GENERIC) continue;
    SCOPED_TRACE(row.symbol);
    uk_conformance::RowName name;
    uk_tile_row_t parsed = {};
    ASSERT_TRUE(uk_conformance::parse_symbol(row.symbol, &name));
    ASSERT_EQ(uk_conformance::fill_row(name, &parsed), "");
    EXPECT_EQ(name.arch, row.arch);
    EXPECT_EQ(name.isa, row.isa);
    EXPECT_EQ(parsed.op, row.op);
    EXPECT_EQ(parsed.flags, row.flags);
    EXPECT_EQ(parsed.numerics, row.numerics);
    EXPECT_EQ(parsed.m0, row.m0);
    EXPECT_EQ(parsed.n0, row.n0);
    EXPECT_EQ(parsed.k0, row.k0);
    for (int f = 0; f < UK_CPU_DATA_FIELDS; ++f) EXPECT_EQ(parsed.features[f], row.features[f]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (size_t i = 0; i < uk_tile_count(); ++i) {
    const uk_tile_row_t* row = uk_tile_at(i);
    testing::RegisterTest("Tile", row->symbol, nullptr, nullptr, __FILE__, __LINE__,
                          [row]() -> testing::Test* { return new TileTest(*row); });
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
