// The cost of a tile's k step, under a model of the K loop.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <algorithm>
#include <numeric>

#include "ukernel/internal.h"
#include "ukernel/tile.h"

namespace uk {
namespace {

// RHS panels for which transposing an LHS panel first takes as long as each doing it; and for which
// it is not worth while to share staged rows.
constexpr uk_index_t kFewRhsPanels = 1, kFewRhsPanelsOfStagedRows = 4;
// Rows that gain by it whatever their type, and wherever the RHS comes from.
constexpr uk_index_t kFewStagedRows = 128;
// LHS panels for which decoding the RHS first takes as long as it saves, measured on Emerald
// Rapids; and where flipping signs or a shift is all.
constexpr uk_index_t kFewLhsPanels = 4, kFewLhsPanelsToFlip = 6;
// RHS panels, and their steps, for which keeping the sums of rows costs a call what it saves: a
// cycle a step.
constexpr uk_index_t kFewRhsPanelsOfSums = 7, kFewStepsOfSums = 15;
// Results for which decoding s4 once is faster where L3 feeds tiles: see decodes_rhs_once.
constexpr uk_index_t kMostResultsOnDecodedS4 = 1 << 21;

// Quarter cycles on a core with two ports that multiply vectors and two that load. An accumulator
// takes its next product after four cycles, in practice 4.75: eight of them were measured to keep
// the ports busy for 84 % of the time. Where both kinds of ports are busy they get into each
// other's way. What brings columns into the form that dots take finds gaps between these on x86,
// and half of it is free. A cycle and a half stand for the loop, and less than one for a cache line
// of operands on its way to L1: it decides between tiles of equal dots. A wide core was measured to
// do all that beside its dots, so that padding decides there. Where few sums of integers are split
// (arch/x86_64/mmt4d_tile.h), dots wait less than this says. But columns come from beyond L1 once
// for each tile of rows, so that more rows are faster: M = 3 of s8 by s8 ran in tiles of 1x64x4 at
// two thirds of the speed of 4x32x4.
constexpr int kPerInstruction = 2, kPerColumnsInstruction = 1, kPerLoad = 2, kPerLoop = 6,
              kPerLine = 3, kOverlap = 8;
// A cache line of columns that each block brings to L2 anew. On Zen 5 14x32, in one block, took
// 0.945 to 0.985 of the time of 16x32, in two (1008x1024, f32 with K from 2048 on, bf16 from 4096
// on), s16 0.98 to 0.99, u8 by s8 0.99, and f64 14x16 0.9 to 0.955 of that of 16x16.
constexpr int kPerFarLine = 1;
// Blocks of one vector, which load a row for each dot, were measured to take a quarter longer than
// the loads do.
constexpr int kLoneVectorLoads = 4;
// How much longer, 17 sixteenths, a tile takes than the model says where the generator has its
// columns in parts, so that its blocks have more rows.
constexpr int kInParts = 17, kWhole = 16;
// To load a vector of rows or columns, bring it into the form that dots take, and store it where
// they find it.
constexpr int kPerStagedVector = 6;
// The same of nibbles that are brought in order, by three instructions, for dots of one: as if it
// were that dear where a dot takes several, tiles of too few rows would seem the best (s8 by s4 on
// AVX2).
constexpr int kPerOrderedVector = 18;
// The same of rows that are staged beside dots, of which a vector holds as many as so many quarters
// of its lanes at least: of rows that are widened into one vector, and of pairs of bf16. See
// stages_beside_dots in generator/plan.py.
constexpr int kPerVectorWidenedBesideDots = 5, kPerPairsBesideDots = 3, kStagedQuarters = 3;
// s8 by s4 sums its rows in a pass of its own, by lanes that belong to one row each, in as many
// steps as fill whole vectors. These lanes are added up one by one, a cycle for four, at the end of
// so many steps as K = 512 has.
constexpr int kStepsPerSummedLane = 64;
constexpr int kLineBits = kLineBytes * 8;
// Cycles of 16 steps of a tile that is multiplied by an instruction, measured on Emerald Rapids: of
// each of its products, alone 16; of loads of 16 columns, from L2, and of 16 rows; and of
// transposing those once for several tiles, or for one of them, whose loads then wait for it.
constexpr int kTileRows = 16, kPerTileProduct = 19, kPerTileOfColumns = 23, kPerTileOfRows = 8,
              kPerTransposedTile = 82, kPerTransposedTileOfOne = 70;
constexpr int kMultiplyAddChain = 19, kIntegerAddChain = 4;
// Of x86's dot of two bf16. With the chain of an FMA it looked as if few sums were enough: on Zen 5
// 8 rows by 16 columns took up to 1.25 times as long as 16 rows, half of them padding.
constexpr int kBf16DotChain = 24;
// Rounding to 16 bits in software, at every product: instructions that mostly wait for each other.
constexpr int kRoundingInstructions = 8;
constexpr int kRoundingChain = 160;

// How tiles of a level multiply rows by vectors of columns: in dots of k products a lane.
struct Dot {
  int k;
  int rows;                  // that it takes at once: two to a matrix instruction, used or not
  int instructions;          // for a row and a vector of columns
  int columns_instructions;  // for a vector of columns, whatever the rows
  int row_sum_instructions;  // for the tile
  bool sums_rows_before;     // the K loop
  int temporaries;           // registers beside accumulators, columns and one row
  int chain;                 // from one dot into an accumulator to the next
};

bool is_f16(const Mmt4dType& type) {
  return type.flag == UK_MMT4D_TYPE_F16F16F32 || type.flag == UK_MMT4D_TYPE_F16F16F16;
}

// Whether f16 is the type of the sums too.
bool sums_f16(const uk_tile_row_t& row, const Mmt4dType& type, const VectorUnit& unit) {
  return unit.f16_fma && type.flag == UK_MMT4D_TYPE_F16F16F16 &&
         row.numerics == UK_NUMERICS_ROUND_EACH_STEP;
}

int lane_bits(const uk_tile_row_t& row, const Mmt4dType& type, const VectorUnit& unit) {
  return type.out_bits >= 32 || sums_f16(row, type, unit) ? type.out_bits : 32;
}

// The products that one instruction for bytes adds: of a matrix instruction, or of its half.
int byte_dot(const uk_tile_row_t& row, const VectorUnit& unit) {
  if (unit.byte_dot && row.k0 % unit.byte_dot == 0) return unit.byte_dot;
  return unit.byte_dot > 4 && row.k0 % 4 == 0 ? 4 : 0;
}

bool is_bf16_dot(uint32_t numerics) {
  return numerics == UK_NUMERICS_BF16_DOT || numerics == UK_NUMERICS_BF16_DOT_F32ACC;
}

bool is_bf16_pair(const uk_tile_row_t& row, const Mmt4dType& type) {
  return row.k0 == 2 &&
         (type.flag == UK_MMT4D_TYPE_BF16BF16F32 || type.flag == UK_MMT4D_TYPE_BF16BF16BF16);
}

// `decoded`: of columns that the op has decoded, with the sums of rows if it sums panels of them.
Dot dot_of(const uk_tile_row_t& row, const Mmt4dType& type, const VectorUnit& unit, bool wide,
           bool decoded) {
  Dot dot = {1, 1, 1, 0, 0, false, 0, kMultiplyAddChain};
  if (row.numerics == UK_NUMERICS_EXACT) {
    if (type.lhs_bits == 8 && byte_dot(row, unit)) {
      dot.k = byte_dot(row, unit);
      if (unit.byte_flip && type.flag != UK_MMT4D_TYPE_U8S8S32) {
        if (!wide) dot.columns_instructions += 1;  // else on ports that do not multiply
        if (!decoded) dot.temporaries += 1;
        dot.sums_rows_before = type.rhs_bits < 8;
        if (unit.byte_flip > 1 && type.rhs_bits == 8 && !decoded) {
          dot.row_sum_instructions += 1;
          dot.temporaries += 1;
        }
      }
    } else {
      dot.k = row.k0 % unit.s16_k == 0 ? unit.s16_k : 1;
      dot.instructions = unit.s16_dot;
      if (dot.instructions > 1) dot.chain = kIntegerAddChain;  // the multiplication does not wait
      const bool masks = type.rhs_bits < 8 && !unit.lhs_by_lane;
      if (masks && !decoded) dot.temporaries += 1;
    }
  } else if (is_bf16_dot(row.numerics)) {
    dot.k = unit.bf16_dot && row.k0 % unit.bf16_dot == 0 ? unit.bf16_dot : 2;
    if (!unit.lhs_by_lane) dot.chain = kBf16DotChain;
  } else {
    dot.instructions = unit.fma;
    if (row.numerics == UK_NUMERICS_ROUND_EACH_STEP && !sums_f16(row, type, unit)) {
      dot.instructions += kRoundingInstructions;
      dot.chain += kRoundingChain;
      dot.temporaries += unit.registers / 2;
    }
  }
  // An Arm instruction that takes 64 bits of a row for sums of 32 is a matrix instruction.
  if (unit.lhs_by_lane && dot.k * type.lhs_bits == 64 && lane_bits(row, type, unit) == 32) {
    dot.rows = 2;
  }
  if (dot.instructions > 1) dot.temporaries += 1;
  // Widening, which of f16 takes x86 a shuffle beside a conversion.
  const int per_widening = is_f16(type) && !unit.lhs_by_lane ? 2 : 1;
  for (int bits = type.rhs_bits * dot.k; bits < lane_bits(row, type, unit); bits *= 2) {
    dot.columns_instructions += per_widening;
  }
  // The dots of a column lie side by side; a bf16 is the upper half of its f32, so that to tell two
  // of them apart is to widen them.
  if (row.k0 > dot.k && !is_bf16_pair(row, type)) dot.columns_instructions += 2;
  if (decoded) dot.columns_instructions = 0;
  return dot;
}

int ceil_div(int a, int b) { return (a + b - 1) / b; }

// One k step of a tile, on one RHS panel. Costs are in quarter cycles.
class Step {
 public:
  Step(const uk_tile_row_t& row, const Mmt4dType& type, const VectorUnit& unit, bool wide,
       const TileInOp& in_op, int least_parts)
      : row_(row),
        type_(type),
        unit_(unit),
        wide_(wide),
        in_op_(in_op),
        panels_(in_op.abreast ? kPanelsAbreast : 1),
        dot_(dot_of(row, type, unit, wide, in_op.rhs_decoded_for > 0)),
        dots_(row.k0 / dot_.k),
        lane_bits_(lane_bits(row, type, unit)),
        vectors_(panels_ * ceil_div(row.n0 * lane_bits_, vector_bits())) {
    if (in_op.abreast) {  // only where all panels fit one block
      parts_ = blocks_ = 1;
      part_ = vectors_;
      return;
    }
    // Parts of the columns whose accumulators for one row fit the registers, then blocks of rows.
    // One row multiplies one vector of columns after the other. Of several dots, the columns and
    // the row of one are there beside what they are taken from; or, of more than two that are
    // decoded, beside those of the next one.
    int registers = unit.registers - dot_.temporaries;
    parts_ = std::max(ceil_div(vectors_, row.m0 == 1 ? registers - 2 : (registers - 1) / 2),
                      std::min(least_parts, vectors_));
    part_ = ceil_div(vectors_, parts_);
    // But where columns of bf16 would take too many, they are loaded anew for the second.
    const bool reloads = is_bf16_pair(row, type) && unit.fma == 1 && unit.bytes == 32;
    if (dots_ > (in_op.rhs_decoded_for > 0 || reloads ? 2 : 1)) registers -= part_ + 1;
    blocks_ = block_count(registers, row.m0, part_);
  }

