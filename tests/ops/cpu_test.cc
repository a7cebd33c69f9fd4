// CPU levels, the detection of what this machine has, status texts.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/ops/harness.h"

namespace uk_test {
namespace {

constexpr uint64_t kMark = UINT64_C(0x5A5A5A5A5A5A5A5A);

TEST(CpuLevel, NamesAreDistinctAndEnd) {
  const std::vector<std::string> names = level_names();
  EXPECT_FALSE(names.empty());
  EXPECT_EQ(names.size(), std::set<std::string>(names.begin(), names.end()).size());
  EXPECT_EQ(nullptr, uk_isa_level_at(names.size()));
  EXPECT_EQ(nullptr, uk_isa_level_at(SIZE_MAX));
}

TEST(CpuLevel, HasItselfAndTheBaseline) {
  const std::string baseline = level_names().front();
  for (const std::string& name : level_names()) {
    const CpuData cpu = level_cpu_data(name);
    EXPECT_EQ(1, uk_cpu_has_level(name.c_str(), cpu.data())) << name;
    EXPECT_EQ(1, uk_cpu_has_level(baseline.c_str(), cpu.data())) << name;
    EXPECT_EQ(name == baseline, uk_cpu_has_level(name.c_str(), nullptr) == 1) << name;
  }
}

// Drop any one feature that a level needs, and the level is gone.
TEST(CpuLevel, NeedsEachOfItsFeatures) {
  for (const std::string& name : level_names()) {
    const CpuData level = level_cpu_data(name);
    for (size_t field = 0; field < level.size(); ++field) {
      for (int bit = 0; bit < 64; ++bit) {
        const uint64_t mask = UINT64_C(1) << bit;
        if (!(level[field] & mask)) continue;
        CpuData cpu;
        cpu.fill(~UINT64_C(0));
        cpu[field] &= ~mask;
        EXPECT_EQ(0, uk_cpu_has_level(name.c_str(), cpu.data())) << name << " bit " << bit;
      }
    }
  }
}

TEST(CpuLevel, LevelsAreWhatTheyAreNamedAfter) {
  const struct {
    const char* name;
    uint64_t field0, field7;
  } levels[] = {
#if defined(__x86_64__)
#define AVX2_FMA (UK_CPU_X86_64_AVX | UK_CPU_X86_64_AVX2 | UK_CPU_X86_64_FMA | UK_CPU_X86_64_F16C)
#define AVX512_BASE                                                                     \
  (AVX2_FMA | UK_CPU_X86_64_AVX512F | UK_CPU_X86_64_AVX512CD | UK_CPU_X86_64_AVX512VL | \
   UK_CPU_X86_64_AVX512DQ | UK_CPU_X86_64_AVX512BW)
    {"sse2", 0, 0},
    {"avx2_fma", AVX2_FMA, 0},
    {"avx_vnni", AVX2_FMA, UK_CPU_FIELD7_X86_64_AVXVNNI},
    {"avx512_base", AVX512_BASE, 0},
    {"avx512_vnni", AVX512_BASE | UK_CPU_X86_64_AVX512VNNI, 0},
    {"avx512_bf16", AVX512_BASE | UK_CPU_X86_64_AVX512BF16, 0},
    {"avx512_fp16", AVX512_BASE | UK_CPU_X86_64_AVX512FP16, 0},
    {"amx_int8",
     AVX512_BASE | UK_CPU_X86_64_AVX512VNNI | UK_CPU_X86_64_AMXTILE | UK_CPU_X86_64_AMXINT8,
     UK_CPU_FIELD7_X86_64_AMX_PERMITTED},
    {"amx_bf16", AVX512_BASE | UK_CPU_X86_64_AMXTILE | UK_CPU_X86_64_AMXBF16,
     UK_CPU_FIELD7_X86_64_AMX_PERMITTED},
#undef AVX2_FMA
#undef AVX512_BASE
#elif defined(__aarch64__)
    {"neon", 0, 0},
    {"fullfp16", UK_CPU_ARM_64_FULLFP16, 0},
    {"fp16fml", UK_CPU_ARM_64_FULLFP16 | UK_CPU_ARM_64_FP16FML, 0},
    {"bf16", UK_CPU_ARM_64_BF16, 0},
    {"dotprod", UK_CPU_ARM_64_DOTPROD, 0},
    {"i8mm", UK_CPU_ARM_64_I8MM, 0},
#endif
  };
  EXPECT_EQ(std::end(levels) - std::begin(levels), std::ptrdiff_t(level_names().size()));
  int rank = -1;
  for (const auto& level : levels) {
    SCOPED_TRACE(level.name);
    EXPECT_GT(level_rank(level.name), rank) << "ranks rise in this order";
    rank = level_rank(level.name);
    CpuData expected = {};
    expected[0] = level.field0;
    expected[7] = level.field7;
    EXPECT_EQ(expected, level_cpu_data(level.name));
  }
}

TEST(CpuLevel, ClearsFieldsItDoesNotKnow) {
  std::array<uint64_t, UK_CPU_DATA_FIELDS + 3> cpu;
  cpu.fill(kMark);
  ASSERT_EQ(UK_STATUS_OK, uk_cpu_level(level_names().back().c_str(), cpu.data(), cpu.size()));
  for (size_t i = UK_CPU_DATA_FIELDS; i < cpu.size(); ++i) EXPECT_EQ(0u, cpu[i]);
}

TEST(CpuLevel, RefusesBadArguments) {
  CpuData cpu;
  cpu.fill(kMark);
  const CpuData before = cpu;
  const std::string known = level_names().back();
  EXPECT_EQ(UK_STATUS_NULL_POINTER, uk_cpu_level(known.c_str(), nullptr, cpu.size()));
  EXPECT_EQ(UK_STATUS_BAD_ARGUMENT, uk_cpu_level(known.c_str(), cpu.data(), cpu.size() - 1));
  EXPECT_EQ(UK_STATUS_BAD_ARGUMENT, uk_cpu_level(known.c_str(), cpu.data(), 0));
  const std::string prefix = known.substr(0, known.size() - 1), longer = known + "x";
  for (const char* name : {"", "generic", "AVX2_FMA", prefix.c_str(), longer.c_str()}) {
    EXPECT_EQ(UK_STATUS_UNKNOWN_LEVEL, uk_cpu_level(name, cpu.data(), cpu.size())) << name;
    EXPECT_EQ(0, uk_cpu_has_level(name, cpu.data())) << name;
  }
  EXPECT_EQ(UK_STATUS_UNKNOWN_LEVEL, uk_cpu_level(nullptr, cpu.data(), cpu.size()));
  EXPECT_EQ(0, uk_cpu_has_level(nullptr, cpu.data()));
  EXPECT_EQ(before, cpu);
}

TEST(CpuDetect, RefusesBadArguments) {
  CpuData cpu;
  cpu.fill(kMark);
  const CpuData before = cpu;
  EXPECT_EQ(UK_STATUS_NULL_POINTER, uk_cpu_detect(nullptr, UK_CPU_DATA_FIELDS));
  EXPECT_EQ(UK_STATUS_BAD_ARGUMENT, uk_cpu_detect(cpu.data(), UK_CPU_DATA_FIELDS - 1));
  EXPECT_EQ(UK_STATUS_BAD_ARGUMENT, uk_cpu_detect(cpu.data(), 0));
  EXPECT_EQ(before, cpu);
}

TEST(CpuDetect, IsRepeatableAndClearsFieldsItDoesNotKnow) {
  std::array<uint64_t, UK_CPU_DATA_FIELDS + 2> cpu;
  cpu.fill(kMark);
  ASSERT_EQ(UK_STATUS_OK, uk_cpu_detect(cpu.data(), cpu.size()));
  const CpuData again = host_cpu_data();
  for (size_t i = 0; i < again.size(); ++i) EXPECT_EQ(again[i], cpu[i]);
  EXPECT_EQ(0u, cpu[UK_CPU_DATA_FIELDS]);
  EXPECT_EQ(0u, cpu[UK_CPU_DATA_FIELDS + 1]);
}

#if defined(__x86_64__)
// Of the first CPU, by the kernel; 0 if it does not say.
int l2_kib() {
  for (int index = 0; index < 4; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    int level = 0, kib = 0;
    std::ifstream(folder + "/level") >> level;
    std::ifstream(folder + "/size") >> kib;  // then comes a K
    if (level == 2) return kib;
  }
  return 0;
}
#endif

// The words that /proc/cpuinfo has under a heading for the first CPU.
std::set<std::string> words_of_cpuinfo(const std::string& heading) {
  std::ifstream file("/proc/cpuinfo");
  std::set<std::string> found;
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, heading.size(), heading) != 0) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;) found.insert(word);
    break;
  }
  return found;
}

