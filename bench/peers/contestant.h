/* What bench_ops times: an implementation of a whole matrix product. C, because each library that
 * is compared with lives in a module of its own (two that export cblas_sgemm do not meet), which
 * bench_ops loads.
 *
 * Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
 */
#ifndef UKERNEL_BENCH_PEERS_CONTESTANT_H_
#define UKERNEL_BENCH_PEERS_CONTESTANT_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a call finds done, and what it has to do: */
typedef enum uk_form_t {
  UK_FORM_PACKED, /* both operands, and the result, in the layouts that the contestant likes best */
  UK_FORM_ROWS,   /* weights in the layout it likes best, the rest row-major */
  UK_FORM_WHOLE   /* everything row-major, or the weights transposed */
} uk_form_t;

/* out[m][n] = sum over k of lhs[m][k] * weight(n, k). All dense. */
typedef struct uk_problem_t {
  uint32_t type; /* UK_MMT4D_TYPE_* */
  uk_form_t form;
  int64_t m, n, k;
  const void* lhs;        /* [m][k] */
  const void* weights;    /* [n][k] */
  int weights_are_k_by_n; /* [k][n] instead */
  void* out;              /* [m][n] */
  int copies;             /* of the weights, in the contestant's layout; 1 in UK_FORM_WHOLE */
  int threads;
  const uint64_t* cpu_data;
} uk_problem_t;

typedef struct uk_contestant_t {
  const char* name;
  const char* version;
  int callers_split; /* `run` is to be called on all threads at once, each with its index; else on
                        one, and the contestant has threads of its own */
  /* An operation for the problem, which outlives it; NULL if the contestant has none for it. */
  void* (*make)(const uk_problem_t* problem);
  void (*run)(void* operation, int copy, int thread);
  void (*write_out)(void* operation); /* the result of the last run, if `run` leaves it elsewhere */
  void (*destroy)(void* operation);
} uk_contestant_t;

/* The one symbol of a module. */
#define UK_CONTESTANT_SYMBOL "uk_contestant"
typedef const uk_contestant_t* uk_contestant_fn(void);

#ifdef __cplusplus
}
#endif

#endif /* UKERNEL_BENCH_PEERS_CONTESTANT_H_ */
