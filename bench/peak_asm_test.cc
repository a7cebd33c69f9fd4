// Disassembles this program and checks that its peak loops are what they claim to be.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "bench/peak.h"

namespace uk::bench {

// How GoogleTest shows the parameter.
void PrintTo(const PeakLoop& loop, std::ostream* out) { *out << loop.instruction; }

namespace {

struct Instruction {
  std::string address, mnemonic, operands;
};
using Function = std::vector<Instruction>;

// The functions of this program whose names start with "uk_peak_loop", as the objdump of GNU or of
// LLVM prints them: "0000000000401a80 <symbol>:", then "  401a80:\tdec    %rdi" and the like.
std::map<std::string, Function> disassemble() {
  const std::string command =
      UK_OBJDUMP " -d --no-show-raw-insn /proc/" + std::to_string(getpid()) + "/exe";
  std::map<std::string, Function> functions;
  Function* current = nullptr;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return functions;
  char line[1024];
  while (std::fgets(line, sizeof(line), pipe)) {
    std::istringstream words(line);
    Instruction i;
    words >> i.address >> i.mnemonic;
    if (i.mnemonic.empty()) continue;
    if (i.mnemonic.front() == '<' && i.address.back() != ':') {
      const std::string symbol = i.mnemonic.substr(1, i.mnemonic.find('>') - 1);
      current = symbol.rfind("uk_peak_loop", 0) == 0 ? &functions[symbol] : nullptr;
    } else if (current && i.address.back() == ':') {
      i.address.pop_back();
      if (i.mnemonic == "{vex}") words >> i.mnemonic;
      if (i.mnemonic == "decq") i.mnemonic = "dec";
      std::getline(words >> std::ws, i.operands, '#');  // a comment follows, or the line ends
      current->push_back(i);
    }
  }
  pclose(pipe);
  return functions;
}

// The body of the function's only loop: from the target of its jump back to the jump.
Function loop_of(const Function& function) {
  for (size_t end = 0; end < function.size(); ++end) {
    if (function[end].mnemonic != "jne") continue;
    std::string target;
    std::istringstream(function[end].operands) >> target;
    if (target.rfind("0x", 0) == 0) target.erase(0, 2);
    for (size_t begin = 0; begin < end; ++begin) {
      if (function[begin].address == target) {
        return {function.begin() + static_cast<long>(begin),
                function.begin() + static_cast<long>(end) + 1};
      }
    }
  }
  return {};
}

class PeakAsm : public testing::TestWithParam<PeakLoop> {};

TEST_P(PeakAsm, IsItsInstructionsAndNothingElse) {
  static const std::map<std::string, Function> functions = disassemble();
  const PeakLoop& loop = GetParam();
  // "vpmaddwd+vpaddd ymm" -> {vpmaddwd, vpaddd}, ymm
  std::string mnemonics, width, mnemonic;
  std::istringstream(loop.instruction) >> mnemonics >> width;
  std::map<std::string, int> expected = {{"dec", 1}, {"jne", 1}};
  for (std::istringstream split(mnemonics); std::getline(split, mnemonic, '+');) {
    expected[mnemonic] += loop.instructions;
  }

  ASSERT_EQ(functions.count(loop.symbol), 1u) << "not found in what " UK_OBJDUMP " prints";
  std::map<std::string, int> found;
  for (const Instruction& i : loop_of(functions.at(loop.symbol))) {
    ++found[i.mnemonic];
    if (i.mnemonic == "dec" || i.mnemonic == "jne") continue;
    // Registers of the width alone: memory operands start otherwise.
    std::istringstream operands(i.operands);
    for (std::string operand; std::getline(operands >> std::ws, operand, ',');) {
      EXPECT_EQ(operand.rfind("%" + width, 0), 0u) << i.mnemonic << " " << i.operands;
    }
  }
  EXPECT_EQ(found, expected);
}

INSTANTIATE_TEST_SUITE_P(Loops, PeakAsm, testing::ValuesIn(all_peak_loops()),
                         [](const auto& info) { return std::string(info.param.symbol); });

}  // namespace
}  // namespace uk::bench
