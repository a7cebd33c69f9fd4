// What the ops share: reading params, selecting rows, checking extents. Not installed.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_INTERNAL_H_
#define UKERNEL_INTERNAL_H_

#include "ukernel/tile.h"

namespace uk {

inline uk_index_t smaller(uk_index_t a, uk_index_t b) { return a < b ? a : b; }
inline uk_index_t larger(uk_index_t a, uk_index_t b) { return a > b ? a : b; }
// a / b of what is not negative. Division of 64 bits takes up to a hundred cycles, and a small op
// is over in a few thousand.
inline uk_index_t quotient(uk_index_t a, uk_index_t b) {
  if ((a | b) >> 32 != 0) return a / b;
  return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
}
inline uk_index_t ceil_div(uk_index_t a, uk_index_t b) {
  const uk_index_t q = quotient(a, b);
  return q + (q * b != a);
}

// ---------------------------------------------------------------- types

// The mmt4d flags that callers may set.
constexpr uint32_t kMmt4dCallerFlags = UK_MMT4D_TYPE_MASK | UK_MMT4D_ACCUMULATE |
                                       UK_MMT4D_ALLOW_GENERIC_FALLBACK |
                                       UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS | UK_MMT4D_UNPACK_OUT;

struct Mmt4dType {
  uint32_t flag;
  int lhs_bits, rhs_bits, out_bits;
};

// Whether a step of so many elements would begin or end within a byte.
constexpr bool splits_byte(const Mmt4dType& type, int32_t k0) {
  return k0 % 2 != 0 && (type.lhs_bits < 8 || type.rhs_bits < 8);
}

// NULL if flags name no type.
const Mmt4dType* find_mmt4d_type(uint32_t flags);

// Element width of a pack type, 0 if there is none.
int pack_type_bits(uint32_t flags);

// The type that stands for all of a width in rows, 0 if there is none.
constexpr uint32_t pack_row_type(int bits) {
  return bits == 4    ? UK_PACK_TYPE_I4
         : bits == 8  ? UK_PACK_TYPE_I8
         : bits == 16 ? UK_PACK_TYPE_I16
         : bits == 32 ? UK_PACK_TYPE_I32
         : bits == 64 ? UK_PACK_TYPE_F64
                      : 0;
}

// ---------------------------------------------------------------- selection

// The best tile function row for a request, NULL if there is none. Never a generic row. `flags`:
// type, SKIP (mmt4d) or TRANSPOSE_INNER (pack, unpack); others are ignored. cpu_data may be NULL.
const uk_tile_row_t* select_tile(uint32_t op, uint32_t flags, int32_t m0, int32_t n0, int32_t k0,
                                 const uint64_t* cpu_data);
// The scalar path of an mmt4d type.
const uk_tile_row_t* generic_mmt4d_row(uint32_t flags);

// A row's function as the type of its op, NULL if there is no row or it has none.
template <class Function>
Function* function_of(const uk_tile_row_t* row) {
  return row ? reinterpret_cast<Function*>(row->function) : nullptr;
}

// Of a row of the table, NULL if it has no function.
uk_mmt4d_strided_tile_fn* strided_tile_of_row(const uk_tile_row_t& row);

// Of a row of the table, NULL if its tile has no such function.
const uk_tile_on_decoded_t* on_decoded_lhs_of_row(const uk_tile_row_t& row);
const uk_tile_on_decoded_t* on_decoded_rhs_of_row(const uk_tile_row_t& row);
uk_mmt4d_strided_tile_fn* tile_abreast_of_row(const uk_tile_row_t& row);
// Whether it has that one, and gains by it where the RHS does not come from memory, too.
bool gains_abreast_in_caches(const uk_tile_row_t& row);

// K is split only where the accumulator holds the exact intermediate result.
inline bool can_split_k(const uk_tile_row_t& row) {
  return row.numerics == UK_NUMERICS_EXACT || row.numerics == UK_NUMERICS_FMA_CHAIN ||
         row.numerics == UK_NUMERICS_MUL_ADD_CHAIN || row.numerics == UK_NUMERICS_BF16_DOT;
}

// Whether a request with these flags and CPU may use the row, shape aside.
bool row_is_eligible(const uk_tile_row_t& row, uint32_t op, uint32_t flags,
                     const uint64_t* cpu_data);

// Whether the CPU says that it is slow at a feature of the row's level.
bool row_is_slow(const uk_tile_row_t& row, const uint64_t* cpu_data);

// A level's vectors, as the columns of ukernel/isa.inc that the query and the walk read.
struct VectorUnit {
  int registers, bytes, lhs_by_lane, fma, f16_fma, bf16_dot, s16_k, s16_dot, byte_dot, byte_flip,
      tile_steps, wide, panels_in_turns, l3_feeds;
};

// Of the level of a tile function row of the table.
const VectorUnit& vector_unit_of_row(const uk_tile_row_t& row);

// Whether one of the CPU's levels is `wide`.
bool cpu_is_wide(const uint64_t* cpu_data);
// The least that the CPU's levels say in a column where 0 says nothing, 1 if none says anything.
int least_of_levels(const uint64_t* cpu_data, int VectorUnit::*column);
inline bool l3_feeds_tiles(const uint64_t* cpu_data) {
  return least_of_levels(cpu_data, &VectorUnit::l3_feeds) == 2;
}
// Whether an RHS that comes from memory comes sooner by several panels abreast, on cores whose L3
// feeds tiles and that read so many in turns: not on those that read two, but on Zen 5.
constexpr bool streams_abreast(bool l3_feeds, int panels_in_turns) {
  return l3_feeds && panels_in_turns == 1;
}
// Shorter panels come sooner one by one, as each is a sequence that begins anew: of 16 KiB, panels
// came to four rows at 60 to 65 % of the read rate three abreast and at 77 one by one, of 32 KiB at
// 68 to 76 and at 74 to 80, of 64 KiB alike.
constexpr uk_index_t kLeastBytesAbreast = 64 << 10;

// Bits of field 7; no CPU of Arm has them.
#ifdef __x86_64__
constexpr uint64_t kReadsAhead = UK_CPU_FIELD7_X86_64_READS_AHEAD;
constexpr uint64_t kSmallL2 = UK_CPU_FIELD7_X86_64_SMALL_L2;
#else
constexpr uint64_t kReadsAhead = 0, kSmallL2 = 0;
#endif

// Whether the CPU says that reads of one row are slower beside prefetches, those of a few rows
// faster in several sequences, and those of many not by f16 and bytes that are widened once.
inline bool cpu_reads_ahead(const uint64_t* cpu_data) {
  return cpu_data && (cpu_data[7] & kReadsAhead);
}

inline bool cpu_has_small_l2(const uint64_t* cpu_data) {
  return cpu_data && (cpu_data[7] & kSmallL2);
}

// Whether tiles fetch an RHS that is in L3. Not inlined: small ops would notice.
bool l3_is_far(const uint64_t* cpu_data);

// Steps of K that an instruction of a row takes together: the bounds of parts of K are theirs.
inline uk_index_t tile_steps(const uk_tile_row_t& row) {
  return larger(vector_unit_of_row(row).tile_steps, 1);
}

// What a tile of an op does not do alone.
struct TileInOp {
  // RHS panels that an LHS panel is decoded once for, and the other way round; 0 where it is not.
  uk_index_t lhs_decoded_for = 0, rhs_decoded_for = 0;
  bool abreast = false;  // it takes several RHS panels
  bool is_far = false;   // each block reads the RHS panel from beyond L2
};

// Quarter cycles of a k step of an mmt4d row of the table, with a function, on one RHS panel, its
// operands in L1 or on their way there.
int tile_step_cost(const uk_tile_row_t& row, bool wide, const TileInOp& in_op = {});

// Whether an op of m LHS panels and n RHS panels has the RHS decoded once for all its tiles.
bool decodes_rhs_once(const uk_tile_row_t& row, uk_index_t m, uk_index_t n,
                      const uint64_t* cpu_data);

// Likewise of the LHS, where the RHS comes from memory or does not. To be asked only where the RHS
// is not decoded once.
bool decodes_lhs_once(const uk_tile_row_t& row, uk_index_t m, uk_index_t n, bool rhs_streams,
                      const uint64_t* cpu_data);

// Whether an op of n RHS panels, of k steps, keeps the sums of an LHS panel's rows from one tile
// for the next. To be asked only where no operand is decoded once.
bool keeps_row_sums(const uk_tile_row_t& row, uk_index_t n, uk_index_t k);

// ---------------------------------------------------------------- the scalar path

// The first rows and columns of a tile, in rows `stride` elements apart.
struct TilePart {
  void* first;
  uk_index_t stride, rows, columns;
};

void generic_mmt4d_tile(uint32_t type, const TilePart& out, const void* lhs_panel,
                        const void* rhs_panel, uk_index_t k1, uint32_t flags,
                        const uk_tile_sizes_t& sizes);

// ---------------------------------------------------------------- the walk of mmt4d

// It is blocked for caches of these sizes, in bytes. Measured on cores with 1 and 2 MiB of L2, but
// for those of a small one.
// Where L3 feeds tiles, a block of the RHS stays there, and each LHS panel in turn in L2. As large
// as the LHS, each of its blocks reads which, a block of the RHS need not be. K is whole but where
// the panels alone would fill L2. For few rows an RHS from memory comes as elsewhere (below). With
// the roles exchanged an LHS panel meets a block as large: f32 and bf16 with K from 800 to 2000
// took 0.92 to 0.98 of the time of blocks as elsewhere, of two to four panels.
constexpr uk_index_t kRhsBlockBytes = 4 << 20;
constexpr uk_index_t kLongPanelBytes = 1 << 20;   // an LHS and an RHS panel
constexpr uk_index_t kPanelBytesInL1 = 44 << 10;  // an RHS panel that meets rows one by one
// The most bytes of a step of the RHS for which several LHS panels gain by panels abreast: tiles of
// one row, from L2; and any, for each of their rows, from memory.
constexpr uk_index_t kRowBytesAbreast = 128, kStreamedBytesPerRow = 32;
// Rows of a tile and of the LHS, and the LHS, for which an RHS is fetched beside the products as on
// other CPUs. In shorter panels than there: on Zen 5, with OUT fetched as well, 17 to 128 rows of
// f32, bf16 and f64 took 0.88 to 0.97 of the time while memory was busy, of bytes 0.95 to 1.0, and
// 0.96 to 1.02 else; but up to 1.07 in a matrix whose rows share sets of L2. Nobody
// measured Zen 4, which does so, too.
constexpr uk_index_t kFewRowsToFetchBeside = 4, kRowsToFetchBeside = 256;
constexpr uk_index_t kLhsBytesToFetchBeside = 3 << 20, kFetchedPanelBytes = 192 << 10;
constexpr uk_index_t kLeastFetchedBytes = 4 << 10;  // of an LHS panel, for those of one RHS panel
// The longest row of tiles of an op that is written down the columns of tiles, not row by row,
// where OUT's rows go on beyond the op's; and how many times as much as they write its tiles may
// read. With twice as long rows two CPUs gained nothing, and a single one took 1.1 times as long;
// with more to read neither gained.
constexpr uk_index_t kShortRowBytes = 64 << 10, kReadPerWritten = 12;
// Elsewhere, panels come from L2: a block of the LHS stays there beside the RHS panel that meets it
// and the next one, which is on its way. On Emerald Rapids larger ones are slower by up to a tenth,
// though its L2 has 2 MiB.
constexpr uk_index_t kPanelBytes = 384 << 10;  // an LHS and an RHS panel
// An RHS this large comes from memory once more for each LHS block. Of shorter panels, as long as
// where an RHS is fetched beside an LHS block, more fit one: f32 64x4096x4096 took 0.86 of the time
// on Emerald Rapids, 128x4096x4096 and 128x11008x4096 0.92, 512x4096x4096 0.94, f64 512x1024x4096
// 0.97. With an RHS of 16 MiB f32 took as long, with one of 8 MiB f64 1.03 times. Nobody measured
// other CPUs whose L3 feeds no tiles.
constexpr uk_index_t kMemoryRhsBytes = 32 << 20;
constexpr uk_index_t kLhsBlockBytes = 512 << 10;  // the LHS panels that an RHS panel meets
// With 512 KiB of L2, on Zen 3, f64 16x8 took 1.2 times as long in blocks of those sizes, f32 1.02;
// with 1 MiB, on Cascade Lake, f32 512x2048x2048 and 128x4096x4096 1.2, bytes 0.97 to 1.03. Nobody
// measured 256 KiB.
constexpr uk_index_t kPanelBytesInSmallL2 = 128 << 10;
constexpr uk_index_t kLhsBlockBytesInSmallL2 = 256 << 10;
// Parts of a decoded RHS of bytes or nibbles that stay in L1, in blocks of K for which each tile of
// OUT is read and written once more: on Cascade Lake OUT came from L3 at 7 bytes a cycle, and went
// there. Instead of parts of 32 KiB, each of all RHS panels, s8s8 and s8s4 512x4096x4096 took 0.94
// to 0.97 of the time, 1024x1024x1024 0.97 and 1; f16 as long, bf16, whose LHS panels are twice as
// long and so come in smaller blocks, 1.02 to 1.04.
constexpr uk_index_t kPanelBytesOfPartsInSmallL2 = 64 << 10;
// With 2 MiB of L2, on Emerald Rapids, blocks are as long as their panels may be without parts, up
// to so many parts. With at most four s8s8 3072x2048x3072 took 1.03 times as long; with more, too
// few LHS panels would share an RHS panel that is decoded for them. Parts pay where so much passes
// between two visits to a tile of OUT that it comes from L3: of bytes and nibbles by s8 and s16,
// 13x32, 14x32 and on AVX2 16x16 took 0.91 to 1.01 of the time. Where less passes they took up to
// 1.04 times as long, and 6x16 and 4x16, whose LHS panels have fewer rows to share, 1.01 and 1.02.
constexpr uk_index_t kMostPartsOfBlock = 8;
constexpr uk_index_t kPassedBytes = 2560 << 10;
constexpr int32_t kLeastRowsOfParts = 8;
constexpr uk_index_t kDecodedPartBytes = 16 << 10;
constexpr uk_index_t kOutBlockBytes = 512 << 10;  // of OUT, where K is in eight parts or more
constexpr uk_index_t kOutPartsBytes = 4 << 20;    // of fewer, so much for all parts together
constexpr uk_index_t kDecodedBytes = 32 << 10;    // of an operand's parts of K, in the op's stack
constexpr uk_index_t kDecodedLhsRows = 32;        // of the LHS panels there, if they are several
constexpr uk_index_t kDecodedLhsPanels = 8;  // at most, with their sums: four rows or more each
constexpr uk_index_t kSummedLhsPanels = 64;  // with their sums there, a vector each
constexpr uk_index_t kLhsPanelsInSets = 12;  // where the rows of OUT share sets of L2
constexpr uk_index_t kStreamBytes =
    4 << 20;  // an RHS this large comes from memory; the query reckons so, too
// An RHS this large comes from L3, on Cascade Lake at 7 bytes a cycle: with prefetches 16, 32 and
// 78 rows of f32, s8 and u8 took 0.84 to 0.97 of the time. Fewer rows in one block, which is over
// before they help, took up to 1.07 times as long.
constexpr uk_index_t kFarBytes = 768 << 10, kFarRows = 16;
constexpr uk_index_t kSideBySideBytes = 4 << 10;  // of each of two panels that are read in turns
constexpr uk_index_t kLongLhsBytes = 256 << 10;   // a panel that two of the RHS should share
constexpr uk_index_t kMemoryBytes = 2;            // in a quarter cycle: what a core reads at most
constexpr uk_index_t kReadingBytes = 4;  // the same, where a tile does little else than read more
constexpr uk_index_t kWaitingBytes = 1;  // the same, where a tile keeps memory waiting
constexpr uk_index_t kAbreastBytes = 3;  // the same, where tiles abreast keep up with it
// How far ahead of its reads a fast tile prefetches its own panel where the core reads ahead, too:
// with 16 KiB, on Zen 3, f32 4x16 took 1.14 to 1.17 times as long, and f64 4x8 1.1 to 1.17 times,
// but s8s8 4x16x2, which is busy multiplying, 0.97 times.
constexpr uintptr_t kNearPrefetchDistance = 2 << 10;

// Of OUT in the largest tile that has a function: M0 and N0 reach 64. Under UNPACK_OUT one that
// reaches beyond the matrix is in the op's stack.
constexpr uk_index_t kMostTileBytes = 64 * 64 * 8;
constexpr uk_index_t kMostTileBytesOnDecoded = kMostTileBytes / 2;  // no f64

// ---------------------------------------------------------------- the walk of pack and unpack

// Measured on cores with 1 and 2 MiB of L2, and where a core reads ahead by itself with 512 KiB.
constexpr uk_index_t kStreamedCopyBytes = 8 << 20;    // an output this large goes past the caches
constexpr uk_index_t kGatheredCopyBytes = 512 << 10;  // smaller ones wait for L2 only
constexpr uk_index_t kSetsBytes = 2 << 10;     // lines that far apart fall into one set or two
constexpr uk_index_t kOverlapBytes = 1 << 10;  // read before as much is written past them
constexpr uk_index_t kStreamedBlockBytes = 8 << 10;    // where so little would be parts of lines
constexpr uk_index_t kPrefetchedBlockBytes = 2 << 10;  // the least where the source is prefetched
constexpr uk_index_t kStreamedRowBytes = 128;          // of each row of the matrix, more or less
// The same of unpacks where a core reads ahead by itself: in dense rows of tiles, and in others.
constexpr uk_index_t kStreamedDenseRowBytes = 512, kStreamedFarRowBytes = 256;
constexpr uk_index_t kStreamedRunBytes = 128;  // lines written alone take twice as long
constexpr uk_index_t kRowsInTurns = 8;     // are read faster than one alone, where L3 feeds no tile
constexpr uk_index_t kRowsInFewTurns = 2;  // the same where a core reads ahead by itself
constexpr uk_index_t kAheadBytes = 4 << 10;  // that a streamed copy asks for
constexpr uk_index_t kRowPartBytes = 512;    // from memory: shorter ones gain nothing by prefetches
constexpr uk_index_t kPageBytes = 4 << 10;
constexpr uk_index_t kRowsAhead = 8;           // that these ask for, of the matrix
constexpr uk_index_t kColumnAheadBytes = 256;  // the same of each of many columns of tiles
constexpr uk_index_t kManyColumns = 32;        // of tiles, more than the ways of an L2
constexpr uk_index_t kRunBytes = 512;          // longer runs down a column gain nothing more
constexpr uk_index_t kTallRows = 32;  // the most rows of the matrix side by side in one tall tile
constexpr uk_index_t kStackedRows = 16;  // the same in tiles one below the other

// ---------------------------------------------------------------- params

// Copies what the caller knows of a params struct, zero for the rest. The smallest size accepted is
// the first version's; the largest bounds the scan of a tail in case struct_size is garbage.
template <class Params>
uk_status_t read_params(const Params* params, Params& copy) {
  constexpr size_t kFirstVersionSize = offsetof(Params, cpu_data) + sizeof(const uint64_t*);
  constexpr size_t kMaxSize = 4096;
  if (!params) return UK_STATUS_BAD_STRUCT_SIZE;
  const size_t size = params->struct_size;
  if (size < kFirstVersionSize || size > kMaxSize) return UK_STATUS_BAD_STRUCT_SIZE;
  const char* bytes = reinterpret_cast<const char*>(params);
  if (size >= sizeof(Params)) {
    for (size_t i = sizeof(Params); i < size; ++i) {
      if (bytes[i] != 0) return UK_STATUS_BAD_STRUCT_SIZE;
    }
    copy = *params;  // of a size that compilers know: a fifth of what a small op takes otherwise
  } else {
    copy = Params{};
    __builtin_memcpy(&copy, params, size);
  }
  return UK_STATUS_OK;
}

// ---------------------------------------------------------------- extents

// Products and sums that remember whether any of them left int64.
class Checked {
 public:
  uk_index_t mul(uk_index_t a, uk_index_t b) {
    uk_index_t r = 0;
    overflowed_ |= __builtin_mul_overflow(a, b, &r);
    return r;
  }
  uk_index_t add(uk_index_t a, uk_index_t b) {
    uk_index_t r = 0;
    overflowed_ |= __builtin_add_overflow(a, b, &r);
    return r;
  }
  bool overflowed() const { return overflowed_; }

