// libxsmm: its batch-reduce kernels, called as a caller would who blocks for the cache. Of a few
// block sizes, the ones that a trial finds the fastest.
//
// libxsmm counts in columns, so that its A, of `m` rows and `k` columns, are the weights, its B the
// LHS, and its C the transposed output:
//
//   weights [N/bn][K/bk][bk/v][bn][v]   v = 1, 2, 4 elements make 32 bits
//   LHS     [M/bm][K/bk][bm][bk]        or row-major
//   out     [M/bm][N/bn][bm][bn]        or row-major
//
// The last block of each dimension is smaller.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <libxsmm.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "bench/peers/contestant.h"
#include "bench/peers/trial.h"
#include "ukernel/ukernel.h"

namespace {

using Kernel = void (*)(const void* a, const void* b, void* c, const unsigned long long* count);

struct Blocks {
  int64_t m, n, k;
  int64_t k_at_once;  // of all K in one pass over the output; a multiple of k
};

struct TypeSizes {
  int64_t bytes;  // of an element of either operand
  int64_t group;  // elements that make 32 bits, side by side
};

// Products of m rows of the LHS, n of the weights, and some blocks of k.
Kernel find_kernel(uint32_t type, int64_t m, int64_t n, int64_t k, int64_t lhs_stride,
                   int64_t lhs_block_bytes, int64_t weights_block_bytes, int64_t out_stride,
                   bool accumulates) {
  const auto rows = static_cast<libxsmm_blasint>(n), columns = static_cast<libxsmm_blasint>(m),
             depth = static_cast<libxsmm_blasint>(k),
             a_step = static_cast<libxsmm_blasint>(weights_block_bytes),
             b_step = static_cast<libxsmm_blasint>(lhs_block_bytes), lda = rows,
             ldb = static_cast<libxsmm_blasint>(lhs_stride),
             ldc = static_cast<libxsmm_blasint>(out_stride);
  const float one = 1, beta = accumulates ? 1 : 0;
  const int int_one = 1, int_beta = accumulates ? 1 : 0;
  const int groups = LIBXSMM_GEMM_FLAG_VNNI_A;
  const auto cast = [](auto kernel) { return reinterpret_cast<Kernel>(kernel); };
  switch (type) {
    case UK_MMT4D_TYPE_F32F32F32:
      return cast(libxsmm_smmdispatch_reducebatch_strd(rows, columns, depth, a_step, b_step, &lda,
                                                       &ldb, &ldc, &one, &beta, nullptr, nullptr));
    case UK_MMT4D_TYPE_BF16BF16F32:
      return cast(libxsmm_bsmmdispatch_reducebatch_strd(rows, columns, depth, a_step, b_step, &lda,
                                                        &ldb, &ldc, &one, &beta, &groups, nullptr));
    case UK_MMT4D_TYPE_U8S8S32:
      return cast(libxsmm_subimmdispatch_reducebatch_strd(rows, columns, depth, a_step, b_step,
                                                          &lda, &ldb, &ldc, &int_one, &int_beta,
                                                          &groups, nullptr));
    default:
      return nullptr;
  }
}

int64_t round_up(int64_t a, int64_t to) { return (a + to - 1) / to * to; }

class Operation {
 public:
  Operation(const uk_problem_t& problem, TypeSizes sizes)
      : p_(problem),
        sizes_(sizes),
        padded_k_(round_up(problem.k, sizes.group)),
        blocks_lhs_(problem.form == UK_FORM_PACKED || padded_k_ != problem.k) {
    // In rows, each thread makes its own blocks: none waits for another.
    const int buffers = p_.form == UK_FORM_PACKED ? 1 : p_.threads;
    if (blocks_lhs_) lhs_.assign(buffers, std::vector<char>(p_.m * padded_k_ * sizes_.bytes));
    if (p_.form == UK_FORM_PACKED) out_.resize(p_.m * p_.n);
  }

  // False if libxsmm has no kernel that the blocks need.
  bool set_blocks(const Blocks& blocks) {
    blocks_ = blocks;
    for (int index = 0; index < kKernels; ++index) {
      const int64_t m = index & kPartM ? p_.m % blocks.m : blocks.m,
                    n = index & kPartN ? p_.n % blocks.n : blocks.n,
                    k = index & kPartK ? padded_k_ % blocks.k : blocks.k;
      if (m == 0 || n == 0 || k == 0 || m > p_.m || n > p_.n || k > padded_k_) continue;
      kernels_[index] = find_kernel(p_.type, m, n, k, blocks_lhs_ ? k : p_.k,
                                    (blocks_lhs_ ? m : 1) * k * sizes_.bytes, n * k * sizes_.bytes,
                                    p_.form == UK_FORM_PACKED ? n : p_.n, index & kAdds);
      if (!kernels_[index]) return false;
    }
    return true;
  }

