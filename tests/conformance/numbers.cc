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
  double units;
  int quantum;
};

uint64_t bits_of_double(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Of formats narrower than double.
Scaled scale(const FloatFormat& format, double magnitude) {
  const int exponent = static_cast<int>(bits_of_double(magnitude) >> 52) - 1023;
  const int quantum = std::max(exponent - (format.precision - 1), format.min_quantum());
  // From 2^52 on a double has no fraction, so the sum is the nearest integer, of two the even one.
  constexpr double kNoFraction = 0x1p52;
  return {magnitude * power_of_two(-quantum) + kNoFraction - kNoFraction, quantum};
}

}  // namespace

double decode_float(Element element, uint64_t bits) {
  if (element == Element::f64) {
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  const FloatFormat format = format_of(element);
  const double sign = bits & format.sign_bit() ? -1.0 : 1.0;
  const uint64_t magnitude = bits & (format.sign_bit() - 1);
  if (magnitude > format.infinity()) return std::numeric_limits<double>::quiet_NaN();
  if (magnitude == format.infinity()) return sign * std::numeric_limits<double>::infinity();
  const int exponent = static_cast<int>(magnitude >> (format.precision - 1));
  const uint64_t fraction = magnitude & (format.hidden_bit() - 1);
  const uint64_t units = exponent ? fraction | format.hidden_bit() : fraction;
  return sign * static_cast<double>(units) *
         power_of_two(format.min_quantum() + std::max(exponent - 1, 0));
}

uint64_t encode_float(Element element, double value) {
  const FloatFormat format = format_of(element);
  if (std::isnan(value)) return format.infinity() | format.hidden_bit() >> 1;
  if (element == Element::f64) return bits_of_double(value);
  const uint64_t sign = std::signbit(value) ? format.sign_bit() : 0;
  if (std::isinf(value)) return sign | format.infinity();
  if (value == 0) return sign;
  const Scaled scaled = scale(format, std::fabs(value));
  // The hidden bit, or a carry, adds one to the exponent field by itself.
  const uint64_t magnitude =
      static_cast<uint64_t>(scaled.units) +
      (static_cast<uint64_t>(scaled.quantum - format.min_quantum()) << (format.precision - 1));
  return sign | std::min(magnitude, format.infinity());
}

double round_to(Element element, double value) {
  if (element == Element::f64 || !std::isfinite(value) || value == 0) return value;
  const FloatFormat format = format_of(element);
  const Scaled scaled = scale(format, std::fabs(value));
  const double rounded = scaled.units * power_of_two(scaled.quantum);
  const double overflow = power_of_two(1 << (format.exponent_bits - 1));
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

std::vector<uint8_t> random_bytes(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<uint8_t> bytes(count);
  for (size_t at = 0; at < count; at += sizeof(uint64_t)) {
    const uint64_t eight = random.bits();
    std::memcpy(bytes.data() + at, &eight, std::min(count - at, sizeof(eight)));
  }
  return bytes;
}

}  // namespace uk_conformance
