// The intrinsics of the level that a file is compiled for.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_ARCH_X86_64_INTRINSICS_H_
#define UKERNEL_ARCH_X86_64_INTRINSICS_H_

#ifdef __AVX__
#include <immintrin.h>
#else
#include <emmintrin.h>  // to read the other one takes GCC 12 as long as to compile a tile of SSE2
#endif

#endif  // UKERNEL_ARCH_X86_64_INTRINSICS_H_
