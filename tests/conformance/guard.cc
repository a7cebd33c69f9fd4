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
#include <iterator>
#include <utility>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace uk_conformance {
namespace {

// Wide enough that a tile which runs away, or takes a wrong stride, meets no other mapping first.
constexpr int64_t kUnmappedBytes = 16 << 20;

// Of pages that no buffer has at the moment.
constexpr int64_t kMostSpareBytes = 64 << 20;
constexpr size_t kMostSparePages = 256;

// Of pages that are mapped twice.
size_t mapped_bytes(int64_t size) { return static_cast<size_t>(2 * size + 3 * kUnmappedBytes); }

int64_t page_size() {
  static const int64_t size = sysconf(_SC_PAGESIZE);
  return size;
}

void check(bool ok, const char* what) {
  if (ok) return;
  std::perror(what);
  std::abort();
}

// What lies around the contents: `count` bytes that differ from one to the next, so that a shifted
// copy of themselves shows. Kept from call to call, as every placement writes and compares pages.
const uint8_t* pattern(int64_t count) {
  static std::vector<uint8_t> bytes;
  for (size_t i = bytes.size(); i < static_cast<size_t>(count); ++i) {
    bytes.push_back(static_cast<uint8_t>(0xA5 ^ i * 29));
  }
  return bytes.data();
}

std::string bytes_text(int64_t count) {
  return std::to_string(count) + (count == 1 ? " byte" : " bytes");
}

}  // namespace

// Those that no buffer has, the latest last. First touching a page costs more than most tests of
// it; meanwhile no callee may.
std::vector<GuardedBuffer::Pages>& GuardedBuffer::spare_pages() {
  static std::vector<Pages> spare;
  return spare;
}

