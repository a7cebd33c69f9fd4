/* IREE's entry points: what they compute, what they do in degenerate cases, and where they stop.
 *
 * usage: iree_test <check>
 *
 * Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/iree/published.h"
#include "ukernel/ukernel.h"

static int failures = 0;
static uint64_t cpu[UK_CPU_DATA_FIELDS];

#define CHECK(condition, ...)                                        \
  do {                                                               \
    if (!(condition)) {                                              \
      ++failures;                                                    \
      fprintf(stderr, "iree_test.c:%d: %s: ", __LINE__, #condition); \
      fprintf(stderr, __VA_ARGS__);                                  \
      fputc('\n', stderr);                                           \
    }                                                                \
  } while (0)

/* ---------------------------------------------------------------- buffers */

static void* allocate(size_t bytes) {
  void* p = malloc(bytes + 1);
  if (!p) exit(2);
  return p;
}

static void* random_bytes(size_t bytes) {
  static uint32_t state = 1;
  unsigned char* p = allocate(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    state = state * 1664525 + 1013904223;
    p[i] = (unsigned char)(state >> 24);
  }
  return p;
}

static void* copy_of(const void* p, size_t bytes) {
  void* copy = allocate(bytes);
  memcpy(copy, p, bytes);
  return copy;
}

/* ---------------------------------------------------------------- mmt4d */

typedef struct {
  u32 flag;
  int lhs_bits, rhs_bits, out_bits;
} mmt4d_type;

static const mmt4d_type kTypes[] = {
    {1, 32, 32, 32}, {2, 8, 8, 32},   {3, 16, 16, 32}, {4, 16, 16, 16}, {5, 16, 16, 32},
    {6, 16, 16, 16}, {7, 16, 16, 32}, {8, 16, 4, 32},  {9, 16, 8, 32},  {10, 8, 4, 32}};
enum { kTypeCount = sizeof(kTypes) / sizeof(kTypes[0]) };

typedef struct {
  index_t m, n, k;
} shape;

static const shape kShapes[] = {{1, 1, 1}, {1, 1, 10}, {2, 1, 1}, {1, 2, 3}, {5, 7, 13},
                                {0, 5, 7}, {5, 0, 7},  {5, 7, 0}, {1, 1, 0}};

/* out += lhs * rhs of bytes, for one check that does not trust the library's operation. */
static void multiply_s8(const uk_mmt4d_params_t* p) {
  for (index_t i = 0; i < p->m * p->n * p->m0 * p->n0; ++i) {
    const index_t q = i % p->n0, r = i / p->n0 % p->m0, tile = i / p->n0 / p->m0;
    const index_t column = tile % p->n, row = tile / p->n;
    const signed char* lhs = (const signed char*)p->lhs + p->lhs_offset + row * p->lhs_stride0;
    const signed char* rhs = (const signed char*)p->rhs + p->rhs_offset + column * p->rhs_stride0;
    int32_t* out =
        (int32_t*)p->out + p->out_offset + row * p->out_stride0 + (column * p->m0 + r) * p->n0 + q;
    uint32_t sum = p->flags & ACCUMULATE ? (uint32_t)*out : 0;
    for (index_t k = 0; k < p->k; ++k) {
      for (index_t k0 = 0; k0 < p->k0; ++k0) {
        sum += (uint32_t)(lhs[(k * p->m0 + r) * p->k0 + k0] * rhs[(k * p->n0 + q) * p->k0 + k0]);
      }
    }
    *out = (int32_t)sum;
  }
}

