// The table of tiles and the selection from it.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "ukernel/internal.h"
#include "ukernel/tile.h"

#define UK_MMT4D_TILE UK_DECLARE_MMT4D_TILE
#define UK_PACK_TILE UK_DECLARE_PACK_TILE
#define UK_UNPACK_TILE UK_DECLARE_UNPACK_TILE
#include "arch/tiles.inc"

namespace uk {
namespace {

// ---------------------------------------------------------------- names of columns -> values

struct IsaLevel {
  const char* name;
  int rank;
  VectorUnit vectors;
  uint64_t features, field7_features, field7_slow;
};

#define UK_ISA_LEVEL(arch, isa, rank, registers, bytes, lhs_by_lane, fma, f16_fma, bf16_dot,       \
                     s16_k, s16_dot, byte_dot, byte_flip, tile_steps, wide, panels_in_turns,       \
                     l3_feeds, features, field7, slow)                                             \
  constexpr IsaLevel kLevel_##arch##_##isa = {                                                     \
      #isa,                                                                                        \
      rank,                                                                                        \
      {registers, bytes, lhs_by_lane, fma, f16_fma, bf16_dot, s16_k, s16_dot, byte_dot, byte_flip, \
       tile_steps, wide, panels_in_turns, l3_feeds},                                               \
      features,                                                                                    \
      field7,                                                                                      \
      slow};
#include "ukernel/isa.inc"

constexpr IsaLevel kLevels[] = {
#define UK_ISA_LEVEL(arch, isa, ...) kLevel_##arch##_##isa,
#include "ukernel/isa.inc"
};
constexpr size_t kLevelCount = sizeof(kLevels) / sizeof(kLevels[0]);

