// Buffers between unmapped pages, and calls that survive touching them.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#include "tests/conformance/guard.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace uk_conformance {
namespace {

// Wide enough that a tile which runs away meets no other mapping first.
constexpr int64_t kUnmappedBytes = 1 << 20;

int64_t page_size() {
  static const int64_t size = sysconf(_SC_PAGESIZE);
  return size;
}

void check(bool ok, const char* what) {
  if (ok) return;
  std::perror(what);
  std::abort();
}

// Differs from byte to byte, so that a shifted copy of itself shows.
uint8_t pattern(int64_t position) { return static_cast<uint8_t>(0xA5 ^ position * 29); }

std::string bytes_text(int64_t count) {
  return std::to_string(count) + (count == 1 ? " byte" : " bytes");
}

}  // namespace

void GuardedBuffer::unmap() {
  if (mapping_) munmap(mapping_, static_cast<size_t>(pages_size_ + 2 * kUnmappedBytes));
  mapping_ = nullptr;
}

void GuardedBuffer::reserve(int64_t bytes) {
  const int64_t page = page_size();
  const int64_t wanted = std::max<int64_t>((bytes + page - 1) / page, 1) * page;
  if (mapping_ && wanted == pages_size_) return;
  unmap();
  pages_size_ = wanted;
  void* mapping = mmap(nullptr, static_cast<size_t>(pages_size_ + 2 * kUnmappedBytes), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(mapping != MAP_FAILED, "mmap");
  mapping_ = static_cast<uint8_t*>(mapping);
  pages_ = mapping_ + kUnmappedBytes;
}

void GuardedBuffer::place(const std::vector<uint8_t>& contents, Placement placement,
                          Access access) {
  size_ = static_cast<int64_t>(contents.size());
  reserve(size_ + placement.offset);
  const size_t length = static_cast<size_t>(pages_size_);
  check(mprotect(pages_, length, PROT_READ | PROT_WRITE) == 0, "mprotect");
  data_ = placement.edge == Placement::start ? pages_ + placement.offset
                                             : pages_ + pages_size_ - placement.offset - size_;
  const int64_t first = data_ - pages_;
  for (int64_t i = 0; i < first; ++i) pages_[i] = pattern(i);
  for (int64_t i = first + size_; i < pages_size_; ++i) pages_[i] = pattern(i);
  if (size_ > 0) std::memcpy(data_, contents.data(), contents.size());
  if (access == read_only) check(mprotect(pages_, length, PROT_READ) == 0, "mprotect");
}

std::string GuardedBuffer::damage_outside() const {
  const int64_t first = data_ - pages_, last = first + size_;
  for (int64_t i = pages_size_ - 1; i >= last; --i) {
    if (pages_[i] != pattern(i)) {
      return "wrote up to " + bytes_text(i - last + 1) + " past the end of " + name_;
    }
  }
  for (int64_t i = 0; i < first; ++i) {
    if (pages_[i] != pattern(i)) {
      return "wrote up to " + bytes_text(first - i) + " before the start of " + name_;
    }
  }
  return "";
}

bool GuardedBuffer::owns(const void* address) const {
  const uintptr_t a = reinterpret_cast<uintptr_t>(address);
  const uintptr_t low = reinterpret_cast<uintptr_t>(mapping_);
  return mapping_ && a >= low && a - low < static_cast<uintptr_t>(pages_size_ + 2 * kUnmappedBytes);
}

// The address is that of the first byte that could not be touched: before the start that is where
// the access began; past the end it says how far the access reached at least.
std::string GuardedBuffer::locate(const void* address) const {
  const int64_t position = static_cast<const uint8_t*>(address) - data_;
  if (position < 0) return bytes_text(-position) + " before the start of " + name_;
  if (position >= size_) {
    return "at least " + bytes_text(position - size_ + 1) + " past the end of " + name_;
  }
  return "byte " + std::to_string(position) + " of " + name_;
}

// ---------------------------------------------------------------- signals

namespace {

sigjmp_buf jump;
volatile sig_atomic_t armed = 0;

struct Fault {
  int signal;
  void* address;
  enum { unknown, read, write } kind;
} fault;

void on_signal(int signal, siginfo_t* info, void* context) {
  if (!armed) {
    // Not a tile's: the default action, on return to the faulting instruction.
    std::signal(signal, SIG_DFL);
    return;
  }
  fault = {signal, info->si_addr, Fault::unknown};
#if defined(__x86_64__)
  // Bit 1 of the page fault's error code.
  const auto error = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR];
  if (signal == SIGSEGV) fault.kind = (error & 2) != 0 ? Fault::write : Fault::read;
#else
  static_cast<void>(context);
#endif
  siglongjmp(jump, 1);
}

}  // namespace

FaultCatcher::FaultCatcher(std::vector<const GuardedBuffer*> buffers)
    : buffers_(std::move(buffers)) {
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < kSignalCount; ++i) sigaction(kSignals[i], &action, &previous_[i]);
}

FaultCatcher::~FaultCatcher() {
  for (int i = 0; i < kSignalCount; ++i) sigaction(kSignals[i], &previous_[i], nullptr);
}

sigjmp_buf* FaultCatcher::arm() {
  armed = 1;
  return &jump;
}

void FaultCatcher::disarm() { armed = 0; }

// Rounding and flushing modes, without the sticky exception flags.
uint32_t FaultCatcher::control_word() {
#if defined(__x86_64__)
  return _mm_getcsr() & ~0x3Fu;
#else
  return static_cast<uint32_t>(std::fegetround());
#endif
}

std::string FaultCatcher::describe_fault() const {
  if (fault.signal == SIGILL) return "executed an illegal instruction";
  if (fault.signal == SIGFPE) return "raised an arithmetic exception";
  const std::string access = fault.kind == Fault::write  ? "wrote "
                             : fault.kind == Fault::read ? "read "
                                                         : "touched ";
  for (const GuardedBuffer* buffer : buffers_) {
    if (!buffer->owns(fault.address)) continue;
    return access + buffer->locate(fault.address) +
           (fault.kind == Fault::write && fault.address >= buffer->data() &&
                    fault.address < buffer->data() + buffer->size()
                ? ", an input"
                : "");
  }
  char text[64];
  std::snprintf(text, sizeof(text), "address %p, far from every buffer", fault.address);
  return access + text;
}

}  // namespace uk_conformance
