// The matrix products that bench_ops times: types, shapes, data.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_PEERS_PROBLEMS_H_
#define UKERNEL_BENCH_PEERS_PROBLEMS_H_

#include <cstdint>
#include <string>

#include "bench/machine.h"
#include "ukernel/ukernel.h"

namespace uk::bench {

enum class Element { kF32, kBf16, kF16, kByte, kS4 };

struct OpType {
  const char* name;
  uint32_t mmt4d_type;
  Element lhs, weights;
  bool float_out;  // f32, else s32
};

constexpr OpType kOpTypes[] = {
    {"f32", UK_MMT4D_TYPE_F32F32F32, Element::kF32, Element::kF32, true},
    {"bf16", UK_MMT4D_TYPE_BF16BF16F32, Element::kBf16, Element::kBf16, true},
    {"f16", UK_MMT4D_TYPE_F16F16F32, Element::kF16, Element::kF16, true},
    {"s8s8", UK_MMT4D_TYPE_S8S8S32, Element::kByte, Element::kByte, false},
    {"u8s8", UK_MMT4D_TYPE_U8S8S32, Element::kByte, Element::kByte, false},
    {"s8s4", UK_MMT4D_TYPE_S8S4S32, Element::kByte, Element::kS4, false},
};

struct OpShape {
  int64_t m, n, k;
  std::string name() const;
};

constexpr OpShape kOpShapes[] = {
    {1, 4096, 4096},    {4, 4096, 4096},    {16, 4096, 4096},   {128, 4096, 4096},
    {512, 4096, 4096},  {1, 11008, 4096},   {512, 11008, 4096}, {256, 256, 256},
    {1024, 1024, 1024}, {2048, 2048, 2048}, {3072, 2048, 3072}, {384, 384, 64},
    {127, 509, 251},
};

// Bytes that `count` elements take.
size_t element_bytes(Element element, int64_t count);

// Reproducible random elements of all signs and sizes, floats in [-1, 1].
void fill_random(Element element, void* data, int64_t count, uint64_t seed);

// The first of m * n results that differs from `want`, as text; empty if there is none. Integers
// are to be equal. Floats may be apart by the roundings of two sums of k products in any order,
// which is far less than one lost product.
std::string first_difference(const OpType& type, const OpShape& shape, const void* got,
                             const void* want);

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_PEERS_PROBLEMS_H_
