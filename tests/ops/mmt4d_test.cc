// uk_mmt4d against the scalar oracle: every type, through the scalar path on odd shapes and through
// each CPU level's tiles, with every way to lay the operands out.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "tests/ops/harness.h"
#include "ukernel/internal.h"

namespace uk_test {
namespace {

using uk_conformance::DataKind;
using uk_conformance::Expectation;
using uk_conformance::Panel;
using uk_conformance::Problem;

// Panels beyond this many repeat: enough that no two neighbours are alike, few enough that large
// calls are predicted once and not tile by tile.
constexpr uk_index_t kDistinctPanels = 5;

// How the panels of an operand, or the rows of OUT, lie in their tensor.
enum class Strides { kDense, kLoose, kNegative, kZeroForInputs };
constexpr Strides kAllStrides[] = {Strides::kDense, Strides::kLoose, Strides::kNegative,
                                   Strides::kZeroForInputs};

struct Case {
  uint32_t flags;
  uk_index_t m, n, k;
  uk_tile_sizes_t tile;
  Strides strides = Strides::kDense;
  Edge edge = Edge::end;
  const char* data = "small integers";
};

std::string describe(const Case& c) {
  return uk_conformance::find_matmul_type(c.flags)->name + std::string(" flags ") +
         std::to_string(c.flags >> 8) + ", " + std::to_string(c.m) + "x" + std::to_string(c.n) +
         "x" + std::to_string(c.k) + " tiles of " + std::to_string(c.tile.m0) + "x" +
         std::to_string(c.tile.n0) + "x" + std::to_string(c.tile.k0) + ", strides " +
         std::to_string(static_cast<int>(c.strides)) +
         (c.edge == Edge::start ? ", at the start of a page, " : ", at the end of a page, ") +
         ", " + c.data;
}

uk_index_t stride_for(Strides strides, uk_index_t run, bool is_input) {
  switch (strides) {
    case Strides::kDense:
      return run;
    case Strides::kLoose:
      return run + 6;
    case Strides::kNegative:
      return -(run + 2);
    case Strides::kZeroForInputs:
      return is_input ? 0 : run;
  }
  return run;
}

// One tensor of the call: `count` runs of `run` elements.
class Tensor {
 public:
  Tensor(const char* name, const Case& c, uk_index_t count, uk_index_t run, int bits, bool is_input,
         uint64_t seed)
      : bits_(bits), edge_(c.edge), is_input_(is_input), buffer_(name) {
    const bool dense = c.strides == Strides::kDense;
    stride = stride_for(c.strides, run, is_input);
    const Extent extent = extent_of(count, stride, 1, 0, run, dense ? 0 : 4, dense ? 0 : 8);
    offset = extent.offset;
    contents = random_bytes(bytes_of(extent.elements, bits), seed);
  }

  uk_index_t index(uk_index_t run, uk_index_t element) const {
    return offset + run * stride + element;
  }
  void write(uk_index_t run, uk_index_t element, const Panel& panel) {
    std::copy(panel.bytes().begin(), panel.bytes().end(),
              contents.begin() + static_cast<int64_t>(bytes_of(index(run, element), bits_)));
  }
  // To where the op will find it. An input cannot be written there.
  uint8_t* place() {
    buffer_.place(contents, {edge_, 0},
                  is_input_ ? GuardedBuffer::read_only : GuardedBuffer::writable);
    return buffer_.data();
  }
  const GuardedBuffer& buffer() const { return buffer_; }

  uk_index_t stride, offset;
  Bytes contents;

 private:
  int bits_;
  Edge edge_;
  bool is_input_;
  GuardedBuffer buffer_;
};

// Of a matrix that the results may be unpacked to.
struct MatrixSize {
  uk_index_t rows, columns;
};

// A call with its operands filled and its result predicted.
class Call {
 public:
  Call(const Case& c, const uint64_t* cpu_data)
      : case_(c),
        type_(*uk_conformance::find_matmul_type(c.flags)),
        out_tile_(uk_index_t{c.tile.m0} * c.tile.n0),
        lhs_("lhs", c, c.m, c.k * c.tile.m0 * c.tile.k0, bits_of(type_.lhs), true, 1),
        rhs_("rhs", c, c.n, c.k * c.tile.n0 * c.tile.k0, bits_of(type_.rhs), true, 2),
        out_("out", c, c.m, c.n * out_tile_, bits_of(type_.out), false, 3) {
    params_.struct_size = sizeof(params_);
    params_.lhs_offset = lhs_.offset;
    params_.lhs_stride0 = lhs_.stride;
    params_.rhs_offset = rhs_.offset;
    params_.rhs_stride0 = rhs_.stride;
    params_.out_offset = out_.offset;
    params_.out_stride0 = out_.stride;
    params_.m = c.m;
    params_.n = c.n;
    params_.k = c.k;
    params_.m0 = c.tile.m0;
    params_.n0 = c.tile.n0;
    params_.k0 = c.tile.k0;
    params_.flags = c.flags;
    params_.cpu_data = cpu_data;
  }

  // The row that a call uses.
  const uk_tile_row_t* row() const {
    const uk_tile_row_t* found = nullptr;
    EXPECT_EQ(UK_STATUS_OK, uk_mmt4d_info(&params_, &found));
    return found;
  }

  void run() {
    SCOPED_TRACE(describe(case_));
    fill(row()->numerics);
    params_.lhs = lhs_.place();
    params_.rhs = rhs_.place();
    params_.out = out_.place();
    ASSERT_EQ(UK_STATUS_OK,
              call(uk_mmt4d, params_, {&lhs_.buffer(), &rhs_.buffer(), &out_.buffer()}));
  }

  // After run(): against the oracle.
  void check_tiles() {
    SCOPED_TRACE(describe(case_));
    Bytes expected = out_.contents;
    const int bits = bits_of(type_.out);
    const uint8_t* const results = out_.buffer().data();
    for (uk_index_t i = 0; i < case_.m; ++i) {
      for (uk_index_t j = 0; j < case_.n; ++j) {
        const Expectation& tile = expectation(i, j, row()->numerics);
        const uk_index_t first = out_.index(i, j * out_tile_);
        for (uk_index_t e = 0; e < out_tile_; ++e) {
          const uint64_t actual = load_bits(results, first + e, bits);
          if (tile.accepts(static_cast<size_t>(e), actual)) continue;
          FAIL() << row()->symbol << " tile (" << i << ", " << j << ") row " << e / case_.tile.n0
                 << " column " << e % case_.tile.n0 << ": "
                 << uk_conformance::describe(type_.out, actual) << ", expected "
                 << tile.describe(static_cast<size_t>(e));
        }
        copy_results(&expected, first, results, first, out_tile_);
      }
    }
    EXPECT_TRUE(same_bytes(expected, results)) << "outside of the tiles";
    EXPECT_EQ("", out_.buffer().damage_outside());
  }

  // After run(): under UNPACK_OUT the same results are a matrix.
  void check_matrices(const std::vector<MatrixSize>& sizes) const {
    for (const MatrixSize& size : sizes) {
      if (::testing::Test::HasFatalFailure()) return;
      check_matrix(size.rows, size.columns);
    }
  }

  // Of one tile of OUT, after run().
  Bytes tile(uk_index_t i, uk_index_t j) const {
    const int bits = bits_of(type_.out);
    const uint8_t* first = out_.buffer().data() + bytes_of(out_.index(i, j * out_tile_), bits);
    return Bytes(first, first + bytes_of(out_tile_, bits));
  }

 private:
  void check_matrix(uk_index_t rows, uk_index_t columns) const {
    SCOPED_TRACE(describe(case_) + ", unpacked to " + std::to_string(rows) + "x" +
                 std::to_string(columns));
    const uk_index_t stride = stride_for(case_.strides, columns, false);
    const Extent extent = extent_of(rows, stride, 1, 0, columns, 3, 5);
    Bytes before = random_bytes(bytes_of(extent.elements, bits_of(type_.out)), 4);
    Bytes expected = before;
    const uk_index_t m0 = case_.tile.m0, n0 = case_.tile.n0;
    for (uk_index_t r = 0; r < rows; ++r) {
      for (uk_index_t c = 0; c < columns; c += n0) {
        const uk_index_t run = std::min(n0, columns - c), at = extent.offset + r * stride + c;
        const uk_index_t in_tiles = out_.index(r / m0, c / n0 * out_tile_ + r % m0 * n0);
        if (accumulates()) copy_results(&before, at, out_.contents.data(), in_tiles, run);
        copy_results(&expected, at, out_.buffer().data(), in_tiles, run);
      }
    }
    GuardedBuffer matrix("matrix");
    matrix.place(before, {case_.edge, 0}, GuardedBuffer::writable);
    uk_mmt4d_params_t params = params_;
    params.flags |= UK_MMT4D_UNPACK_OUT;
    params.out = matrix.data();
    params.out_offset = extent.offset;
    params.out_stride0 = stride;
    params.out_size0 = rows;
    params.out_size1 = columns;
    ASSERT_EQ(UK_STATUS_OK, call(uk_mmt4d, params, {&lhs_.buffer(), &rhs_.buffer(), &matrix}));
    ASSERT_TRUE(same_bytes(expected, matrix.data()));
    EXPECT_EQ("", matrix.damage_outside());
  }