constexpr Mmt4dType kMmt4dTypes[] = {
#define UK_MMT4D_TYPE(lhs, rhs, out, FLAG, lhs_bits, rhs_bits, out_bits, numerics) \
  {UK_MMT4D_TYPE_##FLAG, lhs_bits, rhs_bits, out_bits},
#include "ukernel/mmt4d_types.inc"
};

#define UK_MMT4D_TYPE(lhs, rhs, out, FLAG, ...) \
  constexpr uint32_t kType_##lhs##rhs##out = UK_MMT4D_TYPE_##FLAG;
#include "ukernel/mmt4d_types.inc"

constexpr uint32_t kNumerics_exact = UK_NUMERICS_EXACT;
constexpr uint32_t kNumerics_fma_chain = UK_NUMERICS_FMA_CHAIN;
constexpr uint32_t kNumerics_mul_add_chain = UK_NUMERICS_MUL_ADD_CHAIN;
constexpr uint32_t kNumerics_round_each_step = UK_NUMERICS_ROUND_EACH_STEP;
constexpr uint32_t kNumerics_f32acc = UK_NUMERICS_F32ACC;
constexpr uint32_t kNumerics_bf16_dot = UK_NUMERICS_BF16_DOT;
constexpr uint32_t kNumerics_bf16_dot_f32acc = UK_NUMERICS_BF16_DOT_F32ACC;

// Rows that round once must not serve a caller who did not permit it.
constexpr uint32_t mmt4d_row_flags(uint32_t type, uint32_t numerics) {
  const bool rounds_once =
      numerics == UK_NUMERICS_F32ACC || numerics == UK_NUMERICS_BF16_DOT_F32ACC;
  return type | (rounds_once ? UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS : 0);
}

constexpr uint32_t kPackType_x4 = pack_row_type(4);
constexpr uint32_t kPackType_x8 = pack_row_type(8);
constexpr uint32_t kPackType_x16 = pack_row_type(16);
constexpr uint32_t kPackType_x32 = pack_row_type(32);
constexpr uint32_t kPackType_x64 = pack_row_type(64);
constexpr uint32_t kOrder_straight = 0;
constexpr uint32_t kOrder_transposed = UK_PACK_TRANSPOSE_INNER;

// ---------------------------------------------------------------- the table

#define UK_STRING_(...) #__VA_ARGS__
#define UK_STRING(...) UK_STRING_(__VA_ARGS__)
#define UK_FEATURES(arch, isa) \
  { kLevel_##arch##_##isa.features, 0, 0, 0, 0, 0, 0, kLevel_##arch##_##isa.field7_features }
#define UK_FUNCTION(symbol) reinterpret_cast<void (*)(void)>(&symbol)

const uk_tile_row_t kRows[] = {
#define UK_MMT4D_TILE(lhs, rhs, out, m0, n0, k0, arch, isa, numerics)          \
  {UK_STRING(UK_MMT4D_SYMBOL(lhs, rhs, out, m0, n0, k0, arch, isa, numerics)), \
   #arch,                                                                      \
   #isa,                                                                       \
   UK_OP_MMT4D,                                                                \
   mmt4d_row_flags(kType_##lhs##rhs##out, kNumerics_##numerics),               \
   m0,                                                                         \
   n0,                                                                         \
   k0,                                                                         \
   UK_FEATURES(arch, isa),                                                     \
   kNumerics_##numerics,                                                       \
   UK_TILE_ORIGIN,                                                             \
   UK_FUNCTION(UK_MMT4D_SYMBOL(lhs, rhs, out, m0, n0, k0, arch, isa, numerics))},
#define UK_COPY_ROW(op, symbol, width, tile0, tile1, order, arch, isa) \
  {UK_STRING(symbol),                                                  \
   #arch,                                                              \
   #isa,                                                               \
   op,                                                                 \
   kPackType_##width | kOrder_##order,                                 \
   tile0,                                                              \
   tile1,                                                              \
   0,                                                                  \
   UK_FEATURES(arch, isa),                                             \
   UK_NUMERICS_EXACT,                                                  \
   UK_TILE_ORIGIN,                                                     \
   UK_FUNCTION(symbol)},
#define UK_PACK_TILE(...) UK_COPY_ROW(UK_OP_PACK, UK_PACK_SYMBOL(__VA_ARGS__), __VA_ARGS__)
#define UK_UNPACK_TILE(...) UK_COPY_ROW(UK_OP_UNPACK, UK_UNPACK_SYMBOL(__VA_ARGS__), __VA_ARGS__)
#include "arch/tiles.inc"

#define UK_GENERIC_ROW(op, name, flags, numerics) \
  {name, "generic", "generic", op, flags, 0, 0, 0, {}, numerics, UK_ORIGIN_GENERIC, nullptr},
#define UK_MMT4D_TYPE(lhs, rhs, out, FLAG, lhs_bits, rhs_bits, out_bits, numerics)   \
  UK_GENERIC_ROW(UK_OP_MMT4D, "generic_mmt4d_" #lhs #rhs #out, UK_MMT4D_TYPE_##FLAG, \
                 kNumerics_##numerics)
#include "ukernel/mmt4d_types.inc"
#define UK_GENERIC_COPY_ROWS(width)                                                        \
  UK_GENERIC_ROW(UK_OP_PACK, "generic_pack_" #width, kPackType_##width, UK_NUMERICS_EXACT) \
  UK_GENERIC_ROW(UK_OP_UNPACK, "generic_unpack_" #width, kPackType_##width, UK_NUMERICS_EXACT)
    UK_GENERIC_COPY_ROWS(x4) UK_GENERIC_COPY_ROWS(x8) UK_GENERIC_COPY_ROWS(x16)
        UK_GENERIC_COPY_ROWS(x32) UK_GENERIC_COPY_ROWS(x64)};
constexpr size_t kRowCount = sizeof(kRows) / sizeof(kRows[0]);

// What a search compares: one integer instead of six columns. Dimensions beyond 16 bits have no
// tile.
constexpr uint64_t kNoKey = ~UINT64_C(0);
constexpr uint64_t search_key(uint32_t op, uint32_t flags, int64_t m0, int64_t n0, int64_t k0) {
  if (((m0 | n0 | k0) & ~INT64_C(0xFFFF)) != 0) return kNoKey;
  const uint32_t type = flags & 0xFFu;
  const uint32_t order = op == UK_OP_MMT4D ? 0 : (flags & UK_PACK_TRANSPOSE_INNER) >> 8;
  return uint64_t{op} << 57 | uint64_t{order} << 56 | uint64_t{type} << 48 |
         static_cast<uint64_t>(m0) << 32 | static_cast<uint64_t>(n0) << 16 |
         static_cast<uint64_t>(k0);
}

// Keys and levels of the tile function rows, which come first in kRows, in its order.
constexpr uint64_t kKeys[] = {
#define UK_MMT4D_TILE(lhs, rhs, out, m0, n0, k0, ...) \
  search_key(UK_OP_MMT4D, kType_##lhs##rhs##out, m0, n0, k0),
#define UK_PACK_TILE(width, tile0, tile1, order, ...) \
  search_key(UK_OP_PACK, kPackType_##width | kOrder_##order, tile0, tile1, 0),
#define UK_UNPACK_TILE(width, tile0, tile1, order, ...) \
  search_key(UK_OP_UNPACK, kPackType_##width | kOrder_##order, tile0, tile1, 0),
#include "arch/tiles.inc"
};
constexpr size_t kFunctionRowCount = sizeof(kKeys) / sizeof(kKeys[0]);

// The rows of each hash of a key, as lists through `next`: every op call searches, and a scan of
// the table would cost a small one more than its work.
struct RowsByKey {
  static constexpr int kBucketBits = 12;
  static constexpr uint32_t kBuckets = 1 << kBucketBits, kEnd = UINT32_MAX;
  uint32_t first[kBuckets];
  uint32_t next[kFunctionRowCount];

  static constexpr uint32_t bucket(uint64_t key) {
    // Fibonacci hashing: the golden ratio's bits spread neighbouring shapes.
    return static_cast<uint32_t>(key * UINT64_C(0x9E3779B97F4A7C15) >> (64 - kBucketBits));
  }
};

constexpr RowsByKey index_rows() {
  RowsByKey rows = {};
  for (uint32_t& first : rows.first) first = RowsByKey::kEnd;
  for (uint32_t i = 0; i < kFunctionRowCount; ++i) {
    uint32_t& first = rows.first[RowsByKey::bucket(kKeys[i])];
    rows.next[i] = first;
    first = i;
  }
  return rows;
}
constexpr RowsByKey kRowsByKey = index_rows();

constexpr const IsaLevel* kRowLevels[] = {
#define UK_ROW_LEVEL(arch, isa) &kLevel_##arch##_##isa,
#define UK_MMT4D_TILE(lhs, rhs, out, m0, n0, k0, arch, isa, numerics) UK_ROW_LEVEL(arch, isa)
#define UK_PACK_TILE(width, tile0, tile1, order, arch, isa) UK_ROW_LEVEL(arch, isa)
#define UK_UNPACK_TILE UK_PACK_TILE
#include "arch/tiles.inc"
};

uk_mmt4d_strided_tile_fn* const kStridedTiles[] = {
#define UK_MMT4D_TILE(...) &UK_STRIDED_SYMBOL(UK_MMT4D_SYMBOL(__VA_ARGS__)),
#define UK_PACK_TILE(...) nullptr,
#define UK_UNPACK_TILE UK_PACK_TILE
#include "arch/tiles.inc"
};

const uk_tile_forms_t* const kTileForms[] = {
#define UK_MMT4D_TILE(...) &UK_FORMS_SYMBOL(UK_MMT4D_SYMBOL(__VA_ARGS__)),
#define UK_PACK_TILE(...) nullptr,
#define UK_UNPACK_TILE UK_PACK_TILE
#include "arch/tiles.inc"
};

const uk_tile_forms_t* forms_of_row(const uk_tile_row_t& row) {
  const auto i = static_cast<size_t>(&row - kRows);
  return i < kFunctionRowCount ? kTileForms[i] : nullptr;
}

bool has_features(const uint64_t* cpu_data, uint64_t features, uint64_t field7_features) {
  const uint64_t field0 = cpu_data ? cpu_data[0] : 0;
  const uint64_t field7 = cpu_data ? cpu_data[7] : 0;
  return (features & ~field0) == 0 && (field7_features & ~field7) == 0;
}

bool is_slow_on(const IsaLevel& level, const uint64_t* cpu_data) {
  return cpu_data && (cpu_data[7] & level.field7_slow) != 0;
}

// From 1 on; 0 where the CPU is slow at a feature of the level.
uint32_t rank_on(const IsaLevel& level, const uint64_t* cpu_data) {
  return is_slow_on(level, cpu_data) ? 0 : static_cast<uint32_t>(level.rank) + 1;
}

const IsaLevel* find_level(const char* name) {
  if (!name) return nullptr;
  for (const IsaLevel& level : kLevels) {
    size_t i = 0;
    while (level.name[i] != '\0' && level.name[i] == name[i]) ++i;
    if (level.name[i] == name[i]) return &level;
  }
  return nullptr;
}

}  // namespace

const Mmt4dType* find_mmt4d_type(uint32_t flags) {
  for (const Mmt4dType& type : kMmt4dTypes) {
    if (type.flag == (flags & UK_MMT4D_TYPE_MASK)) return &type;
  }
  return nullptr;
}

int pack_type_bits(uint32_t flags) {
  switch (flags & UK_PACK_TYPE_MASK) {
    case UK_PACK_TYPE_I4:
      return 4;
    case UK_PACK_TYPE_I8:
      return 8;
    case UK_PACK_TYPE_F16:
    case UK_PACK_TYPE_BF16:
    case UK_PACK_TYPE_I16:
      return 16;
    case UK_PACK_TYPE_F32:
    case UK_PACK_TYPE_I32:
      return 32;
    case UK_PACK_TYPE_F64:
      return 64;
    default:
      return 0;
  }
}

// A pack type in its row's terms; an mmt4d type is its own.
static uint32_t row_type(uint32_t op, uint32_t flags) {
  return op == UK_OP_MMT4D ? flags & UK_MMT4D_TYPE_MASK : pack_row_type(pack_type_bits(flags));
}

bool row_is_eligible(const uk_tile_row_t& row, uint32_t op, uint32_t flags,
                     const uint64_t* cpu_data) {
  if (row.op != op || (row.flags & 0xFFu) != row_type(op, flags)) return false;
  if (op == UK_OP_MMT4D) {
    const bool rounds_once = (row.flags & UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS) != 0;
    if (rounds_once && !(flags & UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS)) return false;
  } else if ((row.flags ^ flags) & UK_PACK_TRANSPOSE_INNER) {
    return false;
  }
  return has_features(cpu_data, row.features[0], row.features[7]);
}

const uk_tile_row_t* select_tile(uint32_t op, uint32_t flags, int32_t m0, int32_t n0, int32_t k0,
                                 const uint64_t* cpu_data) {
  const uint32_t order = op == UK_OP_MMT4D ? 0 : flags & UK_PACK_TRANSPOSE_INNER;
  const uint64_t key = search_key(op, row_type(op, flags) | order, m0, n0, k0);
  const uk_tile_row_t* best = nullptr;
  uint32_t best_rank = 0;
  for (uint32_t i = kRowsByKey.first[RowsByKey::bucket(key)]; i != RowsByKey::kEnd;
       i = kRowsByKey.next[i]) {
    if (kKeys[i] != key) continue;
    const uk_tile_row_t& row = kRows[i];
    if (!row_is_eligible(row, op, flags, cpu_data)) continue;
    // A row that rounds once is more exact than any that rounds each step, and does less work than
    // those that round in software, so where it is eligible it goes before the ISA's rank. That is
    // so beside instructions that round to f16 themselves too, though these are faster: callers who
    // prefer them do not permit to round once.
    const uint32_t rounds_once =
        op == UK_OP_MMT4D ? row.flags & UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS : 0;
    const uint32_t rank = rounds_once | rank_on(*kRowLevels[i], cpu_data);
    if (!best || rank > best_rank) {
      best = &row;
      best_rank = rank;
    }
  }
  return best;
}

const uk_tile_row_t* generic_mmt4d_row(uint32_t flags) {
  for (size_t i = kFunctionRowCount; i < kRowCount; ++i) {
    const bool is_type = kRows[i].flags == (flags & UK_MMT4D_TYPE_MASK);
    if (kRows[i].op == UK_OP_MMT4D && is_type) return &kRows[i];
  }
  return nullptr;
}

uk_mmt4d_strided_tile_fn* strided_tile_of_row(const uk_tile_row_t& row) {
  const auto i = static_cast<size_t>(&row - kRows);
  return i < kFunctionRowCount ? kStridedTiles[i] : nullptr;
}

const uk_tile_on_decoded_t* on_decoded_lhs_of_row(const uk_tile_row_t& row) {
  const uk_tile_forms_t* const forms = forms_of_row(row);
  return forms && forms->on_decoded_lhs.function ? &forms->on_decoded_lhs : nullptr;
}

const uk_tile_on_decoded_t* on_decoded_rhs_of_row(const uk_tile_row_t& row) {
  const uk_tile_forms_t* const forms = forms_of_row(row);
  return forms && forms->on_decoded_rhs.function ? &forms->on_decoded_rhs : nullptr;
}

uk_mmt4d_strided_tile_fn* tile_abreast_of_row(const uk_tile_row_t& row) {
  const uk_tile_forms_t* const forms = forms_of_row(row);
  return forms ? forms->abreast : nullptr;
}

bool gains_abreast_in_caches(const uk_tile_row_t& row) {
  const uk_tile_forms_t* const forms = forms_of_row(row);
  return forms && forms->abreast_in_caches;
}

bool row_is_slow(const uk_tile_row_t& row, const uint64_t* cpu_data) {
  const auto i = static_cast<size_t>(&row - kRows);
  return i < kFunctionRowCount && is_slow_on(*kRowLevels[i], cpu_data);
}

const VectorUnit& vector_unit_of_row(const uk_tile_row_t& row) {
  static constexpr VectorUnit kNone = {};
  const auto i = static_cast<size_t>(&row - kRows);
  return i < kFunctionRowCount ? kRowLevels[i]->vectors : kNone;
}

int least_of_levels(const uint64_t* cpu_data, int VectorUnit::*column) {
  int least = 0;
  for (const IsaLevel& level : kLevels) {
    const int value = level.vectors.*column;
    if (value == 0 || (least > 0 && least <= value)) continue;
    if (has_features(cpu_data, level.features, level.field7_features)) least = value;
  }
  return least > 0 ? least : 1;
}

// Nobody measured it where L2 is larger, or a core reads ahead by itself.
bool l3_is_far(const uint64_t* cpu_data) {
  return cpu_has_small_l2(cpu_data) && !cpu_reads_ahead(cpu_data) && !l3_feeds_tiles(cpu_data);
}

bool cpu_is_wide(const uint64_t* cpu_data) {
  for (const IsaLevel& level : kLevels) {
    if (level.vectors.wide && has_features(cpu_data, level.features, level.field7_features)) {
      return true;
    }
  }
  return false;
}

}  // namespace uk

extern "C" {

size_t uk_tile_count(void) { return uk::kRowCount; }

const uk_tile_row_t* uk_tile_at(size_t index) {
  return index < uk::kRowCount ? &uk::kRows[index] : nullptr;
}

const char* uk_isa_level_at(size_t index) {
  return index < uk::kLevelCount ? uk::kLevels[index].name : nullptr;
}

uk_status_t uk_cpu_level(const char* isa_name, uint64_t* cpu_data, size_t fields) {
  if (!cpu_data) return UK_STATUS_NULL_POINTER;
  if (fields < UK_CPU_DATA_FIELDS) return UK_STATUS_BAD_ARGUMENT;
  const uk::IsaLevel* level = uk::find_level(isa_name);
  if (!level) return UK_STATUS_UNKNOWN_LEVEL;
  for (size_t i = 0; i < fields; ++i) cpu_data[i] = 0;
  cpu_data[0] = level->features;
  cpu_data[7] = level->field7_features;
  return UK_STATUS_OK;
}

int uk_cpu_has_level(const char* isa_name, const uint64_t* cpu_data) {
  const uk::IsaLevel* level = uk::find_level(isa_name);
  return level && uk::has_features(cpu_data, level->features, level->field7_features) ? 1 : 0;
}

}  // extern "C"
