// Parsing and checking the command line.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "bench/llama_options.h"

#include <getopt.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace uk::bench {
namespace {

constexpr int64_t kMaxM = 4096, kMaxThreads = 256, kMaxRepeat = 1000;

constexpr char kHelp[] =
    R"(Multiplies the layers of Llama-2-7B through pack, mmt4d and unpack; checks and times each step.

  --types LIST    of f32, bf16, s8, u8 (default: all)
  --m LIST        rows of activations, 1 to 4096 (default: 1,16,128,512)
  --layers LIST   of qkvo, gate_up, down, scores, values (default: all)
  --level ISA     use only what this ISA level has, e.g. avx2_fma (default: all that the CPU has)
  --threads N     call the library from N threads, each on its own range of N (default: 1)
  --repeat N      time at least N calls of each step (default: 3)
  --json [FILE]   write JSON to FILE, or to standard output in place of the table
  --help

Exit code: 0 all outputs are right, 1 some are not, 2 wrong option,
77 this CPU (or level) has no tile for anything that was asked.
)";

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "llama_layers: %s\n", message.c_str());
  std::exit(2);
}

int64_t parse_number(const std::string& text, const char* option, int64_t max) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 1 || value > max) {
    fail(std::string(option) + " wants numbers from 1 to " + std::to_string(max) + ", not '" +
         text + "'");
  }
  return value;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> items(1);
  for (char c : text) {
    if (c == ',') {
      items.emplace_back();
    } else {
      items.back() += c;
    }
  }
  return items;
}

template <class Item, size_t Count>
std::vector<const Item*> parse_names(const char* text, const char* option,
                                     const Item (&known)[Count]) {
  std::vector<const Item*> found;
  for (const std::string& name : split(text)) {
    const Item* match = nullptr;
    std::string names;
    for (const Item& item : known) {
      if (name == item.name) match = &item;
      names += std::string(names.empty() ? "" : ", ") + item.name;
    }
    if (!match) fail(std::string(option) + " knows " + names + ", not '" + name + "'");
    found.push_back(match);
  }
  return found;
}

void use_level(const std::string& level, uint64_t* cpu_data) {
  uint64_t wanted[UK_CPU_DATA_FIELDS];
  if (uk_cpu_level(level.c_str(), wanted, UK_CPU_DATA_FIELDS) != UK_STATUS_OK) {
    std::string names;
    for (size_t i = 0; const char* name = uk_isa_level_at(i); ++i) {
      names += std::string(i ? ", " : "") + name;
    }
    fail("--level knows " + names + ", not '" + level + "'");
  }
  if (!uk_cpu_has_level(level.c_str(), cpu_data)) fail("this CPU does not have level " + level);
  for (int i = 0; i < UK_CPU_DATA_FIELDS; ++i) cpu_data[i] &= wanted[i];
}

}  // namespace

Options parse_options(int argc, char** argv) {
  enum { kTypesOption, kM, kLayers, kLevel, kThreads, kRepeat, kJson, kHelpOption };
  static const option kOptions[] = {{"types", required_argument, nullptr, kTypesOption},
                                    {"m", required_argument, nullptr, kM},
                                    {"layers", required_argument, nullptr, kLayers},
                                    {"level", required_argument, nullptr, kLevel},
                                    {"threads", required_argument, nullptr, kThreads},
                                    {"repeat", required_argument, nullptr, kRepeat},
                                    {"json", optional_argument, nullptr, kJson},
                                    {"help", no_argument, nullptr, kHelpOption},
                                    {nullptr, 0, nullptr, 0}};
  Options options;
  for (const Type& type : kTypes) options.types.push_back(&type);
  for (const Product& product : kProducts) options.products.push_back(&product);
  options.m = {1, 16, 128, 512};
  opterr = 0;  // what getopt_long would say does not point to --help
  for (;;) {
    const std::string word = optind < argc ? argv[optind] : "";
    // "+": stop at the first word that is no option, so that --json can look at it. ":": tell a
    // missing value from an unknown option.
    const int parsed = getopt_long(argc, argv, "+:", kOptions, nullptr);
    if (parsed == -1) break;
    switch (parsed) {
      case kTypesOption:
        options.types = parse_names(optarg, "--types", kTypes);
        break;
      case kM:
        options.m.clear();
        for (const std::string& m : split(optarg)) {
          options.m.push_back(parse_number(m, "--m", kMaxM));
        }
        break;
      case kLayers:
        options.products = parse_names(optarg, "--layers", kProducts);
        break;
      case kLevel:
        options.level = optarg;
        break;
      case kThreads:
        options.threads = static_cast<int>(parse_number(optarg, "--threads", kMaxThreads));
        break;
      case kRepeat:
        options.repeat = parse_number(optarg, "--repeat", kMaxRepeat);
        break;
      case kJson:
        options.json = true;
        if (optarg) {
          options.json_path = optarg;
        } else if (optind < argc && argv[optind][0] != '-') {
          options.json_path = argv[optind++];
        }
        break;
      case kHelpOption:
        std::fputs(kHelp, stdout);
        std::exit(0);
      case ':':
        fail("option '" + word + "' needs a value; --help lists the options");
      default:
        fail("unknown option '" + word + "'; --help lists the options");
    }
  }
  if (optind < argc) fail(std::string("unexpected argument '") + argv[optind] + "'");
  const uk_status_t status = uk_cpu_detect(options.cpu_data, UK_CPU_DATA_FIELDS);
  if (status != UK_STATUS_OK) fail(uk_status_string(status));
  if (!options.level.empty()) use_level(options.level, options.cpu_data);
  return options;
}

}  // namespace uk::bench