static void check_mmt4d_call(const mmt4d_type* type, uk_tile_sizes_t tile, u32 flags, shape s,
                             const uint64_t* cpu_data) {
  const int loose = (int)(s.m + s.k) % 2 * 2; /* strides and offsets that split no byte */
  uk_mmt4d_params_t p;
  memset(&p, 0, sizeof(p));
  p.struct_size = sizeof(p);
  p.m = s.m, p.n = s.n, p.k = s.k;
  p.m0 = tile.m0, p.n0 = tile.n0, p.k0 = tile.k0;
  p.lhs_offset = 6, p.rhs_offset = 4, p.out_offset = 3;
  p.lhs_stride0 = p.k * p.m0 * p.k0 + loose, p.rhs_stride0 = p.k * p.n0 * p.k0 + loose;
  p.out_stride0 = p.n * p.m0 * p.n0 + loose;
  p.flags = type->flag | flags;
  p.cpu_data = cpu_data;
  const size_t out_bytes = (size_t)(p.out_offset + p.m * p.out_stride0) * type->out_bits / 8;
  void* lhs = random_bytes((size_t)(p.lhs_offset + p.m * p.lhs_stride0) * type->lhs_bits / 8);
  void* rhs = random_bytes((size_t)(p.rhs_offset + p.n * p.rhs_stride0) * type->rhs_bits / 8);
  void* out = random_bytes(out_bytes);
  void* expected = copy_of(out, out_bytes);
  p.lhs = lhs, p.rhs = rhs, p.out = expected;
  if (type->flag == MMT4D_S8S8S32) {
    multiply_s8(&p);
  } else if (s.k > 0 || !(flags & ACCUMULATE)) { /* else the library may quiet a NaN */
    CHECK(uk_mmt4d(&p) == UK_STATUS_OK, "type %u", type->flag);
  }
  iree_uk_mmt4d(lhs, p.lhs_offset, p.lhs_stride0, rhs, p.rhs_offset, p.rhs_stride0, out,
                p.out_offset, p.out_stride0, p.m, p.n, p.k, p.m0, p.n0, p.k0, p.flags,
                (const u64*)cpu_data);
  CHECK(memcmp(out, expected, out_bytes) == 0, "flags 0x%x, tile %dx%dx%d, %lldx%lldx%lld", p.flags,
        p.m0, p.n0, p.k0, s.m, s.n, s.k);
  free(lhs), free(rhs), free(out), free(expected);
}

static void check_mmt4d(void) {
  for (int t = 0; t < kTypeCount; ++t) {
    for (int baseline = 0; baseline < 2; ++baseline) {
      const uint64_t* cpu_data = baseline ? NULL : cpu;
      const u32 fallback = ALLOW_GENERIC_FALLBACK;
      uk_tile_sizes_t tiles[2] = {{0, 0, 0}, {3, 5, 2}}; /* no tile function has the second */
      CHECK(uk_query_tile_sizes(kTypes[t].flag | fallback, -1, -1, -1, NULL, cpu_data, tiles) ==
                UK_STATUS_OK,
            "type %u", kTypes[t].flag);
      for (int i = 0; i < 2; ++i) {
        for (u32 flags = 0; flags < 4; ++flags) {
          for (size_t s = 0; s < sizeof(kShapes) / sizeof(kShapes[0]); ++s) {
            check_mmt4d_call(&kTypes[t], tiles[i],
                             fallback | (flags & 1 ? ACCUMULATE : 0) |
                                 (flags & 2 ? SKIP_INTERMEDIATE_ROUNDINGS : 0),
                             kShapes[s], cpu_data);
          }
        }
      }
    }
  }
}

/* Whether a call with these leaves `before` in 24 sums, or zero. */
static void check_degenerate(index_t m, index_t n, index_t k, i32 m0, i32 n0, i32 k0, u32 flags,
                             int is_cleared) {
  int32_t out[24], expected[24];
  memset(out, 0x55, sizeof(out));
  memset(expected, is_cleared ? 0 : 0x55, sizeof(expected));
  iree_uk_mmt4d(NULL, 0, 0, NULL, 0, 0, out, 0, 24, m, n, k, m0, n0, k0, flags, (const u64*)cpu);
  CHECK(memcmp(out, expected, sizeof(out)) == 0, "%lldx%lldx%lld tiles of %dx%dx%d, flags 0x%x", m,
        n, k, m0, n0, k0, flags);
}