  int cost() const {
    if (unit_.tile_steps > 0) return cost_of_tiles();
    if (panels_ > 1) return ceil_div(cost_of_blocks(false), panels_);
    if (in_op_.rhs_decoded_for > 0) {
      const uk_index_t staging = columns_staging() / (2 * in_op_.rhs_decoded_for);
      return cost_of_blocks(true) + static_cast<int>(staging);
    }
    const int plain = cost_of_blocks(false);
    if (row_.origin == UK_ORIGIN_HAND || unit_.lhs_by_lane || dot_.columns_instructions == 0) {
      return plain;
    }
    // A generated tile of x86 stages its columns, once for all blocks, where that is cheaper.
    const int staged = cost_of_blocks(true) + columns_staging();
    return staged < plain ? staged : plain;
  }

 private:
  int cost_of_tiles() const {
    const int rows = ceil_div(row_.m0, kTileRows), columns = ceil_div(row_.n0, kTileRows);
    const int products = kPerTileProduct * rows * columns;
    const int loads = kPerTileOfColumns * columns + kPerTileOfRows * rows;
    const uk_index_t tiles = in_op_.lhs_decoded_for;
    const int transposing = tiles > 0 ? static_cast<int>(kPerTransposedTile * rows / tiles)
                                      : kPerTransposedTileOfOne * rows;
    return ceil_div(4 * ((products > loads ? products : loads) + transposing), unit_.tile_steps);
  }

