// Whether somebody else runs on this core.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_BENCH_SHARED_CORE_H_
#define UKERNEL_BENCH_SHARED_CORE_H_

namespace uk::bench {

// Of times that a loop took which nothing limits but how many instructions a core issues: whether
// another hardware thread had its share of them. On a machine that is rented by the thread this is
// another tenant's, and no counter of the system tells of it. It takes up to half; a vector unit
// that lowers the clock, a quarter.
class SharedCore {
 public:
  // Of the time that was just taken; the shortest so far is that of a core to oneself.
  bool is_shared(double seconds);

 private:
  double shortest_ = 0;
};

// Of the loop, a few microseconds on the core that the calling thread is on.
double seconds_of_issue_slots();

// Whether that core is shared.
bool core_is_shared();

}  // namespace uk::bench

#endif  // UKERNEL_BENCH_SHARED_CORE_H_
