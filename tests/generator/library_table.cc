// Prints what the library says, for the tests of the Python that says the same:
//   library_table rows                every row of the table with a tile function, one a line
//   library_table on_decoded_lhs      the symbols of those that have a function for it, one a line
//   library_table on_decoded_rhs      likewise
//   library_table abreast             likewise for several RHS panels at once
//   library_table queries             answers "<CPU> <type> <M> <N> <K> <m0> <n0> <k0> <skip>", the
//                                     CPU being
//                                     "<level>[+<level>][+slow_avx512bf16][+reads_ahead]"
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <cinttypes>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "row_name.h"
#include "ukernel/internal.h"

namespace {

struct Type {
  const char* name;
  uint32_t flag;
};
constexpr Type kTypes[] = {
#define UK_MMT4D_TYPE(lhs, rhs, out, FLAG, ...) {#lhs #rhs #out, UK_MMT4D_TYPE_##FLAG},
#include "ukernel/mmt4d_types.inc"
};

std::string type_name(const uk_tile_row_t& row) {
  if (row.op == UK_OP_MMT4D) {
    for (const Type& type : kTypes) {
      if (type.flag == (row.flags & UK_MMT4D_TYPE_MASK)) return type.name;
    }
  }
  switch (row.flags & UK_PACK_TYPE_MASK) {
    case UK_PACK_TYPE_I4:
      return "x4";
    case UK_PACK_TYPE_I8:
      return "x8";
    case UK_PACK_TYPE_I16:
      return "x16";
    case UK_PACK_TYPE_I32:
      return "x32";
    case UK_PACK_TYPE_F64:
      return "x64";
    default:
      return "unknown";
  }
}

void print_rows() {
  constexpr const char* kOps[] = {"", "mmt4d", "pack", "unpack"};
  constexpr const char* kOrigins[] = {"", "hand", "generated"};
  for (size_t i = 0; i < uk_tile_count(); ++i) {
    const uk_tile_row_t& row = *uk_tile_at(i);
    if (row.origin == UK_ORIGIN_GENERIC) continue;
    const bool is_mmt4d = row.op == UK_OP_MMT4D;
    const uint32_t variant =
        is_mmt4d ? UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS : UK_PACK_TRANSPOSE_INNER;
    std::printf("%s %s %s %dx%dx%d %s %s %s %s %d %" PRIu64 " %" PRIu64 "\n", row.symbol,
                kOps[row.op], type_name(row).c_str(), row.m0, row.n0, row.k0, row.arch, row.isa,
                uk_conformance::numerics_name(row.numerics).c_str(), kOrigins[row.origin],
                (row.flags & variant) != 0, row.features[0], row.features[7]);
  }
}

void print_tiles_with(bool has_form(const uk_tile_row_t&)) {
  for (size_t i = 0; i < uk_tile_count(); ++i) {
    const uk_tile_row_t& row = *uk_tile_at(i);
    if (has_form(row)) std::printf("%s\n", row.symbol);
  }
}

constexpr struct {
  const char* mode;
  bool (*has)(const uk_tile_row_t&);
} kForms[] = {
    {"on_decoded_lhs",
     [](const uk_tile_row_t& row) { return uk::on_decoded_lhs_of_row(row) != nullptr; }},
    {"on_decoded_rhs",
     [](const uk_tile_row_t& row) { return uk::on_decoded_rhs_of_row(row) != nullptr; }},
    {"abreast", [](const uk_tile_row_t& row) { return uk::gains_abreast_in_caches(row); }},
};

// The bits of field 7 that the query reads and that are no level's.
constexpr struct {
  const char* name;
  uint64_t bit;
} kFurther[] = {{"slow_avx512bf16", UK_CPU_FIELD7_X86_64_SLOW_AVX512BF16},
                {"reads_ahead", UK_CPU_FIELD7_X86_64_READS_AHEAD}};

bool read_cpu(const std::string& levels, uint64_t* cpu_data) {
  std::istringstream names(levels);
  for (std::string name; std::getline(names, name, '+');) {
    uint64_t further = 0;
    for (const auto& feature : kFurther) further |= feature.name == name ? feature.bit : 0;
    cpu_data[7] |= further;
    if (further) continue;
    uint64_t level[UK_CPU_DATA_FIELDS];
    if (uk_cpu_level(name.c_str(), level, UK_CPU_DATA_FIELDS) != UK_STATUS_OK) return false;
    for (int i = 0; i < UK_CPU_DATA_FIELDS; ++i) cpu_data[i] |= level[i];
  }
  return true;
}

std::string answer(const std::string& line) {
  std::istringstream words(line);
  std::string levels, type_name;
  uk_index_t m, n, k;
  uk_tile_sizes_t fixed, sizes;
  bool skip;
  words >> levels >> type_name >> m >> n >> k >> fixed.m0 >> fixed.n0 >> fixed.k0 >> skip;
  uint64_t cpu_data[UK_CPU_DATA_FIELDS] = {};
  if (!words || !read_cpu(levels, cpu_data)) return "not a query: " + line;
  uk_mmt4d_params_t call = {};
  call.struct_size = sizeof(call);
  call.cpu_data = cpu_data;
  call.flags = skip ? UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS : 0;
  for (const Type& type : kTypes) {
    if (type.name == type_name) call.flags |= type.flag;
  }
  const uk_status_t status = uk_query_tile_sizes(call.flags, m, n, k, &fixed, cpu_data, &sizes);
  if (status != UK_STATUS_OK) return "error";
  call.m0 = sizes.m0;
  call.n0 = sizes.n0;
  call.k0 = sizes.k0;
  const uk_tile_row_t* row = nullptr;
  if (uk_mmt4d_info(&call, &row) != UK_STATUS_OK) return "not served";
  return std::to_string(sizes.m0) + "x" + std::to_string(sizes.n0) + "x" +
         std::to_string(sizes.k0) + " " + row->symbol;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 2 ? argv[1] : "";
  for (const auto& form : kForms) {
    if (form.mode == mode) {
      print_tiles_with(form.has);
      return 0;
    }
  }
  if (mode == "rows") {
    print_rows();
  } else if (mode == "queries") {
    for (std::string line; std::getline(std::cin, line);) std::cout << answer(line) << "\n";
  } else {
    std::cerr
        << "usage: library_table rows | on_decoded_lhs | on_decoded_rhs | abreast | queries\n";
    return 2;
  }
  return 0;
}
