// mmt4d tiles against the oracle.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "tests/conformance/check.h"
#include "tests/conformance/matmul.h"

namespace uk_conformance {
namespace {

// What a tile may be passed beside ACCUMULATE: it reads PREFETCH_RHS, which changes no result, and
// no other bit. The first two are a plain call and one with everything.
constexpr uint32_t kKnownFlags = UK_MMT4D_ACCUMULATE | UK_MMT4D_PREFETCH_RHS;
constexpr uint32_t kExtraFlags[] = {0, ~UK_MMT4D_ACCUMULATE, UK_MMT4D_PREFETCH_RHS, ~kKnownFlags};

constexpr int64_t kMostStepsOfSweep = 257;
// Tiles of few results have several sums of each.
constexpr int64_t kMostResultsOfDeepest = 32;

std::string flags_text(uint32_t flags) {
  std::string text = flags & UK_MMT4D_ACCUMULATE ? "ACCUMULATE" : "no ACCUMULATE";
  if (flags & UK_MMT4D_PREFETCH_RHS) text += ", PREFETCH_RHS";
  if (flags & ~kKnownFlags) text += ", bits a tile ignores";
  return text;
}

class Mmt4dCheck {
 public:
  explicit Mmt4dCheck(const uk_tile_row_t& row)
      : row_(row),
        type_(*find_matmul_type(row.flags)),
        shape_(shape_of(row)),
        catcher_({&lhs_, &rhs_, &out_}) {}

  std::string run() {
    std::vector<DataKind> kinds = data_kinds(type_, shape_.k0, row_.numerics);
    if (type_.rhs == Element::s4 && shape_.m0 * shape_.n0 <= kMostResultsOfDeepest) {
      kinds.push_back(deepest_data_kind(shape_.k0));
    }
    for (size_t i = 0; i < kinds.size(); ++i) {
      for (const int64_t steps : kinds[i].steps) {
        for (const bool accumulate : {true, false}) {
          // Beyond this the sums are the expensive part, and no path of a tile is new.
          if (steps > kMostStepsOfSweep && !accumulate) continue;
          const bool sweep = i == 0 && steps <= kMostStepsOfSweep;
          const std::string wrong = run_data(kinds[i], steps, accumulate, sweep);
          if (!wrong.empty()) return wrong;
        }
      }
    }
    return "";
  }

 private:
  std::string run_data(const DataKind& kind, int64_t steps, bool accumulate, bool sweep) {
    Problem problem(type_, shape_.m0, shape_.n0, shape_.k0, steps, accumulate);
    Random random(static_cast<uint64_t>(steps * 2 + accumulate));
    kind.fill(problem, random, row_.numerics, kind.variant);
    const Expectation expectation = expect(problem, row_.numerics, kind.exactness);
    // NaN in every float type. Without ACCUMULATE none of it may be read.
    const std::vector<uint8_t> garbage(problem.out.bytes().size(), 0xFF);
    const auto places = placements(
        {element_bytes(type_.lhs), element_bytes(type_.rhs), element_bytes(type_.out)}, sweep);
    for (size_t i = 0; i < places.size(); ++i) {
      lhs_.place(problem.lhs.bytes(), places[i][0], GuardedBuffer::read_only);
      rhs_.place(problem.rhs.bytes(), places[i][1], GuardedBuffer::read_only);
      out_.place(accumulate ? problem.out.bytes() : garbage, places[i][2], GuardedBuffer::writable);
      const uint32_t extra = kExtraFlags[sweep ? (i + i / 4) % 4 : i];
      const uint32_t flags = extra | (accumulate ? UK_MMT4D_ACCUMULATE : 0);
      std::string wrong = catcher_.run([&] { call(steps, flags); });
      if (wrong.empty()) wrong = out_.damage_outside();
      if (wrong.empty()) wrong = first_difference(expectation);
      if (wrong.empty()) continue;
      return wrong + "\n  with k1 = " + std::to_string(steps) + ", data: " + kind.name + ", " +
             flags_text(flags) + "\n  " + describe(lhs_, places[i][0]) + "; " +
             describe(rhs_, places[i][1]) + "; " + describe(out_, places[i][2]);
    }
    return "";
  }

  void call(int64_t steps, uint32_t flags) {
    if (row_.function) {
      const auto tile = reinterpret_cast<uk_mmt4d_tile_fn*>(row_.function);
      return tile(out_.data(), lhs_.data(), rhs_.data(), steps, flags);
    }
    uk_mmt4d_params_t params = {};
    params.struct_size = sizeof(params);
    params.lhs = lhs_.data();
    params.rhs = rhs_.data();
    params.out = out_.data();
    params.m = params.n = 1;
    params.k = steps;
    params.m0 = shape_.m0;
    params.n0 = shape_.n0;
    params.k0 = shape_.k0;
    params.flags = type_.flag | (flags & UK_MMT4D_ACCUMULATE) | UK_MMT4D_ALLOW_GENERIC_FALLBACK;
    uk_mmt4d(&params);  // an error leaves OUT as it was, which the comparison shows
  }

  std::string first_difference(const Expectation& expectation) const {
    const int bits = bits_of(type_.out);
    const int64_t count = int64_t{shape_.m0} * shape_.n0;
    int64_t first = -1, differing = 0;
    for (int64_t e = 0; e < count; ++e) {
      if (expectation.accepts(static_cast<size_t>(e), load_bits(out_.data(), e, bits))) continue;
      if (differing++ == 0) first = e;
    }
    if (differing == 0) return "";
    return "out(i=" + std::to_string(first / shape_.n0) +
           ", j=" + std::to_string(first % shape_.n0) + ") is " +
           uk_conformance::describe(type_.out, load_bits(out_.data(), first, bits)) +
           ", expected " + expectation.describe(static_cast<size_t>(first)) + "; " +
           std::to_string(differing) + " of " + std::to_string(count) + " elements differ";
  }

  static int64_t element_bytes(Element element) { return (bits_of(element) + 7) / 8; }

  const uk_tile_row_t& row_;
  const MatmulType& type_;
  const uk_tile_sizes_t shape_;
  GuardedBuffer lhs_{"lhs"}, rhs_{"rhs"}, out_{"out"};
  FaultCatcher catcher_;
};

}  // namespace

std::string check_mmt4d(const uk_tile_row_t& row) { return Mmt4dCheck(row).run(); }

}  // namespace uk_conformance
