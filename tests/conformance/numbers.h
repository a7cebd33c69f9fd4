// Element types: their bits, their exact values, and rounding to them.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_TESTS_CONFORMANCE_NUMBERS_H_
#define UKERNEL_TESTS_CONFORMANCE_NUMBERS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace uk_conformance {

// Named as in symbols, so that a row's columns are enumerators.
enum class Element { s4, u4, s8, u8, s16, s32, f16, bf16, f32, f64 };

// What every element of every operand goes through is inline: the checks run under emulators too.
constexpr int bits_of(Element element) {
  switch (element) {
    case Element::s4:
    case Element::u4:
      return 4;
    case Element::s8:
    case Element::u8:
      return 8;
    case Element::s16:
    case Element::f16:
    case Element::bf16:
      return 16;
    case Element::s32:
    case Element::f32:
      return 32;
    case Element::f64:
      return 64;
  }
  return 0;
}
constexpr bool is_float(Element element) { return element >= Element::f16; }

constexpr bool is_unsigned(Element element) {
  return element == Element::u4 || element == Element::u8;
}

// The smallest and largest integer of an integer type.
constexpr int64_t min_of(Element element) {
  return is_unsigned(element) ? 0 : -(INT64_C(1) << (bits_of(element) - 1));
}
constexpr int64_t max_of(Element element) {
  return (INT64_C(1) << (bits_of(element) - (is_unsigned(element) ? 0 : 1))) - 1;
}

// Element `index` of an array of elements of `bits` bits; two four-bit ones share a byte, the lower
// index in the low nibble.
inline uint64_t load_bits(const void* array, int64_t index, int bits) {
  const uint8_t* bytes = static_cast<const uint8_t*>(array);
  if (bits == 4) return bytes[index / 2] >> (index % 2 * 4) & 0xF;
  uint64_t value = 0;
  const auto load = [&](auto element) {
    std::memcpy(&element, bytes + index * static_cast<int64_t>(sizeof(element)), sizeof(element));
    value = element;
  };
  if (bits == 8) load(uint8_t{});
  if (bits == 16) load(uint16_t{});
  if (bits == 32) load(uint32_t{});
  if (bits == 64) load(uint64_t{});
  return value;
}
inline void store_bits(void* array, int64_t index, int bits, uint64_t value) {
  uint8_t* bytes = static_cast<uint8_t*>(array);
  if (bits == 4) {
    const int shift = static_cast<int>(index % 2) * 4;
    uint8_t& byte = bytes[index / 2];
    byte = static_cast<uint8_t>((byte & ~(0xF << shift)) | (value & 0xF) << shift);
    return;
  }
  const auto store = [&](auto element) {
    std::memcpy(bytes + index * static_cast<int64_t>(sizeof(element)), &element, sizeof(element));
  };
  if (bits == 8) store(static_cast<uint8_t>(value));
  if (bits == 16) store(static_cast<uint16_t>(value));
  if (bits == 32) store(static_cast<uint32_t>(value));
  if (bits == 64) store(value);
}

// Calls f with the width as a constant, for loops over elements.
template <class F>
void with_constant_width(int bits, const F& f) {
  if (bits == 4) f(std::integral_constant<int, 4>());
  if (bits == 8) f(std::integral_constant<int, 8>());
  if (bits == 16) f(std::integral_constant<int, 16>());
  if (bits == 32) f(std::integral_constant<int, 32>());
  if (bits == 64) f(std::integral_constant<int, 64>());
}

// Of the exponents of normal numbers.
inline double power_of_two(int exponent) {
  const uint64_t bits = static_cast<uint64_t>(exponent + 1023) << 52;
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// The value, exactly: double holds every value of every element type.
double decode_float(Element element, uint64_t bits);
inline double decode(Element element, uint64_t bits) {
  if (is_float(element)) return decode_float(element, bits);
  const int64_t value = static_cast<int64_t>(bits);
  return static_cast<double>(value > max_of(element) ? value - (INT64_C(1) << bits_of(element))
                                                     : value);
}

// Rounds to nearest even and keeps subnormals; NaN becomes a quiet one. An integer must be in
// range.
uint64_t encode_float(Element element, double value);
inline uint64_t encode(Element element, double value) {
  if (is_float(element)) return encode_float(element, value);
  const uint64_t bits = static_cast<uint64_t>(static_cast<int64_t>(value));
  return bits & ((UINT64_C(1) << bits_of(element)) - 1);
}
double round_to(Element element, double value);

// Of a float type: the ends of its normal and subnormal ranges.
double smallest_normal(Element element);
double smallest_subnormal(Element element);
double largest_finite(Element element);

// "-1.5 (0xbfc00000)"
std::string describe(Element element, uint64_t bits);
std::string hex(uint64_t bits, int width_in_bits);

// The same sequence on every platform, which the standard distributions do not promise.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() {  // splitmix64
    uint64_t z = state_ += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
  }
  // Uniform in [low, high], which are less than 2^32 apart. Without a division.
  int64_t in(int64_t low, int64_t high) {
    const uint64_t count = static_cast<uint64_t>(high - low + 1);
    return low + static_cast<int64_t>((bits() >> 32) * count >> 32);
  }
  bool coin() { return bits() >> 63 != 0; }

 private:
  uint64_t state_;
};

std::vector<uint8_t> random_bytes(size_t count, uint64_t seed);

}  // namespace uk_conformance

#endif  // UKERNEL_TESTS_CONFORMANCE_NUMBERS_H_