  void copy_results(Bytes* to, uk_index_t at, const uint8_t* from, uk_index_t first,
                    uk_index_t count) const {
    const int bits = bits_of(type_.out);
    std::memcpy(to->data() + bytes_of(at, bits), from + bytes_of(first, bits),
                bytes_of(count, bits));
  }

  void fill(uint32_t numerics) {
    Random random(99);
    const DataKind kind = data_kind(numerics);
    for (uk_index_t i = 0; i < (shared() ? 1 : kDistinctPanels); ++i) {
      panels_.push_back(problem(case_.k));
      kind.fill(panels_.back(), random, numerics, kind.variant);
    }
    for (uk_index_t i = 0; i < case_.m; ++i) lhs_.write(i, 0, panels_[distinct(i)].lhs);
    for (uk_index_t j = 0; j < case_.n; ++j) rhs_.write(j, 0, panels_[distinct(j)].rhs);
    if (!accumulates()) return;
    for (uk_index_t i = 0; i < case_.m; ++i) {
      for (uk_index_t j = 0; j < case_.n; ++j) {
        out_.write(i, j * out_tile_, panels_[distinct(i + 2 * j)].out);
      }
    }
  }

  bool accumulates() const { return (case_.flags & UK_MMT4D_ACCUMULATE) != 0; }
  bool shared() const { return case_.strides == Strides::kZeroForInputs; }

  Problem problem(uk_index_t k) const {
    return Problem(type_, case_.tile.m0, case_.tile.n0, case_.tile.k0, k, accumulates());
  }

  DataKind data_kind(uint32_t numerics) const {
    for (const DataKind& kind : uk_conformance::data_kinds(type_, case_.tile.k0, numerics)) {
      if (kind.name == case_.data) return kind;
    }
    ADD_FAILURE() << "no data of this kind: " << case_.data;
    abort();
  }

  size_t distinct(uk_index_t i) const { return static_cast<size_t>(i) % panels_.size(); }

  // Tiles of equal operands are equal.
  const Expectation& expectation(uk_index_t i, uk_index_t j, uint32_t numerics) {
    const size_t a = distinct(i), b = distinct(j), c = accumulates() ? distinct(i + 2 * j) : 0;
    auto& found = expectations_[{a, b, c}];
    if (!found) {
      Problem p = problem(case_.k);
      p.lhs = panels_[a].lhs;
      p.rhs = panels_[b].rhs;
      p.out = panels_[c].out;
      const auto exactness = data_kind(numerics).exactness;
      found = std::make_unique<Expectation>(uk_conformance::expect(p, numerics, exactness));
    }
    return *found;
  }

