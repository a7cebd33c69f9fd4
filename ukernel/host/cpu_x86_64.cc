// uk_cpu_detect: what the CPU and the operating system let this process run.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <cpuid.h>
#include <cpuinfo.h>
#ifdef __linux__
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "ukernel/ukernel.h"

namespace {

// Features that the oldest cpuinfo in use (2022) does not report.
struct CpuidFeatures {
  bool avx512fp16, amx_tile, amx_int8, amx_bf16, avx_vnni;
};

uint64_t read_xcr0() {
  uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

CpuidFeatures read_cpuid() {
  constexpr uint32_t kOsxsave = 1u << 27;
  constexpr uint64_t kAvxState = 0x6, kAvx512State = 0xE6, kAmxState = 0x60000;
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  CpuidFeatures found = {};
  // Registers that the operating system does not save are not usable, whatever CPUID says.
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & kOsxsave)) return found;
  const uint64_t xcr0 = read_xcr0();
  const bool avx = (xcr0 & kAvxState) == kAvxState;
  const bool avx512 = (xcr0 & kAvx512State) == kAvx512State;
  const bool amx = (xcr0 & kAmxState) == kAmxState;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return found;
  const uint32_t last_subleaf = eax;
  found.amx_bf16 = amx && (edx >> 22 & 1);
  found.avx512fp16 = avx512 && (edx >> 23 & 1);
  found.amx_tile = amx && (edx >> 24 & 1);
  found.amx_int8 = amx && (edx >> 25 & 1);
  if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) {
    found.avx_vnni = avx && (eax >> 4 & 1);
  }
  return found;
}

// Measured on Emerald Rapids. AVX512-FP16 tells it and its like from Cooper Lake, which nobody
// measured.
bool has_slow_bf16_dots(const CpuidFeatures& found) {
  return found.avx512fp16 && cpuinfo_has_x86_avx512bf16() &&
         cpuinfo_get_core(0)->vendor == cpuinfo_vendor_intel;
}

// Measured on Zen 3, which has no AVX-512; what cpuinfo takes for one may be a later core.
bool reads_ahead() {
  return cpuinfo_get_core(0)->uarch == cpuinfo_uarch_zen3 && !cpuinfo_has_x86_avx512f();
}

// The KiB of L2, 0 if unknown. Of some virtual machines of AMD cpuinfo finds no caches; both
// vendors have a leaf for it that others do not need, where one of Cascade Lake said 256 for 1024.
unsigned l2_kib() {
  const cpuinfo_cache* const l2 = cpuinfo_get_l2_cache(0);
  if (l2 && l2->size > 0) return l2->size >> 10;
  unsigned eax, ebx, ecx = 0, edx;
  return __get_cpuid(0x80000006, &eax, &ebx, &ecx, &edx) ? ecx >> 16 : 0;
}

// The larger blocks of uk_mmt4d were measured with 2 MiB of Intel's, and with 1 MiB of AMD's, where
// L3 is faster. Zen 3 with 512 KiB needs smaller ones, and so does Cascade Lake with 1 MiB.
bool has_small_l2() {
  const bool is_intel = cpuinfo_get_core(0)->vendor == cpuinfo_vendor_intel;
  const unsigned kib = l2_kib();
  return 0 < kib && kib < (is_intel ? 2048 : 1024);
}

// Linux gives a process the registers of AMX, for all its threads, when it asks for them.
bool asks_for_amx() {
#ifdef __linux__
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  const int before = errno;
  const bool permitted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  errno = before;
  return permitted;
#else
  return false;
#endif
}

}  // namespace

extern "C" uk_status_t uk_cpu_detect(uint64_t* cpu_data, size_t fields) {
  if (!cpu_data) return UK_STATUS_NULL_POINTER;
  if (fields < UK_CPU_DATA_FIELDS) return UK_STATUS_BAD_ARGUMENT;
  if (!cpuinfo_initialize()) return UK_STATUS_CPU_UNKNOWN;
  const CpuidFeatures cpuid = read_cpuid();
  const struct {
    bool present;
    uint64_t bit;
  } features[] = {
      {cpuinfo_has_x86_sse3(), UK_CPU_X86_64_SSE3},
      {cpuinfo_has_x86_ssse3(), UK_CPU_X86_64_SSSE3},
      {cpuinfo_has_x86_sse4_1(), UK_CPU_X86_64_SSE41},
      {cpuinfo_has_x86_sse4_2(), UK_CPU_X86_64_SSE42},
      {cpuinfo_has_x86_avx(), UK_CPU_X86_64_AVX},
      {cpuinfo_has_x86_fma3(), UK_CPU_X86_64_FMA},
      {cpuinfo_has_x86_f16c(), UK_CPU_X86_64_F16C},
      {cpuinfo_has_x86_avx2(), UK_CPU_X86_64_AVX2},
      {cpuinfo_has_x86_avx512f(), UK_CPU_X86_64_AVX512F},
      {cpuinfo_has_x86_avx512cd(), UK_CPU_X86_64_AVX512CD},
      {cpuinfo_has_x86_avx512vl(), UK_CPU_X86_64_AVX512VL},
      {cpuinfo_has_x86_avx512dq(), UK_CPU_X86_64_AVX512DQ},
      {cpuinfo_has_x86_avx512bw(), UK_CPU_X86_64_AVX512BW},
      {cpuinfo_has_x86_avx512ifma(), UK_CPU_X86_64_AVX512IFMA},
      {cpuinfo_has_x86_avx512vbmi(), UK_CPU_X86_64_AVX512VBMI},
      {cpuinfo_has_x86_avx512vnni(), UK_CPU_X86_64_AVX512VNNI},
      {cpuinfo_has_x86_avx512vbmi2(), UK_CPU_X86_64_AVX512VBMI2},
      {cpuinfo_has_x86_avx512bitalg(), UK_CPU_X86_64_AVX512BITALG},
      {cpuinfo_has_x86_avx512bf16(), UK_CPU_X86_64_AVX512BF16},
      {cpuid.avx512fp16, UK_CPU_X86_64_AVX512FP16},
      {cpuid.amx_tile, UK_CPU_X86_64_AMXTILE},
      {cpuid.amx_int8, UK_CPU_X86_64_AMXINT8},
      {cpuid.amx_bf16, UK_CPU_X86_64_AMXBF16},
  };
  for (size_t i = 0; i < fields; ++i) cpu_data[i] = 0;
  for (const auto& feature : features) {
    if (feature.present) cpu_data[0] |= feature.bit;
  }
  if (cpuid.avx_vnni) cpu_data[7] |= UK_CPU_FIELD7_X86_64_AVXVNNI;
  if (cpuid.amx_tile && asks_for_amx()) cpu_data[7] |= UK_CPU_FIELD7_X86_64_AMX_PERMITTED;
  if (has_slow_bf16_dots(cpuid)) cpu_data[7] |= UK_CPU_FIELD7_X86_64_SLOW_AVX512BF16;
  if (reads_ahead()) cpu_data[7] |= UK_CPU_FIELD7_X86_64_READS_AHEAD;
  if (has_small_l2()) cpu_data[7] |= UK_CPU_FIELD7_X86_64_SMALL_L2;
  return UK_STATUS_OK;
}