  int vector_bits() const { return unit_.bytes * 8; }

  int cost_of_blocks(bool columns_staged) const {
    const int rows = row_.m0 / blocks_, larger_blocks = row_.m0 % blocks_;
    // Hand-written tiles of several blocks stage once, too, but run on parts of K that fit the
    // stage, which costs about as much as staging for each block: f16 by f16 16x16 on AVX2, of four
    // blocks, reaches 84 % of the peak where 6x16 reaches 95. Not where a product of integers is an
    // instruction and its sum another: 16 rows of u8 by s8 were up to 7 % faster in a tile of 16
    // than in four of 4, and up to a third where another thread ran on the core (Zen 3). Generated
    // ones for nibbles do not stage beside their dots, either, as a block alone does, which costs
    // where a dot is one instruction: s8 by s4 16x32 reaches 86, 8x32 92, and s16 by u4 13x32 92,
    // 8x32 97. But on Cascade Lake, which is not wide, s8 by s4 16x32 took 0.85 to 0.89 of the time
    // of 8x32, and s16 by u4 1.03.
    const int all_blocks = parts_ * blocks_;
    const bool is_dear = row_.origin == UK_ORIGIN_HAND && row_.numerics != UK_NUMERICS_EXACT;
    const bool costs = dots_nibbles_at_once() && (wide_ || type_.lhs_bits > 8);
    const int times_staged = is_dear ? all_blocks : costs && all_blocks > 1 ? 2 : 1;
    return parts_ * (larger_blocks * block_cost(rows + 1, columns_staged) +
                     (blocks_ - larger_blocks) * block_cost(rows, columns_staged)) +
           times_staged * rows_staging() + rows_summing() +
           far_columns(columns_staged ? 1 : blocks_) +
           kPerInstruction * dots_ * dot_.row_sum_instructions;
  }