  const Case case_;
  const MatmulType type_;
  const uk_index_t out_tile_;
  Tensor lhs_, rhs_, out_;
  uk_mmt4d_params_t params_ = {};
  std::vector<Problem> panels_;
  std::map<std::array<size_t, 3>, std::unique_ptr<Expectation>> expectations_;
};

// Against the oracle, and as matrices of these sizes, too.
void check(const Case& c, const uint64_t* cpu_data, const std::vector<MatrixSize>& sizes = {}) {
  Call call(c, cpu_data);
  call.run();
  if (::testing::Test::HasFatalFailure()) return;
  call.check_tiles();
  call.check_matrices(sizes);
}

// As matrices of these sizes alone: other tests have the same operands' tiles checked.
void check_matrices(const Case& c, const uint64_t* cpu_data, const std::vector<MatrixSize>& sizes) {
  Call call(c, cpu_data);
  call.run();
  call.check_matrices(sizes);
}

// Every layout, accumulator, side to overrun and kind of data, at counts of tiles from none to
// some.
void check_small(uint32_t flags, const uk_tile_sizes_t& tile, const uint64_t* cpu_data) {
  constexpr uk_index_t kCounts[][3] = {{0, 2, 3}, {2, 0, 3}, {0, 0, 0}, {2, 3, 0}, {1, 1, 1},
                                       {2, 3, 1}, {3, 2, 2}, {1, 4, 3}, {4, 1, 7}};
  for (const auto& count : kCounts) {
    for (const Strides strides : kAllStrides) {
      for (const Edge edge : {Edge::start, Edge::end}) {
        for (const uint32_t accumulate : {0u, UK_MMT4D_ACCUMULATE}) {
          for (const char* data : {"small integers", "random"}) {
            check({flags | accumulate, count[0], count[1], count[2], tile, strides, edge, data},
                  cpu_data);
            if (::testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

// Whole tiles, parts of the last ones, tiles beyond the matrix, and no matrix at all.
void check_unpacked_edges(uint32_t flags, const uk_tile_sizes_t& tile, const uint64_t* cpu_data) {
  constexpr uk_index_t kCounts[][3] = {{1, 1, 1}, {2, 3, 2}, {3, 2, 5}, {1, 4, 3}, {2, 2, 0}};
  for (const auto& count : kCounts) {
    const uk_index_t m = count[0] * tile.m0, n = count[1] * tile.n0;
    const std::vector<MatrixSize> sizes = {{m, n},
                                           {m - tile.m0 / 2, n - 1},
                                           {m - tile.m0 + 1, n},
                                           {m, n / 2 + 1},
                                           {m / 2, n - tile.n0 / 3},
                                           {1, 1},
                                           {0, n},
                                           {m, 0}};
    for (const Strides strides : {Strides::kDense, Strides::kLoose, Strides::kNegative}) {
      for (const Edge edge : {Edge::start, Edge::end}) {
        for (const uint32_t accumulate : {0u, UK_MMT4D_ACCUMULATE}) {
          check_matrices(
              {flags | accumulate, count[0], count[1], count[2], tile, strides, edge, "random"},
              cpu_data, sizes);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

// ---------------------------------------------------------------- the scalar path

class GenericMmt4d : public ::testing::TestWithParam<std::string> {};

TEST_P(GenericMmt4d, OddShapes) {
  const MatmulType& type = *uk_conformance::find_matmul_type(GetParam());
  constexpr uk_tile_sizes_t kShapes[] = {{3, 5, 2}, {1, 1, 1}, {7, 9, 4}, {2, 1, 6}, {1, 13, 3}};
  for (uk_tile_sizes_t tile : kShapes) {
    if (has_four_bit_operand(type)) tile.k0 += tile.k0 % 2;
    check_small(type.flag | UK_MMT4D_ALLOW_GENERIC_FALLBACK, tile, nullptr);
    if (HasFatalFailure()) return;
  }
}

TEST_P(GenericMmt4d, UnpackedOut) {
  const MatmulType& type = *uk_conformance::find_matmul_type(GetParam());
  for (const uk_tile_sizes_t& tile : {uk_tile_sizes_t{3, 5, 2}, uk_tile_sizes_t{1, 13, 4}}) {
    check_unpacked_edges(type.flag | UK_MMT4D_ALLOW_GENERIC_FALLBACK, tile, nullptr);
    if (HasFatalFailure()) return;
  }
}

// Tiles for which there would be no place on the stack.
TEST_P(GenericMmt4d, UnpackedOutOfHugeTiles) {
  const MatmulType& type = *uk_conformance::find_matmul_type(GetParam());
  check_matrices({type.flag | UK_MMT4D_ALLOW_GENERIC_FALLBACK, 2, 2, 1, {150, 130, 2}}, nullptr,
                 {{290, 131}});
}

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const MatmulType& type : mmt4d_types()) names.push_back(type.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Types, GenericMmt4d, ::testing::ValuesIn(type_names()),
                         [](const auto& tested) { return tested.param; });

// ---------------------------------------------------------------- each CPU level

// Each level with tiles of its own for the type; if asked for, the baseline, where the scalar path
// serves what has none.
std::vector<Mmt4dTypeAtLevel> types_at_levels(bool with_baseline) {
  std::vector<Mmt4dTypeAtLevel> all;
  for (const MatmulType& type : mmt4d_types()) {
    std::set<std::string> levels;
    if (with_baseline) levels.insert(level_names().front());
    for (const uk_tile_row_t* row : table_rows()) {
      if (row->op == UK_OP_MMT4D && (row->flags & UK_MMT4D_TYPE_MASK) == type.flag &&
          row->origin != UK_ORIGIN_GENERIC) {
        levels.insert(row->isa);
      }
    }
    for (const std::string& isa : levels) all.push_back({type, isa});
  }
  return all;
}

// Sizes beyond the blocks that the op walks in.
constexpr uk_index_t kBeyondLhsBlock = uk::kLhsBlockBytes + 4096,
                     kBeyondCaches = uk::kStreamBytes + 4096;

struct Request {
  uint32_t flags;
  uk_tile_sizes_t tile;
};

class Mmt4dAtLevel : public ::testing::TestWithParam<Mmt4dTypeAtLevel> {
 protected:
  // The best tiles for many rows, for a few and for one, or the scalar path's shapes.
  std::vector<Request> requests() const {
    const MatmulType& type = GetParam().type;
    std::vector<Request> all;
    for (const uint32_t skip : {0u, UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS}) {
      if (skip && bits_of(type.out) != 16) continue;
      for (const uk_index_t m : {0, 1, 4}) {
        const uint32_t flags = type.flag | skip | UK_MMT4D_ALLOW_GENERIC_FALLBACK;
        uk_tile_sizes_t tile = {};
        EXPECT_EQ(UK_STATUS_OK, uk_query_tile_sizes(flags, m, 0, 0, nullptr, cpu.data(), &tile));
        const bool known = std::any_of(all.begin(), all.end(), [&](const Request& r) {
          return r.flags == flags && memcmp(&r.tile, &tile, sizeof(tile)) == 0;
        });
        if (!known) all.push_back({flags, tile});
      }
    }
    return all;
  }

  uk_index_t lhs_step_bytes(const uk_tile_sizes_t& tile) const {
    return tile.m0 * tile.k0 * bits_of(GetParam().type.lhs) / 8;
  }
  uk_index_t rhs_step_bytes(const uk_tile_sizes_t& tile) const {
    return tile.n0 * tile.k0 * bits_of(GetParam().type.rhs) / 8;
  }

  uk_index_t beyond_panels(const uk_tile_sizes_t& tile) const {
    const bool l3_feeds = uk::l3_feeds_tiles(cpu.data());
    const uk_index_t panels = l3_feeds ? uk::kLongPanelBytes : uk::kPanelBytes;
    return (panels + 1024) / (lhs_step_bytes(tile) + rhs_step_bytes(tile)) + 1;
  }
  // Whether the accumulator may leave the tile between two blocks of K.
  bool splits_k(const Request& r) const {
    const uint32_t numerics = Call({r.flags, 1, 1, 1, r.tile}, cpu.data()).row()->numerics;
    return numerics != UK_NUMERICS_ROUND_EACH_STEP && numerics != UK_NUMERICS_F32ACC &&
           numerics != UK_NUMERICS_BF16_DOT_F32ACC;
  }
  // Steps of K that take several blocks, where it is split.
  uk_index_t blocks_of_k(const Request& r) const {
    return splits_k(r) ? 2 * beyond_panels(r.tile) + 3 : 150;
  }
  // Of an RHS too large for the caches.
  uk_index_t streaming_k(const Request& r) const { return (16 << 10) / rhs_step_bytes(r.tile); }
  uk_index_t streaming_n(const Request& r) const {
    return kBeyondCaches / (streaming_k(r) * rhs_step_bytes(r.tile)) + 1;
  }

  const CpuData cpu = level_cpu_data(GetParam().isa);
};

// What tiles may have beside the function that their symbol calls.
using HasForm = bool(const uk_tile_row_t&);
bool takes_decoded_lhs(const uk_tile_row_t& row) {
  return uk::on_decoded_lhs_of_row(row) != nullptr;
}
bool takes_decoded_rhs(const uk_tile_row_t& row) {
  return uk::on_decoded_rhs_of_row(row) != nullptr;
}
// Of AMX.
bool transposes_lhs_once(const uk_tile_row_t& row) {
  return takes_decoded_lhs(row) && uk::tile_steps(row) > 1;
}
// In front of many long RHS panels.
bool shares_row_sums(const uk_tile_row_t& row) { return uk::keeps_row_sums(row, 1000, 1000); }
bool reads_abreast(const uk_tile_row_t& row) { return uk::gains_abreast_in_caches(row); }
bool reads_abreast_from_memory(const uk_tile_row_t& row) {
  return uk::tile_abreast_of_row(row) != nullptr;
}

// The level's tiles of the type that have such a form.
std::vector<const uk_tile_row_t*> rows_that(HasForm* has_form, const Mmt4dTypeAtLevel& wanted) {
  std::vector<const uk_tile_row_t*> found;
  for (const uk_tile_row_t* row : table_rows()) {
    const bool is_type = (row->flags & UK_MMT4D_TYPE_MASK) == wanted.type.flag;
    if (row->op == UK_OP_MMT4D && is_type && row->isa == wanted.isa && has_form(*row)) {
      found.push_back(row);
    }
  }
  return found;
}

std::vector<Mmt4dTypeAtLevel> types_with_rows_that(HasForm* has_form) {
  std::vector<Mmt4dTypeAtLevel> all;
  for (const Mmt4dTypeAtLevel& tested : types_at_levels(false)) {
    if (!rows_that(has_form, tested).empty()) all.push_back(tested);
  }
  return all;
}

class Mmt4dAbreast : public Mmt4dAtLevel {};
class Mmt4dAbreastFromMemory : public Mmt4dAtLevel {};

class Mmt4dOnDecoded : public Mmt4dAtLevel {
 protected:
  void check_counts(const uk_tile_row_t& row, uk_index_t m, uk_index_t n, uk_index_t k,
                    uint32_t accumulate, Strides strides) const {
    const uk_tile_sizes_t tile = {row.m0, row.n0, row.k0};
    const Case c = {row.flags | accumulate, m, n, k, tile, strides, Edge::end, "random"};
    std::vector<MatrixSize> matrices;
    if (strides != Strides::kZeroForInputs) {
      matrices.push_back({m * tile.m0 - tile.m0 / 2, n * tile.n0 - 3});
    }
    check(c, data.data(), matrices);
  }

  void check_few_steps(const uk_tile_row_t& row) const {
    for (const uint32_t accumulate : {0u, UK_MMT4D_ACCUMULATE}) {
      for (const Strides strides : kAllStrides) {
        check_counts(row, kLhsPanels, 2, 3, accumulate, strides);
      }
      // More LHS panels than have the sums of their rows in the op's stack at a time.
      check_counts(row, uk::kSummedLhsPanels + 2, 3, 3, accumulate, Strides::kLoose);
      if (HasFatalFailure()) return;
    }
  }

  // A longer panel than the op has decoded in its stack at a time; and if `all`, so many that OUT
  // is in blocks, too, and an RHS too large for the caches. These take the oracle seconds, and what
  // is in OUT at first matters to the first block of K alone.
  void check_blocks_of_k_and_out(const uk_tile_row_t& row, const uk_decoded_operand_t& operand,
                                 bool all) const {
    ASSERT_GT(operand.step_bytes, 0) << row.symbol;
    ASSERT_LE(operand.step_bytes, uk::kDecodedBytes) << row.symbol;
    const uk_tile_sizes_t tile = {row.m0, row.n0, row.k0};
    const uk_index_t long_k = uk::kDecodedBytes / operand.step_bytes + 1;
    for (const uint32_t accumulate : {0u, UK_MMT4D_ACCUMULATE}) {
      check_counts(row, kLhsPanels, 2, long_k, accumulate, Strides::kLoose);
      if (HasFatalFailure()) return;
    }
    if (!all) return;
    const uk_index_t out_tile_bytes = uk_index_t{row.m0} * row.n0 * 4;
    const uk_index_t out_panels = uk::kOutPartsBytes / 2 / (kLhsPanels * out_tile_bytes) + 2;
    check_counts(row, kLhsPanels, out_panels, long_k, UK_MMT4D_ACCUMULATE, Strides::kLoose);
    if (HasFatalFailure()) return;
    // Rows of OUT that share sets of the caches, in two blocks.
    const uk_index_t m = uk::kLhsPanelsInSets + 1, columns = uk::kSetsBytes / 4;
    const uk_index_t n = uk::ceil_div(columns, row.n0);
    check_matrices({row.flags, m, n, long_k, tile, Strides::kDense, Edge::end, "random"},
                   data.data(), {{m * row.m0, columns}});
    if (HasFatalFailure()) return;
    const uk_index_t k = 200, panels = kBeyondCaches / (k * rhs_step_bytes(tile)) + 1;
    check_counts(row, kLhsPanels, panels, k, UK_MMT4D_ACCUMULATE, Strides::kDense);
  }

  static constexpr uk_index_t kLhsPanels = 9;  // for which any RHS is decoded once
  CpuData data = cpu;
};

class Mmt4dOnDecodedRhs : public Mmt4dOnDecoded {};
class Mmt4dByLhsPanels : public Mmt4dOnDecoded {};

class Mmt4dOnSummedRows : public Mmt4dOnDecoded {
 protected:
  static constexpr uk_index_t kLhsPanels = 3;               // for which no RHS is decoded once
  static constexpr uk_index_t kRhsPanels = 8, kSteps = 16;  // for which sums are kept
};

class Mmt4dOnDecodedLhs : public Mmt4dOnDecoded {
 protected:
  static constexpr uk_index_t kRhsPanels = 6;  // for which any LHS is decoded once

  // A CPU that has few types' RHS decoded instead.
  Mmt4dOnDecodedLhs() { data[7] |= uk::kReadsAhead; }

  bool decodes(const uk_tile_row_t& row, uk_index_t m, bool rhs_streams = false) const {
    return uk::decodes_lhs_once(row, m, kRhsPanels, rhs_streams, data.data()) &&
           !uk::decodes_rhs_once(row, m, kRhsPanels, data.data());
  }

  // More than share their decoded LHS panels, unless for so many these are not decoded.
  uk_index_t lhs_panels(const uk_tile_row_t& row) const {
    uk_index_t m = uk::kDecodedLhsRows / row.m0 + 2;
    while (m > 1 && !decodes(row, m)) --m;
    return m;
  }
};

// The scalar path has no prefetch.
class Mmt4dTilesAtLevel : public Mmt4dAtLevel {};

TEST_P(Mmt4dAtLevel, SmallSizes) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const Request& r : requests()) {
    check_small(r.flags, r.tile, cpu.data());
    if (HasFatalFailure()) return;
  }
}

TEST_P(Mmt4dAtLevel, BlocksOfK) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const Request& r : requests()) {
    const uk_index_t k = blocks_of_k(r);
    for (const uint32_t accumulate : {0u, UK_MMT4D_ACCUMULATE}) {
      check({r.flags | accumulate, 2, 2, k, r.tile, Strides::kLoose, Edge::end, "random"},
            cpu.data());
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Mmt4dTilesAtLevel, BlocksOfMAndK) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const Request& r : requests()) {
    // One more than a block of K is split in halves, each with twice the rows to a block of M.
    const uk_index_t k = splits_k(r) ? beyond_panels(r.tile) + 1 : 70;
    const uk_index_t m = 2 * kBeyondLhsBlock / (lhs_step_bytes(r.tile) * k) + 2;
    for (const uint32_t accumulate : {0u, UK_MMT4D_ACCUMULATE}) {
      check({r.flags | accumulate, m, 2, k, r.tile}, cpu.data());
      if (HasFatalFailure()) return;
    }
  }
}

// An RHS too large for the caches. One row of panels may read several of them in turns, two
// prefetch, past the RHS's end too.
TEST_P(Mmt4dTilesAtLevel, StreamingRhs) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const Request& r : requests()) {
    const uk_index_t k = streaming_k(r), n = streaming_n(r);
    check({r.flags, 1, n, k, r.tile, Strides::kDense}, cpu.data());
    if (HasFatalFailure()) return;
    for (const Strides strides : {Strides::kDense, Strides::kZeroForInputs}) {
      check({r.flags, 2, n, k, r.tile, strides}, cpu.data());
      if (HasFatalFailure()) return;
    }
  }
}

#if defined(__x86_64__)
// A CPU on which panels come abreast from memory: each thing that the walk goes by is said by
// another level.
CpuData with_abreast_streams(const std::string& isa) {
  const CpuData data = cpu_with({isa, "avx_vnni", "avx512_bf16"});
  EXPECT_TRUE(uk::l3_feeds_tiles(data.data()));
  EXPECT_EQ(1, uk::least_of_levels(data.data(), &uk::VectorUnit::panels_in_turns));
  return data;
}

// Tiles of several blocks prefetch into L1 there.
TEST_P(Mmt4dTilesAtLevel, StreamingRhsWhereL3FeedsTiles) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  UK_SKIP_WITHOUT_LEVEL("avx_vnni");
  UK_SKIP_WITHOUT_LEVEL("avx512_bf16");
  const CpuData data = with_abreast_streams(GetParam().isa);
  for (const Request& r : requests()) {
    const uk_index_t k = streaming_k(r), n = streaming_n(r);
    for (const uint32_t accumulate : {0u, UK_MMT4D_ACCUMULATE}) {
      check({r.flags | accumulate, 1, n, k, r.tile, Strides::kDense}, data.data());
      if (HasFatalFailure()) return;
    }
  }
  // Blocks of LHS panels in two parts of K, which fetch what OUT has of the first.
  const Request r = requests()[0];
  if (!splits_k(r)) return;
  const uk_index_t step = rhs_step_bytes(r.tile);
  const uk_index_t k = uk::kFetchedPanelBytes / (lhs_step_bytes(r.tile) + step) + 5;
  const uk_index_t n = kBeyondCaches / (k * step) + 1;
  check({r.flags | UK_MMT4D_ACCUMULATE, 3, n, k, r.tile, Strides::kLoose, Edge::end, "random"},
        data.data(), {{3 * r.tile.m0 - 1, n * r.tile.n0 - r.tile.n0 / 2}});
}
#endif

// An LHS too large for the caches, and larger than the RHS: of one RHS panel, and of a block of
// them and K in several parts. The scalar check takes its time for each.
TEST_P(Mmt4dTilesAtLevel, StreamingLhs) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  const Request r = requests()[0];
  const uk_index_t step = lhs_step_bytes(r.tile), short_k = (16 << 10) / step,
                   long_k = blocks_of_k(r);
  const auto m_of = [&](uk_index_t k) { return kBeyondCaches / (k * step) + 1; };
  const Case lone = {
      r.flags | UK_MMT4D_ACCUMULATE, m_of(short_k), 1, short_k, r.tile, Strides::kLoose};
  check_matrices(lone, cpu.data(),
                 {{lone.m * r.tile.m0 - r.tile.m0 / 2, r.tile.n0 - r.tile.n0 / 2}});
  if (HasFatalFailure()) return;
  const uk_index_t m = m_of(long_k);
  const uk_index_t n = std::min<uk_index_t>((m * step - 1) / rhs_step_bytes(r.tile), 3);
  check({r.flags, m, n, long_k, r.tile, Strides::kDense}, cpu.data());
}

TEST_P(Mmt4dAtLevel, UnpackedOut) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const Request& r : requests()) {
    check_unpacked_edges(r.flags, r.tile, cpu.data());
    if (HasFatalFailure()) return;
  }
}

// Where a tile comes to its results in several steps: what it has so far is in the matrix, or, of a
// tile that reaches beyond it, in the op where an RHS from memory has two panels in turns.
TEST_P(Mmt4dTilesAtLevel, UnpackedOutOfBlocksOfK) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const Request& r : requests()) {
    const uk_index_t long_k = blocks_of_k(r), k = streaming_k(r), n = streaming_n(r);
    for (const uint32_t accumulate : {0u, UK_MMT4D_ACCUMULATE}) {
      check_matrices({r.flags | accumulate, 2, 2, long_k, r.tile}, cpu.data(),
                     {{2 * r.tile.m0, 2 * r.tile.n0 - 1}});
      std::vector<MatrixSize> matrices;
      for (const int rows : std::set<int>{r.tile.m0, r.tile.m0 - r.tile.m0 / 2}) {
        matrices.push_back({rows, n * r.tile.n0 - 1});
      }
      check_matrices({r.flags | accumulate, 1, n, k, r.tile, Strides::kLoose}, cpu.data(),
                     matrices);
      if (HasFatalFailure()) return;
    }
  }
}

// Panels that are all taken together, and one and two that are left.
TEST_P(Mmt4dAbreast, FewPanels) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const uk_tile_row_t* row : rows_that(reads_abreast, GetParam())) {
    const uk_tile_sizes_t tile = {row->m0, row->n0, row->k0};
    if (GetParam().type.rhs == uk_conformance::Element::s4) {
      const uk_index_t k = uk_conformance::deepest_data_kind(tile.k0).steps.front();
      check({row->flags, 1, kPanelsAbreast, k, tile, Strides::kDense, Edge::end, "min x max"},
            cpu.data());
    }
    for (const int n : {kPanelsAbreast, kPanelsAbreast + 1, 2 * kPanelsAbreast + 2}) {
      std::vector<MatrixSize> matrices;
      for (const uk_index_t rows : std::set<uk_index_t>{tile.m0, tile.m0 - tile.m0 / 2}) {
        for (const uk_index_t columns :
             std::set<uk_index_t>{n * tile.n0, n * tile.n0 - 1, kPanelsAbreast * tile.n0 - 1}) {
          matrices.push_back({rows, columns});
        }
      }
      for (const uk_index_t k : {0, 1, 50}) {
        for (const Strides strides : kAllStrides) {
          const bool unpacks = strides != Strides::kZeroForInputs;
          for (const Edge edge : {Edge::start, Edge::end}) {
            for (const uint32_t accumulate : {0u, UK_MMT4D_ACCUMULATE}) {
              check({row->flags | accumulate, 1, n, k, tile, strides, edge, "random"}, cpu.data(),
                    unpacks ? matrices : std::vector<MatrixSize>());
              if (HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
}

// Each group of RHS panels meets all LHS panels.
TEST_P(Mmt4dAbreast, SeveralLhsPanels) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  constexpr int kM = 9, kN = 2 * kPanelsAbreast + 1;
  for (const uk_tile_row_t* row : rows_that(reads_abreast, GetParam())) {
    const uk_tile_sizes_t tile = {row->m0, row->n0, row->k0};
    const std::vector<MatrixSize> matrices = {{kM * tile.m0 - tile.m0 / 2, kN * tile.n0 - 1}};
    for (const uk_index_t k : {1, 20}) {
      for (const Strides strides : {Strides::kDense, Strides::kLoose}) {
        for (const uint32_t accumulate : {0u, UK_MMT4D_ACCUMULATE}) {
          check({row->flags | accumulate, kM, kN, k, tile, strides, Edge::end, "random"},
                cpu.data(), matrices);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// Blocks of K, which three RHS panels fill sooner than one.
TEST_P(Mmt4dAbreast, SeveralLhsPanelsInBlocksOfK) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const uk_tile_row_t* row : rows_that(reads_abreast, GetParam())) {
    const uk_tile_sizes_t tile = {row->m0, row->n0, row->k0};
    const uk_index_t step = lhs_step_bytes(tile) + kPanelsAbreast * rhs_step_bytes(tile);
    const uk_index_t k = uk::kPanelBytes / step + 20;
    check({row->flags | UK_MMT4D_ACCUMULATE, 2, kPanelsAbreast + 1, k, tile, Strides::kLoose},
          cpu.data(), {{2 * tile.m0, (kPanelsAbreast + 1) * tile.n0 - 1}});
    if (HasFatalFailure()) return;
  }
}

// From memory, for one LHS panel on a CPU that gains by it, and for two.
TEST_P(Mmt4dAbreast, StreamingRhs) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  CpuData data = cpu;
  data[7] |= uk::kReadsAhead;
  for (const uk_tile_row_t* row : rows_that(reads_abreast, GetParam())) {
    const Request r = {row->flags, {row->m0, row->n0, row->k0}};
    const uk_index_t k = streaming_k(r), n = streaming_n(r) + 2;
    for (const uk_index_t m : {1, 2}) {
      check({r.flags, m, n, k, r.tile, Strides::kDense}, data.data());
      if (HasFatalFailure()) return;
    }
  }
}

#if defined(__x86_64__)
// A few LHS panels where L3 feeds tiles, and panels too long for L2.
TEST_P(Mmt4dAbreast, FewLhsPanelsWhereL3Feeds) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  UK_SKIP_WITHOUT_LEVEL("avx_vnni");
  UK_SKIP_WITHOUT_LEVEL("avx512_bf16");
  const CpuData data = with_abreast_streams(GetParam().isa);
  for (const uk_tile_row_t* row : rows_that(reads_abreast, GetParam())) {
    const uk_tile_sizes_t tile = {row->m0, row->n0, row->k0};
    const uk_index_t k = uk::kPanelBytes / (lhs_step_bytes(tile) + rhs_step_bytes(tile)) + 1;
    check({row->flags, 2, kPanelsAbreast + 1, k, tile, Strides::kLoose}, data.data(),
          {{2 * tile.m0, (kPanelsAbreast + 1) * tile.n0 - 1}});
    if (HasFatalFailure()) return;
    check({row->flags, 3, 2 * kPanelsAbreast + 1, k, tile, Strides::kDense}, data.data());
    if (HasFatalFailure()) return;
  }
}

// Also where a tile has sums enough, on CPUs of the only kind that does so. With rows that are
// padding, too.
TEST_P(Mmt4dAbreastFromMemory, StreamingRhs) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  UK_SKIP_WITHOUT_LEVEL("avx_vnni");
  UK_SKIP_WITHOUT_LEVEL("avx512_bf16");
  const CpuData data = with_abreast_streams(GetParam().isa);
  for (const uk_tile_row_t* row : rows_that(reads_abreast_from_memory, GetParam())) {
    const Request r = {row->flags, {row->m0, row->n0, row->k0}};
    const uk_index_t k = uk::ceil_div(uk::kLeastBytesAbreast, rhs_step_bytes(r.tile));
    const uk_index_t n = kBeyondCaches / uk::kLeastBytesAbreast + 3;
    check({r.flags, 1, n, k, r.tile, Strides::kDense, Edge::end, "random"}, data.data());
    if (HasFatalFailure()) return;
    check_matrices({r.flags | UK_MMT4D_ACCUMULATE, 1, n, k, r.tile, Strides::kLoose}, data.data(),
                   {{r.tile.m0 - r.tile.m0 / 2, n * r.tile.n0 - 1}});
    if (HasFatalFailure()) return;
  }
}
#endif

TEST_P(Mmt4dOnDecodedRhs, FewSteps) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const uk_tile_row_t* row : rows_that(takes_decoded_rhs, GetParam())) {
    ASSERT_TRUE(uk::decodes_rhs_once(*row, kLhsPanels, 2, cpu.data())) << row->symbol;
    check_few_steps(*row);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Mmt4dOnDecodedLhs, FewSteps) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const uk_tile_row_t* row : rows_that(takes_decoded_lhs, GetParam())) {
    for (const uk_index_t m : std::set<uk_index_t>{1, lhs_panels(*row)}) {
      ASSERT_TRUE(decodes(*row, m)) << row->symbol;
      for (const uint32_t accumulate : {0u, UK_MMT4D_ACCUMULATE}) {
        for (const Strides strides : kAllStrides) {
          for (const uk_index_t k : {1, 3, 50}) {
            check_counts(*row, m, kRhsPanels, k, accumulate, strides);
          }
        }
        if (HasFatalFailure()) return;
      }
    }
  }
}

// LHS panels longer than what is decoded at a time; with so many RHS panels that they are in blocks
// where the walk is by LHS panels; and one row of tiles, whose parts take turns in a matrix.
TEST_P(Mmt4dOnDecodedLhs, PartsOfK) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const uk_tile_row_t* row : rows_that(takes_decoded_lhs, GetParam())) {
    const uk_index_t step_bytes = uk::on_decoded_lhs_of_row(*row)->operand.step_bytes;
    const uk_tile_sizes_t tile = {row->m0, row->n0, row->k0};
    const bool by_lhs_panels = transposes_lhs_once(*row);
    const uk_index_t m = by_lhs_panels ? 2 : lhs_panels(*row);
    const uk_index_t k = uk::kDecodedBytes / step_bytes + 1;
    const uk_index_t n =
        by_lhs_panels ? 2 * uk::kLhsBlockBytes / (k * rhs_step_bytes(tile)) + 2 : kRhsPanels;
    ASSERT_GT(step_bytes, 0) << row->symbol;
    ASSERT_LE(step_bytes, uk::kDecodedBytes) << row->symbol;
    ASSERT_TRUE(decodes(*row, m)) << row->symbol;
    check_counts(*row, m, n, k, UK_MMT4D_ACCUMULATE, Strides::kLoose);
    check_matrices({row->flags, 1, kRhsPanels, k, tile, Strides::kLoose}, data.data(),
                   {{row->m0 - 1, kRhsPanels * row->n0 - 1}});
    if (HasFatalFailure()) return;
  }
}

