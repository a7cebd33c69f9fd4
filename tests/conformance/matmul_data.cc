// The contents that mmt4d tiles are run on. Every kind is there for a mistake that it alone shows.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/conformance/matmul.h"

namespace uk_conformance {
namespace {

template <class Function>
void fill(Panel& panel, Function value_at) {
  const Element element = panel.element();
  panel.set_bits([&](int row, int64_t k) { return encode(element, value_at(row, k)); });
}

template <class Function>
void fill_all(Problem& p, Function value_of_element) {
  for (Panel* panel : {&p.lhs, &p.rhs, &p.out}) {
    fill(*panel, [&](int, int64_t) { return value_of_element(panel->element()); });
  }
}

double signed_unit(Random& random) { return random.coin() ? -1.0 : 1.0; }

// A random significand, times 2^e with e in [low, high].
double random_float(Random& random, int low, int high) {
  const double significand = static_cast<double>(random.bits() >> 11) * 0x1p-53;
  const int exponent = static_cast<int>(random.in(low, high));
  return signed_unit(random) * (1 + significand) * power_of_two(exponent);
}

// ---------------------------------------------------------------- any type

// Small integers: every sum in every order is exact in every type, f16 accumulators included.
void fill_integers(Problem& p, Random& random, uint32_t, int) {
  fill_all(p, [&](Element element) -> double {
    const int64_t low = is_float(element) ? -3 : std::max<int64_t>(min_of(element), -3);
    return static_cast<double>(random.in(low, 3));
  });
}

// Every encoding: full-range integers; floats with NaNs of every payload, infinities, subnormals,
// overflow and underflow.
void fill_encodings(Problem& p, Random& random, uint32_t, int) {
  for (Panel* panel : {&p.lhs, &p.rhs, &p.out}) {
    panel->set_bits([&](int, int64_t) { return random.bits(); });
  }
}

// ---------------------------------------------------------------- integers

// Constant extremes: saturation anywhere on the way (VPMADDUBSW, VPDPBUSDS, VPDPWSSDS) shows, as
// does a sum that is held too narrow, and accumulators at either end must wrap.
enum Extreme { lhs_is_max = 1, rhs_is_max = 2 };

void fill_extremes(Problem& p, Random& random, uint32_t, int variant) {
  const auto end = [](Element e, bool max) {
    return static_cast<double>(max ? max_of(e) : min_of(e));
  };
  const double lhs = end(p.type->lhs, (variant & lhs_is_max) != 0);
  const double rhs = end(p.type->rhs, (variant & rhs_is_max) != 0);
  fill(p.lhs, [&](int, int64_t) { return lhs; });
  fill(p.rhs, [&](int, int64_t) { return rhs; });
  fill(p.out, [&](int, int64_t) {
    const double near = static_cast<double>(random.in(0, 3));
    return random.coin() ? end(p.type->out, true) - near : end(p.type->out, false) + near;
  });
}

void fill_mixed_extremes(Problem& p, Random& random, uint32_t, int) {
  fill_all(p, [&](Element e) {
    const int64_t choices[] = {min_of(e), max_of(e), min_of(e) + 1, 0};
    return static_cast<double>(choices[random.in(0, 3)]);
  });
}

// ---------------------------------------------------------------- floats

void fill_floats(Problem& p, Random& random, uint32_t, int) {
  fill_all(p, [&](Element e) { return round_to(e, random_float(random, -3, 2)); });
}

// f16 sums that leave its range.
void fill_large(Problem& p, Random& random, uint32_t, int) {
  fill_all(p, [&](Element e) { return round_to(e, random_float(random, 4, 8)); });
}

// About one special value per output element, so that each can be seen, among small integers.
// Where the order is free no sum may depend on it: then there are no values next to overflow, and
// none that some hardware flushes, for infinity times zero would be NaN.
void fill_specials(Problem& p, Random& random, uint32_t numerics, int) {
  const int64_t rarity = std::max<int64_t>(2 * p.lhs.depth(), 2);
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  fill_all(p, [&](Element e) {
    if (random.in(1, rarity) > 1) return static_cast<double>(random.in(-2, 2));
    const double values[] = {
        infinity, nan, 0.0, largest_finite(e), smallest_normal(e), smallest_subnormal(e)};
    return signed_unit(random) * values[random.in(0, is_bound(numerics) ? 2 : 5)];
  });
}

// Products and sums around the smallest normal number; subnormal results must survive where the
// contract says so.
void fill_subnormals(Problem& p, Random& random, uint32_t, int variant) {
  const bool tiny_lhs = variant == 0;
  const auto tiny = [&](Element e) {
    return signed_unit(random) * smallest_subnormal(e) *
           static_cast<double>(random.in(0, e == Element::f64 ? 99 : 300));
  };
  const auto near_one = [&](Element e) { return round_to(e, random_float(random, -2, 1)); };
  fill(p.lhs, [&](int, int64_t) { return tiny_lhs ? tiny(p.type->lhs) : near_one(p.type->lhs); });
  fill(p.rhs, [&](int, int64_t) { return tiny_lhs ? near_one(p.type->rhs) : tiny(p.type->rhs); });
  fill(p.out, [&](int, int64_t) { return tiny(p.type->out); });
}

// For 16-bit outputs. Random draws meet these cases once in 50,000. Only one k is not zero.
enum HalfWay {
  // An f32 FMA followed by a conversion is not one rounding: a * b is off half an ulp of the
  // accumulator by less than f32 can hold ...
  near_half_way,
  // ... or it is half way between two outputs, and the accumulator is what f32 cannot hold.
  half_way_and_trifle,
  // A tie, exact in f32.
  half_way
};

void fill_halfway(Problem& p, Random& random, uint32_t, int variant) {
  const Element e = p.type->out;
  const int precision = e == Element::f16 ? 11 : 8;
  const int64_t hidden = INT64_C(1) << (precision - 1);
  int64_t a = 0, b = 0;
  int scale = 0;  // of a * b, as a power of two
  double addend = 0;
  if (variant == near_half_way) {
    // 2^(2 precision - 1) + d, with 0 < |d| < 2^(precision - 3).
    const int64_t power = INT64_C(1) << (2 * precision - 1);
    int64_t distance = 0;
    do {
      a = random.in(hidden + 1, 2 * hidden - 1);
      b = (power + a / 2) / a;
      distance = std::abs(a * b - power);
    } while (distance == 0 || distance >= hidden / 4 || b >= 2 * hidden);
    scale = -(2 * precision - 1) - precision;  // a * b close to 2^-precision
  } else {
    // An odd a below 4/3 * hidden times 3 has one bit too many, and it is set.
    a = random.in(hidden, hidden * 4 / 3 - 1) | 1;
    b = 3;
    scale = 14 - precision;  // a * b at most 2^15
    if (variant == half_way_and_trifle) addend = std::ldexp(1.0, -14);
  }
  const int64_t depth = p.lhs.depth(), hot = depth > 0 ? random.in(0, depth - 1) : 0;
  fill(p.lhs, [&](int, int64_t k) {
    return k == hot ? std::ldexp(signed_unit(random) * static_cast<double>(a), scale / 2) : 0;
  });
  fill(p.rhs, [&](int, int64_t k) {
    const int rest = scale - scale / 2;
    return k == hot ? std::ldexp(signed_unit(random) * static_cast<double>(b), rest) : 0;
  });
  fill(p.out, [&](int, int64_t) {
    if (variant == near_half_way) return round_to(e, random_float(random, 0, 0));
    return addend * signed_unit(random);
  });
}

}  // namespace

std::vector<DataKind> data_kinds(const MatmulType& type, int k0, uint32_t numerics) {
  const int64_t large = std::max<int64_t>(2000 / k0, 300);
  const std::vector<int64_t> every = {0, 1, 2, 3, 7, 257, large}, some = {1, 2, 3, 7, 257},
                             few = {1, 2, 3, 7}, one_two = {1, 2};
  constexpr Exactness any = Exactness::any, every_order = Exactness::every_order;
  std::vector<DataKind> kinds = {{"small integers", every_order, every, fill_integers, 0}};
  if (!is_float(type.out)) {
    kinds.push_back({"min x min", any, some, fill_extremes, 0});
    kinds.push_back({"max x min", any, some, fill_extremes, lhs_is_max});
    kinds.push_back({"min x max", any, some, fill_extremes, rhs_is_max});
    kinds.push_back({"max x max", any, some, fill_extremes, lhs_is_max | rhs_is_max});
    kinds.push_back({"mixed extremes", any, some, fill_mixed_extremes, 0});
    kinds.push_back({"random", any, every, fill_encodings, 0});
    if (bits_of(type.lhs) == 8 || bits_of(type.rhs) == 4) {
      // What a tile sums beside the products (128 times a column, products shifted by four bits)
      // leaves 32 bits only here.
      const int64_t beyond = (INT64_C(1) << 17) / k0 + 1;
      kinds.push_back({"min x min, very deep", any, {beyond}, fill_extremes, 0});
    }
    return kinds;
  }
  if (numerics == UK_NUMERICS_ROUND_EACH_STEP) {
    kinds.push_back({"near half way", any, one_two, fill_halfway, near_half_way});
    kinds.push_back({"half way and a trifle", any, one_two, fill_halfway, half_way_and_trifle});
  }
  if (bits_of(type.out) == 16) {
    kinds.push_back({"half way", every_order, one_two, fill_halfway, half_way});
  }
  kinds.push_back({"random", any, every, fill_floats, 0});
  kinds.push_back({"specials", any, few, fill_specials, 0});
  kinds.push_back({"subnormal lhs", any, few, fill_subnormals, 0});
  kinds.push_back({"subnormal rhs", any, few, fill_subnormals, 1});
  if (type.lhs == Element::f16) kinds.push_back({"large", any, some, fill_large, 0});
  // Overflow on the way may or may not happen, by the order.
  if (!is_bound(numerics)) kinds.push_back({"all encodings", any, few, fill_encodings, 0});
  return kinds;
}

DataKind deepest_data_kind(int k0) {
  return {"min x max, very deep",
          Exactness::any,
          {(INT64_C(1) << 19) / k0 + 1},
          fill_extremes,
          rhs_is_max};
}

}  // namespace uk_conformance
