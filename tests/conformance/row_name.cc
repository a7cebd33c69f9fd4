// Rows from text: the grammar of symbols, and the names of columns.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "tests/conformance/row_name.h"

#include <regex>

#include "tests/conformance/matmul.h"

namespace uk_conformance {
namespace {

constexpr struct {
  const char* name;
  uint32_t value;
} kNumerics[] = {{"exact", UK_NUMERICS_EXACT},
                 {"fma_chain", UK_NUMERICS_FMA_CHAIN},
                 {"mul_add_chain", UK_NUMERICS_MUL_ADD_CHAIN},
                 {"round_each_step", UK_NUMERICS_ROUND_EACH_STEP},
                 {"f32acc", UK_NUMERICS_F32ACC},
                 {"bf16_dot", UK_NUMERICS_BF16_DOT},
                 {"bf16_dot_f32acc", UK_NUMERICS_BF16_DOT_F32ACC}};

constexpr struct {
  const char* name;
  uint32_t type;
} kWidths[] = {{"x4", UK_PACK_TYPE_I4},
               {"x8", UK_PACK_TYPE_I8},
               {"x16", UK_PACK_TYPE_I16},
               {"x32", UK_PACK_TYPE_I32},
               {"x64", UK_PACK_TYPE_F64}};

std::string implied_numerics(const MatmulType& type, const std::string& isa, bool f32acc) {
  const bool dots = type.lhs == Element::bf16 && isa.find("bf16") != std::string::npos;
  if (f32acc) return dots ? "bf16_dot_f32acc" : "f32acc";
  if (!is_float(type.out)) return "exact";
  if (bits_of(type.out) == 16) return "round_each_step";
  if (dots) return "bf16_dot";
  // SSE2 has no FMA; of two f16 it needs none, their product is exact.
  return isa == "sse2" && type.lhs != Element::f16 ? "mul_add_chain" : "fma_chain";
}

// "16x32x1" into as many sizes as the op has.
bool parse_shape(const std::string& text, int count, int32_t* sizes) {
  static const std::regex grammar("[1-9][0-9]{0,4}(x[1-9][0-9]{0,4})*");
  if (!std::regex_match(text, grammar)) return false;
  size_t begin = 0;
  for (int i = 0; i < count; ++i) {
    const size_t end = text.find('x', begin);
    if ((end == std::string::npos) != (i == count - 1)) return false;
    sizes[i] = std::stoi(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return true;
}

}  // namespace

bool parse_symbol(const std::string& symbol, RowName* name) {
  static const std::regex mmt4d(
      "uk_(mmt4d)_tile_([a-z0-9]+)_([0-9]+x[0-9]+x[0-9]+)_"
      "(x86_64|arm_64|riscv_64)_([a-z0-9_]+?)(_f32acc)?");
  static const std::regex copy(
      "uk_(pack|unpack)_tile_(x[0-9]+)_([0-9]+x[0-9]+)(_t)?_"
      "(x86_64|arm_64|riscv_64)_([a-z0-9_]+)");
  std::smatch match;
  if (std::regex_match(symbol, match, mmt4d)) {
    const MatmulType* type = find_matmul_type(match[2].str());
    const std::string isa = match[5];
    *name = {match[1],
             match[2],
             match[3],
             "",
             match[4],
             isa,
             type ? implied_numerics(*type, isa, match[6].matched) : ""};
    return true;
  }
  if (!std::regex_match(symbol, match, copy)) return false;
  *name = {match[1], match[2], match[3], match[4].matched ? "transposed" : "straight",
           match[5], match[6], "exact"};
  return true;
}

std::string fill_row(const RowName& name, uk_tile_row_t* row) {
  int32_t sizes[3] = {0, 0, 0};
  if (name.op == "mmt4d") {
    row->op = UK_OP_MMT4D;
    const MatmulType* type = find_matmul_type(name.type);
    if (!type) return "unknown mmt4d type '" + name.type + "'";
    row->flags = type->flag;
    if (!parse_shape(name.shape, 3, sizes)) return "bad shape '" + name.shape + "', not M0xN0xK0";
    if (!name.order.empty()) return "an order is for pack and unpack";
    const std::string numerics =
        name.numerics.empty() ? implied_numerics(*type, name.isa, false) : name.numerics;
    row->numerics = 0;
    for (const auto& known : kNumerics) {
      if (numerics == known.name) row->numerics = known.value;
    }
    if (row->numerics == 0) return "unknown numerics '" + numerics + "'";
    if (row->numerics == UK_NUMERICS_F32ACC || row->numerics == UK_NUMERICS_BF16_DOT_F32ACC) {
      row->flags |= UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS;
    }
  } else if (name.op == "pack" || name.op == "unpack") {
    row->op = name.op == "pack" ? UK_OP_PACK : UK_OP_UNPACK;
    row->flags = 0;
    for (const auto& width : kWidths) {
      if (name.type == width.name) row->flags = width.type;
    }
    if (row->flags == 0) return "unknown " + name.op + " type '" + name.type + "'";
    if (!parse_shape(name.shape, 2, sizes)) return "bad shape '" + name.shape + "', not T0xT1";
    if (name.order == "transposed") {
      row->flags |= UK_PACK_TRANSPOSE_INNER;
    } else if (!name.order.empty() && name.order != "straight") {
      return "unknown order '" + name.order + "'";
    }
    if (!name.numerics.empty() && name.numerics != "exact") return "copies are exact";
    row->numerics = UK_NUMERICS_EXACT;
  } else {
    return "unknown op '" + name.op + "'";
  }
  row->m0 = sizes[0];
  row->n0 = sizes[1];
  row->k0 = sizes[2];
  // A level that this build does not know needs nothing that can be checked.
  uint64_t features[UK_CPU_DATA_FIELDS] = {};
  if (uk_cpu_level(name.isa.c_str(), features, UK_CPU_DATA_FIELDS) == UK_STATUS_OK) {
    for (int i = 0; i < UK_CPU_DATA_FIELDS; ++i) row->features[i] = features[i];
  }
  return "";
}

std::string numerics_name(uint32_t numerics) {
  for (const auto& known : kNumerics) {
    if (known.value == numerics) return known.name;
  }
  return "";
}

std::string all_numerics_names() {
  std::string names;
  for (const auto& known : kNumerics)
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  return names;
}

}  // namespace uk_conformance