TEST(CpuDetect, AgreesWithTheKernel) {
  if (std::getenv("UK_EMULATED")) {
    GTEST_SKIP() << "/proc/cpuinfo is that of the machine that emulates this one";
  }
  const struct {
    const char* flag;
    int field;
    uint64_t bit;
  } features[] = {
#if defined(__x86_64__)
    {"pni", 0, UK_CPU_X86_64_SSE3},
    {"ssse3", 0, UK_CPU_X86_64_SSSE3},
    {"sse4_1", 0, UK_CPU_X86_64_SSE41},
    {"sse4_2", 0, UK_CPU_X86_64_SSE42},
    {"avx", 0, UK_CPU_X86_64_AVX},
    {"fma", 0, UK_CPU_X86_64_FMA},
    {"f16c", 0, UK_CPU_X86_64_F16C},
    {"avx2", 0, UK_CPU_X86_64_AVX2},
    {"avx512f", 0, UK_CPU_X86_64_AVX512F},
    {"avx512cd", 0, UK_CPU_X86_64_AVX512CD},
    {"avx512vl", 0, UK_CPU_X86_64_AVX512VL},
    {"avx512dq", 0, UK_CPU_X86_64_AVX512DQ},
    {"avx512bw", 0, UK_CPU_X86_64_AVX512BW},
    {"avx512ifma", 0, UK_CPU_X86_64_AVX512IFMA},
    {"avx512vbmi", 0, UK_CPU_X86_64_AVX512VBMI},
    {"avx512_vnni", 0, UK_CPU_X86_64_AVX512VNNI},
    {"avx512_vbmi2", 0, UK_CPU_X86_64_AVX512VBMI2},
    {"avx512_bitalg", 0, UK_CPU_X86_64_AVX512BITALG},
    {"avx512_bf16", 0, UK_CPU_X86_64_AVX512BF16},
    {"avx512_fp16", 0, UK_CPU_X86_64_AVX512FP16},
    {"amx_tile", 0, UK_CPU_X86_64_AMXTILE},
    {"amx_int8", 0, UK_CPU_X86_64_AMXINT8},
    {"amx_bf16", 0, UK_CPU_X86_64_AMXBF16},
    {"avx_vnni", 7, UK_CPU_FIELD7_X86_64_AVXVNNI},
  };
  const std::set<std::string> flags = words_of_cpuinfo("flags");
  const std::set<std::string> vendor = words_of_cpuinfo("vendor_id"),
                              family = words_of_cpuinfo("cpu family"),
                              model = words_of_cpuinfo("model");
  const bool has_slow_bf16_dots = vendor.count("GenuineIntel") == 1 &&
                                  flags.count("avx512_bf16") == 1 &&
                                  flags.count("avx512_fp16") == 1;
#elif defined(__aarch64__)
    {"asimdhp", 0, UK_CPU_ARM_64_FULLFP16},
    {"asimdfhm", 0, UK_CPU_ARM_64_FP16FML},
    {"asimddp", 0, UK_CPU_ARM_64_DOTPROD},
    {"i8mm", 0, UK_CPU_ARM_64_I8MM},
    {"bf16", 0, UK_CPU_ARM_64_BF16},
    {"sve", 0, UK_CPU_ARM_64_SVE},
    {"sve2", 0, UK_CPU_ARM_64_SVE2},
    {"sme", 0, UK_CPU_ARM_64_SME},
    {"sme2", 0, UK_CPU_ARM_64_SME2},
  };
  const std::set<std::string> flags = words_of_cpuinfo("Features");
