// uk_conformance_main: the command line around the checks.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <dlfcn.h>
#include <getopt.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "tests/conformance/cpu.h"
#include "tests/conformance/row_name.h"
#include "ukernel/ukernel_conformance.h"

namespace uk_conformance {
namespace {

constexpr int kExitPass = 0, kExitFail = 1, kExitUsage = 2;

constexpr char kHelp[] =
    R"(Usage: %s [--list] [--filter REGEX] [--level ISA]
       %s --so PATH --symbol NAME [columns] [--level ISA]

Checks tile functions against the ABI and numerics of ukernel/ukernel.h, and shows
the first element, or the access out of bounds, that is wrong.

  --list            print the rows, check nothing
  --filter REGEX    only the rows whose symbol matches somewhere
  --level ISA       assume no more of this CPU than this level, e.g. avx2_fma
  --so PATH         check a function of this shared object instead
  --symbol NAME     its symbol; columns come from the name if it follows the ABI:
                      uk_mmt4d_tile_<type>_<M0>x<N0>x<K0>_<arch>_<isa>[_f32acc]
                      uk_pack_tile_<type>_<T0>x<T1>[_t]_<arch>_<isa>   (unpack alike)
  columns, for a symbol that is named otherwise, or to overrule its name:
  --op OP           mmt4d, pack or unpack
  --type TYPE       s8s8s32, f16f16f32, ...; for pack and unpack x4, x8, x16, x32, x64
  --shape SHAPE     M0xN0xK0; for pack and unpack tile0xtile1, as stored
  --order ORDER     straight or transposed (pack and unpack)
  --numerics NAME   %s
  --help            this text

Exit code: 0 nothing failed, 1 a row failed, 2 wrong command line.
)";

struct Options {
  bool list = false;
  std::optional<std::string> filter, level, so, symbol;
  RowName columns;
  bool has_columns = false;
};

// An early end with this exit code, or go on.
using Outcome = std::optional<int>;

int usage_error(const std::string& program, const std::string& text) {
  std::fprintf(stderr, "%s: %s; --help lists the options\n", program.c_str(), text.c_str());
  return kExitUsage;
}

Outcome parse_options(int argc, char** argv, const std::string& program, Options* options) {
  enum { kHelpOption = 1, kList, kFilter, kLevel, kSo, kSymbol, kOp, kType, kShape, kOrder, kNum };
  static const option kOptions[] = {{"help", no_argument, nullptr, kHelpOption},
                                    {"list", no_argument, nullptr, kList},
                                    {"filter", required_argument, nullptr, kFilter},
                                    {"level", required_argument, nullptr, kLevel},
                                    {"so", required_argument, nullptr, kSo},
                                    {"symbol", required_argument, nullptr, kSymbol},
                                    {"op", required_argument, nullptr, kOp},
                                    {"type", required_argument, nullptr, kType},
                                    {"shape", required_argument, nullptr, kShape},
                                    {"order", required_argument, nullptr, kOrder},
                                    {"numerics", required_argument, nullptr, kNum},
                                    {nullptr, 0, nullptr, 0}};
  opterr = 0;
  optind = 0;  // a caller may have parsed its own before
  for (;;) {
    const int chosen = getopt_long(argc, argv, ":", kOptions, nullptr);
    if (chosen == -1) break;
    const std::string value = optarg ? optarg : "";
    switch (chosen) {
      case kHelpOption:
        std::printf(kHelp, program.c_str(), program.c_str(), all_numerics_names().c_str());
        return kExitPass;
      case kList:
        options->list = true;
        break;
      case kFilter:
        options->filter = value;
        break;
      case kLevel:
        options->level = value;
        break;
      case kSo:
        options->so = value;
        break;
      case kSymbol:
        options->symbol = value;
        break;
      case kOp:
        options->columns.op = value;
        break;
      case kType:
        options->columns.type = value;
        break;
      case kShape:
        options->columns.shape = value;
        break;
      case kOrder:
        options->columns.order = value;
        break;
      case kNum:
        options->columns.numerics = value;
        break;
      case ':':
        return usage_error(program, "option '" + std::string(argv[optind - 1]) + "' needs a value");
      default:
        return usage_error(program, "unknown option '" + std::string(argv[optind - 1]) + "'");
    }
    options->has_columns |= chosen >= kOp && chosen <= kNum;
  }
  if (optind < argc) {
    return usage_error(program, "unexpected argument '" + std::string(argv[optind]) + "'");
  }
  if (options->so.has_value() != options->symbol.has_value()) {
    return usage_error(program, "--so and --symbol go together");
  }
  if (options->has_columns && !options->so) {
    return usage_error(program,
                       "--op, --type, --shape, --order and --numerics describe a --symbol");
  }
  if (options->so && options->filter) {
    return usage_error(program, "--filter chooses among rows, --symbol is one");
  }
  return std::nullopt;
}

// The row of a function in a shared object. Its strings live in *name and options.
std::string load_row(const Options& options, RowName* name, uk_tile_row_t* row) {
  const bool parsed = parse_symbol(*options.symbol, name);
  const auto overrule = [](std::string* column, const std::string& value) {
    if (!value.empty()) *column = value;
  };
  // Numerics follow from the type in the name, so another op or type makes them void.
  if (!options.columns.op.empty() || !options.columns.type.empty()) name->numerics.clear();
  overrule(&name->op, options.columns.op);
  overrule(&name->type, options.columns.type);
  overrule(&name->shape, options.columns.shape);
  overrule(&name->order, options.columns.order);
  overrule(&name->numerics, options.columns.numerics);
  if (!parsed && (name->op.empty() || name->type.empty() || name->shape.empty())) {
    return "'" + *options.symbol + "' is not a tile symbol of the ABI: give --op, --type, --shape";
  }
  const std::string wrong = fill_row(*name, row);
  if (!wrong.empty()) return wrong;
  // A bare name is a file here, as for any other option, and not one to look for in library
  // folders.
  const bool is_bare = options.so->find('/') == std::string::npos;
  const std::string path = is_bare ? "./" + *options.so : *options.so;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return dlerror();
  void* function = dlsym(library, options.symbol->c_str());
  if (!function) return "no symbol '" + *options.symbol + "' in " + *options.so;
  std::memcpy(&row->function, &function, sizeof(function));
  row->symbol = options.symbol->c_str();
  row->arch = name->arch.c_str();
  row->isa = name->isa.empty() ? nullptr : name->isa.c_str();
  row->origin = UK_ORIGIN_HAND;
  return "";
}

void list_row(const uk_tile_row_t& row) {
  std::printf("%-64s %s\n", row.symbol, numerics_name(row.numerics).c_str());
}

int check_rows(const std::vector<const uk_tile_row_t*>& rows, const uint64_t* cpu_data) {
  size_t counts[3] = {};
  for (const uk_tile_row_t* row : rows) {
    char report[1024];
    const auto result = uk_conformance_check(row, cpu_data, report, sizeof(report));
    ++counts[result];
    switch (result) {
      case UK_CONFORMANCE_PASS:
        std::printf("pass %s\n", row->symbol);
        break;
      case UK_CONFORMANCE_SKIP:
        std::printf("skip %s: %s\n", row->symbol, report);
        break;
      case UK_CONFORMANCE_FAIL:
        std::printf("FAIL %s: %s\n", row->symbol, report);
        break;
    }
    std::fflush(stdout);
  }
  if (rows.size() > 1) {
    std::printf("%zu passed, %zu failed, %zu skipped\n", counts[UK_CONFORMANCE_PASS],
                counts[UK_CONFORMANCE_FAIL], counts[UK_CONFORMANCE_SKIP]);
  }
  return counts[UK_CONFORMANCE_FAIL] > 0 ? kExitFail : kExitPass;
}

int run(const uk_tile_row_t* rows, size_t count, int argc, char** argv) {
  const std::string program = argc > 0 ? argv[0] : "ukernel_conformance";
  Options options;
  if (const Outcome end = parse_options(argc, argv, program, &options)) return *end;

  std::vector<const uk_tile_row_t*> chosen;
  uk_tile_row_t loaded = {};
  RowName name;
  if (options.so) {
    const std::string wrong = load_row(options, &name, &loaded);
    if (!wrong.empty()) return usage_error(program, wrong);
    chosen.push_back(&loaded);
  } else {
    std::regex filter;
    try {
      filter = std::regex(options.filter.value_or(""));
    } catch (const std::regex_error&) {
      return usage_error(program, "bad regular expression '" + *options.filter + "'");
    }
    for (size_t i = 0; i < count; ++i) {
      if (std::regex_search(rows[i].symbol, filter)) chosen.push_back(&rows[i]);
    }
    if (chosen.empty()) return usage_error(program, "no row matches");
  }

  if (options.list) {
    for (const uk_tile_row_t* row : chosen) list_row(*row);
    return kExitPass;
  }
  uint64_t cpu_data[UK_CPU_DATA_FIELDS] = {};
  const std::string wrong = detect_cpu(options.level ? options.level->c_str() : nullptr, cpu_data);
  if (!wrong.empty()) return usage_error(program, wrong);
  return check_rows(chosen, cpu_data);
}

}  // namespace
}  // namespace uk_conformance

extern "C" int uk_conformance_main(const uk_tile_row_t* rows, size_t count, int argc, char** argv) {
  return uk_conformance::run(rows, count, argc, argv);
}