// unmapped | own | unmapped | seen | unmapped
GuardedBuffer::Pages GuardedBuffer::map(int64_t size) {
  const size_t length = static_cast<size_t>(size);
  void* around = mmap(nullptr, mapped_bytes(size), PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(around != MAP_FAILED, "mmap");
  uint8_t* own = static_cast<uint8_t*>(around) + kUnmappedBytes;
  uint8_t* seen = own + size + kUnmappedBytes;
  const int memory = memfd_create("guarded", MFD_CLOEXEC);
  check(memory >= 0, "memfd_create");
  check(ftruncate(memory, size) == 0, "ftruncate");
  for (uint8_t* at : {own, seen}) {
    check(mmap(at, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE | MAP_FIXED, memory,
               0) == at,
          "mmap");
  }
  close(memory);
  return {own, seen, size, writable};
}

void GuardedBuffer::unmap(const Pages& pages) {
  munmap(pages.own - kUnmappedBytes, mapped_bytes(pages.size));
}

void GuardedBuffer::protect(Access access) {
  if (access == pages_.access) return;
  const int protection = access == untouchable ? PROT_NONE
                         : access == read_only ? PROT_READ
                                               : PROT_READ | PROT_WRITE;
  check(mprotect(pages_.seen, static_cast<size_t>(pages_.size), protection) == 0, "mprotect");
  pages_.access = access;
}

void GuardedBuffer::take(int64_t bytes) {
  const int64_t page = page_size();
  const int64_t size = std::max<int64_t>((bytes + page - 1) / page, 1) * page;
  if (size == pages_.size) return;
  give_back();
  std::vector<Pages>& spare = spare_pages();
  const auto found = std::find_if(spare.rbegin(), spare.rend(),
                                  [&](const Pages& pages) { return pages.size == size; });
  if (found == spare.rend()) {
    pages_ = map(size);
  } else {
    pages_ = *found;
    spare.erase(std::next(found).base());
  }
}

void GuardedBuffer::give_back() {
  if (pages_.size == 0) return;
  protect(untouchable);
  std::vector<Pages>& spare = spare_pages();
  spare.push_back(pages_);
  pages_ = {};
  int64_t bytes = 0;
  for (const Pages& pages : spare) bytes += pages.size;
  while (bytes > kMostSpareBytes || spare.size() > kMostSparePages) {
    bytes -= spare.front().size;
    unmap(spare.front());
    spare.erase(spare.begin());
  }
}

void GuardedBuffer::place(const std::vector<uint8_t>& contents, Placement placement,
                          Access access) {
  size_ = static_cast<int64_t>(contents.size());
  take(size_ + placement.offset);
  protect(access);
  const int64_t first = placement.edge == Placement::start ? placement.offset
                                                           : pages_.size - placement.offset - size_;
  const int64_t last = first + size_;
  data_ = pages_.seen + first;
  std::memcpy(pages_.own, pattern(pages_.size), static_cast<size_t>(first));
  std::memcpy(pages_.own + last, pattern(pages_.size) + last,
              static_cast<size_t>(pages_.size - last));
  if (size_ > 0) std::memcpy(pages_.own + first, contents.data(), contents.size());
}

std::string GuardedBuffer::damage_outside() const {
  const int64_t first = data_ - pages_.seen, last = first + size_;
  const uint8_t *bytes = pages_.own, *expected = pattern(pages_.size);
  if (std::memcmp(bytes, expected, static_cast<size_t>(first)) == 0 &&
      std::memcmp(bytes + last, expected + last, static_cast<size_t>(pages_.size - last)) == 0) {
    return "";
  }
  for (int64_t i = pages_.size - 1; i >= last; --i) {
    if (bytes[i] != expected[i]) {
      return "wrote up to " + bytes_text(i - last + 1) + " past the end of " + name_;
    }
  }
  for (int64_t i = 0; i < first; ++i) {
    if (bytes[i] != expected[i]) {
      return "wrote up to " + bytes_text(first - i) + " before the start of " + name_;
    }
  }
  return "";
}

bool GuardedBuffer::owns(const void* address) const {
  const uintptr_t a = reinterpret_cast<uintptr_t>(address);
  const uintptr_t low = reinterpret_cast<uintptr_t>(pages_.seen) - kUnmappedBytes;
  return pages_.seen && a >= low &&
         a - low < static_cast<uintptr_t>(pages_.size + 2 * kUnmappedBytes);
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

const char* subject = nullptr;

void report_exit() {
  if (!armed) return;
  std::printf("FAIL %s: called exit\n", subject ? subject : "the function");
  std::fflush(stdout);
  std::_Exit(1);
}

struct Fault {
  int signal;
  void* address;
  enum { unknown, read, write } kind;
} fault;

#if defined(__aarch64__)
// By the instruction: an emulator may leave the fault's syndrome out of the context. Bit 22 tells
// loads from stores, but for loads of one register that extend the sign, which have bit 23 instead.
bool is_load(uint32_t instruction) {
  const bool one_general_register = (instruction >> 26 & 0xF) == 0xE;
  return (instruction >> 22 & 1) != 0 || (one_general_register && (instruction >> 23 & 1) != 0);
}
#endif

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
#elif defined(__aarch64__)
  uint32_t instruction;
  if (signal == SIGSEGV) {
    std::memcpy(&instruction,
                reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.pc),
                sizeof(instruction));
    fault.kind = is_load(instruction) ? Fault::read : Fault::write;
  }
#else
  static_cast<void>(context);
#endif
  siglongjmp(jump, 1);
}

}  // namespace

FaultCatcher::FaultCatcher(std::vector<const GuardedBuffer*> buffers)
    : buffers_(std::move(buffers)) {
  static const bool registered = std::atexit(report_exit) == 0;
  check(registered, "atexit");
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < kSignalCount; ++i) sigaction(kSignals[i], &action, &previous_[i]);
}

FaultCatcher::~FaultCatcher() {
  for (int i = 0; i < kSignalCount; ++i) sigaction(kSignals[i], &previous_[i], nullptr);
}

void FaultCatcher::set_subject(const char* name) { subject = name; }

sigjmp_buf* FaultCatcher::arm() {
  armed = 1;
  return &jump;
}

void FaultCatcher::disarm() { armed = 0; }

// Rounding and flushing modes, without the sticky exception flags.
uint32_t FaultCatcher::control_word() {
#if defined(__x86_64__)
  return _mm_getcsr() & ~0x3Fu;
#elif defined(__aarch64__)
  uint64_t fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  return static_cast<uint32_t>(fpcr);
#else
  return static_cast<uint32_t>(std::fegetround());
#endif
}

std::string FaultCatcher::describe_fault() const {
  if (fault.signal == SIGILL) return "executed an illegal instruction";
  if (fault.signal == SIGFPE) return "raised an arithmetic exception";
  if (fault.signal == SIGABRT) return "called abort";
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
