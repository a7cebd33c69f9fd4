// The CPU that checks may assume.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_TESTS_CONFORMANCE_CPU_H_
#define UKERNEL_TESTS_CONFORMANCE_CPU_H_

#include <string>

#include "ukernel/ukernel.h"

namespace uk_conformance {

// What this machine has, and of that only what the level needs if one is named. Returns an empty
// string or what is wrong.
inline std::string detect_cpu(const char* level, uint64_t (&cpu_data)[UK_CPU_DATA_FIELDS]) {
  const uk_status_t status = uk_cpu_detect(cpu_data, UK_CPU_DATA_FIELDS);
  if (status != UK_STATUS_OK) return uk_status_string(status);
  if (!level) return "";
  uint64_t permitted[UK_CPU_DATA_FIELDS];
  if (uk_cpu_level(level, permitted, UK_CPU_DATA_FIELDS) != UK_STATUS_OK) {
    return "unknown ISA level '" + std::string(level) + "'";
  }
  for (int i = 0; i < UK_CPU_DATA_FIELDS; ++i) cpu_data[i] &= permitted[i];
  return "";
}

}  // namespace uk_conformance

#endif  // UKERNEL_TESTS_CONFORMANCE_CPU_H_
