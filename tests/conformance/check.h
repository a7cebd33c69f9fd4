// The checks of one row, by op. Each returns an empty string or what is wrong.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_TESTS_CONFORMANCE_CHECK_H_
#define UKERNEL_TESTS_CONFORMANCE_CHECK_H_

#include <string>
#include <vector>

#include "tests/conformance/guard.h"
#include "ukernel/ukernel.h"

namespace uk_conformance {

std::string check_mmt4d(const uk_tile_row_t& row);
std::string check_copy(const uk_tile_row_t& row);  // pack and unpack

// Why no tile can be what the row's columns say, empty if one can.
std::string wrong_columns(const uk_tile_row_t& row);

// Width of the elements that a pack or unpack row moves, 0 if its type is unknown.
int width_of(const uk_tile_row_t& row);

// A row of the scalar path has no shape: it is run with this one.
uk_tile_sizes_t shape_of(const uk_tile_row_t& row);

// Placements of several buffers at once, whose elements have these sizes: all flush at the start,
// all flush at the end; for a sweep, every combination of sides, and of each the one flush against
// the unmapped pages and three that are off by elements, so that no alignment is relied on.
std::vector<std::vector<Placement>> placements(const std::vector<int64_t>& element_bytes,
                                               bool sweep);
std::string describe(const GuardedBuffer& buffer, Placement placement);

}  // namespace uk_conformance

#endif  // UKERNEL_TESTS_CONFORMANCE_CHECK_H_
