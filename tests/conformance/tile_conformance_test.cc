// One test per row of the table, so that ctest shows each by name as passed, failed or skipped.
//
// UK_TEST_LEVEL=<isa> in the environment assumes no more of the CPU than that level.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/conformance/cpu.h"
#include "tests/conformance/guard.h"
#include "tests/conformance/matmul.h"
#include "tests/conformance/row_name.h"
#include "ukernel/internal.h"
#include "ukernel/ukernel_conformance.h"

namespace {

using uk_conformance::GuardedBuffer;
using Bytes = std::vector<uint8_t>;

// The forms of a tile of the table that ops call, against the same tile by its symbol: where its
// rows lie in a matrix, where it prefetches for other tiles, finds an operand decoded, or reads
// several RHS panels abreast.
class TileFormsCheck {
 public:
  explicit TileFormsCheck(const uk_tile_row_t& row)
      : row_(row),
        type_(*uk_conformance::find_matmul_type(row.flags)),
        row_bytes_(int64_t{row.n0} * bits_of(type_.out) / 8),
        catcher_({&lhs_, &rhs_, &out_, &matrix_, &decoded_, &row_sums_}) {}

  void run() {
    for (const uk_index_t steps : {0, 1, 2, 19, 70, 150}) {
      for (const uint32_t flags :
           {0u, UK_MMT4D_ACCUMULATE, UK_MMT4D_ACCUMULATE | UK_MMT4D_PREFETCH_RHS}) {
        for (const uk_index_t stride : {row_.n0 + 1, 2 * row_.n0 + 7, -(row_.n0 + 3)}) {
          for (const auto edge :
               {uk_conformance::Placement::start, uk_conformance::Placement::end}) {
            SCOPED_TRACE("k1 " + std::to_string(steps) + ", flags " + std::to_string(flags) +
                         ", stride " + std::to_string(stride));
            run(steps, flags, {stride, 0, 0}, edge);
            if (testing::Test::HasFailure()) return;
          }
        }
      }
      // From the last byte of memory on, of which nothing is there.
      const uk_tile_context_t fetches = {row_.n0 + 1, ~uintptr_t{0}, 40};
      for (const uint32_t flags :
           {UK_MMT4D_PREFETCH_RHS + 0u, UK_MMT4D_ACCUMULATE | UK_MMT4D_PREFETCH_RHS}) {
        SCOPED_TRACE("for others: k1 " + std::to_string(steps) + ", flags " +
                     std::to_string(flags));
        run(steps, flags, fetches, uk_conformance::Placement::end);
        if (testing::Test::HasFailure()) return;
        run_on_decoded(steps, flags, fetches, uk::on_decoded_lhs_of_row(row_), true);
        run_on_decoded(steps, flags, fetches, uk::on_decoded_rhs_of_row(row_), false);
        if (testing::Test::HasFailure()) return;
      }
      if (uk::tile_abreast_of_row(row_)) run_abreast(steps);
      if (testing::Test::HasFailure()) return;
    }
  }