  int far_columns(int times) const {
    if (!in_op_.is_far) return 0;
    return ceil_div(kPerFarLine * times * row_.n0 * row_.k0 * type_.rhs_bits, kLineBits);
  }

  int columns_staging() const {
    const bool counts_order = orders_nibbles() && dots_nibbles_at_once();
    return (counts_order ? kPerOrderedVector : kPerStagedVector) * vectors_ * dots_;
  }

  // By one instruction.
  bool dots_nibbles_at_once() const { return type_.rhs_bits < 8 && dot_.instructions == 1; }

  // Ops that decode nibbles once bring them in order, by byte shuffles.
  bool orders_nibbles() const {
    return type_.rhs_bits < 8 && in_op_.rhs_decoded_for > 0 && unit_.bytes > 16;
  }

  int rows_summing() const {
    if (!dot_.sums_rows_before || in_op_.rhs_decoded_for > 0) return 0;
    const int step_bits = row_.m0 * row_.k0 * type_.lhs_bits;
    const int lanes = std::lcm(step_bits, vector_bits()) / lane_bits_;
    return ceil_div(lanes, kStepsPerSummedLane);
  }

  // Of rows that are not broadcast as they lie in the panel: narrow ones, and those for nibbles
  // that are not in order.
  int rows_staging() const {
    const bool in_order = type_.rhs_bits >= 8 || orders_nibbles();
    const bool staged = !unit_.lhs_by_lane && in_op_.lhs_decoded_for == 0 &&
                        (type_.lhs_bits * dot_.k < lane_bits_ || !in_order);
    const int beside_dots =
        is_bf16_pair(row_, type_) ? kPerPairsBesideDots : kPerVectorWidenedBesideDots;
    const int per_vector = stages_beside_dots() ? beside_dots : kPerStagedVector;
    if (!staged) return 0;
    // To the nearest: rounded up, 14 rows of f16 would seem to take longer a row than 13, but took
    // 0.93 to 1.0 of the time on Zen 5.
    const int staging = per_vector * row_.m0 * dots_ * lane_bits_;
    return std::max(1, (staging + vector_bits() / 2) / vector_bits());  // 0 where none is staged
  }