// An RHS too large for the caches, of which tiles fetch the parts for each other. Those of more
// rows would take long, but for one of each type.
TEST_P(Mmt4dOnDecodedLhs, StreamingRhs) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  int tall = 0;
  for (const uk_tile_row_t* row : rows_that(takes_decoded_lhs, GetParam())) {
    const bool is_tall = row->m0 > 6;
    tall += is_tall;
    if (is_tall && tall > 1 && !transposes_lhs_once(*row)) continue;
    const uk_tile_sizes_t tile = {row->m0, row->n0, row->k0};
    const uk_index_t step_bytes = uk::on_decoded_lhs_of_row(*row)->operand.step_bytes;
    for (const uk_index_t m : {1, 3}) {
      ASSERT_TRUE(decodes(*row, m, true)) << row->symbol;
      const uk_index_t k = m == 1 ? uk::kDecodedBytes / step_bytes + 1 : 200;
      const uk_index_t n = kBeyondCaches / (k * rhs_step_bytes(tile)) + 1;
      check_counts(*row, m, n, k, UK_MMT4D_ACCUMULATE, Strides::kDense);
      if (HasFatalFailure()) return;
    }
  }
}

// All of it for one tile of each type, as the walk is the same for all; for one of few rows, as the
// oracle takes its time.
TEST_P(Mmt4dOnDecodedRhs, BlocksOfKAndOut) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  bool had_all = false;
  for (const uk_tile_row_t* row : rows_that(takes_decoded_rhs, GetParam())) {
    const bool all = row->m0 <= 6 && !had_all;
    had_all |= all;
    check_blocks_of_k_and_out(*row, uk::on_decoded_rhs_of_row(*row)->operand, all);
    if (HasFatalFailure()) return;
  }
}

