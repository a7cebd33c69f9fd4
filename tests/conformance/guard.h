// Buffers between unmapped pages, and calls that survive touching them.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_TESTS_CONFORMANCE_GUARD_H_
#define UKERNEL_TESTS_CONFORMANCE_GUARD_H_

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

namespace uk_conformance {

// Where a buffer lies in its pages: flush against the unmapped page at one side, or `offset` bytes
// away from it.
struct Placement {
  enum Edge { start, end } edge;
  int64_t offset;
};

// Whole pages with a wide unmapped range on either side. The bytes that a placement leaves over
// hold a pattern, so that a stray write there shows too.
class GuardedBuffer {
 public:
  enum Access { untouchable, read_only, writable };

  explicit GuardedBuffer(const char* name) : name_(name) {}
  ~GuardedBuffer() { give_back(); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  // Copies the contents to their place and sets the access that the callee gets.
  void place(const std::vector<uint8_t>& contents, Placement placement, Access access);

  const char* name() const { return name_; }
  uint8_t* data() const { return data_; }
  int64_t size() const { return size_; }

  // Empty if the bytes around the contents still hold the pattern.
  std::string damage_outside() const;

  // Whether the address lies in the pages or the unmapped ranges beside them, and in words where.
  bool owns(const void* address) const;
  std::string locate(const void* address) const;

 private:
  // The same memory twice. What the callee sees lies between unmapped ranges and may be read-only;
  // the contents are written to the other, as changing its access each time would take the kernel
  // longer than the call that is tested.
  struct Pages {
    uint8_t *own, *seen;
    int64_t size;
    Access access;  // the callee's
  };
  static std::vector<Pages>& spare_pages();
  static Pages map(int64_t size);
  static void unmap(const Pages& pages);
  void protect(Access access);
  void take(int64_t bytes);
  void give_back();

  const char* name_;
  Pages pages_ = {};
  uint8_t* data_ = nullptr;
  int64_t size_ = 0;
};

// While one lives, fatal signals raised inside run() end it instead of the process.
class FaultCatcher {
 public:
  explicit FaultCatcher(std::vector<const GuardedBuffer*> buffers);
  ~FaultCatcher();
  FaultCatcher(const FaultCatcher&) = delete;
  FaultCatcher& operator=(const FaultCatcher&) = delete;

  // Whose function run() calls. Where it calls exit there is no way back, as handlers may have run:
  // the process ends with a line about it.
  static void set_subject(const char* name);

  // Empty, or what the call did: a faulting access, in words, or a changed floating-point
  // environment.
  template <class Function>
  std::string run(const Function& function) {
    const uint32_t before = control_word();
    // The mask is not saved: the handlers are installed with SA_NODEFER and leave it alone.
    if (sigsetjmp(*arm(), 0) == 0) {
      function();
      disarm();
      return control_word() == before ? "" : "changed the floating-point environment";
    }
    disarm();
    return describe_fault();
  }

 private:
  static sigjmp_buf* arm();
  static void disarm();
  static uint32_t control_word();
  std::string describe_fault() const;

  static constexpr int kSignalCount = 5;
  static constexpr int kSignals[kSignalCount] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
  std::vector<const GuardedBuffer*> buffers_;
  struct sigaction previous_[kSignalCount];
};

}  // namespace uk_conformance

#endif  // UKERNEL_TESTS_CONFORMANCE_GUARD_H_