  void make_copies(int copies) {
    if (copies_.empty()) copies_.push_back(pack_weights());
    copies_.resize(copies, copies_[0]);
  }

  // Once the blocks are final, if the form does not count it.
  void pack_lhs() {
    if (p_.form == UK_FORM_PACKED) pack_lhs_into(lhs_[0]);
  }

  void run(int copy, int thread) {
    if (blocks_lhs_ && p_.form != UK_FORM_PACKED) pack_lhs_into(lhs_[thread]);
    const std::vector<char>* lhs =
        blocks_lhs_ ? &lhs_[p_.form == UK_FORM_PACKED ? 0 : thread] : nullptr;
    const int64_t count = (p_.n + blocks_.n - 1) / blocks_.n;
    const int64_t begin = count * thread / p_.threads * blocks_.n;
    const int64_t end = std::min(count * (thread + 1) / p_.threads * blocks_.n, p_.n);
    for (int64_t k0 = 0; k0 < padded_k_; k0 += blocks_.k_at_once) {
      for (int64_t j = begin; j < end; j += blocks_.n) {
        for (int64_t i = 0; i < p_.m; i += blocks_.m) multiply(copy, lhs, i, j, k0);
      }
    }
  }

  void write_out() {
    if (p_.form != UK_FORM_PACKED) return;
    for (int64_t i = 0; i < p_.m; ++i) {
      const int64_t i0 = i / blocks_.m * blocks_.m, m = std::min(blocks_.m, p_.m - i0);
      for (int64_t j0 = 0; j0 < p_.n; j0 += blocks_.n) {
        const int64_t n = std::min(blocks_.n, p_.n - j0);
        std::memcpy(static_cast<int32_t*>(p_.out) + i * p_.n + j0,
                    &out_[i0 * p_.n + j0 * m + (i - i0) * n], n * sizeof(int32_t));
      }
    }
  }

 private:
  void pack_lhs_into(std::vector<char>& packed) const {
    const auto* from = static_cast<const char*>(p_.lhs);
    for (int64_t i0 = 0; i0 < p_.m; i0 += blocks_.m) {
      const int64_t m = std::min(blocks_.m, p_.m - i0);
      for (int64_t k0 = 0; k0 < padded_k_; k0 += blocks_.k) {
        const int64_t k = std::min(blocks_.k, padded_k_ - k0), filled = std::min(k, p_.k - k0);
        for (int64_t i = 0; i < m; ++i) {
          std::memcpy(&packed[(i0 * padded_k_ + k0 * m + i * k) * sizes_.bytes],
                      from + ((i0 + i) * p_.k + k0) * sizes_.bytes, filled * sizes_.bytes);
        }
      }
    }
  }

  void multiply(int copy, const std::vector<char>* packed_lhs, int64_t i, int64_t j, int64_t k0) {
    const int64_t m = std::min(blocks_.m, p_.m - i), n = std::min(blocks_.n, p_.n - j);
    const int64_t k_end = std::min(k0 + blocks_.k_at_once, padded_k_);
    const int parts = (m < blocks_.m ? kPartM : 0) | (n < blocks_.n ? kPartN : 0);
    const char* weights = &copies_[copy][(j * padded_k_ + k0 * n) * sizes_.bytes];
    const char* lhs = packed_lhs
                          ? &(*packed_lhs)[(i * padded_k_ + k0 * m) * sizes_.bytes]
                          : static_cast<const char*>(p_.lhs) + (i * p_.k + k0) * sizes_.bytes;
    int32_t* out = p_.form == UK_FORM_PACKED ? &out_[i * p_.n + j * m]
                                             : static_cast<int32_t*>(p_.out) + i * p_.n + j;
    const unsigned long long whole = static_cast<unsigned long long>((k_end - k0) / blocks_.k);
    if (whole > 0) kernels_[parts | (k0 > 0 ? kAdds : 0)](weights, lhs, out, &whole);
    if ((k_end - k0) % blocks_.k > 0) {
      const int64_t done = static_cast<int64_t>(whole) * blocks_.k;
      const unsigned long long one = 1;
      kernels_[parts | kPartK | (k0 + done > 0 ? kAdds : 0)](
          weights + done * n * sizes_.bytes, lhs + done * (packed_lhs ? m : 1) * sizes_.bytes, out,
          &one);
    }
  }

