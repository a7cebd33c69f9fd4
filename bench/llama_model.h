// The matrix products of one Llama-2-7B layer, their element types and tensors, and the reference.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_LLAMA_MODEL_H_
#define UKERNEL_BENCH_LLAMA_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/packed_product.h"
#include "ukernel/ukernel.h"

namespace uk::bench {

enum class Element { kF32, kBf16, kS8, kU8 };

struct Type {
  const char* name;
  uint32_t mmt4d_type;
  uint32_t pack_type, out_pack_type;
  Element lhs, rhs;
  int element_bytes;  // of either operand; outputs have four
};

// A linear layer is a product with one head: activations [m][k], weights [n][k] as PyTorch keeps
// them, output [m][n]. In attention the cached keys or values take the weights' place, and Q, K, V
// and the result are [token][head][128], so that a head is a slice of a wider row-major matrix;
// scores are [head][m][context].
struct Product {
  const char* name;
  int64_t heads, n, k;
  bool lhs_rows_hold_all_heads, out_rows_hold_all_heads;
  bool rhs_is_k_by_n;

  Operand lhs(int64_t m) const;
  Operand rhs() const;
  int64_t out_head_stride(int64_t m) const { return out_rows_hold_all_heads ? n : m * n; }
  int64_t out_row_stride() const { return out_rows_hold_all_heads ? heads * n : n; }
  std::string shape(int64_t m) const;  // "512x4096x4096", with "32*" before it for 32 heads
};

constexpr Type kTypes[] = {
    {"f32", UK_MMT4D_TYPE_F32F32F32, UK_PACK_TYPE_F32, UK_PACK_TYPE_F32, Element::kF32,
     Element::kF32, 4},
    {"bf16", UK_MMT4D_TYPE_BF16BF16F32, UK_PACK_TYPE_BF16, UK_PACK_TYPE_F32, Element::kBf16,
     Element::kBf16, 2},
    {"s8", UK_MMT4D_TYPE_S8S8S32, UK_PACK_TYPE_I8, UK_PACK_TYPE_I32, Element::kS8, Element::kS8, 1},
    {"u8", UK_MMT4D_TYPE_U8S8S32, UK_PACK_TYPE_I8, UK_PACK_TYPE_I32, Element::kU8, Element::kS8, 1},
};

constexpr Product kProducts[] = {
    {"qkvo", 1, 4096, 4096, false, false, false},  {"gate_up", 1, 11008, 4096, false, false, false},
    {"down", 1, 4096, 11008, false, false, false}, {"scores", 32, 2048, 128, true, false, false},
    {"values", 32, 128, 2048, false, true, true},
};

// Reproducible random elements: floats in [-1, 1], integers over their whole range.
void fill_random(Element element, void* data, int64_t count, uint64_t seed, int threads);

struct Accuracy {
  int64_t outputs = 0;
  double error = 0;  // the largest; see check_outputs
  double bound = 0;
  bool bitwise = false;  // compared with the chain of fused multiply-adds as well
  std::string mismatch;  // the first output that failed, empty if none
};

// Compares at least 1,000 outputs with a computation from the unpacked tensors: the corners of
// every head, the last row and column, and random ones. Integers must be equal (error |got - want|,
// bound 0). For floats the error is |got - want| / sqrt(sum of (lhs * rhs)^2) against a double
// reference and the bound is 8 * sqrt(k) * 2^-24: for terms of random sign roundings add up to
// about a third of sqrt(k) * 2^-24, while one lost or repeated term makes 1 / sqrt(k). If
// `fma_chain` they must also be the bits of one fused multiply-add per k.
Accuracy check_outputs(const Product& product, const Type& type, int64_t m, const void* lhs,
                       const void* rhs, const void* out, bool fma_chain, int threads);

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_LLAMA_MODEL_H_
