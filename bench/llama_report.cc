// Formatting only: every number comes from a Row.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "bench/llama_report.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace uk::bench {
namespace {

const char* origin_name(uint32_t origin) {
  return origin == UK_ORIGIN_HAND        ? "hand"
         : origin == UK_ORIGIN_GENERATED ? "generated"
                                         : "generic";
}

constexpr int kIsaWidth = sizeof("avx512_base generated") - 1;  // the longest that the column has

const char* outcome_name(const Row& row) {
  switch (row.outcome) {
    case Outcome::kNoTile:
      return "no tile";
    case Outcome::kFailed:
      return "FAIL";
    case Outcome::kPassed:
      break;
  }
  return row.accuracy.bound == 0 ? "equal" : row.accuracy.bitwise ? "bitwise" : "in bound";
}

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), pattern, value);
  return text;
}

std::string percent(double part, double whole) {
  return whole > 0 ? format("%.1f", 100 * part / whole) : "-";
}

std::string tile_shape(const uk_tile_row_t& tile) {
  return std::to_string(tile.m0) + "x" + std::to_string(tile.n0) + "x" + std::to_string(tile.k0);
}

// JSON has no word for what is not finite.
std::string json_number(double value) {
  return std::isfinite(value) ? format("%.6g", value) : "null";
}

std::string json_string(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + "\"";
}

std::string json_row(const Row& row) {
  std::string json =
      "{\"product\": " + json_string(row.product->name) +
      ", \"type\": " + json_string(row.type->name) +
      ", \"heads\": " + std::to_string(row.product->heads) + ", \"m\": " + std::to_string(row.m) +
      ", \"n\": " + std::to_string(row.product->n) + ", \"k\": " + std::to_string(row.product->k) +
      ", \"outcome\": " + json_string(outcome_name(row)) +
      ", \"reason\": " + json_string(row.reason);
  if (row.tile) {
    json += ", \"tile\": " + json_string(tile_shape(*row.tile)) +
            ", \"symbol\": " + json_string(row.tile->symbol) +
            ", \"isa\": " + json_string(row.tile->isa) +
            ", \"origin\": " + json_string(origin_name(row.tile->origin));
  }
  if (row.calls > 0) {
    json +=
        ", \"calls\": " + std::to_string(row.calls) + ", \"seconds\": " + json_number(row.seconds) +
        ", \"ops_per_second\": " + json_number(row.ops_per_second) +
        ", \"peak_ops_per_second\": " + json_number(row.peak.ops_per_second) +
        ", \"peak_instruction\": " + json_string(row.peak.instruction ? row.peak.instruction : "") +
        ", \"pack_weights_bytes_per_second\": " + json_number(row.pack_weights) +
        ", \"pack_activations_bytes_per_second\": " + json_number(row.pack_activations) +
        ", \"unpack_bytes_per_second\": " + json_number(row.unpack);
    if (row.read_bandwidth > 0) {
      json += ", \"weight_bytes_per_second\": " + json_number(row.weight_bandwidth) +
              ", \"read_bytes_per_second\": " + json_number(row.read_bandwidth);
    }
    json += ", \"outputs_checked\": " + std::to_string(row.accuracy.outputs) +
            ", \"largest_error\": " + json_number(row.accuracy.error) +
            ", \"error_bound\": " + json_number(row.accuracy.bound) +
            ", \"compared_bitwise\": " + (row.accuracy.bitwise ? "true" : "false");
  }
  return json + "}";
}

}  // namespace

void print_header(const Setting& setting, const Options& options) {
  constexpr double kMiB = 1 << 20;
  const std::time_t now = std::time(nullptr);
  char date[sizeof("2000-01-01")] = "";
  std::strftime(date, sizeof(date), "%Y-%m-%d", std::localtime(&now));
  std::printf("Llama-2-7B layers on %s, %d thread%s, %s\n", setting.cpu.c_str(), options.threads,
              options.threads == 1 ? "" : "s", date);
  std::printf("Levels in use: %s. memcpy of 256 MiB: %.1f GB/s a thread.\n", setting.levels.c_str(),
              setting.memcpy_bytes_per_second / 1e9);
  std::printf("Each call takes the next copy of the weights; the copies exceed %.0f MiB, ",
              static_cast<double>(setting.weight_bytes) / kMiB);
  if (setting.cache_bytes == 0) {
    std::printf("the last-level cache is unknown: weights may come from it.\n\n");
  } else {
    std::printf("the last-level cache is %.0f MiB: weights come from %s.\n\n",
                static_cast<double>(setting.cache_bytes) / kMiB,
                setting.weights_from_memory ? "memory" : "cache in part");
  }
  std::printf("%-8s %-4s %-17s %-8s %-*s %8s %6s %6s %8s %8s %8s  %-8s %s\n", "", "", "", "",
              kIsaWidth, "", "mmt4d", "% of", "% of", "pack W", "pack A", "unpack", "largest", "");
  std::printf("%-8s %-4s %-17s %-8s %-*s %8s %6s %6s %8s %8s %8s  %-8s %s\n", "product", "type",
              "MxNxK", "tile", kIsaWidth, "ISA", "GFLOP/s", "peak", "memory", "GB/s", "GB/s",
              "GB/s", "error", "check");
  std::fflush(stdout);
}