#endif
  if (flags.empty()) GTEST_SKIP() << "no flags in /proc/cpuinfo";
  const CpuData cpu = host_cpu_data();
  CpuData known = {};
#if defined(__x86_64__)
  EXPECT_EQ(has_slow_bf16_dots, (cpu[7] & UK_CPU_FIELD7_X86_64_SLOW_AVX512BF16) != 0);
  // Zen 3 is of the same family as Zen 4; of its models these are of servers and of desktops.
  const bool is_of_family = vendor.count("AuthenticAMD") == 1 && family.count("25") == 1;
  const bool is_zen3 = is_of_family && (model.count("1") == 1 || model.count("33") == 1);
  const bool reads_ahead = (cpu[7] & UK_CPU_FIELD7_X86_64_READS_AHEAD) != 0;
  EXPECT_TRUE(reads_ahead || !is_zen3);
  EXPECT_TRUE(is_of_family || !reads_ahead);
  if (const int kib = l2_kib(); kib > 0) {
    const int least_kib = vendor.count("GenuineIntel") == 1 ? 2048 : 1024;
    EXPECT_EQ(kib < least_kib, (cpu[7] & UK_CPU_FIELD7_X86_64_SMALL_L2) != 0);
  }
  constexpr long kGetPermissions = 0x1022, kTileData = 18;  // ARCH_GET_XCOMP_PERM
  uint64_t permitted = 0;
  if (syscall(SYS_arch_prctl, kGetPermissions, &permitted) != 0) permitted = 0;
  EXPECT_EQ(flags.count("amx_tile") == 1 && (permitted >> kTileData & 1) != 0,
            (cpu[7] & UK_CPU_FIELD7_X86_64_AMX_PERMITTED) != 0);
  known[7] = UK_CPU_FIELD7_X86_64_SLOW_AVX512BF16 | UK_CPU_FIELD7_X86_64_AMX_PERMITTED |
             UK_CPU_FIELD7_X86_64_READS_AHEAD | UK_CPU_FIELD7_X86_64_SMALL_L2;