  std::vector<char> pack_weights() const {
    std::vector<char> packed(p_.n * padded_k_ * sizes_.bytes);
    const auto* from = static_cast<const char*>(p_.weights);
    for (int64_t row = 0; row < p_.n; ++row) {
      const int64_t j0 = row / blocks_.n * blocks_.n, n = std::min(blocks_.n, p_.n - j0);
      for (int64_t k = 0; k < p_.k; ++k) {
        const int64_t k0 = k / blocks_.k * blocks_.k, group = sizes_.group;
        const int64_t at = j0 * padded_k_ + k0 * n + (k - k0) / group * n * group +
                           (row - j0) * group + (k - k0) % group;
        std::memcpy(&packed[at * sizes_.bytes],
                    from + (p_.weights_are_k_by_n ? k * p_.n + row : row * p_.k + k) * sizes_.bytes,
                    sizes_.bytes);
      }
    }
    return packed;
  }

  uk_problem_t p_;
  TypeSizes sizes_;
  int64_t padded_k_;
  Blocks blocks_ = {};
  bool blocks_lhs_;
  // For the last block of a dimension, which is smaller, and for what adds to the output.
  enum { kPartM = 1, kPartN = 2, kPartK = 4, kAdds = 8, kKernels = 16 };
  Kernel kernels_[kKernels] = {};
  std::vector<std::vector<char>> copies_;
  std::vector<std::vector<char>> lhs_;
  std::vector<int32_t> out_;
};

constexpr int64_t kBlockN = 64, kBlockK = 64;

// Few rows fill one block. Else a block of K is to stay in a cache while all rows go past it.
std::vector<Blocks> candidates(const uk_problem_t& p) {
  const int64_t n = std::min(kBlockN, p.n), all_k = round_up(p.k, kBlockK);
  std::vector<Blocks> found;
  for (const int64_t m : {16, 32, 48}) {
    for (const int64_t k_at_once : {4 * kBlockK, 16 * kBlockK, all_k}) {
      if (k_at_once <= all_k) found.push_back({std::min(m, p.m), n, kBlockK, k_at_once});
    }
    if (p.m <= m) break;
  }
  return found;
}

// False if libxsmm has no such product: with two signed operands, 1.17 has kernels that give zeros.
bool sizes_of(uint32_t type, TypeSizes* sizes) {
  switch (type) {
    case UK_MMT4D_TYPE_F32F32F32:
      *sizes = {4, 1};
      return true;
    case UK_MMT4D_TYPE_BF16BF16F32:
      *sizes = {2, 2};
      return true;
    case UK_MMT4D_TYPE_U8S8S32:
      *sizes = {1, 4};
      return true;
    default:
      return false;
  }
}

void* make(const uk_problem_t* problem) {
  TypeSizes sizes;
  // The library has nothing that packs whole matrices.
  if (problem->form == UK_FORM_WHOLE || !sizes_of(problem->type, &sizes)) return nullptr;
  // The trial runs on one thread, where a part of N does as well as all of it.
  auto operation = std::make_unique<Operation>(*problem, sizes);
  Blocks best = {};
  double best_seconds = 0;
  for (const Blocks& blocks : candidates(*problem)) {
    if (!operation->set_blocks(blocks)) continue;
    operation->pack_lhs();
    operation->make_copies(1);
    const double seconds = uk::bench::trial_seconds([&] { operation->run(0, 0); });
    if (best.m == 0 || seconds < best_seconds) best = blocks, best_seconds = seconds;
  }
  if (best.m == 0) return nullptr;
  operation->set_blocks(best);
  operation->pack_lhs();
  operation->make_copies(problem->copies);
  return operation.release();
}

void run(void* operation, int copy, int thread) {
  static_cast<Operation*>(operation)->run(copy, thread);
}

void write_out(void* operation) { static_cast<Operation*>(operation)->write_out(); }

void destroy(void* operation) { delete static_cast<Operation*>(operation); }

const uk_contestant_t kContestant = {"libxsmm", LIBXSMM_CONFIG_VERSION, 1, make, run, write_out,
                                     destroy};

}  // namespace

extern "C" const uk_contestant_t* uk_contestant() { return &kContestant; }
