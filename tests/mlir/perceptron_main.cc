// Runs the perceptron of perceptron.mlir.j2, compiled for the sizes and element type that the
// macros say, on fixed inputs.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr char kHelp[] =
    "usage: %s fused|separate|dot OUTPUT   check y, and write it to a file\n"
    "       %s time SECONDS                print the microseconds of the fastest run\n"
    "fused, separate: y has the bits of a chain of fused multiply-adds, or of products and sums\n"
    "that are rounded separately; dot: of bf16, it is within a bound of that\n";

// ---------------------------------------------------------------- types

class Numbers {
 public:
  // In [-1, 1), with so many bits that sums of their products are rounded.
  float real() { return static_cast<float>(next()) / (1 << 23) - 1; }
  int integer(int least, int most) { return least + static_cast<int>(next() % (most - least + 1)); }

 private:
  uint32_t next() { return (state_ = state_ * 1664525 + 1013904223) >> 8; }
  uint32_t state_ = 1;
};

enum class Chain { kFused, kSeparate };

struct FloatSums {
  using Sum = float;
  static Sum bias(Numbers& numbers) { return numbers.real(); }
  static Sum multiply_add(float a, float b, Sum sum, Chain chain) {
    return chain == Chain::kFused ? std::fma(a, b, sum) : sum + a * b;
  }
};

struct F32 : FloatSums {
  using Element = float;
  static Element draw(Numbers& numbers) { return numbers.real(); }
  static Element narrow(Sum x) { return x; }
  static Sum widen(Element x) { return x; }
};

struct Bf16 : FloatSums {
  using Element = uint16_t;
  static Element draw(Numbers& numbers) { return narrow(numbers.real()); }
  static Element narrow(Sum x) {  // to nearest, ties to even; no NaN
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof(bits));
    return static_cast<Element>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
  }
  static Sum widen(Element x) {
    const uint32_t bits = uint32_t{x} << 16;
    Sum sum;
    std::memcpy(&sum, &bits, sizeof(sum));
    return sum;
  }
};

struct I8 {
  using Element = int8_t;
  using Sum = int32_t;
  static Element draw(Numbers& numbers) { return static_cast<Element>(numbers.integer(-128, 127)); }
  static Sum bias(Numbers& numbers) { return numbers.integer(-10000, 10000); }
  static Element narrow(Sum x) { return static_cast<Element>(std::min(x >> UK_SHIFT, 127)); }
  static Sum widen(Element x) { return x; }
  static Sum multiply_add(Sum a, Sum b, Sum sum, Chain) { return sum + a * b; }
};

using Types = UK_TYPES;
using Element = Types::Element;
using Sum = Types::Sum;

constexpr int kM = UK_M, kK = UK_K, kH = UK_H, kN = UK_N;

// ---------------------------------------------------------------- the program

// As compiled MLIR passes a memref.
template <class T, int kRank>
struct Memref {
  T *allocated, *aligned;
  int64_t offset;
  int64_t sizes[kRank], strides[kRank];
};

extern "C" void _mlir_ciface_perceptron(Memref<Element, 2>* x, Memref<Element, 2>* w1,
                                        Memref<Sum, 1>* b1, Memref<Element, 2>* w2,
                                        Memref<Sum, 2>* y);

template <class T>
Memref<T, 2> matrix(std::vector<T>& data, int rows, int columns) {
  return {data.data(), data.data(), 0, {rows, columns}, {columns, 1}};
}

struct Data {
  Data() : x(kM * kK), w1(kK * kH), w2(kH * kN), b1(kH), y(kM * kN) {
    Numbers numbers;
    for (auto* elements : {&x, &w1, &w2}) {
      for (Element& element : *elements) element = Types::draw(numbers);
    }
    for (auto* sums : {&b1, &y}) {  // what y had before is no operand
      for (Sum& sum : *sums) sum = Types::bias(numbers);
    }
  }

  void run() {
    auto x_memref = matrix(x, kM, kK), w1_memref = matrix(w1, kK, kH);
    auto w2_memref = matrix(w2, kH, kN);
    Memref<Sum, 1> b1_memref = {b1.data(), b1.data(), 0, {kH}, {1}};
    auto y_memref = matrix(y, kM, kN);
    _mlir_ciface_perceptron(&x_memref, &w1_memref, &b1_memref, &w2_memref, &y_memref);
  }