static void check_degenerate_mmt4d(void) {
  const u32 types[] = {MMT4D_F32F32F32, MMT4D_S8S8S32, MMT4D_S8S4S32};
  for (int t = 0; t < 3; ++t) {
    check_degenerate(0, 1, 1, 4, 6, 2, types[t], 0);
    check_degenerate(1, 0, 1, 4, 6, 2, types[t], 0);
    check_degenerate(1, 1, 1, 0, 6, 2, types[t], 0);
    check_degenerate(1, 1, 1, 4, 0, 2, types[t], 0);
    /* 4x6 is no tile of the library's, and no fallback is allowed. */
    check_degenerate(1, 1, 0, 4, 6, 2, types[t], 1);
    check_degenerate(1, 1, 0, 4, 6, 2, types[t] | ACCUMULATE, 0);
    check_degenerate(1, 1, 3, 4, 6, 0, types[t], 1);
    check_degenerate(1, 1, 3, 4, 6, 0, types[t] | ACCUMULATE, 0);
  }
}

static void check_info(void) {
  for (int t = 0; t < kTypeCount; ++t) {
    uk_mmt4d_params_t p;
    const uk_tile_row_t* row;
    uk_tile_sizes_t tile;
    memset(&p, 0, sizeof(p));
    uk_query_tile_sizes(kTypes[t].flag | ALLOW_GENERIC_FALLBACK, -1, -1, -1, NULL, cpu, &tile);
    p.struct_size = sizeof(p);
    p.m0 = tile.m0, p.n0 = tile.n0, p.k0 = tile.k0;
    p.flags = kTypes[t].flag;
    p.cpu_data = cpu;
    const u32 has_tile = uk_mmt4d_info(&p, &row) == UK_STATUS_OK;
    CHECK(iree_uk_mmt4d_info(p.m0, p.n0, p.k0, p.flags, (const u64*)cpu) == has_tile, "type %u",
          p.flags);
    CHECK(iree_uk_mmt4d_info(p.m0, p.n0, p.k0, p.flags | UK_MMT4D_UNPACK_OUT, (const u64*)cpu) == 0,
          "type %u", p.flags);
    CHECK(iree_uk_mmt4d_info(3, 5, 2, p.flags, (const u64*)cpu) == 0, "type %u", p.flags);
    CHECK(iree_uk_mmt4d_info(3, 5, 2, p.flags | ALLOW_GENERIC_FALLBACK, (const u64*)cpu) == 0,
          "type %u", p.flags);
  }
  CHECK(iree_uk_mmt4d_info(1, 32, 1, MMT4D_END, NULL) == 0, "no such type");
}

/* ---------------------------------------------------------------- pack, unpack */

typedef struct {
  u32 flag;
  int bytes;
} copy_type;

static const copy_type kCopies[] = {
    {PACK_F32, 4}, {PACK_I8, 1}, {PACK_I32, 4}, {PACK_F16, 2}, {PACK_BF16, 2}};
enum { kCopyCount = sizeof(kCopies) / sizeof(kCopies[0]) };

/* A matrix and its tiles, in elements. */
typedef struct {
  index_t size0, size1, stride0, stride1, offset;
  index_t outer0, outer1, tile0, tile1; /* as stored */
  index_t tiles_offset, tiles_stride0, tiles_stride1;
  u32 flags;
} copy_case;

static index_t matrix_end(const copy_case* c) {
  return c->offset + (c->size0 > 0 && c->size1 > 0
                          ? (c->size0 - 1) * c->stride0 + (c->size1 - 1) * c->stride1 + 1
                          : 0);
}

static index_t tiles_end(const copy_case* c) {
  return c->tiles_offset + (c->outer0 - 1) * c->tiles_stride0 + (c->outer1 - 1) * c->tiles_stride1 +
         c->tile0 * c->tile1;
}

/* Where the tiles' element i lies, and which element of the matrix it is; -1 for padding. */
static void place(const copy_case* c, index_t i, index_t* in_tiles, index_t* in_matrix) {
  const index_t b = i % c->tile1, a = i / c->tile1 % c->tile0, tile = i / c->tile1 / c->tile0;
  const index_t outer1 = tile % c->outer1, outer0 = tile / c->outer1;
  const int inner = (c->flags & TRANSPOSE_INNER) != 0, outer = (c->flags & TRANSPOSE_OUTER) != 0;
  const index_t row = (outer ? outer1 : outer0) * (inner ? c->tile1 : c->tile0) + (inner ? b : a);
  const index_t column =
      (outer ? outer0 : outer1) * (inner ? c->tile0 : c->tile1) + (inner ? a : b);
  *in_tiles =
      c->tiles_offset + outer0 * c->tiles_stride0 + outer1 * c->tiles_stride1 + a * c->tile1 + b;
  *in_matrix =
      row < c->size0 && column < c->size1 ? c->offset + row * c->stride0 + column * c->stride1 : -1;
}

