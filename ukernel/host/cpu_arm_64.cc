// uk_cpu_detect: what the CPU and the operating system let this process run.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <cpuinfo.h>
#include <sys/auxv.h>

#include "ukernel/ukernel.h"

namespace {

// What Linux reports of the features that the oldest cpuinfo in use (2022) does not. The bits are
// the kernel's; the C library's headers may be too old for them.
constexpr uint64_t kHwcapAsimdFhm = UINT64_C(1) << 23;
constexpr uint64_t kHwcap2I8mm = UINT64_C(1) << 13;
constexpr uint64_t kHwcap2Sme = UINT64_C(1) << 23;
constexpr uint64_t kHwcap2Sme2 = UINT64_C(1) << 37;

}  // namespace

extern "C" uk_status_t uk_cpu_detect(uint64_t* cpu_data, size_t fields) {
  if (!cpu_data) return UK_STATUS_NULL_POINTER;
  if (fields < UK_CPU_DATA_FIELDS) return UK_STATUS_BAD_ARGUMENT;
  if (!cpuinfo_initialize()) return UK_STATUS_CPU_UNKNOWN;
  const uint64_t hwcap = getauxval(AT_HWCAP), hwcap2 = getauxval(AT_HWCAP2);
  const struct {
    bool present;
    uint64_t bit;
  } features[] = {
      // cpuinfo goes first where it knows a feature: it mends the reports of kernels that forget
      // dot products, or see FP16 on only some of the cores.
      {cpuinfo_has_arm_neon_fp16_arith(), UK_CPU_ARM_64_FULLFP16},
      {cpuinfo_has_arm_neon_dot(), UK_CPU_ARM_64_DOTPROD},
      {cpuinfo_has_arm_bf16(), UK_CPU_ARM_64_BF16},
      {cpuinfo_has_arm_sve(), UK_CPU_ARM_64_SVE},
      {cpuinfo_has_arm_sve2(), UK_CPU_ARM_64_SVE2},
      {(hwcap & kHwcapAsimdFhm) != 0, UK_CPU_ARM_64_FP16FML},
      {(hwcap2 & kHwcap2I8mm) != 0, UK_CPU_ARM_64_I8MM},
      {(hwcap2 & kHwcap2Sme) != 0, UK_CPU_ARM_64_SME},
      {(hwcap2 & kHwcap2Sme2) != 0, UK_CPU_ARM_64_SME2},
  };
  for (size_t i = 0; i < fields; ++i) cpu_data[i] = 0;
  for (const auto& feature : features) {
    if (feature.present) cpu_data[0] |= feature.bit;
  }
  return UK_STATUS_OK;
}
