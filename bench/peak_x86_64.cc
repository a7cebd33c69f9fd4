// Peak and read loops of x86-64, in assembly: nothing can spill, reorder or drop what they measure.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <algorithm>
#include <string>
#include <vector>

#include "bench/peak.h"
#include "ukernel/ukernel.h"

// This file is built for the baseline, so compilers use nothing beyond xmm0-15 in it: those are the
// registers they need to hear about, however many and wide the ones that a loop uses. Every loop
// stays a function of its own, because callers built for more rely on the calling convention.
#define UK_ALL_VECTOR_REGISTERS                                                            \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

// The instruction once for each register number \\a.
#define UK_FOR_EACH(registers, instruction) ".irp a," registers "\n" instruction ".endr\n"

// More accumulators than latency times rate of any of the instructions asks for (5 or 6 cycles, 2
// per cycle); the loop's own two instructions find a free port.
#define UK_ZMM_ACCUMULATORS "0,1,2,3,4,5,6,7,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25"
#define UK_YMM_ACCUMULATORS "0,1,2,3,4,5,6,7,10,11,12,13,14,15"
constexpr int kZmm = 24, kYmm = 14;

// A product that has no accumulator of its own needs an add: product \\a goes to register 1\\a,
// from there to accumulator \\a. No order keeps all ports busy. Six products, then their six adds,
// come nearest on Zen 5. On Zen 4 that runs at 82 or 91 % of the rate of VPMADDWD, as it happens,
// with vectors of 64 bytes; two at a time, each added ten later, at 93 to 96.
#define UK_PAIR_ACCUMULATORS "0,1,2,3,4,5"
#define UK_PAIRS(product, add)                           \
  ".rept 4\n" UK_FOR_EACH(UK_PAIR_ACCUMULATORS, product) \
      UK_FOR_EACH(UK_PAIR_ACCUMULATORS, add) ".endr\n"
#define UK_PRODUCT(p) "vpmaddwd %%zmm8, %%zmm9, %%zmm" #p "\n"
#define UK_ADD(p, a) "vpaddd %%zmm" #p ", %%zmm" #a ", %%zmm" #a "\n"
#define UK_TWO_OF_S16(p, q, r, a, s, b) UK_PRODUCT(p) UK_PRODUCT(q) UK_ADD(r, a) UK_ADD(s, b)
#define UK_S16_BY_TWO                                                                 \
  ".rept 2\n" UK_TWO_OF_S16(14, 15, 16, 2, 17, 3) UK_TWO_OF_S16(16, 17, 18, 4, 19, 5) \
      UK_TWO_OF_S16(18, 19, 20, 6, 21, 7) UK_TWO_OF_S16(20, 21, 22, 10, 23, 11)       \
          UK_TWO_OF_S16(22, 23, 24, 12, 25, 13) UK_TWO_OF_S16(24, 25, 14, 0, 15, 1) ".endr\n"
constexpr int kPairs = 24;

// Bytes by nibbles: two products of two, added in 16 bits, then widened to 32 bits and accumulated.
#define UK_NIBBLES_YMM                      \
  "vpmaddubsw %%ymm8, %%ymm9, %%ymm1\\a\n"  \
  "vpmaddubsw %%ymm9, %%ymm8, %%ymm7\n"     \
  "vpaddw %%ymm7, %%ymm1\\a, %%ymm1\\a\n"   \
  "vpmaddwd %%ymm9, %%ymm1\\a, %%ymm1\\a\n" \
  "vpaddd %%ymm1\\a, %%ymm\\a, %%ymm\\a\n"
#define UK_NIBBLES_ZMM                      \
  "vpmaddubsw %%zmm8, %%zmm9, %%zmm1\\a\n"  \
  "vpmaddubsw %%zmm9, %%zmm8, %%zmm7\n"     \
  "vpaddw %%zmm7, %%zmm1\\a, %%zmm1\\a\n"   \
  "vpmaddwd %%zmm9, %%zmm1\\a, %%zmm1\\a\n" \
  "vpaddd %%zmm1\\a, %%zmm\\a, %%zmm\\a\n"
