// Instead of the library's: a CPU with AMX beside avx512_vnni, if that is there.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "ukernel/ukernel.h"

extern "C" uk_status_t uk_cpu_detect(uint64_t* cpu_data, size_t fields) {
  const bool has_avx512_vnni =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni");
  const uk_status_t status = uk_cpu_level(has_avx512_vnni ? "amx_int8" : "sse2", cpu_data, fields);
  if (status == UK_STATUS_OK && has_avx512_vnni) cpu_data[0] |= UK_CPU_X86_64_AMXBF16;
  return status;
}