// On a small L2: two blocks of K, each of several parts, whose sums of rows are kept apart, and
// more LHS panels than have them all.
TEST_P(Mmt4dOnDecodedRhs, PartsOfBlocksOfK) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  data[7] |= uk::kSmallL2;
  for (const uk_tile_row_t* row : rows_that(takes_decoded_rhs, GetParam())) {
    if (row->n0 != 32) continue;  // others have the same code around their blocks
    const uk_tile_sizes_t tile = {row->m0, row->n0, row->k0};
    const uk_index_t part =
        uk::kDecodedPartBytes / uk::on_decoded_rhs_of_row(*row)->operand.step_bytes;
    const uk_index_t block =
        uk::kPanelBytesOfPartsInSmallL2 / (lhs_step_bytes(tile) + rhs_step_bytes(tile));
    ASSERT_GT(part, 0) << row->symbol;
    const uk_index_t parts = uk::ceil_div(block, part);
    ASSERT_GT(parts, 1) << row->symbol;
    const uk_index_t m = std::max(kLhsPanels, uk::kSummedLhsPanels / parts + 1);
    for (const uint32_t accumulate : {0u, UK_MMT4D_ACCUMULATE}) {
      check_counts(*row, m, 2, block + 1, accumulate, Strides::kLoose);
      if (HasFatalFailure()) return;
    }
  }
}

