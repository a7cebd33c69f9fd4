// Element types: their bits, their exact values, and rounding to them.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "tests/conformance/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace uk_conformance {
namespace {

// A binary interchange format: `precision` counts the hidden bit. Every finite value is an integer
// below 2^precision, in units of 2^q with q >= min_quantum.
struct FloatFormat {
  int precision, exponent_bits;

  int min_quantum() const { return 3 - (1 << (exponent_bits - 1)) - precision; }
  uint64_t hidden_bit() const { return UINT64_C(1) << (precision - 1); }
  uint64_t infinity() const { return ((UINT64_C(1) << exponent_bits) - 1) << (precision - 1); }
  uint64_t sign_bit() const { return UINT64_C(1) << (precision - 1 + exponent_bits); }
};

FloatFormat format_of(Element element) {
  switch (element) {
    case Element::f16:
      return {11, 5};
    case Element::bf16:
      return {8, 8};
    case Element::f32:
      return {24, 8};
    default:
      return {53, 11};
  }
}

// A positive finite value as units * 2^quantum, rounded to nearest even. units may reach
// 2^precision, which carries into the next binade.
struct Scaled {
  uint64_t units;
  int quantum;
};

Scaled scale(const FloatFormat& format, double magnitude) {
  const int quantum =
      std::max(std::ilogb(magnitude) - (format.precision - 1), format.min_quantum());
  return {static_cast<uint64_t>(std::nearbyint(std::ldexp(magnitude, -quantum))), quantum};
}

}  // namespace

static bool is_unsigned(Element element) {
  return element == Element::u4 || element == Element::u8;
}

int64_t min_of(Element element) {
  return is_unsigned(element) ? 0 : -(INT64_C(1) << (bits_of(element) - 1));
}

int64_t max_of(Element element) {
  return (INT64_C(1) << (bits_of(element) - (is_unsigned(element) ? 0 : 1))) - 1;
}

void store_bits(void* array, int64_t index, int bits, uint64_t value) {
  uint8_t* bytes = static_cast<uint8_t*>(array);
  if (bits == 4) {
    const int shift = static_cast<int>(index % 2) * 4;
    uint8_t& byte = bytes[index / 2];
    byte = static_cast<uint8_t>((byte & ~(0xF << shift)) | (value & 0xF) << shift);
    return;
  }
  const int size = bits / 8;
  for (int b = 0; b < size; ++b) bytes[index * size + b] = static_cast<uint8_t>(value >> (8 * b));
}

double decode(Element element, uint64_t bits) {
  if (!is_float(element)) {
    const int64_t value = static_cast<int64_t>(bits);
    return static_cast<double>(value > max_of(element) ? value - (INT64_C(1) << bits_of(element))
                                                       : value);
  }
  const FloatFormat format = format_of(element);
  const double sign = bits & format.sign_bit() ? -1.0 : 1.0;
  const uint64_t magnitude = bits & (format.sign_bit() - 1);
  if (magnitude > format.infinity()) return std::numeric_limits<double>::quiet_NaN();
  if (magnitude == format.infinity()) return sign * std::numeric_limits<double>::infinity();
  const int exponent = static_cast<int>(magnitude >> (format.precision - 1));
  const uint64_t fraction = magnitude & (format.hidden_bit() - 1);
  const uint64_t units = exponent ? fraction | format.hidden_bit() : fraction;
  return sign *
         std::ldexp(static_cast<double>(units), format.min_quantum() + std::max(exponent - 1, 0));
}

uint64_t encode(Element element, double value) {
  if (!is_float(element)) {
    const uint64_t bits = static_cast<uint64_t>(static_cast<int64_t>(value));
    return bits & ((UINT64_C(1) << bits_of(element)) - 1);
  }
  const FloatFormat format = format_of(element);
  if (std::isnan(value)) return format.infinity() | format.hidden_bit() >> 1;
  const uint64_t sign = std::signbit(value) ? format.sign_bit() : 0;
  if (std::isinf(value)) return sign | format.infinity();
  if (value == 0) return sign;
  const Scaled scaled = scale(format, std::fabs(value));
  // The hidden bit, or a carry, adds one to the exponent field by itself.
  const uint64_t magnitude =
      scaled.units +
      (static_cast<uint64_t>(scaled.quantum - format.min_quantum()) << (format.precision - 1));
  return sign | std::min(magnitude, format.infinity());
}

double round_to(Element element, double value) {
  if (std::isnan(value) || std::isinf(value) || value == 0) return value;
  const FloatFormat format = format_of(element);
  const Scaled scaled = scale(format, std::fabs(value));
  const double rounded = std::ldexp(static_cast<double>(scaled.units), scaled.quantum);
  const double overflow = std::ldexp(1.0, 1 << (format.exponent_bits - 1));
  return std::copysign(rounded >= overflow ? std::numeric_limits<double>::infinity() : rounded,
                       value);
}

double smallest_subnormal(Element element) { return decode(element, 1); }

double smallest_normal(Element element) { return decode(element, format_of(element).hidden_bit()); }

double largest_finite(Element element) {
  return decode(element, format_of(element).infinity() - 1);
}

std::string hex(uint64_t bits, int width_in_bits) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%0*llx", (width_in_bits + 3) / 4,
                static_cast<unsigned long long>(bits));
  return text;
}

std::string describe(Element element, uint64_t bits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.17g", decode(element, bits));
  return std::string(text) + " (" + hex(bits, bits_of(element)) + ")";
}

}  // namespace uk_conformance