#define UK_NIBBLES(group) ".rept 4\n" UK_FOR_EACH(UK_PAIR_ACCUMULATORS, group) ".endr\n"

// In registers 8 and 9: a value that is ordinary as f32, f64, a pair of bf16 and as bytes, so that
// a multiplier has the work it would have with real data.
#define UK_OPERAND_PATTERN 0x3F803F80

#define UK_DEFINE_PEAK_LOOP(symbol, set_up, body, clean_up)           \
  extern "C" __attribute__((noinline)) void symbol(uint64_t rounds) { \
    __asm__ volatile(set_up                                           \
                     ".p2align 6\n"                                   \
                     "1:\n" body                                      \
                     "dec %0\n"                                       \
                     "jnz 1b\n" clean_up                              \
                     : "+r"(rounds)                                   \
                     : "r"(UK_OPERAND_PATTERN)                        \
                     : "cc", UK_ALL_VECTOR_REGISTERS);                \
  }
#define UK_ZMM_SET_UP                                          \
  "vpbroadcastd %1, %%zmm8\n"                                  \
  "vpbroadcastd %1, %%zmm9\n" UK_FOR_EACH(UK_ZMM_ACCUMULATORS, \
                                          "vpxord %%zmm\\a, %%zmm\\a, %%zmm\\a\n")
#define UK_YMM_SET_UP                                         \
  "vmovd %1, %%xmm8\n"                                        \
  "vpbroadcastd %%xmm8, %%ymm8\n"                             \
  "vmovdqa %%ymm8, %%ymm9\n" UK_FOR_EACH(UK_YMM_ACCUMULATORS, \
                                         "vpxor %%ymm\\a, %%ymm\\a, %%ymm\\a\n")
#define UK_XMM_SET_UP \
  "movd %1, %%xmm8\n" \
  "pshufd $0, %%xmm8, %%xmm8\n" UK_FOR_EACH(UK_YMM_ACCUMULATORS, "pxor %%xmm\\a, %%xmm\\a\n")
#define UK_DEFINE_ZMM_LOOP(symbol, mnemonic)                                                    \
  UK_DEFINE_PEAK_LOOP(symbol, UK_ZMM_SET_UP,                                                    \
                      UK_FOR_EACH(UK_ZMM_ACCUMULATORS, mnemonic " %%zmm8, %%zmm9, %%zmm\\a\n"), \
                      "vzeroupper\n")
#define UK_DEFINE_YMM_LOOP(symbol, mnemonic)                                                    \
  UK_DEFINE_PEAK_LOOP(symbol, UK_YMM_SET_UP,                                                    \
                      UK_FOR_EACH(UK_YMM_ACCUMULATORS, mnemonic " %%ymm8, %%ymm9, %%ymm\\a\n"), \
                      "vzeroupper\n")
// SSE overwrites one operand of the product, so each product starts with a copy.
#define UK_DEFINE_XMM_PAIR_LOOP(symbol, copy, product, add)                                \
  UK_DEFINE_PEAK_LOOP(symbol, UK_XMM_SET_UP,                                               \
                      UK_PAIRS(copy " %%xmm8, %%xmm1\\a\n" product " %%xmm8, %%xmm1\\a\n", \
                               add " %%xmm1\\a, %%xmm\\a\n"),                              \
                      "")