// On a larger L2, with so many results that they leave it from one part to the next: the same as on
// a small one. The walk is the same for all tiles of a type.
TEST_P(Mmt4dOnDecodedRhs, PartsOfBlocksOfKWithManyResults) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const uk_tile_row_t* row : rows_that(takes_decoded_rhs, GetParam())) {
    if (row->n0 < 16 || row->m0 < uk::kLeastRowsOfParts) continue;
    const uk_tile_sizes_t tile = {row->m0, row->n0, row->k0};
    const uk_index_t part =
        uk::kDecodedPartBytes / uk::on_decoded_rhs_of_row(*row)->operand.step_bytes;
    // Two blocks, and more LHS panels than have the sums of all parts of one.
    const uk_index_t k = uk::kMostPartsOfBlock * part + 5;
    const uk_index_t m = std::max(kLhsPanels, uk::kSummedLhsPanels / uk::kMostPartsOfBlock + 1);
    const uk_index_t out_bytes = row->m0 * row->n0 * bits_of(GetParam().type.out) / 8;
    const uk_index_t n = uk::kPassedBytes / (2 * part * rhs_step_bytes(tile) + m * out_bytes) + 1;
    ASSERT_LE(2 * part * m * lhs_step_bytes(tile), uk::kLhsBlockBytes) << "several LHS blocks";
    const Case all = {row->flags, m, n, k, tile, Strides::kDense, Edge::end, "random"};
    CpuData small = data;
    small[7] |= uk::kSmallL2;
    Call here(all, data.data()), there(all, small.data());
    here.run();
    there.run();
    if (HasFatalFailure()) return;
    for (uk_index_t i = 0; i < m; ++i) {
      for (uk_index_t j = 0; j < n; ++j) {
        ASSERT_EQ(there.tile(i, j), here.tile(i, j)) << row->symbol << ", tile " << i << ", " << j;
      }
    }
    return;
  }
}

TEST_P(Mmt4dOnSummedRows, FewSteps) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const uk_tile_row_t* row : rows_that(shares_row_sums, GetParam())) {
    ASSERT_TRUE(uk::keeps_row_sums(*row, kRhsPanels, kSteps)) << row->symbol;
    for (const uint32_t accumulate : {0u, UK_MMT4D_ACCUMULATE}) {
      for (const Strides strides : kAllStrides) {
        for (const uk_index_t k : {kSteps, uk_index_t{50}}) {
          check_counts(*row, kLhsPanels, kRhsPanels, k, accumulate, strides);
        }
      }
      if (HasFatalFailure()) return;
    }
  }
}

// Each part has sums of its own. Tiles of other columns have the same code around their blocks.
TEST_P(Mmt4dOnSummedRows, PartsOfK) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const uk_tile_row_t* row : rows_that(shares_row_sums, GetParam())) {
    if (row->n0 != 32) continue;
    const uk_index_t k = beyond_panels({row->m0, row->n0, row->k0}) + 1;
    check_counts(*row, 2, kRhsPanels, k, UK_MMT4D_ACCUMULATE, Strides::kLoose);
    if (HasFatalFailure()) return;
  }
}

// An RHS too large for the caches, of which tiles of several blocks take a few steps at a time.
TEST_P(Mmt4dOnSummedRows, StreamingRhs) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const uk_tile_row_t* row : rows_that(shares_row_sums, GetParam())) {
    if (row->n0 != 32) continue;
    const Request r = {row->flags, {row->m0, row->n0, row->k0}};
    check_counts(*row, 1, streaming_n(r), streaming_k(r), 0, Strides::kDense);
    if (HasFatalFailure()) return;
  }
}

#if defined(__x86_64__)
// Of a CPU whose L3 feeds tiles, and which decodes no RHS of s8 once: as many LHS panels as have
// their sums kept at a time, and more, each meeting all RHS panels or met by one after the other.
TEST(Mmt4dOnSummedRowsWhereL3Feeds, ManyLhsPanels) {
  UK_SKIP_WITHOUT_LEVEL("avx512_vnni");
  CpuData cpu = level_cpu_data("avx512_vnni");
  cpu[0] |= level_cpu_data("avx512_bf16")[0];
  ASSERT_TRUE(uk::l3_feeds_tiles(cpu.data()));
  for (const char* name : {"s8s8s32", "s8s4s32"}) {
    const Mmt4dTypeAtLevel tested = {*uk_conformance::find_matmul_type(name), "avx512_vnni"};
    for (const uk_tile_row_t* row : rows_that(shares_row_sums, tested)) {
      const uk_tile_sizes_t tile = {row->m0, row->n0, row->k0};
      ASSERT_EQ(row,
                uk::select_tile(UK_OP_MMT4D, row->flags, tile.m0, tile.n0, tile.k0, cpu.data()));
      ASSERT_TRUE(uk::keeps_row_sums(*row, 9, 16)) << row->symbol;
      for (const uk_index_t m : {uk_index_t{2}, uk::kSummedLhsPanels, uk::kSummedLhsPanels + 2}) {
        for (const Strides strides : {Strides::kDense, Strides::kLoose}) {
          check({row->flags, m, 9, 16, tile, strides, Edge::end, "random"}, cpu.data());
          if (HasFatalFailure()) return;
        }
      }
      // Long panels from L3: the LHS panels meet one block of the RHS after the other.
      if (tile.n0 != 32) continue;
      const uk_index_t step_bits = tile.k0 * (tile.m0 * 8 + tile.n0 * bits_of(tested.type.rhs));
      const uk_index_t k = 8 * uk::kPanelBytes / step_bits + 1;
      check({row->flags, 2, 8, k, tile, Strides::kDense, Edge::end, "random"}, cpu.data());
      if (HasFatalFailure()) return;
    }
  }
}
#endif

TEST_P(Mmt4dByLhsPanels, FewSteps) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const uk_tile_row_t* row : rows_that(transposes_lhs_once, GetParam())) {
    check_few_steps(*row);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Mmt4dByLhsPanels, BlocksOfKAndOut) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const uk_tile_row_t* row : rows_that(transposes_lhs_once, GetParam())) {
    check_blocks_of_k_and_out(*row, uk::on_decoded_lhs_of_row(*row)->operand, true);
    if (HasFatalFailure()) return;
  }
}

