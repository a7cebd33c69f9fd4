// The instructions of AMX that tiles use, for CPUs that lack them.
//
// Included before the source of a tile, it takes the names of the intrinsics. What the hardware
// would refuse, without a configuration, ends the program.
//
// Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
#ifndef UKERNEL_TESTS_EMULATED_AMX_H_
#define UKERNEL_TESTS_EMULATED_AMX_H_

#include <immintrin.h>
#include <stdint.h>

namespace emulated_amx {

constexpr int kRegisters = 8, kMostRows = 16, kMostRowBytes = 64;

struct Register {
  int rows = 0, row_bytes = 0;  // 0 without a configuration
  unsigned char bytes[kMostRows][kMostRowBytes] = {};
};

inline thread_local Register registers[kRegisters];  // one set, whatever file uses it

inline void check(bool holds) {
  if (!holds) __builtin_trap();
}

inline Register& configured(int number) {
  Register& r = registers[number];
  check(r.rows > 0 && r.row_bytes > 0);
  return r;
}

template <class Lane>
Lane lane(const Register& r, int row, int number) {
  Lane value;
  __builtin_memcpy(&value, &r.bytes[row][number * static_cast<int>(sizeof(Lane))], sizeof(Lane));
  return value;
}
template <class Lane>
void set_lane(Register& r, int row, int number, Lane value) {
  __builtin_memcpy(&r.bytes[row][number * static_cast<int>(sizeof(Lane))], &value, sizeof(Lane));
}

inline void load_config(const void* shapes) {
  const unsigned char* bytes = static_cast<const unsigned char*>(shapes);
  check(bytes[0] == 1 && bytes[1] == 0);
  for (int i = 2; i < 16; ++i) check(bytes[i] == 0);
  for (int i = 0; i < kRegisters; ++i) {
    registers[i] = Register();
    registers[i].row_bytes = bytes[16 + 2 * i] | bytes[17 + 2 * i] << 8;
    registers[i].rows = bytes[48 + i];
    check(registers[i].row_bytes <= kMostRowBytes && registers[i].rows <= kMostRows);
  }
}
inline void release() {
  for (Register& r : registers) r = Register();
}
inline void zero(int number) {
  __builtin_memset(configured(number).bytes, 0, sizeof(Register::bytes));
}
inline void load(int number, const void* base, long stride) {
  Register& r = configured(number);
  zero(number);
  for (int row = 0; row < r.rows; ++row) {
    __builtin_memcpy(r.bytes[row], static_cast<const char*>(base) + row * stride,
                     static_cast<size_t>(r.row_bytes));
  }
}
inline void store(int number, void* base, long stride) {
  const Register& r = configured(number);
  for (int row = 0; row < r.rows; ++row) {
    __builtin_memcpy(static_cast<char*>(base) + row * stride, r.bytes[row],
                     static_cast<size_t>(r.row_bytes));
  }
}

// C += A * B, of four bytes a lane.
template <class A, class B>
void dot_bytes(int c_number, int a_number, int b_number) {
  Register &c = configured(c_number), &a = configured(a_number), &b = configured(b_number);
  check(c.rows == a.rows && c.row_bytes == b.row_bytes && a.row_bytes == 4 * b.rows);
  for (int m = 0; m < c.rows; ++m) {
    for (int n = 0; n < c.row_bytes / 4; ++n) {
      uint32_t sum = lane<uint32_t>(c, m, n);
      for (int k = 0; k < a.row_bytes; ++k) {
        sum += static_cast<uint32_t>(int32_t{lane<A>(a, m, k)} * lane<B>(b, k / 4, 4 * n + k % 4));
      }
      set_lane(c, m, n, sum);
    }
  }
}

inline float flushed(float f) { return __builtin_fabsf(f) < __FLT_MIN__ ? 0 * f : f; }
inline float widened(uint16_t bf16) {
  const uint32_t bits = uint32_t{bf16} << 16;
  float f;
  __builtin_memcpy(&f, &bits, sizeof(f));
  return flushed(f);
}

// C += A * B, of two bf16 a lane: products of even and of odd k have sums of their own.
inline void dot_bf16(int c_number, int a_number, int b_number) {
  Register &c = configured(c_number), &a = configured(a_number), &b = configured(b_number);
  check(c.rows == a.rows && c.row_bytes == b.row_bytes && a.row_bytes == 4 * b.rows);
  for (int m = 0; m < c.rows; ++m) {
    for (int n = 0; n < c.row_bytes / 4; ++n) {
      float sums[2] = {0, 0};
      for (int k = 0; k < a.row_bytes / 2; ++k) {
        float& sum = sums[k % 2];
        sum = flushed(__builtin_fmaf(widened(lane<uint16_t>(a, m, k)),
                                     widened(lane<uint16_t>(b, k / 2, 2 * n + k % 2)), sum));
      }
      const float both = flushed(sums[0] + sums[1]);
      set_lane(c, m, n, flushed(flushed(lane<float>(c, m, n)) + both));
    }
  }
}

}  // namespace emulated_amx

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbssd
#undef _tile_dpbusd
#undef _tile_dpbf16ps
#define _tile_loadconfig(shapes) emulated_amx::load_config(shapes)
#define _tile_release() emulated_amx::release()
#define _tile_zero(c) emulated_amx::zero(c)
#define _tile_loadd(c, base, stride) emulated_amx::load(c, base, stride)
#define _tile_stored(c, base, stride) emulated_amx::store(c, base, stride)
#define _tile_dpbssd(c, a, b) emulated_amx::dot_bytes<int8_t, int8_t>(c, a, b)
#define _tile_dpbusd(c, a, b) emulated_amx::dot_bytes<uint8_t, int8_t>(c, a, b)
#define _tile_dpbf16ps(c, a, b) emulated_amx::dot_bf16(c, a, b)

#endif  // UKERNEL_TESTS_EMULATED_AMX_H_