UK_DEFINE_XMM_PAIR_LOOP(uk_peak_loop_mul_add_f32_xmm, "movaps", "mulps", "addps")
UK_DEFINE_XMM_PAIR_LOOP(uk_peak_loop_mul_add_f64_xmm, "movapd", "mulpd", "addpd")
UK_DEFINE_XMM_PAIR_LOOP(uk_peak_loop_madd_s16_xmm, "movdqa", "pmaddwd", "paddd")
UK_DEFINE_YMM_LOOP(uk_peak_loop_fma_f32_ymm, "vfmadd231ps")
UK_DEFINE_ZMM_LOOP(uk_peak_loop_fma_f32_zmm, "vfmadd231ps")
UK_DEFINE_YMM_LOOP(uk_peak_loop_fma_f64_ymm, "vfmadd231pd")
UK_DEFINE_ZMM_LOOP(uk_peak_loop_fma_f64_zmm, "vfmadd231pd")
UK_DEFINE_YMM_LOOP(uk_peak_loop_dot_s8_ymm, "%{vex%} vpdpbusd")
UK_DEFINE_ZMM_LOOP(uk_peak_loop_dot_s8_zmm, "vpdpbusd")
UK_DEFINE_YMM_LOOP(uk_peak_loop_dot_s16_ymm, "%{vex%} vpdpwssd")
UK_DEFINE_ZMM_LOOP(uk_peak_loop_dot_s16_zmm, "vpdpwssd")
UK_DEFINE_ZMM_LOOP(uk_peak_loop_dot_bf16_zmm, "vdpbf16ps")
UK_DEFINE_ZMM_LOOP(uk_peak_loop_fma_f16_zmm, "vfmadd231ph")
UK_DEFINE_PEAK_LOOP(uk_peak_loop_madd_s16_ymm, UK_YMM_SET_UP,
                    UK_PAIRS("vpmaddwd %%ymm8, %%ymm9, %%ymm1\\a\n",
                             "vpaddd %%ymm1\\a, %%ymm\\a, %%ymm\\a\n"),
                    "vzeroupper\n")
UK_DEFINE_PEAK_LOOP(uk_peak_loop_madd_s16_zmm, UK_ZMM_SET_UP,
                    UK_PAIRS("vpmaddwd %%zmm8, %%zmm9, %%zmm1\\a\n",
                             "vpaddd %%zmm1\\a, %%zmm\\a, %%zmm\\a\n"),
                    "vzeroupper\n")
UK_DEFINE_PEAK_LOOP(uk_peak_loop_madd_s16_zmm_by_two, UK_ZMM_SET_UP, UK_S16_BY_TWO, "vzeroupper\n")

UK_DEFINE_PEAK_LOOP(uk_peak_loop_nibbles_ymm, UK_YMM_SET_UP, UK_NIBBLES(UK_NIBBLES_YMM),
                    "vzeroupper\n")
UK_DEFINE_PEAK_LOOP(uk_peak_loop_nibbles_zmm, UK_ZMM_SET_UP, UK_NIBBLES(UK_NIBBLES_ZMM),
                    "vzeroupper\n")

