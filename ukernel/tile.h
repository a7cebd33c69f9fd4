// What a row of a tiles.inc means, and the few macros every kernel file uses.
//
// A tile is one row in arch/<arch>/<isa>/tiles.inc. The row's columns give the symbol, the
// declaration, the table entry and the definition, so nothing is typed twice:
//
//   UK_MMT4D_TILE(lhs, rhs, out, M0, N0, K0, arch, isa, numerics)
//   UK_PACK_TILE(width, tile0, tile1, order, arch, isa)      width: x4 x8 x16 x32 x64
//   UK_UNPACK_TILE(width, tile0, tile1, order, arch, isa)    order: straight, transposed
//
// tile0 and tile1 are the tile as it is stored. `numerics` is the lower-case tail of a
// UK_NUMERICS_* name. A file that includes a tiles.inc defines the three macros first; the ones it
// has no use for become UK_IGNORE_ROW.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_TILE_H_
#define UKERNEL_TILE_H_

#include "ukernel/ukernel.h"

// Sums would be taken in another order, and NaNs and infinities taken for numbers.
#if defined(__FAST_MATH__) || __FINITE_MATH_ONLY__
#error "ukernel's sources need -fno-fast-math"
#endif

// Kernel bodies are templates in an unnamed namespace, inlined into their tile: a COMDAT copy
// compiled with AVX-512 flags could win the link and run on an older CPU.
#define UK_INLINE inline __attribute__((always_inline))
#define UK_INLINE_LAMBDA __attribute__((always_inline))
// Where inlining would cost more than a call: code, or registers beside the caller's variables.
#define UK_NOINLINE __attribute__((noinline))
#define UK_HIDDEN __attribute__((visibility("hidden")))

// Loops over accumulators must disappear, or the accumulators live in memory (40 times slower with
// g++ 12 -O2). 64 is above every trip count that a register file permits.
#define UK_UNROLL _Pragma("GCC unroll 64")
#define UK_KEEP_LOOP _Pragma("GCC unroll 1")

#define UK_IGNORE_ROW(...)

namespace uk {

// The register budget. A tile runs as blocks of rows whose accumulators, with the RHS vectors of a
// k step and one broadcast, fit `registers`; each block has a K loop of its own, in which no
// accumulator leaves its register. As few blocks as possible, as equal as possible.
constexpr int block_count(int registers, int m0, int vectors) {
  const int most_rows = (registers - vectors - 1) / vectors;
  return most_rows < 1 ? m0 : (m0 + most_rows - 1) / most_rows;
}
constexpr int block_first_row(int m0, int blocks, int block) {
  return block * (m0 / blocks) + (block < m0 % blocks ? block : m0 % blocks);
}

}  // namespace uk

// Suffixes of symbols, by the columns that decide them.
#define UK_MMT4D_SUFFIX_exact
#define UK_MMT4D_SUFFIX_fma_chain
#define UK_MMT4D_SUFFIX_mul_add_chain
#define UK_MMT4D_SUFFIX_round_each_step
#define UK_MMT4D_SUFFIX_f32acc _f32acc
#define UK_MMT4D_SUFFIX_bf16_dot
#define UK_MMT4D_SUFFIX_bf16_dot_f32acc _f32acc
#define UK_ORDER_SUFFIX_straight
#define UK_ORDER_SUFFIX_transposed _t