#endif
  for (const auto& feature : features) {
    known[static_cast<size_t>(feature.field)] |= feature.bit;
    const bool detected = (cpu[static_cast<size_t>(feature.field)] & feature.bit) != 0;
    EXPECT_EQ(flags.count(feature.flag) == 1, detected) << feature.flag;
  }
  for (size_t i = 0; i < cpu.size(); ++i) EXPECT_EQ(0u, cpu[i] & ~known[i]) << "field " << i;
}

// ---------------------------------------------------------------- status texts

TEST(StatusString, IsOneDistinctLineForEveryValue) {
  std::set<std::string> texts;
  for (int value = UK_STATUS_OK; value <= UK_STATUS_CPU_UNKNOWN; ++value) {
    const char* text = uk_status_string(static_cast<uk_status_t>(value));
    ASSERT_NE(nullptr, text);
    const std::string line = text;
    ASSERT_FALSE(line.empty());
    EXPECT_EQ(std::string::npos, line.find('\n')) << line;
    EXPECT_NE('.', line.back()) << line;
    EXPECT_TRUE(texts.insert(line).second) << "twice: " << line;
  }
}

TEST(StatusString, ValuesNotListedHaveATextToo) {
  // The last value that the enumeration's four bits can hold.
  const char* text = uk_status_string(static_cast<uk_status_t>(15));
  ASSERT_NE(nullptr, text);
  for (int value = UK_STATUS_OK; value <= UK_STATUS_CPU_UNKNOWN; ++value) {
    EXPECT_STRNE(uk_status_string(static_cast<uk_status_t>(value)), text);
  }
}

TEST(AbiVersion, OfTheLibraryIsTheHeaders) { EXPECT_EQ(UK_ABI_VERSION, uk_abi_version()); }

}  // namespace
}  // namespace uk_test