  std::vector<Element> x, w1, w2;
  std::vector<Sum> b1, y;
};

// ---------------------------------------------------------------- the reference

std::vector<Sum> multiply(const std::vector<Element>& a, const std::vector<Element>& b, int rows,
                          int depth, int columns, Chain chain) {
  std::vector<Sum> product(rows * columns);
  for (int i = 0; i < rows; ++i) {
    for (int k = 0; k < depth; ++k) {
      for (int j = 0; j < columns; ++j) {
        Sum& sum = product[i * columns + j];
        sum = Types::multiply_add(Types::widen(a[i * depth + k]), Types::widen(b[k * columns + j]),
                                  sum, chain);
      }
    }
  }
  return product;
}

std::vector<Element> hidden_layer(const Data& data, Chain chain) {
  const std::vector<Sum> product = multiply(data.x, data.w1, kM, kK, kH, chain);
  std::vector<Element> hidden(kM * kH);
  for (int i = 0; i < kM * kH; ++i) {
    hidden[i] = Types::narrow(std::max(product[i] + data.b1[i % kH], Sum{0}));
  }
  return hidden;
}

// By how much y may be off where the order of a dot product is the hardware's own: its sums differ
// in the last bits, and so some hidden elements are rounded to the next bf16, 2^-7 of their size
// away.
std::vector<double> bounds(const Data& data, const std::vector<Element>& hidden) {
  std::vector<double> bounds(kM * kN);
  for (int i = 0; i < kM * kN; ++i) {
    double size = 0;
    for (int k = 0; k < kH; ++k) {
      const double a = Types::widen(hidden[i / kN * kH + k]);
      const double b = Types::widen(data.w2[k * kN + i % kN]);
      size += std::abs(a * b);
    }
    bounds[i] = size / 128;
  }
  return bounds;
}

bool check(const Data& data, const std::string& numerics) {
  const Chain chain = numerics == "separate" ? Chain::kSeparate : Chain::kFused;
  const std::vector<Element> hidden = hidden_layer(data, chain);
  const std::vector<Sum> expected = multiply(hidden, data.w2, kM, kH, kN, chain);
  std::vector<double> off_by(kM * kN);
  if (numerics == "dot") off_by = bounds(data, hidden);
  for (int i = 0; i < kM * kN; ++i) {
    const double y = data.y[i], wanted = expected[i];
    if (std::abs(y - wanted) <= off_by[i]) continue;  // a NaN is not
    std::printf("y(%d, %d) is %.9g, not %.9g by at most %.3g\n", i / kN, i % kN, y, wanted,
                off_by[i]);
    return false;
  }
  return true;
}

bool write_file(const char* path, const std::vector<Sum>& y) {
  FILE* file = std::fopen(path, "wb");
  if (!file) return false;
  const bool all = std::fwrite(y.data(), sizeof(Sum), y.size(), file) == y.size();
  return (std::fclose(file) == 0) && all;
}

double fastest_run(Data& data, double seconds) {
  using Clock = std::chrono::steady_clock;
  data.run();
  double fastest = 1e9;
  const auto start = Clock::now();
  for (auto before = start; std::chrono::duration<double>(before - start).count() < seconds;) {
    data.run();
    const auto after = Clock::now();
    fastest = std::min(fastest, std::chrono::duration<double>(after - before).count());
    before = after;
  }
  return fastest;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 3 ? argv[1] : "";
  Data data;
  if (mode == "time") {
    std::printf("%.3f\n", 1e6 * fastest_run(data, std::atof(argv[2])));
    return 0;
  }
  if (mode != "fused" && mode != "separate" && mode != "dot") {
    std::fprintf(stderr, kHelp, argv[0], argv[0]);
    return 2;
  }
  data.run();
  if (!check(data, mode)) return 1;
  if (write_file(argv[2], data.y)) return 0;
  std::fprintf(stderr, "%s: cannot write %s\n", argv[0], argv[2]);
  return 1;
}