void print_row(const Row& row, const Setting& setting) {
  std::string isa = row.tile ? row.tile->isa : "-";
  if (row.tile && row.tile->origin != UK_ORIGIN_HAND) {
    isa += std::string(" ") + origin_name(row.tile->origin);
  }
  std::printf("%-8s %-4s %-17s %-8s %-*s ", row.product->name, row.type->name,
              row.product->shape(row.m).c_str(), row.tile ? tile_shape(*row.tile).c_str() : "-",
              kIsaWidth, isa.c_str());
  if (row.calls > 0) {
    std::printf("%8.1f %6s %6s %8.1f %8.1f %8.1f  %-8s %s\n", row.ops_per_second / 1e9,
                percent(row.ops_per_second, row.peak.ops_per_second).c_str(),
                row.m > 1 ? "-"
                : setting.weights_from_memory
                    ? percent(row.weight_bandwidth, row.read_bandwidth).c_str()
                    : "cache",
                row.pack_weights / 1e9, row.pack_activations / 1e9, row.unpack / 1e9,
                row.accuracy.error == 0 ? "0" : format("%.1e", row.accuracy.error).c_str(),
                outcome_name(row));
  } else {
    std::printf("%8s %6s %6s %8s %8s %8s  %-8s %s\n", "-", "-", "-", "-", "-", "-", "-",
                outcome_name(row));
  }
  if (!row.reason.empty()) std::printf("    %s\n", row.reason.c_str());
  std::fflush(stdout);
}

void print_legend(const std::vector<Row>& rows) {
  std::printf(
      "\nGFLOP/s: uk_mmt4d alone, median of the calls, a multiply and an add counted one each.\n"
      "%% of peak: of the register-only rate of the ISA's best instruction, measured before and "
      "after each row.\n");
  std::map<std::string, double> peaks;
  for (const Row& row : rows) {
    if (!row.peak.instruction) continue;
    double& peak = peaks[std::string(row.type->name) + " " + row.peak.instruction];
    peak = std::max(peak, row.peak.ops_per_second);
  }
  for (const auto& [name, peak] : peaks) {
    std::printf("  peak of %-24s %7.1f GFLOP/s\n", name.c_str(), peak / 1e9);
  }
  std::printf(
      "%% of memory: packed weights read, against the read bandwidth of the same buffer, at M = 1."
      "\nGB/s: bytes of the tensor on the unpacked side, counted once. Weights are packed once for "
      "all M.\n"
      "check: equal = integers equal; in bound = floats within 8 sqrt(K) 2^-24 sqrt(sum (ab)^2) of "
      "a "
      "double\n"
      "reference; bitwise = also the bits of one fused multiply-add per k. 1,000 outputs or more "
      "per "
      "row.\n");
}

void write_json(std::FILE* file, const Setting& setting, const Options& options,
                const std::vector<Row>& rows) {
  std::fprintf(file,
               "{\"cpu\": %s,\n \"levels\": %s,\n \"threads\": %d,\n \"cache_bytes\": %zu,\n"
               " \"weight_bytes\": %zu,\n \"weights_from_memory\": %s,\n"
               " \"memcpy_bytes_per_second\": %s,\n \"rows\": [",
               json_string(setting.cpu).c_str(), json_string(setting.levels).c_str(),
               options.threads, setting.cache_bytes, setting.weight_bytes,
               setting.weights_from_memory ? "true" : "false",
               json_number(setting.memcpy_bytes_per_second).c_str());
  for (size_t i = 0; i < rows.size(); ++i) {
    std::fprintf(file, "%s\n  %s", i ? "," : "", json_row(rows[i]).c_str());
  }
  std::fprintf(file, "\n ]}\n");
}

}  // namespace uk::bench
