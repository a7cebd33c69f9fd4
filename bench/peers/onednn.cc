// oneDNN: of its matmul and its inner product, with weights in the layout it asks for or in the
// caller's, the one that a trial finds the fastest.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include <dnnl.hpp>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/peers/contestant.h"
#include "bench/peers/trial.h"
#include "ukernel/ukernel.h"

// Of the OpenMP runtime that oneDNN is linked with, whatever the compiler at hand would link.
extern "C" void omp_set_num_threads(int threads);

namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;

struct Types {
  Type lhs, weights, out;
};

// On x86 without VNNI oneDNN adds two products of bytes in 16 bits, which do not hold all of them:
// it is right only where bytes use seven bits. An exact product takes a third more instructions.
bool bytes_are_exact([[maybe_unused]] const uint64_t* cpu_data) {
#ifdef __x86_64__
  return (cpu_data[0] & UK_CPU_X86_64_AVX512VNNI) || (cpu_data[7] & UK_CPU_FIELD7_X86_64_AVXVNNI);
#else
  return true;
#endif
}

// False if oneDNN has no such product.
bool types_of(const uk_problem_t& problem, Types* types) {
  switch (problem.type) {
    case UK_MMT4D_TYPE_F32F32F32:
      *types = {Type::f32, Type::f32, Type::f32};
      return true;
    case UK_MMT4D_TYPE_BF16BF16F32:
      *types = {Type::bf16, Type::bf16, Type::f32};
      return true;
    case UK_MMT4D_TYPE_S8S8S32:
      *types = {Type::s8, Type::s8, Type::s32};
      return bytes_are_exact(problem.cpu_data);
    case UK_MMT4D_TYPE_U8S8S32:
      *types = {Type::u8, Type::s8, Type::s32};
      return bytes_are_exact(problem.cpu_data);
    default:
      return false;
  }
}

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// A primitive and the layouts it works on.
struct Plan {
  dnnl::primitive primitive;
  memory::desc lhs, weights, out;
  memory::desc caller_weights;
};

Plan matmul(const uk_problem_t& p, const Types& t, bool own_weights, bool own_operands) {
  const Tag rows = own_operands ? Tag::any : Tag::ab;
  const memory::dims weights = {p.k, p.n};
  const memory::desc caller_weights(weights, t.weights, p.weights_are_k_by_n ? Tag::ab : Tag::ba);
  const dnnl::matmul::desc desc(
      memory::desc({p.m, p.k}, t.lhs, rows),
      own_weights ? memory::desc(weights, t.weights, Tag::any) : caller_weights,
      memory::desc({p.m, p.n}, t.out, rows));
  const dnnl::matmul::primitive_desc made(desc, cpu());
  return {dnnl::matmul(made), made.src_desc(), made.weights_desc(), made.dst_desc(),
          caller_weights};
}

Plan inner_product(const uk_problem_t& p, const Types& t, bool own_weights, bool own_operands) {
  using Product = dnnl::inner_product_forward;
  const Tag rows = own_operands ? Tag::any : Tag::ab;
  const memory::dims weights = {p.n, p.k};
  const memory::desc caller_weights(weights, t.weights, p.weights_are_k_by_n ? Tag::ba : Tag::ab);
  const Product::desc desc(
      dnnl::prop_kind::forward_inference, memory::desc({p.m, p.k}, t.lhs, rows),
      own_weights ? memory::desc(weights, t.weights, Tag::any) : caller_weights,
      memory::desc({p.m, p.n}, t.out, rows));
  const Product::primitive_desc made(desc, cpu());
  return {Product(made), made.src_desc(), made.weights_desc(), made.dst_desc(), caller_weights};
}

class Operation {
 public:
  Operation(const uk_problem_t& problem, Plan plan, bool reorders_weights, const Types& types)
      : problem_(problem),
        plan_(std::move(plan)),
        reorders_weights_(reorders_weights),
        stream_(cpu()),
        caller_lhs_({problem.m, problem.k}, types.lhs, Tag::ab),
        caller_out_({problem.m, problem.n}, types.out, Tag::ab) {}