static void check_pack_call(const copy_type* type, const copy_case* c) {
  const uint64_t padding = UINT64_C(0x1122334455667788);
  const size_t bytes = (size_t)type->bytes, out_bytes = (size_t)tiles_end(c) * bytes;
  char* in = random_bytes((size_t)matrix_end(c) * bytes);
  char* out = random_bytes(out_bytes);
  char* expected = copy_of(out, out_bytes);
  for (index_t i = 0; i < c->outer0 * c->outer1 * c->tile0 * c->tile1; ++i) {
    index_t to, from;
    place(c, i, &to, &from);
    memcpy(expected + to * type->bytes, from < 0 ? (const char*)&padding : in + from * type->bytes,
           bytes);
  }
  iree_uk_pack(in, c->offset, c->stride0, c->stride1, out, c->tiles_offset, c->tiles_stride0,
               c->tiles_stride1, c->size0, c->size1, c->outer0, c->outer1, c->tile0, c->tile1,
               padding, type->flag | c->flags, (const u64*)cpu);
  CHECK(memcmp(out, expected, out_bytes) == 0, "type %u, flags 0x%x, tile %lldx%lld", type->flag,
        c->flags, c->tile0, c->tile1);
  free(in), free(out), free(expected);
}

static void check_unpack_call(const copy_type* type, const copy_case* c) {
  const size_t bytes = (size_t)type->bytes, out_bytes = (size_t)matrix_end(c) * bytes;
  char* in = random_bytes((size_t)tiles_end(c) * bytes);
  char* out = random_bytes(out_bytes);
  char* expected = copy_of(out, out_bytes);
  for (index_t i = 0; i < c->outer0 * c->outer1 * c->tile0 * c->tile1; ++i) {
    index_t from, to;
    place(c, i, &from, &to);
    if (to >= 0) memcpy(expected + to * type->bytes, in + from * type->bytes, bytes);
  }
  iree_uk_unpack(in, c->tiles_offset, c->tiles_stride0, c->tiles_stride1, out, c->offset,
                 c->stride0, c->stride1, c->outer0, c->outer1, c->tile0, c->tile1, c->size0,
                 c->size1, type->flag | c->flags, (const u64*)cpu);
  CHECK(memcmp(out, expected, out_bytes) == 0, "type %u, flags 0x%x, tile %lldx%lld", type->flag,
        c->flags, c->tile0, c->tile1);
  free(in), free(out), free(expected);
}

/* `spare` tiles beyond those that cover the matrix. */
static copy_case make_case(index_t size0, index_t size1, index_t tile0, index_t tile1, u32 flags,
                           index_t spare) {
  const int inner = (flags & TRANSPOSE_INNER) != 0, outer = (flags & TRANSPOSE_OUTER) != 0;
  const index_t rows = inner ? tile1 : tile0, columns = inner ? tile0 : tile1;
  const index_t down = (size0 + rows - 1) / rows + spare;
  const index_t across = (size1 + columns - 1) / columns + spare;
  copy_case c;
  c.size0 = size0, c.size1 = size1, c.stride0 = size1 + 2, c.stride1 = 1, c.offset = 3;
  c.outer0 = outer ? across : down, c.outer1 = outer ? down : across;
  c.tile0 = tile0, c.tile1 = tile1;
  c.tiles_stride1 = tile0 * tile1, c.tiles_stride0 = c.outer1 * c.tiles_stride1 + 5;
  c.tiles_offset = 2, c.flags = flags;
  return c;
}

