// One row: whether it makes sense, whether this CPU can run it, whether it is right.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "tests/conformance/check.h"

#include <cstdio>

#include "tests/conformance/matmul.h"
#include "ukernel/ukernel_conformance.h"

namespace uk_conformance {
namespace {

// What cpu_data lacks of the row's features: the level by name, or the bits. Empty if nothing.
std::string missing_features(const uk_tile_row_t& row, const uint64_t* cpu_data) {
  std::string bits;
  for (int field = 0; field < UK_CPU_DATA_FIELDS; ++field) {
    const uint64_t missing = row.features[field] & ~(cpu_data ? cpu_data[field] : 0);
    if (missing == 0) continue;
    bits +=
        (bits.empty() ? "field " : ", field ") + std::to_string(field) + ": " + hex(missing, 64);
  }
  if (bits.empty()) return "";
  const bool named = row.isa && !uk_cpu_has_level(row.isa, cpu_data);
  return named ? "needs " + std::string(row.isa) : "needs CPU features (" + bits + ")";
}

}  // namespace

int width_of(const uk_tile_row_t& row) {
  switch (row.flags & UK_PACK_TYPE_MASK) {
    case UK_PACK_TYPE_I4:
      return 4;
    case UK_PACK_TYPE_I8:
      return 8;
    case UK_PACK_TYPE_I16:
    case UK_PACK_TYPE_F16:
    case UK_PACK_TYPE_BF16:
      return 16;
    case UK_PACK_TYPE_I32:
    case UK_PACK_TYPE_F32:
      return 32;
    case UK_PACK_TYPE_F64:
      return 64;
    default:
      return 0;
  }
}

uk_tile_sizes_t shape_of(const uk_tile_row_t& row) {
  if (row.function) return {row.m0, row.n0, row.k0};
  // Odd, so that no tile function serves it; four-bit elements need an even innermost size.
  if (row.op == UK_OP_MMT4D) return {3, 5, 2};
  return {3, width_of(row) == 4 ? 6 : 5, 0};
}

std::string wrong_columns(const uk_tile_row_t& row) {
  if (!row.function && row.origin != UK_ORIGIN_GENERIC) return "the row has no function";
  const uk_tile_sizes_t shape = shape_of(row);
  if (row.op == UK_OP_MMT4D) {
    const MatmulType* type = find_matmul_type(row.flags);
    if (!type) return "the flags name no mmt4d type";
    if (!numerics_fit(*type, row.numerics)) {
      return std::string(type->name) + " cannot have the row's numerics";
    }
    if (shape.m0 <= 0 || shape.n0 <= 0 || shape.k0 <= 0) return "the shape must be positive";
    const bool four_bits = bits_of(type->lhs) == 4 || bits_of(type->rhs) == 4;
    if (four_bits && shape.k0 % 2 != 0) return "four-bit operands need an even K0";
    return "";
  }
  if (row.op != UK_OP_PACK && row.op != UK_OP_UNPACK) return "the row names no op";
  if (width_of(row) == 0) return "the flags name no pack type";
  if (shape.m0 <= 0 || shape.n0 <= 0) return "the shape must be positive";
  if (width_of(row) == 4 && shape.n0 % 2 != 0) return "four-bit elements need an even tile1";
  return "";
}

std::vector<std::vector<Placement>> placements(const std::vector<int64_t>& element_bytes,
                                               bool sweep) {
  const int buffers = static_cast<int>(element_bytes.size());
  const int last = (1 << buffers) - 1;
  std::vector<std::vector<Placement>> result;
  for (int sides = 0; sides <= last; ++sides) {
    if (!sweep && sides != 0 && sides != last) continue;
    for (int elements = 0; elements < (sweep ? 4 : 1); ++elements) {
      result.emplace_back();
      for (int b = 0; b < buffers; ++b) {
        const auto edge = sides >> b & 1 ? Placement::end : Placement::start;
        result.back().push_back({edge, elements * element_bytes[static_cast<size_t>(b)]});
      }
    }
  }
  return result;
}

std::string describe(const GuardedBuffer& buffer, Placement placement) {
  const char* edge = placement.edge == Placement::start ? " page before" : " page after";
  return std::string(buffer.name()) + ": " + std::to_string(buffer.size()) + " bytes, " +
         (placement.offset == 0 ? "flush against the unmapped"
                                : std::to_string(placement.offset) + " bytes from the unmapped") +
         edge;
}

}  // namespace uk_conformance

extern "C" uk_conformance_result_t uk_conformance_check(const uk_tile_row_t* row,
                                                        const uint64_t* cpu_data, char* report,
                                                        size_t report_size) {
  using namespace uk_conformance;
  uk_conformance_result_t result = UK_CONFORMANCE_PASS;
  std::string text = wrong_columns(*row);
  if (!text.empty()) {
    result = UK_CONFORMANCE_FAIL;
  } else if (!(text = missing_features(*row, cpu_data)).empty()) {
    result = UK_CONFORMANCE_SKIP;
  } else {
    FaultCatcher::set_subject(row->symbol);
    text = row->op == UK_OP_MMT4D ? check_mmt4d(*row) : check_copy(*row);
    if (!text.empty()) result = UK_CONFORMANCE_FAIL;
  }
  if (report && report_size > 0) std::snprintf(report, report_size, "%s", text.c_str());
  return result;
}
