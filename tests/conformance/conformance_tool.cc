// The standalone tool: this library's own table, or a function of a shared object.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <vector>

#include "ukernel/ukernel_conformance.h"

int main(int argc, char** argv) {
  std::vector<uk_tile_row_t> rows;
  for (size_t i = 0; i < uk_tile_count(); ++i) rows.push_back(*uk_tile_at(i));
  return uk_conformance_main(rows.data(), rows.size(), argc, argv);
}