static void check_copies(void) {
  const index_t tiles[][2] = {{8, 1}, {7, 8}, {16, 2}, {1, 1}, {16, 16}};
  for (int t = 0; t < kCopyCount; ++t) {
    for (size_t i = 0; i < sizeof(tiles) / sizeof(tiles[0]); ++i) {
      for (u32 flags = 0; flags < 0x400; flags += 0x100) {
        copy_case c = make_case(37, 21, tiles[i][0], tiles[i][1], flags, 0);
        check_pack_call(&kCopies[t], &c);
        check_unpack_call(&kCopies[t], &c);
        c = make_case(32, 16, tiles[i][0], tiles[i][1], flags, 1); /* and tiles of padding */
        check_pack_call(&kCopies[t], &c);
        check_unpack_call(&kCopies[t], &c);
        c.stride0 = 2, c.stride1 = 70; /* a transposed slice */
        check_pack_call(&kCopies[t], &c);
        check_unpack_call(&kCopies[t], &c);
        c.stride0 = 0; /* one row, again and again */
        check_pack_call(&kCopies[t], &c);
        c = make_case(0, 21, tiles[i][0], tiles[i][1], flags, 1); /* padding alone */
        check_pack_call(&kCopies[t], &c);
      }
    }
  }
  for (int zero = 0; zero < 4; ++zero) {
    char out = 1;
    iree_uk_pack(NULL, 0, 0, 0, &out, 0, 0, 0, 0, 0, zero != 0, zero != 1, zero != 2, zero != 3, 0,
                 PACK_I8, NULL);
    iree_uk_unpack(NULL, 0, 0, 0, &out, 0, 0, 0, 1, 1, zero < 2, 1, zero % 2,
                   zero / 2 * (1 - zero % 2), PACK_F32, NULL);
    CHECK(out == 1, "size %d is zero", zero);
  }
}

/* ---------------------------------------------------------------- query_tile_sizes */

static struct query_out_params query(u32 flags, index_t size0, index_t size1, const u64* cpu_data) {
  const struct query_params params = {flags, size0, size1, cpu_data};
  struct query_out_params out = {-1, -1};
  CHECK(iree_uk_query_tile_sizes_2d(&params, &out) == 0, "flags 0x%x", flags);
  return out;
}

static void check_query(void) {
  for (u32 type = 1; type <= 6; ++type) {
    for (int baseline = 0; baseline < 2; ++baseline) {
      const u64* cpu_data = baseline ? NULL : (const u64*)cpu;
      const u32 operation = type << 8;
      const struct query_out_params lhs = query(operation | ROLE_LHS, 1, 4096, cpu_data);
      const struct query_out_params rhs = query(operation | ROLE_RHS, INT64_MIN, 4096, cpu_data);
      const struct query_out_params out = query(operation | ROLE_RESULT, 1, INT64_MIN, cpu_data);
      uk_tile_sizes_t sizes;
      CHECK(uk_query_tile_sizes(type | ALLOW_GENERIC_FALLBACK, 0, 0, 0, NULL,
                                (const uint64_t*)cpu_data, &sizes) == UK_STATUS_OK,
            "type %u", type);
      CHECK(lhs.tile_size0 == sizes.m0 && lhs.tile_size1 == sizes.k0, "type %u", type);
      CHECK(rhs.tile_size0 == sizes.n0 && rhs.tile_size1 == sizes.k0, "type %u", type);
      CHECK(out.tile_size0 == sizes.m0 && out.tile_size1 == sizes.n0, "type %u", type);
    }
  }
}

/* ---------------------------------------------------------------- what stops the program */

static void no_tile(void) {
  float a[64] = {0}, out[64];
  iree_uk_mmt4d(a, 0, 0, a, 0, 0, out, 0, 0, 1, 1, 1, 3, 5, 2, MMT4D_F32F32F32, NULL);
}
static void no_type(void) {
  float a[64] = {0}, out[64];
  iree_uk_mmt4d(a, 0, 0, a, 0, 0, out, 0, 0, 1, 1, 1, 1, 1, 1, MMT4D_END | ALLOW_GENERIC_FALLBACK,
                NULL);
}
static void no_flag(void) {
  float a[64] = {0}, out[64];
  iree_uk_mmt4d(a, 0, 0, a, 0, 0, out, 0, 0, 1, 1, 1, 1, 1, 1,
                MMT4D_F32F32F32 | ALLOW_GENERIC_FALLBACK | 0x800, NULL);
}
static void own_flag(void) { /* for which the signature lacks arguments */
  float a[64] = {0}, out[64];
  iree_uk_mmt4d(a, 0, 0, a, 0, 0, out, 0, 0, 1, 1, 1, 1, 1, 1,
                MMT4D_F32F32F32 | ALLOW_GENERIC_FALLBACK | UK_MMT4D_UNPACK_OUT, NULL);
}
static void not_covered(void) {
  float a[64] = {0}, out[64];
  iree_uk_pack(a, 0, 8, 1, out, 0, 16, 16, 8, 8, 1, 1, 4, 4, 0, PACK_F32, NULL);
}
static void negative_size(void) {
  float a[64] = {0}, out[64];
  iree_uk_unpack(a, 0, 16, 16, out, 0, 4, 1, 1, 1, 4, 4, 4, -1, PACK_F32, NULL);
}
static void no_role(void) { query(0x100, 1, 1, NULL); }
static void no_operation(void) { query(0x700 | ROLE_LHS, 1, 1, NULL); }

