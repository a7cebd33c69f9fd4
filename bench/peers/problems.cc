// Random elements and the comparison of results.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "bench/peers/problems.h"

#include <cmath>
#include <cstring>
#include <random>

namespace uk::bench {
namespace {

// A sign and seven bits below one, as a float of any width has them: exact in all.
float random_float(uint64_t bits) {
  return static_cast<float>(static_cast<int>(bits & 0xFF) - 128) / 128;
}

uint16_t f16_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7FFFFFFF) == 0) return 0;
  const uint32_t exponent = ((bits >> 23) & 0xFF) - 127 + 15;
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3FF));
}

}  // namespace

std::string OpShape::name() const {
  return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
}

size_t element_bytes(Element element, int64_t count) {
  switch (element) {
    case Element::kF32:
      return static_cast<size_t>(4 * count);
    case Element::kBf16:
    case Element::kF16:
      return static_cast<size_t>(2 * count);
    case Element::kS4:
      return static_cast<size_t>((count + 1) / 2);
    default:
      return static_cast<size_t>(count);
  }
}

void fill_random(Element element, void* data, int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  char* const bytes = static_cast<char*>(data);
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = random();
    const float value = random_float(bits);
    if (element == Element::kF32) {
      // All bits of the fraction, so that sums round.
      const float fine = value + static_cast<float>(bits >> 40) * 0x1p-31f;
      std::memcpy(bytes + 4 * i, &fine, 4);
    } else if (element == Element::kBf16) {
      uint32_t wide;
      std::memcpy(&wide, &value, 4);
      const auto narrow = static_cast<uint16_t>(wide >> 16);
      std::memcpy(bytes + 2 * i, &narrow, 2);
    } else if (element == Element::kF16) {
      const uint16_t narrow = f16_bits(value);
      std::memcpy(bytes + 2 * i, &narrow, 2);
    } else if (element == Element::kS4) {
      bytes[i / 2] = static_cast<char>(bits);
    } else {
      bytes[i] = static_cast<char>(bits);
    }
  }
}

std::string first_difference(const OpType& type, const OpShape& shape, const void* got_data,
                             const void* want_data) {
  // Two sums, each off by at most about sqrt(k) roundings of its size, about sqrt(k) / 3.
  const double bound = 4 * static_cast<double>(shape.k) * 0x1p-24;
  for (int64_t i = 0; i < shape.m * shape.n; ++i) {
    double got, want;
    if (type.float_out) {
      got = static_cast<const float*>(got_data)[i], want = static_cast<const float*>(want_data)[i];
    } else {
      got = static_cast<const int32_t*>(got_data)[i];
      want = static_cast<const int32_t*>(want_data)[i];
    }
    // A NaN must differ, hence the form of the comparison.
    if (std::fabs(got - want) <= (type.float_out ? bound : 0)) continue;
    return "out[" + std::to_string(i / shape.n) + "][" + std::to_string(i % shape.n) + "] is " +
           std::to_string(got) + ", not " + std::to_string(want);
  }
  return "";
}

}  // namespace uk::bench
