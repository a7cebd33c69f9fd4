// The shape of an x86 mmt4d tile: init, K loop, store. A Primitive says how one type does each of
// these with the instructions of one ISA.
//
// A Primitive has
//   kRegisters, kTemporaries    the register file, and what dot needs of it beyond its operands
//   Acc, kLanes, kOutBytes      a vector of accumulators: kLanes columns of a row of OUT
//   zero, load_out, store_out   accumulators <-> OUT
//   kK0                         k consumed by one dot
//   kLhsBytes, kRhsBytes        memory of one row, of one column, in a k step
//   load_rhs(const char*)       kLanes columns x kK0
//   kDecodesRhs                 whether that takes instructions beside the load,
//   kDecodeTemporaries          and what of the register file, with sums of rows
//   kDecodesAhead               whether steps may decode for the next one: see decodes_ahead
//   kRowBytes                   one row of a k step as broadcast_lhs reads it
//   broadcast_lhs(const char*)  one row x kK0 in every lane
//   dot(acc, lhs, rhs)
//   kBroadcastsRows             whether row_dot(acc, const char*, rhs) is a dot, too, with a row as
//                               broadcast_lhs reads it, by instructions that broadcast it
//                               themselves
//   kPairsDots                  whether a dot is multiply(lhs, rhs) and add(acc, product) instead,
//                               two dots at a time: see dots_in_pairs
//   kSplitsSums                 whether a result may have several sums, and add(acc, acc): see
//                               sums_of_result
//   kRoundsDots                 whether round_dot(acc) is the rest of a dot. It follows all rows'
//                               dots: a core overlaps what is close together
//   kStagesLhs                  whether the LHS is rewritten before the dots, by
//   stage_lhs(to, from, rows)   which turns rows of the panel into kRowBytes each, and may write
//                               kStageSlack bytes more
//   kRowsBesideDots             rows that stage_vector(to, from) rewrites, beside the dots of a
//                               step; 0 where many rows at once are faster, or nobody measured
//   kLeastRowsStagedOnce        rows of a tile that gains by rows which are staged once for several
//                               tiles; 0 if nobody measured it
//   kSumsRows                   whether dots add a multiple of their row's sum to each result, to
//                               be taken off: a lane for each row of the tile, started by zero,
//   sum_rows<Rows>(sums, rows)  adds what a k step's rows at `rows` bring,
//   sum_panel<Rows>(lhs, k1)    is all that a panel's steps bring,
//   subtract_sum(acc, sum)      takes it from the accumulators of a row, from its lane in memory
//   kKnowsSums                  whether these lanes are in the context already
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_X86_64_MMT4D_TILE_H_
#define UKERNEL_ARCH_X86_64_MMT4D_TILE_H_

#include "arch/mmt4d_tile.h"
#include "arch/x86_64/intrinsics.h"

// In front of a K loop: two steps a turn. Fewer instructions go into the loop itself, and its speed
// depends less on where the linker puts it: on Zen 5 most tiles run 1 % faster, narrow ones of SSE2
// up to 1.5 times as fast. Not where registers are scarce: compilers begin the second step before
// the first one ends.
#define UK_UNROLL_STEPS _Pragma("GCC unroll 2")

// In front of a loop that stages operands. Its few instructions take a cycle where they lie in one
// line of code, and two where they lie in two; a tile with such a loop took up to a seventh longer
// in some places than in others.
#define UK_UNROLL_STAGING _Pragma("GCC unroll 4")