static void check_stops(void (*call)(void), const char* name) {
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    fclose(stderr); /* a sanitizer's report of the signal */
    call();
    _exit(0);
  }
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child, "%s", name);
#ifdef UK_SANITIZED
  /* The run-time library reports the signal and exits. */
  CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 0, "%s returned", name);
#else
  /* __builtin_trap is ud2 on x86 and brk on Arm; a crash ends in another signal. */
  CHECK(WIFSIGNALED(status) && (WTERMSIG(status) == SIGILL || WTERMSIG(status) == SIGTRAP),
        "%s: wait status 0x%x", name, (unsigned)status);
#endif
}

static void check_all_stops(void) {
  check_stops(no_tile, "no tile");
  check_stops(no_type, "no type");
  check_stops(no_flag, "no flag");
  check_stops(own_flag, "a flag of this library's own");
  check_stops(not_covered, "tiles that do not cover the matrix");
  check_stops(negative_size, "a negative size");
  check_stops(no_role, "no role");
  check_stops(no_operation, "no operation");
}

/* ---------------------------------------------------------------- mma */

#if defined(__x86_64__)

/* k_outer, intrinsics_m, n and k. */
static const i32 kMmas[][4] = {{1, 1, 1, 1}, {7, 1, 1, 1}, {3, 2, 3, 2}, {2, 9, 2, 1},
                               {0, 2, 1, 1}, {5, 1, 2, 3}, {2, 17, 1, 2}};
enum { kMmaCount = sizeof(kMmas) / sizeof(kMmas[0]) };

/* Sum of products of row `row` and column `column` of the whole tile; element(i) reads one. */
static int32_t dot(const i32* mma, i32 block_rows, i32 row, i32 column, const void* lhs,
                   const void* rhs, int32_t (*element)(const void*, index_t)) {
  const i32 outers = mma[0], ms = mma[1], ns = mma[2], ks = mma[3];
  int32_t sum = 0;
  for (index_t o = 0; o < outers; ++o) {
    for (index_t k = 0; k < ks; ++k) {
      for (index_t kk = 0; kk < 2; ++kk) {
        const index_t m = row / block_rows, r = row % block_rows, n = column / 16, c = column % 16;
        sum += element(lhs, (((o * ms + m) * ks + k) * block_rows + r) * 2 + kk) *
               element(rhs, (((o * ns + n) * ks + k) * 16 + c) * 2 + kk);
      }
    }
  }
  return sum;
}

static int32_t s8_element(const void* p, index_t i) { return ((const signed char*)p)[i]; }

static void check_mma_vnni(const i32* mma) {
  const i32 rows = mma[1] * 16, columns = mma[2] * 16, k = mma[0] * mma[3] * 2;
  const size_t acc_bytes = (size_t)(3 + rows * columns) * 4;
  signed char* lhs = random_bytes((size_t)(5 + rows * k));
  signed char* rhs = random_bytes((size_t)(7 + columns * k));
  int32_t* acc = random_bytes(acc_bytes);
  uint32_t* expected = copy_of(acc, acc_bytes);
  for (i32 r = 0; r < rows; ++r) {
    for (i32 c = 0; c < columns; ++c) {
      const i32 in_row = r % 16, in_column = c % 16;
      const i32 block = r / 16 * mma[2] + c / 16;
      const i32 at = ((in_row % 4 * 4 + in_column / 4) * 4 + in_row / 4) * 4 + in_column % 4;
      expected[3 + block * 256 + at] += (uint32_t)dot(mma, 16, r, c, lhs + 5, rhs + 7, s8_element);
    }
  }
  iree_uk_mma_x86_avx512vnni_16x16x2_i32_i8_casti16(lhs, 5, rhs, 7, acc, 3, mma[0], mma[1], mma[2],
                                                    mma[3]);
  CHECK(memcmp(acc, expected, acc_bytes) == 0, "k_outer %d, %dx%dx%d", mma[0], mma[1], mma[2],
        mma[3]);
  free(lhs), free(rhs), free(acc), free(expected);
}

