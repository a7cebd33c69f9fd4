/* Prints the levels of the CPU at hand, one a line.
 *
 * Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE. */
#include <stdio.h>

#include "ukernel/ukernel.h"

int main(void) {
  uint64_t cpu[UK_CPU_DATA_FIELDS];
  if (uk_cpu_detect(cpu, UK_CPU_DATA_FIELDS)) return 1;
  for (size_t i = 0; uk_isa_level_at(i); ++i) {
    if (uk_cpu_has_level(uk_isa_level_at(i), cpu)) puts(uk_isa_level_at(i));
  }
  return 0;
}