namespace {

constexpr int kRegistersToUnroll = 4;  // that such a loop must leave

// Leaves a sum of integers as it is written. Compilers add up the terms of several steps first,
// which need more registers than there are.
template <class Vector>
UK_INLINE Vector in_order(Vector sum) {
  asm("" : "+v"(sum));
  return sum;
}

// A sum that an FMA adds to, where registers are scarce. Clang would write the result over a
// factor, and bring the sums back to their registers at the end of a step, by way of the stack.
template <class Vector>
UK_INLINE Vector in_place(Vector sum) {
#ifdef __clang__
  asm("" : "+v"(sum));
#endif
  return sum;
}

// Columns that are loaded once for both rows of a block, or for all steps of decoding. GCC 12 would
// give each an operand in memory: one load more an instruction, of which a line from L2 keeps each
// waiting. On Golden Cove tiles of two rows took up to 1.5 times as long. A struct of vectors is
// not what was loaded.
template <class Columns>
UK_INLINE Columns loaded_once(Columns columns) {
#ifndef __clang__
  if constexpr (!__is_class(Columns)) asm("" : "+v"(columns));
#endif
  return columns;
}

// A value that is computed after what was pinned before it, and before what is pinned next. GCC's
// scheduler moves nothing past such a line; as its result, GCC would copy the value.
template <class Vector>
UK_INLINE Vector pinned(Vector v) {
#ifdef __clang__
  asm volatile("" : "+v"(v));
#else
  asm volatile("" : : "v"(v));
#endif
  return v;
}

// Likewise of a row that integers are multiplied by. Clang leaves it in its place by itself, and
// would load what is pinned by VBROADCASTSS, behind which Zen 4 is slow to multiply integers.
template <class Vector>
UK_INLINE Vector pinned_row(Vector row) {
#ifdef __clang__
  return row;
#else
  return pinned(row);
#endif
}

// What compilers cannot reckon with. Of several dots of a step they would load the operands at a
// time, or keep rows for the dots after the next, for which there are not enough registers.
template <class Scalar>
UK_INLINE Scalar opaque(Scalar s) {
  asm volatile("" : "+r"(s));
  return s;
}

// Keeps what is loaded behind it there. Of several dots of a step compilers would load the next
// one's operands ahead, for which there are not enough registers.
UK_INLINE void load_behind() { asm volatile("" : : : "memory"); }

UK_INLINE int64_t load_s64(const char* p) {
  int64_t v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

// The dots of a step, where each is a product and its addition, two at a time; of two vectors:
//
//   broadcast row 0              multiply 0, 0   multiply 0, 1   add 0, 1
//   broadcast row 1   add 0, 0   multiply 1, 0   multiply 1, 1   add 1, 1
//
// Two of four ports multiply, all add, and 64 bytes keep all of them busy. A core gives an
// instruction its port early: where products and sums take turns, Zen 4 gives sums to the two that
// multiply, and takes a third longer. In other orders it takes up to a tenth longer.
template <class P, int Rows, int Vectors, class Columns>
UK_INLINE void dots_in_pairs(typename P::Acc (&acc)[Rows][Vectors], const char* lhs,
                             const Columns (&columns)[Vectors]) {
  typename P::Acc waiting;
  const auto add = [&](int dot, typename P::Acc product) UK_INLINE_LAMBDA {
    auto& sum = acc[dot / Vectors][dot % Vectors];
    sum = pinned(P::add(sum, product));
  };
  UK_UNROLL for (int i = 0; i < Rows; ++i) {
    const auto row = pinned_row(P::broadcast_lhs(lhs + i * P::kRowBytes));
    UK_UNROLL for (int j = 0; j < Vectors; ++j) {
      const int dot = i * Vectors + j;
      const bool is_first = dot % 2 == 0;
      if (is_first && dot > 0) add(dot - 2, waiting);
      const auto product = pinned(P::multiply(row, columns[j]));
      if (is_first) {
        waiting = product;
      } else {
        add(dot, product);
      }
    }
  }
  add((Rows * Vectors - 1) / 2 * 2, waiting);
}

template <class P>
constexpr bool knows_sums() {
  if constexpr (P::kSumsRows) {
    return P::kKnowsSums;
  } else {
    return false;
  }
}

// Whether an op may have kept the sums of a tile's rows from another one.
template <class P, int M0>
constexpr bool takes_known_sums() {
  return P::kSumsRows && M0 >= kLeastSummedRows;
}

// Accumulators that a loop can have which takes several steps a turn, beside a row and the columns.
template <class P>
constexpr int most_sums_to_unroll(int vectors) {
  return P::kRegisters - P::kTemporaries - vectors - 1 - kRegistersToUnroll;
}

// Between a dot and the next one of its sum there are up to five cycles, and cores do up to two
// dots a cycle. The steps of a block that has so few results take turns between several sums of
// each, where the order of a sum is free.
template <class P>
constexpr int sums_of_result(int rows, int vectors) {
  const int results = rows * vectors, most_sums = most_sums_to_unroll<P>(vectors);
  if (!P::kSplitsSums || results >= 10 || 2 * results > most_sums) return 1;
  return results < 5 && 4 * results <= most_sums ? 4 : 2;
}

// The same primitive on columns that are decoded ahead, and on rows whose sums are known.
template <class P>
struct Decoded : P {
  using Columns = decltype(P::load_rhs(nullptr));
  static constexpr bool kDecodesRhs = false, kKnowsSums = P::kSumsRows;
  static constexpr int kRhsBytes = sizeof(Columns) / P::kLanes;
  static constexpr int kTemporaries = P::kTemporaries - P::kDecodeTemporaries;
  static UK_INLINE Columns load_rhs(const char* rhs) {
    Columns columns;
    __builtin_memcpy(&columns, rhs, sizeof(columns));
    return columns;
  }
};

// The same primitive on rows whose sums are known.
template <class P>
struct OnSummedRows : P {
  static constexpr bool kKnowsSums = true;
};

// The primitive by which columns are decoded once for several tiles: by more instructions, where
// these tiles take rows as they lie for it.
template <class P>
struct DecodedOnceBy {
  using Primitive = P;
};

// The same primitive on rows that are staged.
template <class P>
struct OnStagedRows : P {
  static constexpr bool kStagesLhs = false;
  static constexpr int kLhsBytes = P::kRowBytes;
};

// And on results in memory as accumulators hold them.
template <class P>
struct Staged : OnStagedRows<P> {
  using Acc = typename P::Acc;
  static constexpr int kOutBytes = sizeof(Acc) / P::kLanes;
  // Of accumulators on the stack GCC leaves some there between a K loop's parts.
  static constexpr bool kDecodesAhead = P::kDecodesAhead && P::kOutBytes == kOutBytes;
  static UK_INLINE Acc load_out(const char* out) {
    Acc acc;
    __builtin_memcpy(&acc, out, sizeof(acc));
    return acc;
  }
  static UK_INLINE void store_out(char* out, Acc acc) { __builtin_memcpy(out, &acc, sizeof(acc)); }
};

// Memory of one column in a k step of the RHS panel, however the dots find it.
template <class P>
constexpr int kPanelRhsBytes = P::kRhsBytes;
template <class P>
constexpr int kPanelRhsBytes<Decoded<P>> = P::kRhsBytes;
template <class P>
constexpr int kPanelRhsBytes<OnStagedRows<P>> = kPanelRhsBytes<P>;
template <class P>
constexpr int kPanelRhsBytes<Staged<P>> = kPanelRhsBytes<P>;

constexpr int kLeastRowsToDecodeAhead = 8;  // of four, as many tiles were slower as were faster

// Whether each step of a block decodes the first vector of the next one, ahead of its dots. A core
// begins with the oldest instructions: behind all dots of a step it would decode when these are
// done, and the next ones would wait, on Cascade Lake for 3 to 17 % of the time. With a vector to
// begin with they need not, and GCC has no registers for more. Results of several sums have dots
// enough under way.
template <class P, int M0, int Sums>
constexpr bool decodes_ahead(int rows, int vectors) {
  constexpr bool kIsVector = !__is_class(decltype(P::load_rhs(nullptr)));
  constexpr int kTaken = 3;  // by a row, the vector that is ahead, and what GCC's turns take
  return P::kDecodesAhead && P::kDecodesRhs && kIsVector && Sums == 1 &&
         rows >= kLeastRowsToDecodeAhead &&
         (rows + 1) * vectors + kTaken + P::kTemporaries <= P::kRegisters &&
         (rows == M0 || !P::kSumsRows);  // between whose blocks GCC spills, too
}

// The first vector of the step to come, of k1 steps of columns at rhs.
template <class P, int N0, bool kDecodes>
struct NextColumns {
  static constexpr int kVectors = 1;
  decltype(P::load_rhs(nullptr)) first;
  const char* last;

  UK_INLINE NextColumns(const char* rhs, uk_index_t k1) : last(rhs) {
    if (k1 == 0) return;
    last += (k1 - 1) * N0 * P::kRhsBytes;
    first = P::load_rhs(rhs);
  }
  // In the step at rhs. The last one decodes its own once more, as compilers must not see: they
  // would take it apart from the others, and spill accumulators on the way to it. Pinned, as GCC
  // would decode behind the dots, into the register of this step's vector.
  UK_INLINE void decode(const char* rhs) {
    first = pinned(P::load_rhs(opaque(rhs == last ? rhs : rhs + N0 * P::kRhsBytes)));
  }
};
// Of a block whose steps decode all of their own.
template <class P, int N0>
struct NextColumns<P, N0, false> {
  static constexpr int kVectors = 0;
  UK_INLINE NextColumns(const char*, uk_index_t) {}
};

// Of several panels abreast: whether a step loads its rows, and then the columns a vector at a
// time, instead of the columns and then a row at a time, which takes more registers if rows are
// fewer.
template <class P>
constexpr bool loads_rows_first(int rows, int vectors) {
  return !P::kPairsDots && rows > 1 && rows < vectors;
}

// Whether each step stages a vector of rows of the panel's next part beside its dots, which a core
// overlaps. All of the part at once, in front, keeps the dots waiting: on Zen 3 six rows took up to
// 7 % longer, eight up to 14. But with four rows it was up to 5 % faster, with one or two 10, and
// of more than a vector of rows there is no hand-written tile of one block.
template <class P, int M0>
constexpr bool stages_beside_dots() {
  constexpr int kLeastRows = 6;
  return kLeastRows <= M0 && M0 <= P::kRowsBesideDots;
}

// Steps whose LHS is staged on the stack at a time: enough to be worth a loop. Where all are staged
// in front of the dots they are few enough that a core does so while dots before are still under
// way.
template <class P, int M0>
constexpr int staged_steps() {
  if (M0 == 1 || stages_beside_dots<P, M0>()) return 32;
  return M0 < 8 ? 16 : 8;
}

// The rows of a part that is staged, of which a step stages kRowsOfStep beside its dots.
template <class P, int M0>
struct RowsToStage {
  static constexpr int kRowsOfStep = stages_beside_dots<P, M0>() ? P::kRowsBesideDots : 0;
  const char* from;
  char* to;
  uk_index_t rows;

  UK_INLINE void stage_beside_step() {
    P::stage_vector(to, from);
    from += kRowsOfStep * P::kLhsBytes;
    to += kRowsOfStep * P::kRowBytes;
    rows -= kRowsOfStep;
  }
  // Those of a whole part are a constant number, and their loop has no branches: in front of so few
  // dots these take a tenth of the time.
  UK_INLINE void stage_rest() {
    constexpr int kWhole = staged_steps<P, M0>() * M0;
    if (rows == kWhole) return P::stage_lhs(to, from, kWhole);
    P::stage_lhs(to, from, static_cast<int>(rows));
  }
};
struct NoRowsToStage {
  static constexpr int kRowsOfStep = 0;
};

// k1 steps on a block's accumulators, of each sum of its results; a step's rows are kStride bytes
// from the next one's. Of more columns than N0, each N0 are in the next of panels panel_bytes
// apart. `sums` is of kSumsRows, for kSummedRows rows, if there are any. One of kPrefetchBlocks
// blocks prefetches what is `ahead`; none does if that is 0. `next` has the first vector of
// the first step, if it has any. Each step stages a vector of to_stage, which has enough of them.
template <class P, int kStride, int N0, int kPrefetchBlocks, int kSummedRows, int Sums, int Rows,
          int Vectors, class Ahead, class Next, class ToStage = NoRowsToStage>
UK_INLINE void k_steps(typename P::Acc (&accs)[Sums][Rows][Vectors], typename P::Acc& sums,
                       const char* lhs, const char* rhs, uk_index_t panel_bytes, uk_index_t k1,
                       Ahead& ahead, [[maybe_unused]] Next& next, ToStage* to_stage = nullptr) {
  constexpr int kPanelVectors = N0 / P::kLanes;
  const auto step = [&](typename P::Acc(&acc)[Rows][Vectors]) UK_INLINE_LAMBDA {
    if constexpr (ToStage::kRowsOfStep > 0) to_stage->stage_beside_step();
    if constexpr (kPrefetchBlocks > 0) {
      prefetch<kPrefetchBlocks, prefetched_bytes(N0 * kPanelRhsBytes<P>, Rows)>(ahead);
    }
    const auto load_columns = [&](int j) UK_INLINE_LAMBDA {
      constexpr int kVectorBytes = P::kLanes * P::kRhsBytes;
      return P::load_rhs(vector_of_panels<kPanelVectors, kVectorBytes>(rhs, j, panel_bytes));
    };
    using Columns = decltype(P::load_rhs(rhs));
    if constexpr (Vectors > kPanelVectors && loads_rows_first<P>(Rows, Vectors)) {
      static_assert(kSummedRows == 0, "no register is left for the sums");
      decltype(P::broadcast_lhs(lhs)) rows[Rows];
      UK_UNROLL for (int i = 0; i < Rows; ++i) rows[i] = P::broadcast_lhs(lhs + i * P::kRowBytes);
      UK_UNROLL for (int j = 0; j < Vectors; ++j) {
#ifdef __clang__
        // It would begin to decode the next ones ahead: bf16 2x16x1 took 1.7 times as long on AVX2.
        if constexpr (P::kDecodesRhs) load_behind();
#endif
        Columns columns = load_columns(j);
        if constexpr (Rows == 2) columns = loaded_once(columns);
        UK_UNROLL for (int i = 0; i < Rows; ++i) acc[i][j] = P::dot(acc[i][j], rows[i], columns);
      }
    } else {
      Columns columns[Vectors];
      if constexpr (Next::kVectors > 0) columns[0] = next.first;
      UK_UNROLL for (int j = Next::kVectors; j < Vectors; ++j) {
        columns[j] = load_columns(j);
        if constexpr (Rows == 2) columns[j] = loaded_once(columns[j]);
      }
      if constexpr (Next::kVectors > 0) next.decode(rhs);
      if constexpr (kSummedRows > 0) sums = P::template sum_rows<kSummedRows>(sums, lhs);
      if constexpr (P::kPairsDots) {
        dots_in_pairs<P>(acc, lhs, columns);
      } else {
        UK_UNROLL for (int i = 0; i < Rows; ++i) {
          const char* const at = lhs + i * P::kRowBytes;
          if constexpr (P::kBroadcastsRows && Vectors == 1) {  // of several each would load it anew
            acc[i][0] = P::row_dot(acc[i][0], at, columns[0]);
          } else {
            const auto row = P::broadcast_lhs(at);
            UK_UNROLL for (int j = 0; j < Vectors; ++j) {
              acc[i][j] = P::dot(acc[i][j], row, columns[j]);
            }
          }
        }
      }
    }
    if constexpr (P::kRoundsDots) {
      UK_UNROLL for (int i = 0; i < Rows; ++i) {
        UK_UNROLL for (int j = 0; j < Vectors; ++j) acc[i][j] = P::round_dot(acc[i][j]);
      }
    }
    lhs += kStride;
    rhs += N0 * P::kRhsBytes;
  };
  if constexpr (Sums > 1) {
    for (; k1 >= Sums; k1 -= Sums) {
      UK_UNROLL for (int s = 0; s < Sums; ++s) step(accs[s]);
    }
    for (; k1 > 0; --k1) step(accs[0]);
  } else if constexpr (Rows * Vectors <= most_sums_to_unroll<P>(Vectors)) {
    UK_UNROLL_STEPS for (; k1 > 0; --k1) step(accs[0]);
  } else {
    for (; k1 > 0; --k1) step(accs[0]);
  }
}

// Steps whose rows are summed ahead of the rest.
constexpr int kStepsSummedFirst = 2;

// A block's K loop.
//
// Where the LHS must be converted, it is, for many steps and all rows of the tile at once, into a
// buffer from which the load port then broadcasts: converting behind each broadcast would cost two
// shuffles per row and step. The next steps are staged before the dots of these, or beside them: a
// load waits for a store that is under way.
//
// Where rows are summed, the tile's first block does it for those of all (kSumsRows), which costs
// it one dot a step, and leaves the sums in memory, to be broadcast from. It begins with the last
// steps, so as to have all sums some steps before its end: it would end with waiting for them.
// Where a vector holds the rows of several steps, they are summed ahead, a vector at a time.
template <class P, int M0, int N0, int kPrefetchBlocks, bool kSumsRows, int Sums, int Rows,
          int Vectors, class Ahead = Prefetch>
UK_INLINE void k_loop(typename P::Acc (&accs)[Sums][Rows][Vectors], char* sums_of_rows,
                      const char* lhs, const char* rhs, uk_index_t panel_bytes, uk_index_t k1,
                      Ahead ahead) {
  constexpr int kStride = M0 * P::kRowBytes, kRhsStep = N0 * P::kRhsBytes;
  typename P::Acc sums = P::zero();
  NextColumns<P, N0, decodes_ahead<P, M0, Sums>(Rows, Vectors)> next_columns(rhs, k1);
  if constexpr (P::kStagesLhs) {
    constexpr int kStagedSteps = staged_steps<P, M0>();
    alignas(64) char staged[2][kStagedSteps * kStride + P::kStageSlack];
    uk_index_t steps = k1 < kStagedSteps ? k1 : kStagedSteps;
    RowsToStage<P, M0>{lhs, staged[0], steps * M0}.stage_rest();
    for (int part = 0; k1 > 0; part ^= 1) {
      lhs += steps * M0 * P::kLhsBytes;
      k1 -= steps;
      const uk_index_t next_steps = k1 < kStagedSteps ? k1 : kStagedSteps;
      RowsToStage<P, M0> next = {lhs, staged[part ^ 1], next_steps * M0};
      uk_index_t beside = 0;
      if constexpr (next.kRowsOfStep > 0) {
        beside = next.rows / next.kRowsOfStep;
        k_steps<P, kStride, N0, kPrefetchBlocks, 0>(accs, sums, staged[part], rhs, panel_bytes,
                                                    beside, ahead, next_columns, &next);
      }
      next.stage_rest();
      k_steps<P, kStride, N0, kPrefetchBlocks, 0>(accs, sums, staged[part] + beside * kStride,
                                                  rhs + beside * kRhsStep, panel_bytes,
                                                  steps - beside, ahead, next_columns);
      rhs += steps * kRhsStep;
      steps = next_steps;
    }
  } else if constexpr (kSumsRows && M0 < P::kLanes && P::kLanes % M0 == 0) {
    sums = P::template sum_panel<M0>(lhs, k1);
    __builtin_memcpy(sums_of_rows, &sums, sizeof(sums));
    k_steps<P, kStride, N0, kPrefetchBlocks, 0>(accs, sums, lhs, rhs, panel_bytes, k1, ahead,
                                                next_columns);
  } else if constexpr (kSumsRows) {
    const uk_index_t last = k1 < kStepsSummedFirst ? k1 : kStepsSummedFirst;
    const char* last_lhs = lhs + (k1 - last) * kStride;
    for (uk_index_t k = 0; k < last; ++k) {
      sums = P::template sum_rows<M0>(sums, last_lhs + k * kStride);
    }
    k_steps<P, kStride, N0, kPrefetchBlocks, M0>(accs, sums, lhs, rhs, panel_bytes, k1 - last,
                                                 ahead, next_columns);
    __builtin_memcpy(sums_of_rows, &sums, sizeof(sums));
    k_steps<P, kStride, N0, kPrefetchBlocks, 0>(accs, sums, last_lhs, rhs + (k1 - last) * kRhsStep,
                                                panel_bytes, last, ahead, next_columns);
  } else {
    k_steps<P, kStride, N0, kPrefetchBlocks, 0>(accs, sums, lhs, rhs, panel_bytes, k1, ahead,
                                                next_columns);
  }
}

// One register block: of the tile's rows, row_bytes apart in OUT, its part, all columns, of kPanels
// panels. kPrefetchBlocks as above; `sums` has room for the sums of the tile's rows, a vector of
// accumulators.
template <class P, int M0, int N0, int kBlocks, int kBlock, int kPrefetchBlocks, int kPanels = 1>
UK_INLINE void block(char* out, uk_index_t row_bytes, const char* lhs, const char* rhs,
                     uk_index_t k1, uint32_t flags, const uk_tile_context_t& context, char* sums) {
  constexpr int kRow = uk::block_first_row(M0, kBlocks, kBlock);
  constexpr int kRows = uk::block_first_row(M0, kBlocks, kBlock + 1) - kRow;
  constexpr int kVectors = kPanels * N0 / P::kLanes;
  constexpr int kVectorBytes = P::kLanes * P::kOutBytes, kPanelVectors = N0 / P::kLanes;
  const uk_index_t out_panel_bytes = kPanels > 1 ? context.out_panel_stride * P::kOutBytes : 0;
  const auto out_at = [&](auto row, int j) UK_INLINE_LAMBDA {
    return vector_of_panels<kPanelVectors, kVectorBytes>(row, j, out_panel_bytes);
  };
  out += kRow * row_bytes;
  lhs += kRow * P::kRowBytes;
  constexpr int kSums = sums_of_result<P>(kRows, kVectors);
  typename P::Acc accs[kSums][kRows][kVectors];
  auto& acc = accs[0];
  if (flags & UK_MMT4D_ACCUMULATE) {
    const char* row = out;
    UK_UNROLL for (int i = 0; i < kRows; ++i) {
      if (i > 0) row = next_row(row, row_bytes);
      UK_UNROLL for (int j = 0; j < kVectors; ++j) acc[i][j] = P::load_out(out_at(row, j));
    }
  } else {
    UK_UNROLL for (int i = 0; i < kRows; ++i) {
      UK_UNROLL for (int j = 0; j < kVectors; ++j) acc[i][j] = P::zero();
    }
  }
  UK_UNROLL for (int s = 1; s < kSums; ++s) {
    UK_UNROLL for (int i = 0; i < kRows; ++i) {
      UK_UNROLL for (int j = 0; j < kVectors; ++j) accs[s][i][j] = P::zero();
    }
  }
  constexpr bool kSumsRows = P::kSumsRows && !knows_sums<P>() && kBlock == 0;
  if constexpr (kPrefetchBlocks == 0) {
    k_loop<P, M0, N0, 0, kSumsRows>(accs, sums, lhs, rhs, context.rhs_panel_bytes, k1, {});
  } else if (flags & UK_MMT4D_PREFETCH_RHS) {
    constexpr int kStepBytes = N0 * kPanelRhsBytes<P>;
    constexpr int kPrefetched = prefetched_bytes(kStepBytes, kRows);
    const Prefetch ahead =
        prefetch_start<kPrefetchBlocks, kStepBytes, kPrefetchBlocks, kPrefetched>(rhs, k1, kBlock,
                                                                                  context);
    if (kPrefetchBlocks > 1 && context.prefetches_into_l1) {
      const PrefetchIntoL1 into_l1 = {ahead};
      k_loop<P, M0, N0, kPrefetchBlocks, kSumsRows>(accs, sums, lhs, rhs, 0, k1, into_l1);
    } else {
      k_loop<P, M0, N0, kPrefetchBlocks, kSumsRows>(accs, sums, lhs, rhs, 0, k1, ahead);
    }
  } else {
    k_loop<P, M0, N0, 0, kSumsRows>(accs, sums, lhs, rhs, context.rhs_panel_bytes, k1, {});
  }
  if constexpr (kSums > 1) {
    UK_UNROLL for (int i = 0; i < kRows; ++i) {
      UK_UNROLL for (int j = 0; j < kVectors; ++j) {
        UK_UNROLL for (int s = 1; s < kSums; ++s) {
          acc[i][j] = P::add(in_order(acc[i][j]), in_order(accs[s][i][j]));
        }
      }
    }
  }
  constexpr int kLaneBytes = sizeof(typename P::Acc) / P::kLanes;
  UK_UNROLL for (int i = 0; i < kRows; ++i) {
    if (i > 0) out = next_row(out, row_bytes);
    // Beside the row's stores: GCC would load the sums of all rows first, for which there are no
    // registers.
    if constexpr (P::kSumsRows) P::subtract_sum(acc[i], sums + (kRow + i) * kLaneBytes);
    UK_UNROLL for (int j = 0; j < kVectors; ++j) P::store_out(out_at(out, j), acc[i][j]);
  }
}

template <class P, int M0, int N0, int kBlocks, bool kShare, int kBlock = 0>
UK_INLINE void blocks(char* out, uk_index_t row_bytes, const char* lhs, const char* rhs,
                      uk_index_t k1, uint32_t flags, const uk_tile_context_t& context, char* sums) {
  if constexpr (kBlock < kBlocks) {
    constexpr int kPrefetchBlocks = kShare ? kBlocks : kBlock == 0 ? 1 : 0;
    block<P, M0, N0, kBlocks, kBlock, kPrefetchBlocks>(out, row_bytes, lhs, rhs, k1, flags, context,
                                                       sums);
    blocks<P, M0, N0, kBlocks, kShare, kBlock + 1>(out, row_bytes, lhs, rhs, k1, flags, context,
                                                   sums);
  }
}

// Whether OUT can hold what accumulators do, between some steps and the next ones.
template <class P>
constexpr bool out_holds_sums() {
  return sizeof(typename P::Acc) == P::kLanes * P::kOutBytes;
}

// Bytes of the LHS that are staged at a time for several blocks.
constexpr int kStagedBytes = 8 << 10;

// What so many bytes of rows take where they are staged, if they are.
template <class P>
constexpr int stage_size(int bytes) {
  if constexpr (P::kStagesLhs) return bytes + P::kStageSlack;
  return 1;
}

// A tile of several blocks that run on some steps at a time, for which an LHS that is staged is
// staged once. In between the results wait in OUT, or on the stack if OUT would round them.
template <class P, int M0, int N0, int kBlocks>
UK_INLINE void blocks_in_turns(char* out, uk_index_t row_bytes, const char* lhs, const char* rhs,
                               uk_index_t k1, uint32_t flags, uk_tile_context_t context) {
  constexpr int kStride = M0 * P::kRowBytes, kRhsStep = N0 * P::kRhsBytes;
  constexpr int kSteps = kStagedBytes / kStride, kVectors = N0 / P::kLanes;
  constexpr int kOutVector = P::kLanes * P::kOutBytes, kAccBytes = sizeof(typename P::Acc);
  constexpr int kAccRow = kVectors * kAccBytes;
  constexpr bool kOutHoldsAccs = out_holds_sums<P>();
  static_assert(kSteps > 0, "a step fits");
  static_assert(!P::kSumsRows, "the sums of a part would be subtracted in the next ones too");
  alignas(64) char staged[stage_size<P>(kSteps * kStride)];
  alignas(64) char accs[kOutHoldsAccs ? 1 : M0 * kAccRow];
  const auto for_each_vector = [&](auto convert) UK_INLINE_LAMBDA {
    for (int i = 0; i < M0; ++i) {
      for (int j = 0; j < kVectors; ++j) {
        convert(accs + i * kAccRow + j * kAccBytes, out + i * row_bytes + j * kOutVector);
      }
    }
  };
  if (!kOutHoldsAccs && (flags & UK_MMT4D_ACCUMULATE)) {
    for_each_vector([](char* acc, const char* in)
                        UK_INLINE_LAMBDA { Staged<P>::store_out(acc, P::load_out(in)); });
  }
  const uk_index_t shared = steps_at_a_time<kRhsStep>(k1, flags, context);
  const uk_index_t most = P::kStagesLhs && kSteps < shared ? kSteps : shared;
  do {
    const uk_index_t steps = k1 < most ? k1 : most;
    if constexpr (P::kStagesLhs) P::stage_lhs(staged, lhs, static_cast<int>(steps) * M0);
    blocks<Staged<P>, M0, N0, kBlocks, true>(
        kOutHoldsAccs ? out : accs, kOutHoldsAccs ? row_bytes : kAccRow,
        P::kStagesLhs ? staged : lhs, rhs, steps, flags, context, nullptr);
    context.prefetch_from += static_cast<uintptr_t>(steps) * context.prefetch_step_bytes;
    lhs += steps * M0 * P::kLhsBytes;
    rhs += steps * kRhsStep;
    k1 -= steps;
    flags |= UK_MMT4D_ACCUMULATE;
  } while (k1 > 0);
  if (!kOutHoldsAccs) {
    for_each_vector([](const char* acc, char* to)
                        UK_INLINE_LAMBDA { P::store_out(to, Staged<P>::load_out(acc)); });
  }
}

// Where a block finds the sums of its rows, or leaves them. Those that are known are of all steps:
// they are taken off with the last ones.
template <class P>
UK_INLINE char* sums_of_steps(const uk_tile_context_t& context, bool are_last, char* own) {
  if constexpr (knows_sums<P>()) {
    if (are_last) return context.row_sums;
    const auto none = P::zero();
    __builtin_memcpy(own, &none, sizeof(none));
  }
  return own;
}

template <class P, int M0, int N0, int K0>
UK_INLINE void tile_of_blocks(void* out, const void* lhs, const void* rhs, uk_index_t k1,
                              uint32_t flags, const uk_tile_context_t& context) {
  static_assert(K0 == P::kK0, "one dot per k step");
  static_assert(N0 % P::kLanes == 0, "whole vectors");
  static_assert(P::kStagesLhs || P::kRowBytes == P::kLhsBytes, "rows are broadcast as they lie");
  constexpr int kBlocks = uk::block_count(P::kRegisters - P::kTemporaries, M0, N0 / P::kLanes);
  const uk_index_t row_bytes = context.out_stride * P::kOutBytes;
  if constexpr (kBlocks > 1 && (P::kStagesLhs || !out_holds_sums<P>())) {
    // Without a stage only if the tile prefetches its own panel, and that has more steps.
    if (P::kStagesLhs || steps_at_a_time<N0 * P::kRhsBytes>(k1, flags, context) < k1) {
      return blocks_in_turns<P, M0, N0, kBlocks>(static_cast<char*>(out), row_bytes,
                                                 static_cast<const char*>(lhs),
                                                 static_cast<const char*>(rhs), k1, flags, context);
    }
  }
  constexpr bool kShare = kBlocks > 1 && out_holds_sums<P>();
  if constexpr (knows_sums<P>()) {
    // All steps at once, apart from what prefetches, and with flags of which compilers see whether
    // it does: tiles of 16 steps took 2 % longer in one loop over parts.
    if (!(flags & UK_MMT4D_PREFETCH_RHS)) {
      return blocks<P, M0, N0, kBlocks, kShare>(
          static_cast<char*>(out), row_bytes, static_cast<const char*>(lhs),
          static_cast<const char*>(rhs), k1, flags & ~UK_MMT4D_PREFETCH_RHS, context,
          context.row_sums);
    }
    flags |= UK_MMT4D_PREFETCH_RHS;
  }
  constexpr bool kFillsSums = takes_known_sums<P, M0>() && !knows_sums<P>();
  if (kFillsSums && context.row_sums) __builtin_memset(context.row_sums, 0, 4 * M0);
  uk_index_t left = k1;
  for_steps<kShare, M0 * P::kLhsBytes, N0 * P::kRhsBytes>(
      lhs, rhs, k1, flags, context,
      [&](const char* lhs, const char* rhs, uk_index_t steps, uint32_t flags) UK_INLINE_LAMBDA {
        alignas(64) char sums[P::kSumsRows ? sizeof(typename P::Acc) : 1];
        left -= steps;
        blocks<P, M0, N0, kBlocks, kShare>(static_cast<char*>(out), row_bytes, lhs, rhs, steps,
                                           flags, context,
                                           sums_of_steps<P>(context, left == 0, sums));
        if constexpr (kFillsSums) {
          if (context.row_sums) add_row_sums<M0>(context.row_sums, sums);
        }
      });
}

// ---------------------------------------------------------------- RHS panels abreast

// In the caches, too, where the dots of few sums would wait for each other.
template <class P, int M0, int N0>
constexpr uk::Abreast reads_abreast() {
  constexpr int kVectors = kPanelsAbreast * N0 / P::kLanes, kSums = M0 * N0 / P::kLanes;
  constexpr int kColumnsBytes = sizeof(decltype(P::load_rhs(nullptr)));
  constexpr int kAccBytes = sizeof(typename P::Acc);
  constexpr int kParts = kColumnsBytes / kAccBytes;
  // Of columns that are decoded for several rows GCC begins with the next vector ahead.
  constexpr int kColumns = kParts * (kVectors + (P::kDecodesRhs && M0 > 1 ? 1 : 0));
  constexpr int kOperands = loads_rows_first<P>(M0, kVectors) ? M0 + kParts : kColumns + 1;
  constexpr int kWaiting = P::kPairsDots ? 1 : 0;  // products
  if (M0 * kVectors + kOperands + kWaiting > P::kRegisters - P::kTemporaries)
    return uk::Abreast::kNowhere;
  if (!P::kSplitsSums && !P::kSumsRows && kSums <= kFewSums) return uk::Abreast::kAnywhere;
  return kSums <= kMostSumsAbreast ? uk::Abreast::kFromMemory : uk::Abreast::kNowhere;
}

// ---------------------------------------------------------------- a decoded operand

template <class P, int M0, int N0>
constexpr bool takes_staged_rows() {
  if constexpr (P::kStagesLhs) {
    return 0 < P::kLeastRowsStagedOnce && P::kLeastRowsStagedOnce <= M0 &&
           reads_abreast<P, M0, N0>() != uk::Abreast::kAnywhere;
  } else {
    return false;
  }
}

// Tiles that take none say 0 bytes a step: ops have them run on parts of K, for which OUT must hold
// the sums so far, and tiles of few rows reuse a decoded RHS too little.
template <class P, int M0, int N0>
constexpr uk_decoded_operand_t decoded_operand(uk::TileForm form) {
  if (!out_holds_sums<P>()) return {0};
  if (form == uk::TileForm::kOnDecodedLhs) {
    return {takes_staged_rows<P, M0, N0>() ? M0 * P::kRowBytes : 0};
  }
  return {P::kDecodesRhs && M0 >= 4 ? N0 * Decoded<P>::kRhsBytes : 0};
}

template <class P, int M0, int N0, int K0>
UK_INLINE void tile_of_staged_rows(void* out, const void* lhs, const void* rhs, uk_index_t k1,
                                   uint32_t flags, const uk_tile_context_t& context) {
  static_assert(P::kStageSlack <= kDecodedSlack, "what lies behind them is not theirs");
  if (context.fills_decoded) {
    P::stage_lhs(context.decoded, static_cast<const char*>(lhs), static_cast<int>(k1) * M0);
  }
  tile_of_blocks<OnStagedRows<P>, M0, N0, K0>(out, context.decoded, rhs, k1, flags, context);
}

template <class P, int M0, int N0, int K0>
UK_INLINE void tile_of_decoded_rhs(void* out, const void* lhs, const void* rhs, uk_index_t k1,
                                   uint32_t flags, const uk_tile_context_t& context) {
  if (context.fills_decoded) {
    const char* from = static_cast<const char*>(rhs);
    char* to = context.decoded;
    UK_UNROLL_STAGING for (uk_index_t left = k1 * (N0 / P::kLanes); left > 0; --left) {
      const auto columns = P::load_rhs(from);
      __builtin_memcpy(to, &columns, sizeof(columns));
      from += P::kLanes * P::kRhsBytes;
      to += sizeof(columns);
    }
  }
  if constexpr (P::kSumsRows) {
    if (context.fills_row_sums) {
      const auto sums = P::template sum_panel<M0>(static_cast<const char*>(lhs), k1);
      __builtin_memcpy(context.row_sums, &sums, sizeof(sums));
    }
  }
  tile_of_blocks<Decoded<P>, M0, N0, K0>(out, lhs, context.decoded, k1, flags, context);
}

// Rows are summed in front of the dots, which leave no register for it.
template <class P, int M0, int N0>
UK_INLINE void tile_abreast(char* out, const char* lhs, const char* rhs, uk_index_t k1,
                            uint32_t flags, const uk_tile_context_t& context) {
  const uk_index_t row_bytes = context.out_stride * P::kOutBytes;
  if constexpr (P::kSumsRows) {
    alignas(64) char own_sums[sizeof(typename P::Acc)];
    char* const row_sums = context.row_sums ? context.row_sums : own_sums;
    if (!context.row_sums || context.fills_row_sums) {
      const auto sums = P::template sum_panel<M0>(lhs, k1);
      __builtin_memcpy(row_sums, &sums, sizeof(sums));
    }
    block<OnSummedRows<P>, M0, N0, 1, 0, 0, kPanelsAbreast>(out, row_bytes, lhs, rhs, k1, flags,
                                                            context, row_sums);
  } else {
    block<P, M0, N0, 1, 0, 0, kPanelsAbreast>(out, row_bytes, lhs, rhs, k1, flags, context,
                                              nullptr);
  }
}

template <class P, int M0, int N0, int K0, uk::TileForm kForm>
UK_INLINE void mmt4d_tile(void* out, const void* lhs, const void* rhs, uk_index_t k1,
                          uint32_t flags, const uk_tile_context_t& context) {
  if constexpr (kForm == uk::TileForm::kAbreast) {
    tile_abreast<P, M0, N0>(static_cast<char*>(out), static_cast<const char*>(lhs),
                            static_cast<const char*>(rhs), k1, flags, context);
  } else if constexpr (kForm == uk::TileForm::kOnDecodedLhs) {
    tile_of_staged_rows<P, M0, N0, K0>(out, lhs, rhs, k1, flags, context);
  } else if constexpr (kForm == uk::TileForm::kOnDecodedRhs) {
    using Primitive = typename DecodedOnceBy<P>::Primitive;
    tile_of_decoded_rhs<Primitive, M0, N0, K0>(out, lhs, rhs, k1, flags, context);
  } else {
    if constexpr (takes_known_sums<P, M0>()) {
      if (context.row_sums && !context.fills_row_sums) {
        return tile_of_blocks<OnSummedRows<P>, M0, N0, K0>(out, lhs, rhs, k1, flags, context);
      }
    }
    tile_of_blocks<P, M0, N0, K0>(out, lhs, rhs, k1, flags, context);
  }
}

}  // namespace

#endif  // UKERNEL_ARCH_X86_64_MMT4D_TILE_H_