  // Tiles of one block: generated ones of pairs of bf16, a vector of which is stored in two parts
  // if it has 512 bits, and of AVX2 all whose step is one dot on widened rows.
  bool stages_beside_dots() const {
    const bool is_pair = is_bf16_pair(row_, type_), is_avx2 = unit_.bytes == 32;
    // Not where sums are rounded at each step, nor with dots of bytes.
    const bool is_exact = row_.numerics == UK_NUMERICS_EXACT;
    if (is_exact ? unit_.byte_dot != 0 : dot_.instructions != 1) return false;
    if (is_pair ? row_.origin == UK_ORIGIN_HAND || unit_.bytes < 32 : !is_avx2 || dots_ != 1) {
      return false;
    }
    const int lanes = vector_bits() / lane_bits_;
    const int per_vector = is_pair && is_avx2 ? lanes / 2 : lanes;
    return parts_ * blocks_ == 1 && row_.m0 <= lanes &&
           4 * row_.m0 >= kStagedQuarters * ceil_div(row_.m0, per_vector) * per_vector;
  }

  int block_cost(int rows, bool columns_staged) const {
    const int row_instructions = ceil_div(rows, dot_.rows) * dot_.rows * dot_.instructions;
    const int columns_instructions = columns_staged ? 0 : dot_.columns_instructions;
    const int per_columns_instruction =
        unit_.lhs_by_lane ? kPerInstruction : kPerColumnsInstruction;
    const int ports =
        dots_ * part_ *
        (kPerInstruction * row_instructions + per_columns_instruction * columns_instructions);
    const int row_loads =
        unit_.lhs_by_lane ? ceil_div(rows * dot_.k * type_.lhs_bits, vector_bits()) : rows;
    const int column_loads =
        columns_staged ? dots_ : ceil_div(row_.k0 * type_.rhs_bits, lane_bits_);
    int loads = kPerLoad * (row_loads * dots_ + column_loads * part_);
    if (part_ == 1) loads += loads / kLoneVectorLoads;
    const int most = ports > loads ? ports : loads, least = ports > loads ? loads : ports;
    const int busy = wide_ ? most : most + least / kOverlap;
    const int chain = dot_.chain * dots_;
    // Where rows are staged, few steps at a time, and there is little else, a wide core notices
    // too.
    const int loop = wide_ && (in_op_.rhs_decoded_for == 0 || rows_staging() == 0) ? 0 : kPerLoop;
    const int beside = loop + (wide_ ? 0 : ceil_div(kPerLine * bits_read(rows), kLineBits));
    return (busy > chain ? busy : chain) + beside;
  }

  // From beyond L1, by the mean block. Rows of other blocks come along in its cache lines: all of a
  // short panel, and of a long one that is not staged a line between two blocks for each. Half of
  // the columns are still in L1 for all blocks but the first.
  int bits_read(int rows) const {
    const int row_bits = type_.lhs_bits * row_.k0, panel_bits = row_.m0 * row_bits;
    const int line = panel_bits < kLineBits ? panel_bits : kLineBits;
    const int rows_bits = in_op_.lhs_decoded_for > 0 ? 0
                          : rows_staging() == 0      ? (panel_bits + (blocks_ - 1) * line) / blocks_
                          : rows * row_bits > line   ? rows * row_bits
                                                     : line;
    const int columns_bits = ceil_div(panels_ * row_.n0, parts_) * type_.rhs_bits * row_.k0;
    return rows_bits + columns_bits * (blocks_ + 1) / (2 * blocks_);
  }