#if defined(__x86_64__)
TEST(Mmt4dTiles, DecodeTheRhsOnceForEnoughPanels) {
  struct Expected {
    const char* level;
    uint32_t type;
    uk_tile_sizes_t tile;
    uk_index_t m, n;
    bool decodes, decodes_reading_ahead;
  };
  constexpr uint32_t kF16 = UK_MMT4D_TYPE_F16F16F32, kBf16 = UK_MMT4D_TYPE_BF16BF16F32,
                     kS8 = UK_MMT4D_TYPE_S8S8S32;
  for (const Expected& e :
       {Expected{"avx512_base", kF16, {14, 32, 1}, 4, 9, false, false},
        Expected{"avx512_base", kF16, {14, 32, 1}, 5, 9, true, true},
        Expected{"avx512_base", kF16, {14, 32, 1}, 5, 1, true, true},
        Expected{"avx512_base", kF16, {2, 32, 1}, 50, 9, false, false},
        Expected{"avx2_fma", kF16, {6, 16, 1}, 5, 9, true, false},
        Expected{"avx2_fma", kBf16, {6, 16, 2}, 6, 9, false, false},
        Expected{"avx2_fma", kBf16, {6, 16, 2}, 7, 9, true, true},
        Expected{"avx512_vnni", kS8, {14, 32, 4}, 6, 9, false, false},
        Expected{"avx512_vnni", kS8, {14, 32, 4}, 7, 2, true, true},
        Expected{"avx512_vnni", kS8, {14, 32, 4}, 9, 1, false, false},
        Expected{"avx512_vnni", kS8, {16, 32, 4}, 50, 50, true, true},
        Expected{"amx_int8", kS8, {16, 32, 4}, 50, 50, false, false},  // decodes the LHS
        Expected{"avx2_fma", kS8, {6, 16, 2}, 5, 2, true, false},
        Expected{"avx2_fma", UK_MMT4D_TYPE_U8S8S32, {6, 16, 2}, 5, 2, true, false},
        Expected{"avx2_fma", UK_MMT4D_TYPE_S16S8S32, {6, 16, 2}, 5, 2, true, false},
        Expected{"avx2_fma", UK_MMT4D_TYPE_S8S4S32, {16, 16, 8}, 9, 9, true, true},
        Expected{"sse2", kS8, {4, 16, 2}, 9, 9, true, true},
        Expected{"avx2_fma", UK_MMT4D_TYPE_F32F32F32, {6, 16, 1}, 50, 9, false, false}}) {
    CpuData cpu = level_cpu_data(e.level);
    const uk_tile_row_t* row =
        uk::select_tile(UK_OP_MMT4D, e.type, e.tile.m0, e.tile.n0, e.tile.k0, cpu.data());
    ASSERT_TRUE(row);
    EXPECT_EQ(e.decodes, uk::decodes_rhs_once(*row, e.m, e.n, cpu.data()))
        << row->symbol << ", " << e.m << " by " << e.n << " panels";
    cpu[7] |= UK_CPU_FIELD7_X86_64_READS_AHEAD;
    EXPECT_EQ(e.decodes_reading_ahead, uk::decodes_rhs_once(*row, e.m, e.n, cpu.data()))
        << row->symbol << ", " << e.m << " by " << e.n << " panels, reading ahead";
  }
}

TEST(Mmt4dTiles, DecodeS4OnceForFewResultsWhereL3FeedsTiles) {
  CpuData cpu = level_cpu_data("avx512_vnni");
  const uint64_t bf16 = level_cpu_data("avx512_bf16")[0];
  const uk_tile_row_t* const s4 =
      uk::select_tile(UK_OP_MMT4D, UK_MMT4D_TYPE_S8S4S32, 16, 32, 8, cpu.data());
  const uk_tile_row_t* const u4 =
      uk::select_tile(UK_OP_MMT4D, UK_MMT4D_TYPE_S16U4S32, 8, 32, 8, cpu.data());
  ASSERT_TRUE(s4 && u4);
  EXPECT_TRUE(uk::decodes_rhs_once(*s4, 5, 9, cpu.data()));
  EXPECT_TRUE(uk::decodes_rhs_once(*u4, 5, 9, cpu.data()));
  cpu[0] |= bf16;
  ASSERT_TRUE(uk::l3_feeds_tiles(cpu.data()));
  EXPECT_FALSE(uk::decodes_rhs_once(*s4, 6, 9, cpu.data()));
  EXPECT_TRUE(uk::decodes_rhs_once(*s4, 7, 9, cpu.data()));
  EXPECT_TRUE(uk::decodes_rhs_once(*s4, 32, 128, cpu.data()));  // 512 x 4096
  EXPECT_FALSE(uk::decodes_rhs_once(*s4, 32, 129, cpu.data()));
  EXPECT_FALSE(uk::decodes_rhs_once(*u4, 50, 9, cpu.data()));
}

TEST(Mmt4dTiles, DecodeTheLhsOnceForSeveralRhsPanels) {
  struct Expected {
    const char* level;
    uint32_t type;
    uk_tile_sizes_t tile;
    uk_index_t m, n;
    bool decodes, decodes_streaming;
  };
  constexpr uint32_t kF16 = UK_MMT4D_TYPE_F16F16F32, kS8 = UK_MMT4D_TYPE_S8S8S32;
  for (const Expected& e :
       {Expected{"amx_int8", kS8, {16, 32, 4}, 50, 1, false, false},
        Expected{"amx_int8", kS8, {16, 32, 4}, 50, 2, true, true},
        Expected{"avx512_vnni", kS8, {16, 32, 4}, 1, 50, false, false},
        Expected{"avx2_fma", kS8, {4, 16, 2}, 1, 4, false, false},
        Expected{"avx2_fma", kS8, {4, 16, 2}, 1, 5, true, true},
        Expected{"avx2_fma", kS8, {4, 16, 2}, 32, 5, true, true},
        Expected{"avx2_fma", kS8, {4, 16, 2}, 33, 5, true, false},
        Expected{"avx2_fma", kS8, {2, 16, 2}, 1, 5, false, false},  // reads abreast
        Expected{"avx2_fma", kF16, {4, 16, 1}, 1, 5, true, true},
        Expected{"avx2_fma", kF16, {6, 16, 1}, 21, 5, true, true},
        Expected{"avx2_fma", kF16, {6, 16, 1}, 22, 5, false, false},
        Expected{"avx2_fma", kF16, {13, 32, 1}, 1, 5, true, true},
        Expected{"avx2_fma", UK_MMT4D_TYPE_F16F16F16, {16, 16, 1}, 1, 5, false, false},
        Expected{"avx512_base", kF16, {14, 32, 1}, 1, 5, false, false}}) {
    const CpuData cpu = level_cpu_data(e.level);
    const uk_tile_row_t* row =
        uk::select_tile(UK_OP_MMT4D, e.type, e.tile.m0, e.tile.n0, e.tile.k0, cpu.data());
    ASSERT_TRUE(row) << e.level;
    for (const bool streams : {false, true}) {
      EXPECT_EQ(streams ? e.decodes_streaming : e.decodes,
                uk::decodes_lhs_once(*row, e.m, e.n, streams, cpu.data()))
          << row->symbol << ", " << e.m << " by " << e.n << " panels"
          << (streams ? " from memory" : "");
    }
    // Nobody measured it where L3 feeds tiles.
    CpuData with_l3 = level_cpu_data("avx512_bf16");
    for (size_t i = 0; i < with_l3.size(); ++i) with_l3[i] |= cpu[i];
    if (uk::l3_feeds_tiles(with_l3.data()) && uk::tile_steps(*row) == 1) {
      EXPECT_FALSE(uk::decodes_lhs_once(*row, e.m, e.n, false, with_l3.data())) << row->symbol;
    }
  }
}
#endif

