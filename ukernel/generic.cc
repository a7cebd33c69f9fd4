// The scalar path of mmt4d: every type, any tile shape, only where the caller allows it. It rounds
// as the last column of ukernel/mmt4d_types.inc says: f32 and f64 each product and each sum, as
// tiles of SSE2 do; tiles with FMAs round them once.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "ukernel/internal.h"

namespace uk {
namespace {

template <class To, class From>
To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To to;
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}

// a * b + c, rounded to odd in double: truncated, with the last bit set if anything was lost. A
// later rounding to f32 or f16 is then the only rounding (Boldo and Melquiond, "Emulation of FMA
// and correctly rounded sums", 2008). The product of two f32 is exact in double, and so is any
// product of two f16 or bf16.
double fma_round_to_odd(double a, double b, double c) {
  const double product = a * b;
  const double sum = product + c;
  const double product_part = sum - c;  // TwoSum (Knuth): lost is exactly what the sum dropped
  const double lost = (product - product_part) + (c - (sum - product_part));
  uint64_t bits = bit_cast<uint64_t>(sum);
  const bool inexact = lost > 0 || lost < 0;  // false for the NaN that infinities give
  if (inexact && (bits & 1) == 0) bits += (lost > 0) == (sum > 0) ? 1 : UINT64_MAX;
  return bit_cast<double>(bits);
}

// ---------------------------------------------------------------- 16-bit formats

float bf16_to_f32(uint16_t h) { return bit_cast<float>(uint32_t{h} << 16); }

uint16_t f32_to_bf16(float f) {
  const uint32_t bits = bit_cast<uint32_t>(f);
  if (f != f)
    return static_cast<uint16_t>(bits >> 16 | 0x40);  // the carry below could end at infinity
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

float f16_to_f32(uint16_t h) {
  const uint32_t sign = uint32_t{h} >> 15 << 31;
  const uint32_t exponent = h >> 10 & 0x1F, mantissa = h & 0x3FF;
  if (exponent == 0x1F) return bit_cast<float>(sign | 0x7F800000 | mantissa << 13);
  if (exponent != 0) return bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float subnormal = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -subnormal : subnormal;
}

// From double, so that a value rounded to odd there is rounded once.
uint16_t f64_to_f16(double d) {
  const uint64_t bits = bit_cast<uint64_t>(d);
  const uint16_t sign = static_cast<uint16_t>(bits >> 63 << 15);
  const double magnitude = bit_cast<double>(bits & ~(UINT64_C(1) << 63));
  if (d != d) return sign | 0x7E00;
  if (magnitude >= 65520.0) return sign | 0x7C00;  // half way from the largest f16 to 2^16
  if (magnitude < 0x1p-14) {
    // Adding 2^28 leaves bits of weight 2^-24, f16's smallest, in the sum's mantissa.
    return sign | static_cast<uint16_t>(bit_cast<uint64_t>(magnitude + 0x1p28) & 0x7FF);
  }
  // 42 of the 52 mantissa bits go, rounding to nearest even; a carry moves up into the exponent.
  const uint64_t m = bit_cast<uint64_t>(magnitude);
  const uint64_t rounded = (m + ((UINT64_C(1) << 41) - 1) + (m >> 42 & 1)) >> 42;
  return sign | static_cast<uint16_t>(rounded - (uint64_t{1023 - 15} << 10));
}

// ---------------------------------------------------------------- types

// Each type says how to read element `i` of an operand, how to keep and step an accumulator.

template <class T>
T element(const void* p, uk_index_t i) {
  T v;
  __builtin_memcpy(&v, static_cast<const char*>(p) + i * static_cast<uk_index_t>(sizeof(T)),
                   sizeof(T));
  return v;
}

template <class T>
void set_element(void* p, uk_index_t i, T v) {
  __builtin_memcpy(static_cast<char*>(p) + i * static_cast<uk_index_t>(sizeof(T)), &v, sizeof(T));
}

struct S8 {
  static int32_t get(const void* p, uk_index_t i) { return element<int8_t>(p, i); }
};
struct U8 {
  static int32_t get(const void* p, uk_index_t i) { return element<uint8_t>(p, i); }
};
struct S16 {
  static int32_t get(const void* p, uk_index_t i) { return element<int16_t>(p, i); }
};
struct U4 {
  static int32_t get(const void* p, uk_index_t i) {
    return element<uint8_t>(p, i / 2) >> (i % 2 * 4) & 0xF;
  }
};
struct S4 {
  static int32_t get(const void* p, uk_index_t i) { return (U4::get(p, i) ^ 8) - 8; }
};

template <class Lhs, class Rhs>
struct IntegerType {
  using Acc = uint32_t;  // modulo 2^32 by definition
  static Acc load(const void* out, uk_index_t i) { return element<uint32_t>(out, i); }
  static void store(void* out, uk_index_t i, Acc acc) { set_element(out, i, acc); }
  static Acc step(Acc acc, const void* lhs, uk_index_t l, const void* rhs, uk_index_t r) {
    const int32_t product = Lhs::get(lhs, l) * Rhs::get(rhs, r);  // at most 2^30
    return acc + static_cast<uint32_t>(product);
  }
};

template <class T>
struct MulAddType {
  using Acc = T;
  static Acc load(const void* out, uk_index_t i) { return element<T>(out, i); }
  static void store(void* out, uk_index_t i, Acc acc) { set_element(out, i, acc); }
  static Acc step(Acc acc, const void* lhs, uk_index_t l, const void* rhs, uk_index_t r) {
    return acc + element<T>(lhs, l) * element<T>(rhs, r);
  }
};

template <float (*kToF32)(uint16_t)>
struct HalfToF32Type {
  using Acc = float;
  static Acc load(const void* out, uk_index_t i) { return element<float>(out, i); }
  static void store(void* out, uk_index_t i, Acc acc) { set_element(out, i, acc); }
  static Acc step(Acc acc, const void* lhs, uk_index_t l, const void* rhs, uk_index_t r) {
    const float a = kToF32(element<uint16_t>(lhs, l)), b = kToF32(element<uint16_t>(rhs, r));
    return static_cast<float>(fma_round_to_odd(a, b, acc));
  }
};

struct F16ToF16Type {
  using Acc = uint16_t;
  static Acc load(const void* out, uk_index_t i) { return element<uint16_t>(out, i); }
  static void store(void* out, uk_index_t i, Acc acc) { set_element(out, i, acc); }
  static Acc step(Acc acc, const void* lhs, uk_index_t l, const void* rhs, uk_index_t r) {
    const float a = f16_to_f32(element<uint16_t>(lhs, l)),
                b = f16_to_f32(element<uint16_t>(rhs, r));
    return f64_to_f16(fma_round_to_odd(a, b, f16_to_f32(acc)));
  }
};

struct Bf16ToBf16Type {
  using Acc = uint16_t;
  static Acc load(const void* out, uk_index_t i) { return element<uint16_t>(out, i); }
  static void store(void* out, uk_index_t i, Acc acc) { set_element(out, i, acc); }
  // By contract an f32 FMA, then a second rounding to bf16.
  static Acc step(Acc acc, const void* lhs, uk_index_t l, const void* rhs, uk_index_t r) {
    const float a = bf16_to_f32(element<uint16_t>(lhs, l)),
                b = bf16_to_f32(element<uint16_t>(rhs, r));
    return f32_to_bf16(static_cast<float>(fma_round_to_odd(a, b, bf16_to_f32(acc))));
  }
};

template <class Type>
void tile(const TilePart& out, const void* lhs, const void* rhs, uk_index_t k1, uint32_t flags,
          const uk_tile_sizes_t& t) {
  for (uk_index_t i = 0; i < out.rows; ++i) {
    for (uk_index_t j = 0; j < out.columns; ++j) {
      const uk_index_t place = i * out.stride + j;
      typename Type::Acc acc{};
      if (flags & UK_MMT4D_ACCUMULATE) acc = Type::load(out.first, place);
      for (uk_index_t k = 0; k < k1; ++k) {
        for (uk_index_t kk = 0; kk < t.k0; ++kk) {
          acc = Type::step(acc, lhs, (k * t.m0 + i) * t.k0 + kk, rhs, (k * t.n0 + j) * t.k0 + kk);
        }
      }
      Type::store(out.first, place, acc);
    }
  }
}

}  // namespace

void generic_mmt4d_tile(uint32_t type, const TilePart& out, const void* lhs, const void* rhs,
                        uk_index_t k1, uint32_t flags, const uk_tile_sizes_t& t) {
  switch (type) {
    case UK_MMT4D_TYPE_F32F32F32:
      return tile<MulAddType<float>>(out, lhs, rhs, k1, flags, t);
    case UK_MMT4D_TYPE_F64F64F64:
      return tile<MulAddType<double>>(out, lhs, rhs, k1, flags, t);
    case UK_MMT4D_TYPE_F16F16F32:
      return tile<HalfToF32Type<f16_to_f32>>(out, lhs, rhs, k1, flags, t);
    case UK_MMT4D_TYPE_BF16BF16F32:
      return tile<HalfToF32Type<bf16_to_f32>>(out, lhs, rhs, k1, flags, t);
    case UK_MMT4D_TYPE_F16F16F16:
      return tile<F16ToF16Type>(out, lhs, rhs, k1, flags, t);
    case UK_MMT4D_TYPE_BF16BF16BF16:
      return tile<Bf16ToBf16Type>(out, lhs, rhs, k1, flags, t);
    case UK_MMT4D_TYPE_S8S8S32:
      return tile<IntegerType<S8, S8>>(out, lhs, rhs, k1, flags, t);
    case UK_MMT4D_TYPE_U8S8S32:
      return tile<IntegerType<U8, S8>>(out, lhs, rhs, k1, flags, t);
    case UK_MMT4D_TYPE_S16S16S32:
      return tile<IntegerType<S16, S16>>(out, lhs, rhs, k1, flags, t);
    case UK_MMT4D_TYPE_S16S8S32:
      return tile<IntegerType<S16, S8>>(out, lhs, rhs, k1, flags, t);
    case UK_MMT4D_TYPE_S16U4S32:
      return tile<IntegerType<S16, U4>>(out, lhs, rhs, k1, flags, t);
    case UK_MMT4D_TYPE_S8S4S32:
      return tile<IntegerType<S8, S4>>(out, lhs, rhs, k1, flags, t);
    default:
      return;  // the op has checked the type
  }
}

}  // namespace uk
