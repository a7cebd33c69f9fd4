// Rows from text: the grammar of symbols, and the names of columns.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_TESTS_CONFORMANCE_ROW_NAME_H_
#define UKERNEL_TESTS_CONFORMANCE_ROW_NAME_H_

#include <cstdint>
#include <string>

#include "ukernel/ukernel.h"

namespace uk_conformance {

// A row's columns as text; empty where not said.
//
//   uk_mmt4d_tile_<type>_<M0>x<N0>x<K0>_<arch>_<isa>[_f32acc]
//   uk_pack_tile_<type>_<tile0>x<tile1>[_t]_<arch>_<isa>      and uk_unpack_tile_ alike
struct RowName {
  std::string op, type, shape, order, arch, isa, numerics;
};

// Whether the symbol follows the grammar. numerics is then what its type, ISA and suffix imply.
bool parse_symbol(const std::string& symbol, RowName* name);

// Fills op, flags, shape, numerics and features. Returns an empty string or what is wrong.
std::string fill_row(const RowName& name, uk_tile_row_t* row);

// The lower-case tail of UK_NUMERICS_*; empty if there is none.
std::string numerics_name(uint32_t numerics);
std::string all_numerics_names();

}  // namespace uk_conformance

#endif  // UKERNEL_TESTS_CONFORMANCE_ROW_NAME_H_