// Of few sums, which would wait for each other, unless they would not fit; from memory of more.
TEST(Mmt4dTiles, ReadPanelsAbreast) {
  struct Expected {
    uint32_t type;
    const char* level;
    uk_tile_sizes_t tile;
    bool abreast, from_memory;
  };
#if defined(__x86_64__)
  constexpr Expected kExpected[] = {
      {UK_MMT4D_TYPE_F32F32F32, "avx2_fma", {1, 16, 1}, true, true},
      {UK_MMT4D_TYPE_F32F32F32, "avx2_fma", {2, 16, 1}, true, true},
      {UK_MMT4D_TYPE_F32F32F32, "avx2_fma", {4, 8, 1}, true, true},
      {UK_MMT4D_TYPE_F32F32F32, "avx2_fma", {4, 16, 1}, false, false},  // has sums enough
      // Has no register to decode in.
      {UK_MMT4D_TYPE_F16F16F32, "avx2_fma", {4, 8, 1}, false, false},
      {UK_MMT4D_TYPE_S8S8S32, "avx2_fma", {1, 16, 2}, true, true},
      {UK_MMT4D_TYPE_F32F32F32, "avx512_base", {4, 32, 1}, false, true},
      {UK_MMT4D_TYPE_F32F32F32, "avx512_base", {8, 32, 1}, false, false},
      {UK_MMT4D_TYPE_BF16BF16F32, "avx512_bf16", {1, 64, 2}, true, true},
      {UK_MMT4D_TYPE_BF16BF16F32, "avx512_bf16", {8, 16, 2}, false, true},
      {UK_MMT4D_TYPE_S8S8S32, "avx512_vnni", {1, 32, 4}, false, true},  // has several sums a result
      {UK_MMT4D_TYPE_S8S8S32, "avx512_vnni", {4, 32, 4}, false, true},  // shares the sums of rows
      {UK_MMT4D_TYPE_S8S4S32, "avx512_vnni", {1, 32, 8}, false, true},
      {UK_MMT4D_TYPE_S16U4S32, "avx512_vnni", {1, 32, 8}, false, false},  // decodes four parts
  };
#else
  constexpr Expected kExpected[] = {
      {UK_MMT4D_TYPE_F32F32F32, "neon", {1, 16, 1}, true, true},
      {UK_MMT4D_TYPE_F32F32F32, "neon", {1, 32, 1}, false, false},
      {UK_MMT4D_TYPE_F32F32F32, "neon", {2, 8, 1}, true, true},
      {UK_MMT4D_TYPE_F32F32F32, "neon", {4, 8, 1}, false, false},
      {UK_MMT4D_TYPE_S8S8S32, "dotprod", {1, 16, 4}, true, true},
  };
#endif
  for (const Expected& e : kExpected) {
    const CpuData cpu = level_cpu_data(e.level);
    const uk_tile_row_t* row =
        uk::select_tile(UK_OP_MMT4D, e.type, e.tile.m0, e.tile.n0, e.tile.k0, cpu.data());
    ASSERT_TRUE(row) << e.level;
    EXPECT_EQ(e.abreast, reads_abreast(*row)) << row->symbol;
    EXPECT_EQ(e.from_memory, reads_abreast_from_memory(*row)) << row->symbol;
  }
}

TEST(Mmt4dTiles, FitTheStackOfUnpackOut) {
  for (const uk_tile_row_t* row : table_rows()) {
    if (row->op != UK_OP_MMT4D || row->origin == UK_ORIGIN_GENERIC) continue;
    const int bits = bits_of(uk_conformance::find_matmul_type(row->flags)->out);
    const uk_index_t most = takes_decoded_lhs(*row) || takes_decoded_rhs(*row)
                                ? uk::kMostTileBytesOnDecoded
                                : uk::kMostTileBytes;
    // One that takes several panels may lie behind another one there.
    const uk_index_t panels = reads_abreast_from_memory(*row) ? kPanelsAbreast + 1 : 1;
    EXPECT_LE(panels * row->m0 * row->n0 * bits / 8, most) << row->symbol;
  }
}

// With one row of panels K runs in one piece, with two it is split: the bits must not show it.
TEST_P(Mmt4dAtLevel, BitsDoNotDependOnTheSplitOfK) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const Request& r : requests()) {
    const uk_index_t k = 3 * beyond_panels(r.tile) + 5;
    Call whole({r.flags, 1, 1, k, r.tile, Strides::kZeroForInputs, Edge::end, "random"},
               cpu.data());
    Call split({r.flags, 2, 1, k, r.tile, Strides::kZeroForInputs, Edge::end, "random"},
               cpu.data());
    // The order inside the hardware's dot product is no part of the contract, but that parts begin
    // where an instruction would.
    if (whole.row()->numerics == UK_NUMERICS_BF16_DOT && uk::tile_steps(*whole.row()) == 1)
      continue;
    whole.run();
    split.run();
    if (HasFatalFailure()) return;
    EXPECT_EQ(whole.tile(0, 0), split.tile(0, 0)) << whole.row()->symbol;
    EXPECT_EQ(whole.tile(0, 0), split.tile(1, 0)) << whole.row()->symbol;
    // As of an op that decodes the LHS.
    Call columns({r.flags, 1, 2, k, r.tile, Strides::kZeroForInputs, Edge::end, "random"},
                 cpu.data());
    columns.run();
    if (HasFatalFailure()) return;
    EXPECT_EQ(whole.tile(0, 0), columns.tile(0, 0)) << whole.row()->symbol;
    EXPECT_EQ(whole.tile(0, 0), columns.tile(0, 1)) << whole.row()->symbol;
#if defined(__x86_64__)
    CpuData data = cpu;
    data[7] |= UK_CPU_FIELD7_X86_64_SMALL_L2;
    Call smaller({r.flags, 2, 1, k, r.tile, Strides::kZeroForInputs, Edge::end, "random"},
                 data.data());
    smaller.run();
    if (HasFatalFailure()) return;
    EXPECT_EQ(whole.tile(0, 0), smaller.tile(1, 0)) << whole.row()->symbol << " in a small L2";
#endif
  }
}

// Not even a signalling NaN of 16 bits, which any rounding would make quiet, changes.
TEST_P(Mmt4dAtLevel, OutStaysWhereThereIsNoK) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const Request& r : requests()) {
    const Bytes before = random_bytes(
        bytes_of(uk_index_t{r.tile.m0} * r.tile.n0, bits_of(GetParam().type.out)), r.tile.m0);
    Bytes out = before;
    uk_mmt4d_params_t p = {};
    p.struct_size = sizeof(p);
    p.out = out.data();
    p.m = p.n = 1;
    p.m0 = r.tile.m0, p.n0 = r.tile.n0, p.k0 = r.tile.k0;
    p.flags = r.flags | UK_MMT4D_ACCUMULATE;
    p.cpu_data = cpu.data();
    ASSERT_EQ(UK_STATUS_OK, uk_mmt4d(&p));
    EXPECT_EQ(before, out);
  }
}

// Every tile of OUT has the same operands, on both sides of a block of N, if there are any, and K
// is split.
TEST_P(Mmt4dTilesAtLevel, DoNotDependOnTheBlocksOfN) {
  UK_SKIP_WITHOUT_LEVEL(GetParam().isa);
  for (const Request& r : requests()) {
    // The RHS has more bytes than the LHS, of which a block of it has no more.
    const uk_index_t n = 2 * lhs_step_bytes(r.tile) / rhs_step_bytes(r.tile) + 2;
    Call call({r.flags, 2, n, beyond_panels(r.tile) + 1, r.tile, Strides::kZeroForInputs, Edge::end,
               "random"},
              cpu.data());
    call.run();
    if (HasFatalFailure()) return;
    for (uk_index_t j = 0; j < n; ++j) {
      ASSERT_EQ(call.tile(0, 0), call.tile(0, j)) << call.row()->symbol << ", column " << j;
      ASSERT_EQ(call.tile(0, 0), call.tile(1, j)) << call.row()->symbol << ", column " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Mmt4dAtLevel, ::testing::ValuesIn(types_at_levels(true)), test_name);
INSTANTIATE_TEST_SUITE_P(All, Mmt4dAbreast,
                         ::testing::ValuesIn(types_with_rows_that(reads_abreast)), test_name);
INSTANTIATE_TEST_SUITE_P(All, Mmt4dOnDecodedLhs,
                         ::testing::ValuesIn(types_with_rows_that(takes_decoded_lhs)), test_name);
INSTANTIATE_TEST_SUITE_P(All, Mmt4dByLhsPanels,
                         ::testing::ValuesIn(types_with_rows_that(transposes_lhs_once)), test_name);
INSTANTIATE_TEST_SUITE_P(All, Mmt4dOnDecodedRhs,
                         ::testing::ValuesIn(types_with_rows_that(takes_decoded_rhs)), test_name);
#if defined(__x86_64__)
INSTANTIATE_TEST_SUITE_P(All, Mmt4dAbreastFromMemory,
                         ::testing::ValuesIn(types_with_rows_that(reads_abreast_from_memory)),
                         test_name);
INSTANTIATE_TEST_SUITE_P(All, Mmt4dOnSummedRows,
                         ::testing::ValuesIn(types_with_rows_that(shares_row_sums)), test_name);
#else
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Mmt4dOnSummedRows);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Mmt4dByLhsPanels);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Mmt4dOnDecodedLhs);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Mmt4dOnDecodedRhs);
#endif
INSTANTIATE_TEST_SUITE_P(All, Mmt4dTilesAtLevel, ::testing::ValuesIn(types_at_levels(false)),
                         test_name);

}  // namespace
}  // namespace uk_test
