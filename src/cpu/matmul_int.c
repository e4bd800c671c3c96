/* matmul_int.c - products of matrices of integers, which wrap.
**
** A row of c gathers four rows of b at a time, each times its element of a, in
** tiles of b that stay in the second-level cache.  A task has a few rows of
** one matrix. */

#include "sweep.h"

#ifdef CPU_ANY

enum {
  ROWS = 16, /* of c in a task */
  DEPTH = 128,
  WIDTH = 256 /* a tile of b: DEPTH rows, WIDTH columns */
};

/* Matrices a (m, k), b (k, n) and c (m, n), dense but for leading dims. */
typedef struct Job {
  Tensor *c;
  const Tensor *a, *b;
  int64_t m, n, k, blocks; /* tasks of a matrix */
} Job;

/* The elements before the i-th matrix of x, whose leading dims are c's. */
static int64_t matrix_at (const Tensor *x, int64_t i) {
  int64_t at = 0;
  for (int d = x->ndim - 3; d >= 0; d--) {
    at += i % x->shape[d] * x->stride[d];
    i /= x->shape[d];
  }
  return at;
}

/* T is unsigned, so that it wraps. */
#define PRODUCT(name, T) \
  /* c[j] += a[0] b[j] + ... of the p <= 4 next rows of b. */ \
  static void name##_rows(T *c, const T *a, const T *b, int64_t p, int64_t n, \
                          int64_t ldb) { \
    const T *b0 = b, *b1 = p > 1 ? b + ldb : b; \
    const T *b2 = p > 2 ? b + 2 * ldb : b, *b3 = p > 3 ? b + 3 * ldb : b; \
    T a0 = a[0], a1 = p > 1 ? a[1] : 0; \
    T a2 = p > 2 ? a[2] : 0, a3 = p > 3 ? a[3] : 0; \
    LANES for (int64_t j = 0; j < n; j++) c[j] = \
        (T)(c[j] + a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j]); \
  } \
\
  static void name(const Job *w, int64_t matrix, int64_t lo, int64_t hi) { \
    int64_t n = w->n, k = w->k; \
    T *c = (T *)tensor_data(w->c) + matrix_at(w->c, matrix); \
    const T *a = (const T *)tensor_data(w->a) + matrix_at(w->a, matrix); \
    const T *b = (const T *)tensor_data(w->b) + matrix_at(w->b, matrix); \
    memset(c + lo * n, 0, (size_t)((hi - lo) * n) * sizeof(T)); \
    for (int64_t q = 0; q < k; q += DEPTH) \
      for (int64_t j = 0; j < n; j += WIDTH) \
        for (int64_t i = lo; i < hi; i++) \
          for (int64_t p = q; p < min64(k, q + DEPTH); p += 4) \
            name##_rows(c + i * n + j, a + i * k + p, b + p * n + j, \
                        min64(4, min64(k, q + DEPTH) - p), \
                        min64(WIDTH, n - j), n); \
  }

PRODUCT(product_8, uint8_t)
PRODUCT(product_32, uint32_t)
PRODUCT(product_64, uint64_t)

static void task (void *ud, int64_t i, int worker) {
  const Job *w = ud;
  (void)worker;
  int64_t matrix = i / w->blocks, lo = i % w->blocks * ROWS;
  int64_t hi = min64(w->m, lo + ROWS);
  switch (w->c->dtype) {
    case FNN_I64: product_64(w, matrix, lo, hi); break;
    case FNN_I32: product_32(w, matrix, lo, hi); break;
    default: product_8(w, matrix, lo, hi);
  }
}

void CPU (matmul_int)(Tensor *c, const Tensor *a, const Tensor *b) {
  int last = c->ndim - 1;
  if (c->numel == 0) return;
  Job w = { c, a, b, c->shape[last - 1], c->shape[last], a->shape[last], 0 };
  w.blocks = (w.m + ROWS - 1) / ROWS;
  threads_run(c->numel / (w.m * w.n) * w.blocks, task, &w);
}

#endif