/* -4 to 3 in bf16: every sum is exact, in any order. */
static void small_bf16(unsigned short* p, index_t count) {
  for (index_t i = 0; i < count; ++i) {
    const float value = (float)(p[i] % 8 - 4);
    uint32_t bits;
    memcpy(&bits, &value, 4);
    p[i] = (unsigned short)(bits >> 16);
  }
}

static int32_t bf16_element(const void* p, index_t i) {
  const uint32_t bits = (uint32_t)((const unsigned short*)p)[i] << 16;
  float value;
  memcpy(&value, &bits, 4);
  return (int32_t)value;
}

static void check_mma_bf16(const i32* mma) {
  const i32 rows = mma[1], columns = mma[2] * 16, k = mma[0] * mma[3] * 2;
  unsigned short* lhs = random_bytes((size_t)(5 + rows * k) * 2);
  unsigned short* rhs = random_bytes((size_t)(7 + columns * k) * 2);
  float* acc = allocate((size_t)(3 + rows * columns) * 4);
  small_bf16(lhs, 5 + rows * k);
  small_bf16(rhs, 7 + columns * k);
  for (i32 i = 0; i < 3 + rows * columns; ++i) acc[i] = (float)i;
  iree_uk_mma_x86_avx512bf16_1x16x2_f32_bf16(lhs, 5, rhs, 7, acc, 3, mma[0], mma[1], mma[2],
                                             mma[3]);
  for (i32 r = 0; r < rows; ++r) {
    for (i32 c = 0; c < columns; ++c) {
      const i32 at = 3 + (r * mma[2] + c / 16) * 16 + c % 16;
      const float expected = (float)(at + dot(mma, 1, r, c, lhs + 5, rhs + 7, bf16_element));
      CHECK(acc[at] == expected, "%dx%dx%d, row %d, column %d", mma[1], mma[2], mma[3], r, c);
    }
  }
  CHECK(acc[0] == 0 && acc[1] == 1 && acc[2] == 2, "before the offset");
  free(lhs), free(rhs), free(acc);
}

/* 77, the test's code for skipped, on a CPU without the level. */
static int check_mma(const char* level, void (*check)(const i32*)) {
  if (!uk_cpu_has_level(level, cpu)) {
    printf("skipped: needs %s\n", level);
    return 77;
  }
  for (int i = 0; i < kMmaCount; ++i) check(kMmas[i]);
  return 0;
}

#endif

int main(int argc, char** argv) {
  const char* check = argc == 2 ? argv[1] : "";
  int code = 0;
  if (uk_cpu_detect(cpu, UK_CPU_DATA_FIELDS) != UK_STATUS_OK) return 2;
  if (strcmp(check, "mmt4d") == 0) {
    check_mmt4d();
    check_degenerate_mmt4d();
    check_info();
  } else if (strcmp(check, "copies") == 0) {
    check_copies();
  } else if (strcmp(check, "query") == 0) {
    check_query();
  } else if (strcmp(check, "stops") == 0) {
    check_all_stops();
#if defined(__x86_64__)
  } else if (strcmp(check, "mma_vnni") == 0) {
    code = check_mma("avx512_vnni", check_mma_vnni);
  } else if (strcmp(check, "mma_bf16") == 0) {
    code = check_mma("avx512_bf16", check_mma_bf16);
#endif
  } else {
    fprintf(stderr, "iree_test: no check named '%s'\n", check);
    return 2;
  }
  return failures == 0 ? code : 1;
}