  const uk_tile_row_t& row_;
  const Mmt4dType& type_;
  const VectorUnit& unit_;
  const bool wide_;
  const TileInOp in_op_;
  const int panels_;
  const Dot dot_;
  const int dots_, lane_bits_, vectors_;
  int parts_, part_, blocks_;
};

// Whether columns are f16, or pairs of bytes, which an instruction of AVX2 widens as it loads them.
// Of single bytes and s16 nobody measured it.
bool widens_by_loads(const uk_tile_row_t& row) {
  const Mmt4dType& type = *find_mmt4d_type(row.flags);
  const VectorUnit& unit = vector_unit_of_row(row);
  if (unit.bytes != 32) return false;
  if (row.numerics != UK_NUMERICS_EXACT) return is_f16(type) && row.k0 == 1;
  return type.rhs_bits == 8 && unit.byte_dot == 0 && row.k0 == unit.s16_k;
}

}  // namespace

int tile_step_cost(const uk_tile_row_t& row, bool wide, const TileInOp& in_op) {
  const Mmt4dType& type = *find_mmt4d_type(row.flags);
  const auto cost_in_parts = [&](int least_parts) {
    return Step(row, type, vector_unit_of_row(row), wide, in_op, least_parts).cost();
  };
  const int whole = cost_in_parts(1);
  // On Zen 3 13 rows by 32 columns on a decoded LHS, in blocks of 3, 4 and 6 rows and half of the
  // columns, took 0.8 to 0.88 of the time of 16 by 16. The grid's tiles have no more vectors than
  // make 4 parts. Of others than those on a decoded LHS nobody measured what that changes.
  if (row.origin == UK_ORIGIN_HAND || in_op.lhs_decoded_for == 0) return whole;
  return std::min(whole, std::min(cost_in_parts(2), cost_in_parts(4)) * kInParts / kWhole);
}

// Where L3 feeds tiles the op walks LHS panel by LHS panel, and the cores that were measured decode
// beside their dots. So does Zen 3 what it widens by loads: f16, s8, u8 and s16 by s8 were up to a
// tenth faster than on parts of K whose columns, decoded, fill L1. Not nibbles, nor bf16. And s4 by
// dots of bytes is decoded once where L3 feeds tiles, too: on Zen 4 512x512x512 ran at 98 % of the
// peak so, at 88 else, and 1024x1024x1024 at 95 and 89. Of more than 8 MiB of results, which each
// part of K reads and writes, 3 % were lost.
bool decodes_rhs_once(const uk_tile_row_t& row, uk_index_t m, uk_index_t n,
                      const uint64_t* cpu_data) {
  if (m <= kFewLhsPanels || !on_decoded_rhs_of_row(row) || !can_split_k(row)) return false;
  const uint32_t type = row.flags & UK_MMT4D_TYPE_MASK;
  const bool dots_bytes = byte_dot(row, vector_unit_of_row(row)) > 0;
  const bool flips = type == UK_MMT4D_TYPE_S8S8S32 && dots_bytes;
  const bool shifts = type == UK_MMT4D_TYPE_BF16BF16F32;
  if ((flips || shifts) && m <= kFewLhsPanelsToFlip) return false;
  // Rows are summed for it, which saves nothing in front of one RHS panel.
  if (flips && n == 1) return false;
  if (cpu_reads_ahead(cpu_data) && widens_by_loads(row)) return false;
  if (!l3_feeds_tiles(cpu_data)) return true;
  return type == UK_MMT4D_TYPE_S8S4S32 && dots_bytes && m > kFewLhsPanelsToFlip &&
         m <= quotient(quotient(kMostResultsOnDecodedS4, row.m0 * row.n0), n);
}

// Rows that are staged once for all RHS panels, up to 32 at a time, took tiles of several blocks
// 0.8 to 0.95 of the time on Zen 3, and tiles of one as long as before, or 0.87 where another
// thread ran on the core. Many rows have all of the RHS come for each 32 of them: if from memory,
// that gained nothing, nor did floats, whose one-block tiles are as fast alone. Where L3 feeds
// tiles nobody measured it.
bool decodes_lhs_once(const uk_tile_row_t& row, uk_index_t m, uk_index_t n, bool rhs_streams,
                      const uint64_t* cpu_data) {
  if (!on_decoded_lhs_of_row(row) || !can_split_k(row)) return false;
  if (tile_steps(row) > 1) return n > kFewRhsPanels;
  const bool are_few = m <= quotient(kFewStagedRows, row.m0);
  const bool gains = row.numerics == UK_NUMERICS_EXACT && !rhs_streams;
  return n > kFewRhsPanelsOfStagedRows && (are_few || gains) && !l3_feeds_tiles(cpu_data);
}

// Tiles that broadcast rows multiply s4, and s8 by dots of bytes, as an unsigned operand and a
// signed one, and sum the rows to make up for it.
bool keeps_row_sums(const uk_tile_row_t& row, uk_index_t n, uk_index_t k) {
  if (!row.function || n <= kFewRhsPanelsOfSums || k <= kFewStepsOfSums) return false;
  if (row.m0 < kLeastSummedRows || row.m0 > kSharedRowSums) return false;
  const VectorUnit& unit = vector_unit_of_row(row);
  const uint32_t type = row.flags & UK_MMT4D_TYPE_MASK;
  if (type == UK_MMT4D_TYPE_S8S4S32) return !unit.lhs_by_lane;
  return type == UK_MMT4D_TYPE_S8S8S32 && unit.byte_flip > 0 && byte_dot(row, unit) > 0;
}

}  // namespace uk
