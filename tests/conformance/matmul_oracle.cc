// What an mmt4d tile must compute, one output element at a time. Written from the numerics
// contract, in arithmetic that shares nothing with the library's scalar path.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "tests/conformance/matmul.h"

namespace uk_conformance {
namespace {

constexpr MatmulType kTypes[] = {
#define UK_MMT4D_TYPE(lhs, rhs, out, FLAG, ...) \
  {#lhs #rhs #out, UK_MMT4D_TYPE_##FLAG, Element::lhs, Element::rhs, Element::out},
#include "ukernel/mmt4d_types.inc"
};

// ---------------------------------------------------------------- chains

// Each arithmetic says how a value of the accumulator is held and how one k is added to it. Values
// come from and go to double, which holds them all.

struct Modulo32 {
  using Value = uint32_t;
  static Value from(double v) { return static_cast<uint32_t>(static_cast<int64_t>(v)); }
  static double to(Value v) {
    const int64_t wide = v;
    return static_cast<double>(wide > INT32_MAX ? wide - (INT64_C(1) << 32) : wide);
  }
  static Value step(Value acc, Value a, Value b) { return acc + a * b; }
};

template <class Float>
struct FmaChain {
  using Value = Float;
  static Value from(double v) { return static_cast<Value>(v); }
  static double to(Value v) { return v; }
  static Value step(Value acc, Value a, Value b) { return std::fma(a, b, acc); }
};

template <class Float>
struct MulAddChain : FmaChain<Float> {
  static Float step(Float acc, Float a, Float b) {
    const Float product = a * b;  // this file is compiled with -ffp-contract=off
    return acc + product;
  }
};

// By contract an f32 FMA and then a second rounding.
struct Bf16EachStep : FmaChain<float> {
  static float step(float acc, float a, float b) {
    return static_cast<float>(round_to(Element::bf16, std::fma(a, b, acc)));
  }
};

// f16 FMA in exact integers: a value is a multiple of 2^-24, a product one of 2^-48, both small
// enough for 128 bits, so the one rounding is done on the exact sum.
struct F16EachStep {
  enum Kind : uint8_t { finite, infinite, nan };
  struct Value {
    Kind kind;
    bool negative;
    int64_t magnitude;  // in units of 2^-24
  };
  static Value from(double v) {
    const bool negative = std::signbit(v);
    if (std::isnan(v)) return {nan, false, 0};
    if (std::isinf(v)) return {infinite, negative, 0};
    return {finite, negative, static_cast<int64_t>(std::fabs(v) * 0x1p24)};
  }
  static double to(const Value& v) {
    if (v.kind == nan) return std::numeric_limits<double>::quiet_NaN();
    const double magnitude = v.kind == infinite ? std::numeric_limits<double>::infinity()
                                                : static_cast<double>(v.magnitude) * 0x1p-24;
    return v.negative ? -magnitude : magnitude;
  }
  static Value step(const Value& acc, const Value& a, const Value& b) {
    constexpr Value kNan = {nan, false, 0};
    if (acc.kind == nan || a.kind == nan || b.kind == nan) return kNan;
    const bool negative = a.negative != b.negative;
    if (a.kind == infinite || b.kind == infinite) {
      const Value& other = a.kind == infinite ? b : a;
      if (other.kind == finite && other.magnitude == 0) return kNan;
      if (acc.kind == infinite && acc.negative != negative) return kNan;
      return {infinite, negative, 0};
    }
    if (acc.kind == infinite) return acc;
    const __int128 product = static_cast<__int128>(a.magnitude) * b.magnitude;
    const __int128 addend = static_cast<__int128>(acc.magnitude) << 24;
    const __int128 sum = (negative ? -product : product) + (acc.negative ? -addend : addend);
    // Zeros of equal sign keep it; a difference that cancels is +0.
    if (sum == 0) return {finite, product == 0 && negative && acc.negative, 0};
    return round(sum);
  }

 private:
  static Value round(__int128 sum) {
    const bool negative = sum < 0;
    const unsigned __int128 exact = static_cast<unsigned __int128>(negative ? -sum : sum);
    const uint64_t high = static_cast<uint64_t>(exact >> 64), low = static_cast<uint64_t>(exact);
    const int top_bit = high ? 127 - __builtin_clzll(high) : 63 - __builtin_clzll(low);
    const int dropped = std::max(top_bit - 10, 24);  // 11 bits stay, none below 2^-24
    const unsigned __int128 one = 1, half = one << (dropped - 1);
    const unsigned __int128 rest = exact & ((one << dropped) - 1);
    uint64_t kept = static_cast<uint64_t>(exact >> dropped);
    if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
    const unsigned __int128 magnitude = static_cast<unsigned __int128>(kept) << (dropped - 24);
    constexpr int64_t kOverflow = INT64_C(1) << (16 + 24);
    if (magnitude >= static_cast<unsigned __int128>(kOverflow)) return {infinite, negative, 0};
    return {finite, negative, static_cast<int64_t>(magnitude)};
  }
};

// The steps of a panel as values [k][row].
template <class Arithmetic>
void get_values(const Panel& panel, int64_t first_step, int64_t last_step,
                std::vector<typename Arithmetic::Value>* values) {
  const Element element = panel.element();
  const int64_t rows = panel.rows(), first_k = first_step * panel.k0();
  values->resize(static_cast<size_t>((last_step * panel.k0() - first_k) * rows));
  panel.for_steps(first_step, last_step, [&](int row, int64_t k, uint64_t bits) {
    (*values)[(k - first_k) * rows + row] = Arithmetic::from(decode(element, bits));
  });
}

// Calls f(i, a, b) for each k in turn, a being lhs(i, k) and b[j] rhs(k, j): what is added to a row
// of the result are products that do not wait for each other. Few steps at a time, so that the
// values stay in the cache.
template <class Arithmetic, class F>
void for_products(const Problem& p, const F& f) {
  constexpr int64_t kMostK = 64;
  const int64_t most_steps = std::max<int64_t>(kMostK / p.k0, 1);
  std::vector<typename Arithmetic::Value> lhs, rhs;
  for (int64_t first = 0; first < p.k1; first += most_steps) {
    const int64_t last = std::min(first + most_steps, p.k1);
    get_values<Arithmetic>(p.lhs, first, last, &lhs);
    get_values<Arithmetic>(p.rhs, first, last, &rhs);
    for (int i = 0; i < p.m0; ++i) {
      for (int64_t k = 0; k < (last - first) * p.k0; ++k) {
        f(i, lhs[k * p.m0 + i], rhs.data() + k * p.n0);
      }
    }
  }
}

template <class Arithmetic>
std::vector<uint64_t> chain(const Problem& p) {
  using Value = typename Arithmetic::Value;
  std::vector<Value> sums;
  for (int i = 0; i < p.m0; ++i) {
    for (int j = 0; j < p.n0; ++j) {
      sums.push_back(Arithmetic::from(p.accumulate ? p.out.value(i, j) : 0.0));
    }
  }
  for_products<Arithmetic>(p, [&](int i, const Value& a, const Value* b) {
    Value* sum = sums.data() + i * p.n0;
    for (int j = 0; j < p.n0; ++j) sum[j] = Arithmetic::step(sum[j], a, b[j]);
  });
  std::vector<uint64_t> result;
  for (const Value& sum : sums) result.push_back(encode(p.type->out, Arithmetic::to(sum)));
  return result;
}

std::vector<uint64_t> chain_for(const Problem& p, uint32_t numerics) {
  const bool wide = p.type->lhs == Element::f64;
  switch (numerics) {
    case UK_NUMERICS_EXACT:
      return chain<Modulo32>(p);
    case UK_NUMERICS_MUL_ADD_CHAIN:
      return wide ? chain<MulAddChain<double>>(p) : chain<MulAddChain<float>>(p);
    case UK_NUMERICS_ROUND_EACH_STEP:
      return p.type->out == Element::f16 ? chain<F16EachStep>(p) : chain<Bf16EachStep>(p);
    default:
      return wide ? chain<FmaChain<double>>(p) : chain<FmaChain<float>>(p);
  }
}

// ---------------------------------------------------------------- bounds

// Sums in f32 in any order, then at most one rounding to the output type.
//
// Let s be the exact acc + sum of a_k b_k, S the same sum of magnitudes, n the number of products.
// In whatever tree they are added, a term passes at most r = n + 3 roundings: its product's, at
// most n of sums with the others and the accumulator, and the two levels that pair adjacent
// products (K0 = 4: two pairs) before the accumulator. Each multiplies by (1 + d), |d| <= u, so
// (Higham, "Accuracy and Stability of Numerical Algorithms", lemma 3.1)
//
//   |computed - s| <= r u / (1 - r u) S,  at most 1.01 r u S while r u < 0.0099,
//
// with u = 2^-24 for rounding to nearest, and 2^-23 for the dot instructions, since Arm's round to
// odd. Subnormal results add at most 2^-150 per rounding. Where hardware flushes, a term with a
// subnormal factor may vanish, and each sum, the accumulator and the value converted at the end may
// lose up to 2^-126. s itself is summed in double here, which errs by less than 2^-28 of the bound;
// 1.01 covers that too. Rounding to the output type is monotonic, so it is applied to the two ends
// of the interval.
struct Interval {
  double low, high;
};

struct Exact {
  using Value = double;
  static Value from(double v) { return v; }
};

std::vector<Interval> bounds(const Problem& p, uint32_t numerics, Exactness exactness) {
  const bool flushes = numerics == UK_NUMERICS_BF16_DOT || numerics == UK_NUMERICS_BF16_DOT_F32ACC;
  const double unit = std::ldexp(1.0, flushes ? -23 : -24);
  const double lost = std::ldexp(1.0, -150) + (flushes ? std::ldexp(1.0, -126) : 0);
  const double normal = flushes ? smallest_normal(p.type->lhs) : 0;
  struct Terms {
    double sum, magnitudes, flushed;
  };
  std::vector<Terms> terms;
  for (int i = 0; i < p.m0; ++i) {
    for (int j = 0; j < p.n0; ++j) {
      const double acc = p.accumulate ? p.out.value(i, j) : 0.0;
      terms.push_back({acc, std::fabs(acc), 0});
    }
  }
  for_products<Exact>(p, [&](int i, double a, const double* b) {
    Terms* of = terms.data() + i * p.n0;
    for (int j = 0; j < p.n0; ++j) {
      const double magnitude = std::fabs(a * b[j]);
      of[j].sum += a * b[j];
      of[j].magnitudes += magnitude;
      if (std::fabs(a) < normal || std::fabs(b[j]) < normal) of[j].flushed += magnitude;
    }
  });
  const double roundings = static_cast<double>(p.lhs.depth()) + 3;
  std::vector<Interval> result;
  for (const auto& [sum, magnitudes, flushed] : terms) {
    double error = 1.01 * roundings * unit * magnitudes + roundings * lost + flushed;
    if (exactness == Exactness::every_order || std::isnan(sum) || std::isinf(sum)) error = 0;
    result.push_back({round_to(p.type->out, sum - error), round_to(p.type->out, sum + error)});
  }
  return result;
}

std::string describe_value(Element element, double value) {
  return describe(element, encode(element, value));
}

}  // namespace

const MatmulType* find_matmul_type(uint32_t flags) {
  for (const MatmulType& type : kTypes) {
    if (type.flag == (flags & UK_MMT4D_TYPE_MASK)) return &type;
  }
  return nullptr;
}

const MatmulType* find_matmul_type(const std::string& name) {
  for (const MatmulType& type : kTypes) {
    if (name == type.name) return &type;
  }
  return nullptr;
}

bool is_bound(uint32_t numerics) {
  return numerics == UK_NUMERICS_F32ACC || numerics == UK_NUMERICS_BF16_DOT ||
         numerics == UK_NUMERICS_BF16_DOT_F32ACC;
}

bool numerics_fit(const MatmulType& type, uint32_t numerics) {
  const bool half_out = type.out == Element::f16 || type.out == Element::bf16;
  switch (numerics) {
    case UK_NUMERICS_EXACT:
      return !is_float(type.out);
    case UK_NUMERICS_FMA_CHAIN:
    case UK_NUMERICS_MUL_ADD_CHAIN:
      return type.out == Element::f32 || type.out == Element::f64;
    case UK_NUMERICS_ROUND_EACH_STEP:
    case UK_NUMERICS_F32ACC:
      return half_out;
    case UK_NUMERICS_BF16_DOT:
      return type.lhs == Element::bf16 && type.out == Element::f32;
    case UK_NUMERICS_BF16_DOT_F32ACC:
      return type.lhs == Element::bf16 && type.out == Element::bf16;
    default:
      return false;
  }
}

bool Expectation::accepts(size_t index, uint64_t actual) const {
  if (low_.empty() && actual == bits_[index]) return true;
  const double value = decode(element_, actual);
  if (low_.empty()) return std::isnan(value) && std::isnan(decode(element_, bits_[index]));
  if (std::isnan(low_[index])) return std::isnan(value);
  return low_[index] <= value && value <= high_[index];
}

std::string Expectation::describe(size_t index) const {
  if (low_.empty()) return uk_conformance::describe(element_, bits_[index]);
  const std::string low = describe_value(element_, low_[index]);
  const std::string high = describe_value(element_, high_[index]);
  return low == high ? low : "from " + low + " to " + high;
}

Expectation expect(const Problem& problem, uint32_t numerics, Exactness exactness) {
  Expectation expectation;
  expectation.element_ = problem.type->out;
  if (!is_bound(numerics)) {
    expectation.bits_ = chain_for(problem, numerics);
    return expectation;
  }
  for (const Interval& interval : bounds(problem, numerics, exactness)) {
    expectation.low_.push_back(interval.low);
    expectation.high_.push_back(interval.high);
  }
  return expectation;
}

}  // namespace uk_conformance