// Registers of 16 rows of 64 bytes: four accumulators, as a product takes 52 cycles and begins 16
// after the last one; and two operands, of which all rows are alike.
#define UK_TILE_ACCUMULATORS "0,1,2,3"
constexpr int kTiles = 16;
struct TileShapes {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
constexpr TileShapes kTileShapes = {
    1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
#define UK_FOUR_OPERANDS \
  UK_OPERAND_PATTERN, UK_OPERAND_PATTERN, UK_OPERAND_PATTERN, UK_OPERAND_PATTERN
constexpr uint32_t kTileRow[16] = {UK_FOUR_OPERANDS, UK_FOUR_OPERANDS, UK_FOUR_OPERANDS,
                                   UK_FOUR_OPERANDS};
#define UK_DEFINE_TILE_LOOP(symbol, mnemonic)                                                        \
  extern "C" __attribute__((noinline)) void symbol(uint64_t rounds) {                                \
    __asm__ volatile("ldtilecfg %1\n" UK_FOR_EACH(UK_TILE_ACCUMULATORS, "tilezero %%tmm\\a\n")     \
                     "tileloadd (%2,%3,1), %%tmm6\n"                                               \
                     "tileloadd (%2,%3,1), %%tmm7\n"                                               \
                     ".p2align 6\n"                                                                \
                     "1:\n.rept 4\n" UK_FOR_EACH(UK_TILE_ACCUMULATORS,                             \
                                                 mnemonic " %%tmm7, %%tmm6, %%tmm\\a\n") ".endr\n" \
                     "dec %0\n"                                                                    \
                     "jnz 1b\n"                                                                    \
                     "tilerelease\n"                                                               \
                     : "+r"(rounds)                                                                \
                     : "m"(kTileShapes), "r"(kTileRow), "r"(uint64_t{0})                           \
                     : "cc", "memory"); \
  }
UK_DEFINE_TILE_LOOP(uk_peak_loop_dot_s8_tmm, "tdpbssd")
UK_DEFINE_TILE_LOOP(uk_peak_loop_dot_bf16_tmm, "tdpbf16ps")

// Loads whose values nobody uses still take place. Each pass ends where its blocks end; prefetches
// run on past it, which does not fault.
#define UK_DEFINE_READ_LOOP(symbol, offsets, load, prefetch)                      \
  __attribute__((noinline)) static void symbol(const void* data, size_t blocks) { \
    __asm__ volatile("1:\n" prefetch ".irp o," offsets "\n" load                  \
                     ".endr\n"                                                    \
                     "add $512, %0\n"                                             \
                     "dec %1\n"                                                   \
                     "jnz 1b\n"                                                   \
                     : "+r"(data), "+r"(blocks)                                   \
                     :                                                            \
                     : "cc", "memory", UK_ALL_VECTOR_REGISTERS);                  \
  }
#define UK_OFFSETS_64 "0,64,128,192,256,320,384,448"
#define UK_OFFSETS_32 "0,32,64,96,128,160,192,224,256,288,320,352,384,416,448,480"
#define UK_OFFSETS_16                                             \
  UK_OFFSETS_64                                                   \
  ",16,80,144,208,272,336,400,464,32,96,160,224,288,352,416,480," \
  "48,112,176,240,304,368,432,496"
#define UK_PREFETCH(distance) ".irp o," UK_OFFSETS_64 "\nprefetcht0 \\o+" distance "(%0)\n.endr\n"
#define UK_DEFINE_READ_LOOPS(name, offsets, load)                             \
  UK_DEFINE_READ_LOOP(name##_plain, offsets, load, "")                        \
  UK_DEFINE_READ_LOOP(name##_prefetch_2k, offsets, load, UK_PREFETCH("2048")) \
  UK_DEFINE_READ_LOOP(name##_prefetch_16k, offsets, load, UK_PREFETCH("16384"))

UK_DEFINE_READ_LOOPS(read_sse, UK_OFFSETS_16, "movups \\o(%0), %%xmm0\n")
UK_DEFINE_READ_LOOPS(read_avx512, UK_OFFSETS_64, "vmovups \\o(%0), %%zmm0\n")
// Two loads from a line let Zen 4 prefetch 5 % more than one does.
UK_DEFINE_READ_LOOP(read_avx512_halves, UK_OFFSETS_32, "vmovups \\o(%0), %%ymm0\n", "")

// The four quarters of the data side by side, as a core prefetches only so far ahead of each of its
// streams. What is left of them is less than a block each and is read alone.
#define UK_DEFINE_READ_LOOP_OF_STREAMS(name, offsets, load)                                          \
  __attribute__((noinline)) static void name##_streams(const void* data, size_t blocks) {            \
    const size_t quarter = blocks / 4 * 512;                                                         \
    if (quarter > 0) {                                                                               \
      const void* stream = data;                                                                     \
      size_t steps = quarter / 128;                                                                  \
      __asm__ volatile("1:\n.irp o," offsets "\n" load("(%0)") load("(%0,%2)") load("(%0,%2,2)")   \
                           load("(%0,%3)") ".endr\n"                                               \
                                           "add $128, %0\n"                                        \
                                           "dec %1\n"                                              \
                                           "jnz 1b\n"                                              \
                       : "+r"(stream), "+r"(steps)                                                 \
                       : "r"(quarter), "r"(3 * quarter)                                            \
                       : "cc", "memory", UK_ALL_VECTOR_REGISTERS); \
    }                                                                                                \
    if (blocks % 4 > 0) name##_plain(static_cast<const char*>(data) + 4 * quarter, blocks % 4);      \
  }
#define UK_LOAD_SSE(address) "movups \\o" address ", %%xmm0\n"
#define UK_LOAD_AVX512(address) "vmovups \\o" address ", %%zmm0\n"
UK_DEFINE_READ_LOOP_OF_STREAMS(read_sse, "0,16,32,48,64,80,96,112", UK_LOAD_SSE)
UK_DEFINE_READ_LOOP_OF_STREAMS(read_avx512, "0,64", UK_LOAD_AVX512)

namespace uk::bench {
namespace {

// What a type is multiplied with: types of one kind share their instructions.
enum Kind : unsigned {
  kNone = 0,
  kF16 = 1,
  kBf16 = 2,
  kF32 = 4,
  kF64 = 8,
  kBytes = 16,
  kWords = 32,
  kNibbles = 64,  // by bytes
  kF16Sums = 128  // f16 operands and sums
};

Kind kind_of(uint32_t mmt4d_type) {
  switch (mmt4d_type & UK_MMT4D_TYPE_MASK) {
    case UK_MMT4D_TYPE_F32F32F32:
      return kF32;
    case UK_MMT4D_TYPE_F64F64F64:
      return kF64;
    case UK_MMT4D_TYPE_F16F16F32:
      return kF16;
    case UK_MMT4D_TYPE_F16F16F16:
      return kF16Sums;
    case UK_MMT4D_TYPE_BF16BF16F32:
    case UK_MMT4D_TYPE_BF16BF16BF16:
      return kBf16;
    case UK_MMT4D_TYPE_S8S8S32:
    case UK_MMT4D_TYPE_U8S8S32:
      return kBytes;
    case UK_MMT4D_TYPE_S8S4S32:
      return kNibbles;
    case UK_MMT4D_TYPE_S16S16S32:
    case UK_MMT4D_TYPE_S16U4S32:
    case UK_MMT4D_TYPE_S16S8S32:
      return kWords;
    default:
      return kNone;
  }
}

// `kinds` multiply with this instruction on `isa` whatever the K0 of a tile: the denominator is
// what the type could reach. `count` instructions in a loop, or pairs, have `products` each.
struct Row {
  unsigned kinds;
  PeakLoop loop;
};
#define UK_PEAK_LOOP(isa, kinds, instruction, count, products, symbol)              \
  {                                                                                 \
    kinds, { #symbol, instruction, isa, count, 2.0 * (products) * (count), symbol } \
  }

constexpr Row kRows[] = {
    UK_PEAK_LOOP("sse2", kF32 | kF16 | kF16Sums | kBf16, "movaps+mulps+addps xmm", kPairs, 4,
                 uk_peak_loop_mul_add_f32_xmm),
    UK_PEAK_LOOP("sse2", kF64, "movapd+mulpd+addpd xmm", kPairs, 2, uk_peak_loop_mul_add_f64_xmm),
    UK_PEAK_LOOP("sse2", kBytes | kWords | kNibbles, "movdqa+pmaddwd+paddd xmm", kPairs, 8,
                 uk_peak_loop_madd_s16_xmm),
    UK_PEAK_LOOP("avx2_fma", kF32 | kF16 | kF16Sums | kBf16, "vfmadd231ps ymm", kYmm, 8,
                 uk_peak_loop_fma_f32_ymm),
    UK_PEAK_LOOP("avx2_fma", kF64, "vfmadd231pd ymm", kYmm, 4, uk_peak_loop_fma_f64_ymm),
    UK_PEAK_LOOP("avx2_fma", kBytes | kWords, "vpmaddwd+vpaddd ymm", kPairs, 16,
                 uk_peak_loop_madd_s16_ymm),
    UK_PEAK_LOOP("avx2_fma", kNibbles, "vpmaddubsw+vpmaddubsw+vpaddw+vpmaddwd+vpaddd ymm", kPairs,
                 64, uk_peak_loop_nibbles_ymm),
    UK_PEAK_LOOP("avx_vnni", kBytes | kNibbles, "vpdpbusd ymm", kYmm, 32, uk_peak_loop_dot_s8_ymm),
    UK_PEAK_LOOP("avx_vnni", kWords, "vpdpwssd ymm", kYmm, 16, uk_peak_loop_dot_s16_ymm),
    UK_PEAK_LOOP("avx512_base", kF32 | kF16 | kF16Sums | kBf16, "vfmadd231ps zmm", kZmm, 16,
                 uk_peak_loop_fma_f32_zmm),
    UK_PEAK_LOOP("avx512_base", kF64, "vfmadd231pd zmm", kZmm, 8, uk_peak_loop_fma_f64_zmm),
    UK_PEAK_LOOP("avx512_base", kBytes | kWords, "vpmaddwd+vpaddd zmm", kPairs, 32,
                 uk_peak_loop_madd_s16_zmm),
    UK_PEAK_LOOP("avx512_base", kBytes | kWords, "vpmaddwd+vpaddd zmm", kPairs, 32,
                 uk_peak_loop_madd_s16_zmm_by_two),
    UK_PEAK_LOOP("avx512_base", kNibbles, "vpmaddubsw+vpmaddubsw+vpaddw+vpmaddwd+vpaddd zmm",
                 kPairs, 128, uk_peak_loop_nibbles_zmm),
    UK_PEAK_LOOP("avx512_vnni", kBytes | kNibbles, "vpdpbusd zmm", kZmm, 64,
                 uk_peak_loop_dot_s8_zmm),
    UK_PEAK_LOOP("avx512_vnni", kWords, "vpdpwssd zmm", kZmm, 32, uk_peak_loop_dot_s16_zmm),
    UK_PEAK_LOOP("avx512_bf16", kBf16, "vdpbf16ps zmm", kZmm, 32, uk_peak_loop_dot_bf16_zmm),
    UK_PEAK_LOOP("avx512_fp16", kF16Sums, "vfmadd231ph zmm", kZmm, 32, uk_peak_loop_fma_f16_zmm),
    UK_PEAK_LOOP("amx_int8", kBytes, "tdpbssd tmm", kTiles, 16 * 16 * 64, uk_peak_loop_dot_s8_tmm),
    UK_PEAK_LOOP("amx_bf16", kBf16, "tdpbf16ps tmm", kTiles, 16 * 16 * 32,
                 uk_peak_loop_dot_bf16_tmm),
};

double seconds_per_round(const PeakLoop& loop) {
  constexpr uint64_t kRounds = 200;
  double best = 1e9;
  for (int slice = 0; slice < 20; ++slice) {
    best = std::min(best, seconds_of([&] { loop.run(kRounds); }) / kRounds);
  }
  return best;
}

// All rows, but of those that differ in the order of their instructions alone the one that is the
// fastest on this CPU.
std::vector<const Row*> fastest_rows() {
  std::vector<const Row*> rows;
  for (const Row& row : kRows) {
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const Row* other) {
      return other->kinds == row.kinds && other->loop.isa == std::string(row.loop.isa);
    });
    if (same == rows.end()) {
      rows.push_back(&row);
    } else if (__builtin_cpu_supports("avx512bw") &&  // the only level with such rows
               seconds_per_round(row.loop) < seconds_per_round((*same)->loop)) {
      *same = &row;
    }
  }
  return rows;
}

// The level whose instructions a level uses where it has none of its own, NULL if there is none.
const char* level_below(const std::string& isa) {
  if (isa == "avx_vnni") return "avx2_fma";
  for (const char* on_base :
       {"avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_int8", "amx_bf16"}) {
    if (isa == on_base) return "avx512_base";
  }
  return nullptr;
}

}  // namespace

const PeakLoop* find_peak_loop(uint32_t mmt4d_type, const char* isa) {
  static const std::vector<const Row*> rows = fastest_rows();
  const Kind kind = kind_of(mmt4d_type);
  for (; isa; isa = level_below(isa)) {
    for (const Row* row : rows) {
      if ((row->kinds & kind) && isa == std::string(row->loop.isa)) return &row->loop;
    }
  }
  return nullptr;
}

std::vector<PeakLoop> all_peak_loops() {
  std::vector<PeakLoop> loops;
  for (const Row& row : kRows) loops.push_back(row.loop);
  return loops;
}

std::vector<ReadLoop> read_loops() {
  if (__builtin_cpu_supports("avx512f")) {
    return {read_avx512_plain, read_avx512_halves, read_avx512_prefetch_2k,
            read_avx512_prefetch_16k, read_avx512_streams};
  }
  return {read_sse_plain, read_sse_prefetch_2k, read_sse_prefetch_16k, read_sse_streams};
}

}  // namespace uk::bench