 private:
  bool overflowed_ = false;
};

// One or two strided dimensions of contiguous runs, as the caller describes them.
struct Layout {
  const void* base;
  uk_index_t offset;
  uk_index_t size0, stride0;
  uk_index_t size1, stride1;
  uk_index_t run;  // elements of one contiguous run
  int bits;        // per element
};

// The same as byte addresses: `count` rows of `length` bytes, `stride` >= 0 apart. The gaps between
// the runs inside a row count as occupied.
struct Rows {
  uk_index_t first, count, stride, length;
};

// Fails on anything that leaves the address space or splits a byte. With any size zero: no rows.
uk_status_t rows_of(const Layout& layout, Rows* rows);

// Whether the runs of an output are disjoint: the smaller stride clears the run, the larger one
// clears the whole of the other dimension.
bool runs_are_disjoint(const Layout& layout);

bool rows_overlap(const Rows& a, const Rows& b);

// Byte address of an element that starts on a byte.
inline char* at(void* base, uk_index_t element, int bits) {
  return static_cast<char*>(base) + element * bits / 8;
}
inline const char* at(const void* base, uk_index_t element, int bits) {
  return static_cast<const char*>(base) + element * bits / 8;
}

}  // namespace uk

#endif  // UKERNEL_INTERNAL_H_
