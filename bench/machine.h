// The machine at hand, and memory for benchmarks.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_MACHINE_H_
#define UKERNEL_BENCH_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

namespace uk::bench {

std::string cpu_name();

// 0 if unknown.
size_t last_level_cache_bytes();

// What counts as memory. Copies of some data that take as much together, walked in a circle, find
// next to nothing in the last-level cache: twice its size, 64 MiB at least, but not more than a
// small machine can spare.
size_t bytes_beyond_cache();

constexpr size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// Memory that grows and never shrinks, so that pages are new once and not in every product.
class Buffer {
 public:
  char* reserve(size_t bytes);
  char* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(char* data) const { std::free(data); }
  };
  std::unique_ptr<char, Free> data_;
  size_t capacity_ = 0;
};

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_MACHINE_H_
