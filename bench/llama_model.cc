// The tensors' layouts and contents, and the reference.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "bench/llama_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <vector>

#include "bench/threads.h"

namespace uk::bench {
namespace {

// A counter-based generator, so that any thread can make any part.
uint64_t random_bits(uint64_t seed, uint64_t counter) {
  uint64_t x = seed * UINT64_C(0xD1B54A32D192ED03) + counter * UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

struct Bf16 {
  uint16_t bits;
};

double value_of(float x) { return x; }
double value_of(Bf16 x) {
  const uint32_t bits = uint32_t{x.bits} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// The bits of x * 2^-fraction_bits.
uint32_t f32_bits(int32_t x, int fraction_bits) {
  const float value = static_cast<float>(x) / static_cast<float>(INT64_C(1) << fraction_bits);
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

std::vector<int64_t> sampled_outputs(const Product& p, int64_t m) {
  constexpr int64_t kWanted = 1024, kEdge = 256;
  const int64_t total = p.heads * m * p.n;
  const auto index = [&](int64_t head, int64_t i, int64_t j) { return (head * m + i) * p.n + j; };
  std::vector<int64_t> samples;
  for (int64_t head = 0; head < p.heads; ++head) {
    for (int64_t i : {int64_t{0}, m - 1}) {
      for (int64_t j : {int64_t{0}, p.n - 1}) samples.push_back(index(head, i, j));
    }
  }
  for (int64_t s = 0; s < kEdge; ++s) {
    samples.push_back(index(s % p.heads, m - 1, s * p.n / kEdge));
    samples.push_back(index(s % p.heads, s * m / kEdge, p.n - 1));
  }
  uint64_t counter = 0;
  while (static_cast<int64_t>(samples.size()) < std::min(kWanted, total)) {
    for (int64_t s = 0; s < kWanted; ++s) {
      samples.push_back(static_cast<int64_t>(random_bits(1, counter++) % uint64_t(total)));
    }
    std::sort(samples.begin(), samples.end());
    samples.erase(std::unique(samples.begin(), samples.end()), samples.end());
  }
  return samples;
}

// What makes one output: lhs[k] * rhs[k * rhs_stride] summed over k.
template <class L, class R>
struct Terms {
  const L* lhs;
  const R* rhs;
  int64_t rhs_stride, k;
};

struct Verdict {
  double error;
  bool passed;
};

template <class L, class R>
Verdict judge(const Terms<L, R>& t, int32_t got, double, bool) {
  int64_t sum = 0;
  for (int64_t k = 0; k < t.k; ++k) sum += int64_t{t.lhs[k]} * t.rhs[k * t.rhs_stride];
  return {std::fabs(static_cast<double>(got - sum)), got == sum};
}

template <class L, class R>
Verdict judge(const Terms<L, R>& t, float got, double bound, bool fma_chain) {
  double sum = 0, squares = 0;
  float chain = 0;
  for (int64_t k = 0; k < t.k; ++k) {
    const double x = value_of(t.lhs[k]), y = value_of(t.rhs[k * t.rhs_stride]);
    sum += x * y;
    squares += x * y * (x * y);
    if (fma_chain) chain = std::fma(static_cast<float>(x), static_cast<float>(y), chain);
  }
  const double error = std::fabs(got - sum) / std::sqrt(squares);
  // A NaN must fail, hence the form of the comparison.
  return {error, error <= bound && (!fma_chain || std::memcmp(&got, &chain, sizeof(got)) == 0)};
}

template <class L, class R, class Out>
Accuracy check(const Product& product, int64_t m, const void* lhs_data, const void* rhs_data,
               const void* out_data, bool fma_chain, int threads) {
  constexpr bool kIsFloat = std::is_same<Out, float>::value;
  const Operand lhs = product.lhs(m), rhs = product.rhs();
  const std::vector<int64_t> samples = sampled_outputs(product, m);
  const double bound = kIsFloat ? 8 * std::sqrt(double(product.k)) * std::ldexp(1.0, -24) : 0;
  std::vector<Accuracy> parts(threads);
  run_on_threads(threads, [&](int part) {
    Accuracy& accuracy = parts[part];
    for (size_t s = part; s < samples.size(); s += threads) {
      const int64_t head = samples[s] / product.n / m, row = samples[s] / product.n % m,
                    column = samples[s] % product.n;
      const Terms<L, R> terms = {
          static_cast<const L*>(lhs_data) + head * lhs.head_stride + row * lhs.row_stride,
          static_cast<const R*>(rhs_data) + head * rhs.head_stride + column * rhs.row_stride,
          rhs.k_stride, product.k};
      const Out got = static_cast<const Out*>(
          out_data)[head * product.out_head_stride(m) + row * product.out_row_stride() + column];
      const Verdict verdict = judge(terms, got, bound, fma_chain);
      if (!(verdict.error <= accuracy.error)) accuracy.error = verdict.error;
      if (!verdict.passed && accuracy.mismatch.empty()) {
        char text[160];
        std::snprintf(
            text, sizeof(text), "head %lld, row %lld, column %lld is %.9g: error %.3g, bound %.3g",
            static_cast<long long>(head), static_cast<long long>(row),
            static_cast<long long>(column), static_cast<double>(got), verdict.error, bound);
        accuracy.mismatch = text;
        if (verdict.error <= bound) accuracy.mismatch += ", but not the chain's bits";
      }
    }
  });
  Accuracy all;
  all.outputs = static_cast<int64_t>(samples.size());
  all.bound = bound;
  all.bitwise = kIsFloat && fma_chain;
  for (const Accuracy& part : parts) {
    if (!(part.error <= all.error)) all.error = part.error;
    if (all.mismatch.empty()) all.mismatch = part.mismatch;
  }
  return all;
}

}  // namespace

Operand Product::lhs(int64_t m) const {
  return lhs_rows_hold_all_heads ? Operand{m, k, k, heads * k, 1} : Operand{m, k, m * k, k, 1};
}

Operand Product::rhs() const {
  return rhs_is_k_by_n ? Operand{n, k, n, 1, heads * n} : Operand{n, k, k, heads * k, 1};
}

std::string Product::shape(int64_t m) const {
  const std::string one = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  return heads > 1 ? std::to_string(heads) + "*" + one : one;
}

void fill_random(Element element, void* data, int64_t count, uint64_t seed, int threads) {
  const int64_t element_bytes = element == Element::kF32 ? 4 : element == Element::kBf16 ? 2 : 1;
  const int64_t bytes = count * element_bytes;
  const int64_t words = (bytes + 7) / 8;
  run_on_threads(threads, [&](int part) {
    for (int64_t w = words * part / threads; w < words * (part + 1) / threads; ++w) {
      uint64_t word = random_bits(seed, static_cast<uint64_t>(w));
      if (element == Element::kF32) {
        word = (uint64_t{f32_bits(static_cast<int32_t>(word >> 32), 31)} << 32) |
               f32_bits(static_cast<int32_t>(word & 0xFFFFFFFFu), 31);
      } else if (element == Element::kBf16) {
        uint64_t packed = 0;
        for (int shift = 0; shift < 64; shift += 16) {
          // The upper half of a float is a bf16.
          const uint64_t bits = f32_bits(static_cast<int16_t>(word >> shift & 0xFFFFu), 15) >> 16;
          packed |= bits << shift;
        }
        word = packed;
      }
      std::memcpy(static_cast<char*>(data) + w * 8, &word, std::min<int64_t>(8, bytes - w * 8));
    }
  });
}

Accuracy check_outputs(const Product& product, const Type& type, int64_t m, const void* lhs,
                       const void* rhs, const void* out, bool fma_chain, int threads) {
  switch (type.lhs) {
    case Element::kF32:
      return check<float, float, float>(product, m, lhs, rhs, out, fma_chain, threads);
    case Element::kBf16:
      return check<Bf16, Bf16, float>(product, m, lhs, rhs, out, fma_chain, threads);
    case Element::kS8:
      return check<int8_t, int8_t, int32_t>(product, m, lhs, rhs, out, fma_chain, threads);
    case Element::kU8:
      return check<uint8_t, int8_t, int32_t>(product, m, lhs, rhs, out, fma_chain, threads);
  }
  return {};
}

}  // namespace uk::bench
