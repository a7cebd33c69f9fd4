// Of measurements.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_MEDIAN_H_
#define UKERNEL_BENCH_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace uk::bench {

// Of values in order, the one after so many quarters of them.
inline double nearest_rank(std::vector<double>& values, size_t quarters) {
  const auto rank = values.begin() + static_cast<ptrdiff_t>(values.size() * quarters / 4);
  std::nth_element(values.begin(), rank, values.end());
  return *rank;
}

inline double median(std::vector<double> values) { return nearest_rank(values, 2); }

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_MEDIAN_H_
