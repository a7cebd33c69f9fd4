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

// Starts the program again, with glibc told to ask for large pages, for itself and all libraries;
// where GLIBC_TUNABLES is set it stays as it is. To be called first in main. A kernel that grants
// none is asked in vain.
//
// Pages decide up to 15 % of the speed at which a core reads memory, and of small ones who
// allocates first gets the slowest. Large blocks have to come from glibc's heap, too: mapped one by
// one, they begin and end within large pages, and where the kernel or a hypervisor looks every half
// second which pages are in use, the next read of such a block was seen to take three times as
// long. Who is called least would pay the most for it.
void start_with_large_pages(char** argv);

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