#define UK_MMT4D_SYMBOL(lhs, rhs, out, m0, n0, k0, arch, isa, numerics) \
  UK_MMT4D_SYMBOL_(lhs, rhs, out, m0, n0, k0, arch, isa, UK_MMT4D_SUFFIX_##numerics)
#define UK_MMT4D_SYMBOL_(lhs, rhs, out, m0, n0, k0, arch, isa, suffix) \
  UK_MMT4D_SYMBOL__(lhs, rhs, out, m0, n0, k0, arch, isa, suffix)
#define UK_MMT4D_SYMBOL__(lhs, rhs, out, m0, n0, k0, arch, isa, suffix) \
  uk_mmt4d_tile_##lhs##rhs##out##_##m0##x##n0##x##k0##_##arch##_##isa##suffix

#define UK_PACK_SYMBOL(width, tile0, tile1, order, arch, isa) \
  UK_COPY_SYMBOL_(pack, width, tile0, tile1, UK_ORDER_SUFFIX_##order, arch, isa)
#define UK_UNPACK_SYMBOL(width, tile0, tile1, order, arch, isa) \
  UK_COPY_SYMBOL_(unpack, width, tile0, tile1, UK_ORDER_SUFFIX_##order, arch, isa)
#define UK_COPY_SYMBOL_(op, width, tile0, tile1, suffix, arch, isa) \
  UK_COPY_SYMBOL__(op, width, tile0, tile1, suffix, arch, isa)
#define UK_COPY_SYMBOL__(op, width, tile0, tile1, suffix, arch, isa) \
  uk_##op##_tile_##width##_##tile0##x##tile1##suffix##_##arch##_##isa

// Of each an int32_t: a vector of AVX-512.
constexpr int kSharedRowSums = 16;
// Of tiles on operands as they are. On Zen 4 s8s8 of four rows and more took 2 to 5 % less time
// where an op keeps the sums, of two rows 2 to 4 % more.
constexpr int kLeastSummedRows = 4;

// Behind a decoded LHS panel, which is filled by whole vectors. What it holds does not matter.
constexpr int kDecodedSlack = 64;

constexpr int kLineBytes = 64;  // of the caches

// Nearer, in bytes, the requests in flight do not cover the memory's latency.
constexpr uintptr_t kPrefetchDistance = 16 << 10;
// The pages of memory with which a core's own prefetches end, in bytes.
constexpr uintptr_t kPrefetchedPage = 4 << 10;

// What ops tell an mmt4d tile beyond the ABI.
struct uk_tile_context_t {
  uk_index_t out_stride;  // elements from a row of OUT to the next
  // Unless 0: from where on a tile that is passed PREFETCH_RHS prefetches, so many bytes in each k
  // step, instead of its own panel. An integer: it may lie past the end of a buffer.
  uintptr_t prefetch_from = 0;
  uintptr_t prefetch_step_bytes = 0;
  // How far ahead of its reads a tile of one register block prefetches its own panel, in bytes.
  uintptr_t prefetch_distance = kPrefetchDistance;
  // Whether tiles prefetch their own panel as two sequences of lines (arch/mmt4d_tile.h).
  bool prefetches_pages = false;
  // Whether those of several register blocks prefetch into L1; read by tiles by hand on x86-64.
  bool prefetches_into_l1 = false;
  // Of a tile on a decoded operand: the operand's panel as the dots take it, k1 steps of so many
  // bytes as the tile's form says, rounded up to whole instructions (tile_steps of
  // ukernel/isa.inc), with kDecodedSlack bytes behind an LHS panel. At an address of whole cache
  // lines. The tile fills it if told to, else it is filled already.
  char* decoded = nullptr;
  bool fills_decoded = false;
  // Likewise, and unless null of a tile on operands as they are: the sums of the LHS panel's rows,
  // for tiles that need those of up to kSharedRowSums, over the k1 steps.
  char* row_sums = nullptr;
  bool fills_row_sums = false;
  // Of a tile on panels abreast: bytes from a panel to the next, and elements from the results of a
  // panel to those of the next, which of a tile of one row follow them.
  uk_index_t rhs_panel_bytes = 0, out_panel_stride = 0;
};

// Of a tile of so many columns that is called by its symbol.
namespace {
template <int kColumns>
constexpr uk_tile_context_t kDenseRows = {kColumns};
}  // namespace

// In the library an mmt4d tile is two functions: its symbol, whose rows of OUT lie one behind the
// other, calls <symbol>_strided, for rows that may lie in a matrix. That one is not part of the
// ABI: the ops call it.
typedef void uk_mmt4d_strided_tile_fn(void* out_matrix, const void* lhs_panel,
                                      const void* rhs_panel, uk_index_t k1, uint32_t flags,
                                      const uk_tile_context_t& context);
#define UK_STRIDED_SYMBOL(symbol) UK_STRIDED_SYMBOL_(symbol)
#define UK_STRIDED_SYMBOL_(symbol) symbol##_strided
// It may have other forms for ops, which <symbol>_forms has. Of a tile that decodes an operand
// there may be one for ops that have this done once for several tiles: nulls where there is none.
// Rows that are staged before the dots are a decoded LHS.
struct uk_decoded_operand_t {
  uk_index_t step_bytes;          // of the decoded panel, a k step
  void (*begin)(void) = nullptr;  // what a thread calls before the first of these tiles,
  void (*end)(void) = nullptr;    // and after the last one, unless they are null
};
struct uk_tile_on_decoded_t {
  uk_mmt4d_strided_tile_fn* function;
  uk_decoded_operand_t operand;
};
// Of a tile of few vectors of sums, which would wait for each other, there may be one for so many
// RHS panels at once, step by step; null where there is none. It also has more of the RHS on its
// way from memory than one that reads a single sequence. On Zen 3 one or two rows by panels of 16
// columns take 1.1 to 2.3 times as long one by one from L2, 1.1 to 1.5 times from memory, and a row
// 1.03 to 1.1 times by two at a time. For the sake of memory alone tiles of more sums have it, too.
constexpr int kPanelsAbreast = 3;
constexpr int kFewSums = 4;  // in tiles by hand; of generated ones their plan says
constexpr int kMostSumsAbreast = 8;
struct uk_tile_forms_t {
  uk_tile_on_decoded_t on_decoded_lhs, on_decoded_rhs;
  uk_mmt4d_strided_tile_fn* abreast;
  bool abreast_in_caches;  // whether that one gains where the RHS does not come from memory, too
};
namespace uk {
// That a body is instantiated as.
enum class TileForm { kPlain, kOnDecodedLhs, kOnDecodedRhs, kAbreast };
// Where a tile by hand takes several RHS panels from.
enum class Abreast { kNowhere, kFromMemory, kAnywhere };
}  // namespace uk
#define UK_FORMS_SYMBOL(symbol) UK_FORMS_SYMBOL_(symbol)
#define UK_FORMS_SYMBOL_(symbol) symbol##_forms

// Declarations, for the table.
#define UK_DECLARE_MMT4D_TILE(...)                                                               \
  extern "C" uk_mmt4d_tile_fn UK_MMT4D_SYMBOL(__VA_ARGS__);                                      \
  extern "C" UK_HIDDEN uk_mmt4d_strided_tile_fn UK_STRIDED_SYMBOL(UK_MMT4D_SYMBOL(__VA_ARGS__)); \
  extern "C" UK_HIDDEN const uk_tile_forms_t UK_FORMS_SYMBOL(UK_MMT4D_SYMBOL(__VA_ARGS__));
#define UK_DECLARE_PACK_TILE(...) extern "C" uk_pack_tile_fn UK_PACK_SYMBOL(__VA_ARGS__);
#define UK_DECLARE_UNPACK_TILE(...) extern "C" uk_unpack_tile_fn UK_UNPACK_SYMBOL(__VA_ARGS__);

// Definitions, for the kernel file of an ISA. A row calls the body of its types (or its order) in
// that file, e.g. mmt4d_bf16bf16bf16_f32acc<16, 16, 2>(...) or pack_transposed<32, 16, 1>(...).
#define UK_DEFINE_MMT4D_TILE(lhs, rhs, out, m0, n0, k0, arch, isa, numerics)             \
  UK_DEFINE_MMT4D_TILE_(UK_MMT4D_SYMBOL(lhs, rhs, out, m0, n0, k0, arch, isa, numerics), \
                        lhs##rhs##out, UK_MMT4D_SUFFIX_##numerics, m0, n0, k0)
#define UK_DEFINE_MMT4D_TILE_(symbol, types, suffix, m0, n0, k0) \
  UK_DEFINE_MMT4D_TILE__(symbol, types, suffix, m0, n0, k0)
#define UK_DEFINE_MMT4D_TILE__(symbol, types, suffix, m0, n0, k0)                                 \
  UK_DEFINE_BODY_FORMS(symbol, types##suffix, m0, n0, k0)                                         \
  UK_DEFINE_STRIDED_TILE(symbol, n0) {                                                            \
    mmt4d_##types##suffix<m0, n0, k0, uk::TileForm::kPlain>(out_matrix, lhs_panel, rhs_panel, k1, \
                                                            flags, context);                      \
  }

#if defined(UK_STRIDED_TILES)
#define UK_DEFINE_BODY_FORMS(symbol, body, m0, n0, k0)                                       \
  UK_DEFINE_BODY_ON_DECODED(symbol##_blocks_on_decoded_lhs, body, m0, n0, k0, kOnDecodedLhs) \
  UK_DEFINE_BODY_ON_DECODED(symbol##_blocks_on_decoded_rhs, body, m0, n0, k0, kOnDecodedRhs) \
  UK_DEFINE_BODY_FORM(symbol##_blocks_abreast,                                               \
                      (reads_abreast_##body<m0, n0, k0> != uk::Abreast::kNowhere),           \
                      mmt4d_##body<m0, n0, k0, uk::TileForm::kAbreast>)                      \
  UK_DEFINE_FORMS(                                                                           \
      symbol, symbol##_blocks_on_decoded_lhs_form, symbol##_blocks_on_decoded_rhs_form,      \
      (reads_abreast_##body<m0, n0, k0> != uk::Abreast::kNowhere ? &symbol##_blocks_abreast  \
                                                                 : nullptr),                 \
      (reads_abreast_##body<m0, n0, k0> == uk::Abreast::kAnywhere))
#define UK_DEFINE_BODY_ON_DECODED(function, body, m0, n0, k0, form)                               \
  UK_DEFINE_BODY_FORM(function, (decoded_##body<m0, n0, k0, uk::TileForm::form>.step_bytes != 0), \
                      mmt4d_##body<m0, n0, k0, uk::TileForm::form>)                               \
  namespace {                                                                                     \
  constexpr uk_decoded_operand_t function##_operand =                                             \
      decoded_##body<m0, n0, k0, uk::TileForm::form>;                                             \
  constexpr uk_tile_on_decoded_t function##_form = {                                              \
      function##_operand.step_bytes != 0 ? &function : nullptr, function##_operand};              \
  }
/* Empty, and dropped by compilers, where the tile has no such form. */
#define UK_DEFINE_BODY_FORM(function, exists, ...)                                               \
  namespace {                                                                                    \
  [[maybe_unused]] void function(void* out_matrix, const void* lhs_panel, const void* rhs_panel, \
                                 uk_index_t k1, uint32_t flags,                                  \
                                 const uk_tile_context_t& context) {                             \
    if constexpr (exists) {                                                                      \
      __VA_ARGS__(out_matrix, lhs_panel, rhs_panel, k1, flags, context);                         \
    }                                                                                            \
  }                                                                                              \
  }
#define UK_DEFINE_FORMS(symbol, ...)                         \
  extern "C" UK_HIDDEN const uk_tile_forms_t symbol##_forms; \
  const uk_tile_forms_t symbol##_forms = {__VA_ARGS__};
#else
#define UK_DEFINE_BODY_FORMS(...)
#endif

// The braces that follow are the body of <symbol>_strided. In the library it is a function of its
// own, of which GCC must make no second copy for the symbol's constant stride: that is as large and
// no faster. Elsewhere tiles are called by their symbols alone, and it is part of them.
#if defined(UK_STRIDED_TILES) && defined(__clang__)
#define UK_STRIDED_TILE extern "C" UK_HIDDEN UK_NOINLINE
#elif defined(UK_STRIDED_TILES)
#define UK_STRIDED_TILE extern "C" UK_HIDDEN __attribute__((noinline, noclone))
#else
#define UK_STRIDED_TILE static UK_INLINE
#endif
#define UK_DEFINE_STRIDED_TILE(symbol, n0)                                                     \
  UK_STRIDED_TILE void symbol##_strided(void*, const void*, const void*, uk_index_t, uint32_t, \
                                        const uk_tile_context_t&);                             \
  extern "C" void symbol(void* out_tile, const void* lhs_panel, const void* rhs_panel,         \
                         uk_index_t k1, uint32_t flags) {                                      \
    symbol##_strided(out_tile, lhs_panel, rhs_panel, k1, flags, kDenseRows<n0>);               \
  }                                                                                            \
  UK_STRIDED_TILE void symbol##_strided(void* out_matrix, const void* lhs_panel,               \
                                        const void* rhs_panel, uk_index_t k1, uint32_t flags,  \
                                        const uk_tile_context_t& context)

#define UK_DEFINE_PACK_TILE(width, tile0, tile1, order, arch, isa)                              \
  extern "C" void UK_PACK_SYMBOL(width, tile0, tile1, order, arch, isa)(                        \
      void* out, const void* in, uk_index_t count, uk_index_t out_stride1,                      \
      uk_index_t in_stride0) {                                                                  \
    pack_##order<UK_WIDTH_BITS_##width, tile0, tile1>(out, in, count, out_stride1, in_stride0); \
  }
#define UK_DEFINE_UNPACK_TILE(width, tile0, tile1, order, arch, isa)                              \
  extern "C" void UK_UNPACK_SYMBOL(width, tile0, tile1, order, arch, isa)(                        \
      void* out, const void* in, uk_index_t count, uk_index_t out_stride0,                        \
      uk_index_t in_stride1) {                                                                    \
    unpack_##order<UK_WIDTH_BITS_##width, tile0, tile1>(out, in, count, out_stride0, in_stride1); \
  }

#define UK_WIDTH_BITS_x4 4
#define UK_WIDTH_BITS_x8 8
#define UK_WIDTH_BITS_x16 16
#define UK_WIDTH_BITS_x32 32
#define UK_WIDTH_BITS_x64 64

#endif  // UKERNEL_TILE_H_
