// One mmt4d tile call as data, and what its result must be.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_TESTS_CONFORMANCE_MATMUL_H_
#define UKERNEL_TESTS_CONFORMANCE_MATMUL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/conformance/numbers.h"
#include "ukernel/ukernel.h"

namespace uk_conformance {

struct MatmulType {
  const char* name;
  uint32_t flag;
  Element lhs, rhs, out;
};

// NULL if there is none.
const MatmulType* find_matmul_type(uint32_t flags);
const MatmulType* find_matmul_type(const std::string& name);

// A panel [k1][rows][k0], addressed by row and k. OUT is one with k1 = 1 and k0 = N0.
class Panel {
 public:
  Panel(Element element, int rows, int k0, int64_t k1)
      : element_(element), rows_(rows), k0_(k0), k1_(k1), bytes_(byte_count()) {}

  Element element() const { return element_; }
  int rows() const { return rows_; }
  int k0() const { return k0_; }
  int64_t depth() const { return k1_ * k0_; }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

  uint64_t bits(int row, int64_t k) const {
    return load_bits(bytes_.data(), index(row, k), bits_of(element_));
  }
  // Calls f(row, k, bits) for some steps, in the order of memory and without a division for each.
  template <class F>
  void for_steps(int64_t first, int64_t last, const F& f) const {
    with_constant_width(bits_of(element_), [&](auto width) {
      int64_t at = first * rows_ * k0_;
      for (int64_t step = first; step < last; ++step) {
        for (int row = 0; row < rows_; ++row) {
          for (int k = 0; k < k0_; ++k) {
            f(row, step * k0_ + k, load_bits(bytes_.data(), at++, width));
          }
        }
      }
    });
  }
  double value(int row, int64_t k) const { return decode(element_, bits(row, k)); }

  // Sets all to what f(row, k) returns, in the order of memory.
  template <class F>
  void set_bits(const F& f) {
    with_constant_width(bits_of(element_), [&](auto width) {
      int64_t at = 0;
      for (int64_t step = 0; step < k1_; ++step) {
        for (int row = 0; row < rows_; ++row) {
          for (int k = 0; k < k0_; ++k) {
            store_bits(bytes_.data(), at++, width, f(row, step * k0_ + k));
          }
        }
      }
    });
  }

 private:
  int64_t index(int row, int64_t k) const { return (k / k0_ * rows_ + row) * k0_ + k % k0_; }
  size_t byte_count() const {
    return static_cast<size_t>(k1_ * rows_ * k0_ * bits_of(element_) / 8);
  }

  Element element_;
  int rows_, k0_;
  int64_t k1_;
  std::vector<uint8_t> bytes_;
};

struct Problem {
  const MatmulType* type;
  int m0, n0, k0;
  int64_t k1;
  bool accumulate;
  Panel lhs, rhs, out;  // out: its contents before the call, if accumulate

  Problem(const MatmulType& matmul, int rows, int columns, int step, int64_t steps, bool add)
      : type(&matmul),
        m0(rows),
        n0(columns),
        k0(step),
        k1(steps),
        accumulate(add),
        lhs(matmul.lhs, rows, step, steps),
        rhs(matmul.rhs, columns, step, steps),
        out(matmul.out, rows, columns, 1) {}
};

// Kinds of data differ in what they can be compared with where the contract is a bound.
enum class Exactness {
  any,          // rounding happens
  every_order,  // every sum in every order is exact, so even a bound of the order is one value
};

// What each element of OUT may be: one encoding (any NaN for a NaN), or where the contract is a
// bound, any value from low to high.
class Expectation {
 public:
  bool accepts(size_t index, uint64_t actual) const;
  std::string describe(size_t index) const;

 private:
  friend Expectation expect(const Problem&, uint32_t numerics, Exactness);
  Element element_;
  std::vector<uint64_t> bits_;
  std::vector<double> low_, high_;  // empty where the contract is bit for bit
};

Expectation expect(const Problem& problem, uint32_t numerics, Exactness exactness);

// Whether results of this type can have these numerics, and whether those are a bound.
bool numerics_fit(const MatmulType& type, uint32_t numerics);
bool is_bound(uint32_t numerics);

// ---------------------------------------------------------------- data

// One kind of contents for the operands and the accumulator.
struct DataKind {
  std::string name;
  Exactness exactness;
  std::vector<int64_t> steps;  // the k1 to run it with
  void (*fill)(Problem&, Random&, uint32_t numerics, int variant);
  int variant;
};

std::vector<DataKind> data_kinds(const MatmulType& type, int k0, uint32_t numerics);

// Deep enough that each of four sums that a result of integers by s4 is made of leaves 32 bits if
// its products are shifted by four. Many results take the oracle long.
DataKind deepest_data_kind(int k0);

}  // namespace uk_conformance

#endif  // UKERNEL_TESTS_CONFORMANCE_MATMUL_H_
