// Calls the functions of mlir_dispatches.mlir.j2, which mlir_compile_time.py lists in
// mlir_dispatches.inc.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

// As compiled MLIR passes a memref.
struct Memref {
  void *allocated, *aligned;
  int64_t offset;
  int64_t sizes[4], strides[4];

  int64_t elements() const { return sizes[0] * strides[0]; }
};

}  // namespace

extern "C" {
#define DISPATCH(number, ...) void _mlir_ciface_dispatch##number(Memref*, Memref*, Memref*);
#include "mlir_dispatches.inc"
#undef DISPATCH
}

namespace {

struct Dispatch {
  void (*function)(Memref*, Memref*, Memref*);
  int64_t m1, n1, k1, m0, n0, k0, element_bytes, sum_bytes;
};

const Dispatch kDispatches[] = {
#define DISPATCH(number, ...) {_mlir_ciface_dispatch##number, __VA_ARGS__},
#include "mlir_dispatches.inc"
#undef DISPATCH
};

Memref tiles(void* data, int64_t d0, int64_t d1, int64_t d2, int64_t d3) {
  return {data, data, 0, {d0, d1, d2, d3}, {d1 * d2 * d3, d2 * d3, d3, 1}};
}

constexpr size_t kOperandBytes = 1 << 20;  // more than any has

// With 16 bits that are 1 as bf16, so that the order of its sums does not matter, and finite
// numbers in all types.
std::vector<uint16_t> operand() { return std::vector<uint16_t>(kOperandBytes / 2, 0x3F80); }

// Calls visit(dispatch, out) after each.
template <class Visit>
void run_all(Visit visit) {
  static std::vector<uint16_t> lhs = operand(), rhs = operand(), out = operand();
  for (const Dispatch& d : kDispatches) {
    Memref l = tiles(lhs.data(), d.m1, d.k1, d.m0, d.k0);
    Memref r = tiles(rhs.data(), d.n1, d.k1, d.n0, d.k0);
    Memref o = tiles(out.data(), d.m1, d.n1, d.m0, d.n0);
    d.function(&l, &r, &o);
    visit(d, o);
  }
}

uint64_t sum_of_results() {
  uint64_t sum = 0;
  run_all([&](const Dispatch& d, const Memref& out) {
    const auto* bytes = static_cast<const unsigned char*>(out.aligned);
    for (int64_t i = 0; i < out.elements() * d.sum_bytes; ++i) sum = sum * 31 + bytes[i];
  });
  return sum;
}

double fastest_run(double seconds) {
  using Clock = std::chrono::steady_clock;
  double fastest = 1e9;
  const auto start = Clock::now();
  for (auto before = start; std::chrono::duration<double>(before - start).count() < seconds;) {
    run_all([](const Dispatch&, const Memref&) {});
    const auto after = Clock::now();
    fastest = std::min(fastest, std::chrono::duration<double>(after - before).count());
    before = after;
  }
  return fastest;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && !std::strcmp(argv[1], "sum")) {
    std::printf("%llx\n", static_cast<unsigned long long>(sum_of_results()));
  } else if (argc == 3 && !std::strcmp(argv[1], "time")) {
    std::printf("%.3f\n", 1e6 * fastest_run(std::atof(argv[2])));
  } else {
    std::fprintf(stderr,
                 "usage: %s sum             print a sum of all results\n"
                 "       %s time SECONDS    print the microseconds of the fastest run\n",
                 argv[0], argv[0]);
    return 2;
  }
  return 0;
}