  void make_copies(int copies) {
    while (static_cast<int>(arguments_.size()) < copies) add_copy();
  }
  void run(int copy) {
    auto& arguments = arguments_[copy];
    if (problem_.form == UK_FORM_WHOLE && reorders_weights_) {
      reorder(plan_.caller_weights, problem_.weights, arguments.at(DNNL_ARG_WEIGHTS));
    }
    plan_.primitive.execute(stream_, arguments);
    stream_.wait();
    last_ = copy;
  }
  void write_out() {
    memory& out = arguments_[last_].at(DNNL_ARG_DST);
    if (out.get_data_handle() == problem_.out) return;
    memory target(caller_out_, cpu(), problem_.out);
    dnnl::reorder(out, target).execute(stream_, out, target);
    stream_.wait();
  }

 private:
  void reorder(const memory::desc& layout, const void* from, memory& to) {
    memory source(layout, cpu(), const_cast<void*>(from));
    dnnl::reorder(source, to).execute(stream_, source, to);
    stream_.wait();
  }
  // The caller's memory where the primitive works on its layout, else a reordered copy.
  memory operand(const memory::desc& caller, const memory::desc& own, const void* data) {
    if (caller == own) return memory(caller, cpu(), const_cast<void*>(data));
    memory copy(own, cpu());
    reorder(caller, data, copy);
    return copy;
  }
  void add_copy() {
    const bool first = arguments_.empty();
    memory weights = operand(plan_.caller_weights, plan_.weights, problem_.weights);
    if (!first && plan_.caller_weights == plan_.weights) {
      weights = memory(plan_.weights, cpu());
      reorder(plan_.caller_weights, problem_.weights, weights);
    }
    const memory lhs =
        first ? operand(caller_lhs_, plan_.lhs, problem_.lhs) : arguments_[0].at(DNNL_ARG_SRC);
    const memory out = !first                     ? arguments_[0].at(DNNL_ARG_DST)
                       : caller_out_ == plan_.out ? memory(caller_out_, cpu(), problem_.out)
                                                  : memory(plan_.out, cpu());
    arguments_.push_back({{DNNL_ARG_SRC, lhs}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, out}});
  }

  uk_problem_t problem_;
  Plan plan_;
  bool reorders_weights_;
  dnnl::stream stream_;
  memory::desc caller_lhs_, caller_out_;
  std::vector<std::unordered_map<int, memory>> arguments_;  // of each copy
  int last_ = 0;
};

void* make(const uk_problem_t* problem) {
  Types types;
  if (!types_of(*problem, &types)) return nullptr;
  omp_set_num_threads(problem->threads);
  std::unique_ptr<Operation> best;
  double best_seconds = 0;
  for (const auto plan : {matmul, inner_product}) {
    for (const bool own_weights : {true, false}) {
      try {
        const bool own_operands = problem->form == UK_FORM_PACKED;
        auto operation = std::make_unique<Operation>(
            *problem, plan(*problem, types, own_weights, own_operands), own_weights, types);
        operation->make_copies(1);
        const double seconds = uk::bench::trial_seconds([&] { operation->run(0); });
        if (!best || seconds < best_seconds) {
          best = std::move(operation);
          best_seconds = seconds;
        }
      } catch (const dnnl::error&) {
        // It has no such primitive for this problem.
      }
    }
  }
  if (best) best->make_copies(problem->copies);
  return best.release();
}

void run(void* operation, int copy, int) { static_cast<Operation*>(operation)->run(copy); }

void write_out(void* operation) { static_cast<Operation*>(operation)->write_out(); }

void destroy(void* operation) { delete static_cast<Operation*>(operation); }

}  // namespace

extern "C" const uk_contestant_t* uk_contestant() {
  static const std::string version = [] {
    const dnnl::version_t* v = dnnl::version();
    return std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
           std::to_string(v->patch);
  }();
  static const uk_contestant_t contestant = {"onednn", version.c_str(), 0,      make,
                                             run,      write_out,       destroy};
  return &contestant;
}
