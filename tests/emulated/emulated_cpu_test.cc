// emulated_cpu_test <features> <levels> <checked> <n>: the library on a CPU that an emulator plays.
//
// features: what the CPU has of those that uk_cpu_detect knows, e.g. FULLFP16,DOTPROD, or none
// levels:   the levels that it can run, in the order of their ranks, e.g. neon,fullfp16,dotprod
// checked:  those of them whose rows are held against the ABI. A level is best checked on a CPU
//           with little else, where an instruction that it does not promise is illegal.
// n:        of the generated rows, every n-th is checked; 1 where the emulator is all there is.
//
// Holds that detection finds exactly these features, that every shape gets the tile of the highest
// of these levels, that the rows checked conform and that rows of other levels do not run.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "ukernel/ukernel_conformance.h"

namespace {

struct Feature {
  const char* name;
  uint64_t bit;
};
constexpr Feature kFeatures[] = {
    {"none", 0},
#if defined(__x86_64__)
    {"SSE3", UK_CPU_X86_64_SSE3},
    {"SSSE3", UK_CPU_X86_64_SSSE3},
    {"SSE41", UK_CPU_X86_64_SSE41},
    {"SSE42", UK_CPU_X86_64_SSE42},
    {"AVX", UK_CPU_X86_64_AVX},
    {"FMA", UK_CPU_X86_64_FMA},
    {"F16C", UK_CPU_X86_64_F16C},
    {"AVX2", UK_CPU_X86_64_AVX2},
#elif defined(__aarch64__)
    {"FULLFP16", UK_CPU_ARM_64_FULLFP16},
    {"FP16FML", UK_CPU_ARM_64_FP16FML},
    {"DOTPROD", UK_CPU_ARM_64_DOTPROD},
    {"I8MM", UK_CPU_ARM_64_I8MM},
    {"BF16", UK_CPU_ARM_64_BF16},
    {"SVE", UK_CPU_ARM_64_SVE},
    {"SVE2", UK_CPU_ARM_64_SVE2},
    {"SME", UK_CPU_ARM_64_SME},
#endif
};

int failures = 0;

void fail(const std::string& text) {
  ++failures;
  std::printf("FAIL %s\n", text.c_str());
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream words(list);
  for (std::string name; std::getline(words, name, ',');) names.push_back(name);
  return names;
}

uint64_t bits_of(const std::vector<std::string>& names) {
  uint64_t bits = 0;
  for (const std::string& name : names) {
    const auto found = std::find_if(std::begin(kFeatures), std::end(kFeatures),
                                    [&](const Feature& feature) { return name == feature.name; });
    if (found == std::end(kFeatures)) {
      fail("no feature named " + name);
    } else {
      bits |= found->bit;
    }
  }
  return bits;
}

// Where a name stands in a list, -1 if it does not.
int position(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

// A CPU of some levels; the position of a level in the list is its rank here.
struct Cpu {
  uint64_t data[UK_CPU_DATA_FIELDS];
  std::vector<std::string> levels;

  int rank(const uk_tile_row_t& row) const { return position(levels, row.isa); }
};

#if defined(__x86_64__)
constexpr uint64_t kSmallL2 = UK_CPU_FIELD7_X86_64_SMALL_L2;
#else
constexpr uint64_t kSmallL2 = 0;
#endif

void check_detection(uint64_t expected, Cpu* cpu) {
  if (uk_cpu_detect(cpu->data, UK_CPU_DATA_FIELDS) != UK_STATUS_OK) fail("no detection");
  for (int i = 0; i < UK_CPU_DATA_FIELDS; ++i) {
    // The size of L2 is QEMU's own, whatever the model.
    const uint64_t found = cpu->data[i] & ~(i == 7 ? kSmallL2 : 0);
    const uint64_t wanted = i == 0 ? expected : 0;
    if (found == wanted) continue;
    char text[128];
    std::snprintf(text, sizeof(text), "field %d is %#" PRIx64 ", expected %#" PRIx64, i, found,
                  wanted);
    fail(text);
  }
  for (size_t i = 0; const char* level = uk_isa_level_at(i); ++i) {
    const bool wanted = position(cpu->levels, level) >= 0;
    if (wanted != (uk_cpu_has_level(level, cpu->data) == 1)) {
      fail(std::string(level) + (wanted ? " is missing" : " is there"));
    }
  }
}

// qemu 7.2 reads the lanes that a masked load of AVX2 leaves out. That fails rows which are right,
// at the end of an operand; the CPU at hand, if it has the level, holds them to it.
bool emulator_reads_masked_lanes() {
#if defined(__x86_64__)
  return std::getenv("UK_EMULATED") != nullptr;
#else
  return false;
#endif
}

bool rounds_once(const uk_tile_row_t& row) {
  return (row.flags & UK_MMT4D_SKIP_INTERMEDIATE_ROUNDINGS) != 0;
}

// Every shape of the table, by the level's place in the list alone.
void check_selection(const Cpu& cpu) {
  int shapes = 0;
  for (size_t i = 0; i < uk_tile_count(); ++i) {
    const uk_tile_row_t& shape = *uk_tile_at(i);
    if (shape.op != UK_OP_MMT4D || shape.origin == UK_ORIGIN_GENERIC || rounds_once(shape)) {
      continue;
    }
    const uk_tile_row_t* best = nullptr;
    for (size_t j = 0; j < uk_tile_count(); ++j) {
      const uk_tile_row_t& row = *uk_tile_at(j);
      if (row.op == UK_OP_MMT4D && row.flags == shape.flags && row.m0 == shape.m0 &&
          row.n0 == shape.n0 && row.k0 == shape.k0 && cpu.rank(row) >= 0 &&
          (!best || cpu.rank(row) > cpu.rank(*best))) {
        best = &row;
      }
    }
    uk_mmt4d_params_t call = {};
    call.struct_size = sizeof(call);
    call.m0 = shape.m0;
    call.n0 = shape.n0;
    call.k0 = shape.k0;
    call.flags = shape.flags;
    call.cpu_data = cpu.data;
    const uk_tile_row_t* chosen = nullptr;
    const uk_status_t status = uk_mmt4d_info(&call, &chosen);
    if (status != (best ? UK_STATUS_OK : UK_STATUS_NO_TILE) || chosen != best) {
      fail(std::string("instead of ") + (best ? best->symbol : "nothing") + " the library uses " +
           (chosen ? chosen->symbol : uk_status_string(status)));
    }
    ++shapes;
  }
  std::printf("%d shapes\n", shapes);
}

void check_rows(const Cpu& cpu, const std::vector<std::string>& checked, size_t every) {
  std::map<std::string, int> passed, not_run, masked;
  for (size_t i = 0; i < uk_tile_count(); ++i) {
    const uk_tile_row_t& row = *uk_tile_at(i);
    const bool can_run = row.origin == UK_ORIGIN_GENERIC || cpu.rank(row) >= 0;
    if (can_run && position(checked, row.isa) < 0) continue;
    if (can_run && row.origin == UK_ORIGIN_GENERATED && i % every != 0) continue;
    char report[1024] = "";
    const uk_conformance_result_t result =
        uk_conformance_check(&row, cpu.data, report, sizeof(report));
    if (result == (can_run ? UK_CONFORMANCE_PASS : UK_CONFORMANCE_SKIP)) {
      ++(can_run ? passed : not_run)[row.isa];
    } else if (emulator_reads_masked_lanes() && result == UK_CONFORMANCE_FAIL &&
               std::string(report).find("read at least ") == 0 &&
               std::string(row.isa) == "avx2_fma") {
      ++masked[row.isa];
    } else {
      fail(std::string(row.symbol) + ": " + (report[0] ? report : "ran"));
    }
  }
  for (const auto& [isa, rows] : masked) {
    std::printf("%s: %d rows with masked loads are not judged\n", isa.c_str(), rows);
  }
  for (const auto& [isa, rows] : passed) std::printf("%s: %d rows pass\n", isa.c_str(), rows);
  for (const auto& [isa, rows] : not_run) {
    std::printf("%s: %d rows are not for this CPU\n", isa.c_str(), rows);
  }
  for (const std::string& level : checked) {
    if (passed[level] == 0) fail("no row of " + level + " passes");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const long every = argc == 5 ? std::strtol(argv[4], nullptr, 10) : 0;
  if (every < 1) {
    std::fprintf(stderr, "usage: emulated_cpu_test <features> <levels> <checked> <n>\n");
    return 2;
  }
  Cpu cpu = {{}, split(argv[2])};
  check_detection(bits_of(split(argv[1])), &cpu);
  // With another CPU than expected the rest would be about something else.
  if (failures == 0) check_selection(cpu);
  if (failures == 0) check_rows(cpu, split(argv[3]), static_cast<size_t>(every));
  return failures == 0 ? 0 : 1;
}