 private:
  // The second call finds what the first has left, and no such operand.
  void run_on_decoded(uk_index_t steps, uint32_t flags, const uk_tile_context_t& fetches,
                      const uk_tile_on_decoded_t* form, bool is_lhs) {
    if (!form) return;
    const uk_index_t together = uk::tile_steps(row_);
    const uk_index_t whole_steps = (steps + together - 1) / together * together;
    const Bytes panel(
        static_cast<size_t>(whole_steps * form->operand.step_bytes + (is_lhs ? kDecodedSlack : 0)));
    const Bytes sums(kSharedRowSums * sizeof(int32_t));
    decoded_.place(panel, {uk_conformance::Placement::end, 0}, GuardedBuffer::writable);
    row_sums_.place(sums, {uk_conformance::Placement::end, 0}, GuardedBuffer::writable);
    uk_tile_context_t context = fetches;
    context.decoded = reinterpret_cast<char*>(decoded_.data());
    context.row_sums = reinterpret_cast<char*>(row_sums_.data());
    for (const bool fills : {true, false}) {
      SCOPED_TRACE(std::string(is_lhs ? "on a decoded LHS" : "on a decoded RHS") +
                   (fills ? ", filled" : ""));
      context.fills_decoded = context.fills_row_sums = fills;
      const bool reads_lhs = !is_lhs || fills, reads_rhs = is_lhs || fills;
      run(steps, flags, context, uk_conformance::Placement::end, [&](uint8_t* out) {
        if (form->operand.begin) form->operand.begin();
        form->function(out, reads_lhs ? lhs_.data() : nullptr, reads_rhs ? rhs_.data() : nullptr,
                       steps, flags, context);
        if (form->operand.end) form->operand.end();
      });
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_EQ("", decoded_.damage_outside());
    EXPECT_EQ("", row_sums_.damage_outside());
  }

  // With all that shows the order of a sum, and how it is rounded, but no NaN, whose payload is
  // free.
  void run_abreast(uk_index_t steps) {
    for (const auto& kind : uk_conformance::data_kinds(type_, row_.k0, row_.numerics)) {
      if (kind.name == "specials" || kind.name == "all encodings" || kind.name == "large") continue;
      for (const uint32_t flags : {0u, UK_MMT4D_ACCUMULATE}) {
        for (const bool loose : {false, true}) {
          for (const bool backwards : {false, true}) {
            for (const auto edge :
                 {uk_conformance::Placement::start, uk_conformance::Placement::end}) {
              SCOPED_TRACE("abreast: k1 " + std::to_string(steps) + ", flags " +
                           std::to_string(flags) + (loose ? ", loose, " : ", ") +
                           (backwards ? "backwards, " : "") + kind.name);
              run_abreast(steps, flags, loose, backwards, edge, kind);
              if (testing::Test::HasFailure()) return;
            }
          }
        }
      }
    }
  }

  // Of panels one behind the other and results that are tiles, or loose: of panels with a gap
  // between each two, and results in a matrix. The first panel may be the last in memory.
  void run_abreast(uk_index_t steps, uint32_t flags, bool loose, bool backwards,
                   uk_conformance::Placement::Edge edge, const uk_conformance::DataKind& kind) {
    const bool accumulates = (flags & UK_MMT4D_ACCUMULATE) != 0;
    const size_t gap = loose ? 40 : 0;
    uk_conformance::Random random(7);
    Bytes lhs, rhs, tiles;
    size_t panel_bytes = 0;
    for (int panel = 0; panel < kPanelsAbreast; ++panel) {
      uk_conformance::Problem problem(type_, row_.m0, row_.n0, row_.k0, steps, accumulates);
      kind.fill(problem, random, row_.numerics, kind.variant);
      lhs = problem.lhs.bytes();
      panel_bytes = problem.rhs.bytes().size();
      if (panel > 0) rhs.insert(rhs.end(), gap, 0xFF);
      rhs.insert(rhs.end(), problem.rhs.bytes().begin(), problem.rhs.bytes().end());
      const Bytes& out = problem.out.bytes();
      tiles.insert(tiles.end(), out.begin(), out.end());
    }
    const auto distance = static_cast<int64_t>(panel_bytes + gap) * (backwards ? -1 : 1);
    const int64_t first = backwards ? -distance * (kPanelsAbreast - 1) : 0;
    uk_tile_context_t context = {row_.n0};
    context.rhs_panel_bytes = distance;
    context.out_panel_stride = uk_index_t{row_.m0} * row_.n0;
    if (loose) {
      context.out_stride = kPanelsAbreast * row_.n0 + 3;
      context.out_panel_stride = row_.n0;
    }
    const int64_t tile_bytes = row_.m0 * row_bytes_;
    const int64_t out_panel_bytes = context.out_panel_stride * bits_of(type_.out) / 8;
    const int64_t stride_bytes = context.out_stride * bits_of(type_.out) / 8;
    const auto copy_tiles = [&](const uint8_t* from, Bytes* matrix) {
      for (int panel = 0; panel < kPanelsAbreast; ++panel) {
        copy_rows(from + panel * tile_bytes, stride_bytes, panel * out_panel_bytes, matrix);
      }
    };
    const int64_t last =
        (row_.m0 - 1) * stride_bytes + (kPanelsAbreast - 1) * out_panel_bytes + row_bytes_;
    Bytes before(static_cast<size_t>(last), 0xFF), expected = before;
    if (accumulates) copy_tiles(tiles.data(), &before);
    lhs_.place(lhs, {edge, 0}, GuardedBuffer::read_only);
    rhs_.place(rhs, {edge, 0}, GuardedBuffer::read_only);
    out_.place(tiles, {edge, 0}, GuardedBuffer::writable);
    matrix_.place(before, {edge, 0}, GuardedBuffer::writable);
    const auto tile = reinterpret_cast<uk_mmt4d_tile_fn*>(row_.function);
    ASSERT_EQ("", catcher_.run([&] {
      for (int panel = 0; panel < kPanelsAbreast; ++panel) {
        tile(out_.data() + panel * tile_bytes, lhs_.data(), rhs_.data() + first + panel * distance,
             steps, flags);
      }
      uk::tile_abreast_of_row(row_)(matrix_.data(), lhs_.data(), rhs_.data() + first, steps, flags,
                                    context);
    }));
    copy_tiles(out_.data(), &expected);
    EXPECT_EQ(expected, Bytes(matrix_.data(), matrix_.data() + matrix_.size()));
    EXPECT_EQ("", matrix_.damage_outside());
  }

  void run(uk_index_t steps, uint32_t flags, const uk_tile_context_t& context,
           uk_conformance::Placement::Edge edge) {
    uk_mmt4d_strided_tile_fn* const strided = uk::strided_tile_of_row(row_);
    ASSERT_TRUE(strided);
    run(steps, flags, context, edge,
        [&](uint8_t* out) { strided(out, lhs_.data(), rhs_.data(), steps, flags, context); });
  }

  // With form(the first row's results in a matrix).
  template <class Form>
  void run(uk_index_t steps, uint32_t flags, const uk_tile_context_t& context,
           uk_conformance::Placement::Edge edge, Form form) {
    const uk_index_t stride = context.out_stride;
    const bool accumulates = (flags & UK_MMT4D_ACCUMULATE) != 0;
    uk_conformance::Problem problem(type_, row_.m0, row_.n0, row_.k0, steps, accumulates);
    const auto kind = uk_conformance::data_kinds(type_, row_.k0, row_.numerics).front();
    uk_conformance::Random random(7);
    kind.fill(problem, random, row_.numerics, kind.variant);
    lhs_.place(problem.lhs.bytes(), {edge, 0}, GuardedBuffer::read_only);
    rhs_.place(problem.rhs.bytes(), {edge, 0}, GuardedBuffer::read_only);
    out_.place(problem.out.bytes(), {edge, 0}, GuardedBuffer::writable);
    // NaN between the rows, and where nothing may be read.
    const int64_t stride_bytes = stride * bits_of(type_.out) / 8;
    const int64_t between = (row_.m0 - 1) * std::abs(stride_bytes);
    const int64_t first = stride < 0 ? between : 0;
    Bytes before(static_cast<size_t>(between + row_bytes_), 0xFF), expected = before;
    if (accumulates) copy_rows(out_.data(), stride_bytes, first, &before);
    matrix_.place(before, {edge, 0}, GuardedBuffer::writable);

    const auto tile = reinterpret_cast<uk_mmt4d_tile_fn*>(row_.function);
    ASSERT_EQ("", catcher_.run([&] {
      tile(out_.data(), lhs_.data(), rhs_.data(), steps, flags);
      form(matrix_.data() + first);
    }));
    copy_rows(out_.data(), stride_bytes, first, &expected);
    EXPECT_EQ(expected, Bytes(matrix_.data(), matrix_.data() + matrix_.size()));
    EXPECT_EQ("", matrix_.damage_outside());
  }

  void copy_rows(const uint8_t* tile, int64_t stride_bytes, int64_t first, Bytes* matrix) const {
    for (int64_t i = 0; i < row_.m0; ++i) {
      std::copy_n(tile + i * row_bytes_, row_bytes_, matrix->begin() + first + i * stride_bytes);
    }
  }

  const uk_tile_row_t& row_;
  const uk_conformance::MatmulType& type_;
  const int64_t row_bytes_;
  GuardedBuffer lhs_{"lhs"}, rhs_{"rhs"}, out_{"out"}, matrix_{"matrix"};
  GuardedBuffer decoded_{"decoded operand"}, row_sums_{"sums of rows"};
  uk_conformance::FaultCatcher catcher_;
};

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
    if (row_.op == UK_OP_MMT4D && row_.function) TileFormsCheck(row_).run();
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
