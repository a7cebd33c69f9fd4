// What Linux says of the machine.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "bench/machine.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>

namespace uk::bench {

std::string cpu_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown CPU";
}

size_t last_level_cache_bytes() {
  long bytes = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
  bytes = std::max(bytes, sysconf(_SC_LEVEL3_CACHE_SIZE));
  bytes = std::max(bytes, sysconf(_SC_LEVEL2_CACHE_SIZE));
#endif
  return static_cast<size_t>(bytes);
}

size_t bytes_beyond_cache() {
  const size_t cache = last_level_cache_bytes();
  const size_t memory =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t wanted = cache ? std::max(2 * cache, size_t{64} << 20) : size_t{512} << 20;
  return std::min({wanted, size_t{2} << 30, memory / 4});
}

void start_with_large_pages(char** argv) {
  constexpr char kVariable[] = "GLIBC_TUNABLES";
  if (std::getenv(kVariable)) return;
  setenv(kVariable, "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0", 1);
  execv("/proc/self/exe", argv);
  std::perror("memory stays in small pages: cannot start again");
}

char* Buffer::reserve(size_t bytes) {
  if (bytes > capacity_) {
    data_.reset();
    data_.reset(static_cast<char*>(std::aligned_alloc(64, round_up(bytes, 64))));
    if (!data_) throw std::bad_alloc();
    capacity_ = bytes;
    std::memset(data_.get(), 0xA5, bytes);
  }
  return data_.get();
}

}  // namespace uk::bench
