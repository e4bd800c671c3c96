/* reduce_int.c - reductions of integers and bools, in int64; and the kernel
** that sends each dtype to its reductions.
**
** One column at a time goes through a buffer of int64: such tensors are
** counts, ids and masks, and seldom large. */

#include "reduce.h"

#include "../core/ops.h"

#ifdef CPU_ANY

enum { LEAF = 256 };

/* s folded with n numbers. */
static int64_t fold_int (int op, int64_t s, const int64_t *p, int64_t n) {
  int64_t r = s;
  switch (op) {
    case REDUCE_sum:
      for (int64_t i = 0; i < n; i++)
        r = (int64_t)((uint64_t)r + (uint64_t)p[i]);
      break;
    case REDUCE_prod:
      for (int64_t i = 0; i < n; i++)
        r = (int64_t)((uint64_t)r * (uint64_t)p[i]);
      break;
    case REDUCE_max:
      for (int64_t i = 0; i < n; i++) r = p[i] > r ? p[i] : r;
      break;
    case REDUCE_min:
      for (int64_t i = 0; i < n; i++) r = p[i] < r ? p[i] : r;
      break;
    case REDUCE_any:
      for (int64_t i = 0; i < n; i++) r |= p[i] != 0;
      break;
    default: /* all */
      for (int64_t i = 0; i < n; i++) r &= p[i] != 0;
  }
  return r;
}

static int64_t start_int (int op) {
  switch (op) {
    case REDUCE_prod:
    case REDUCE_all: return 1;
    case REDUCE_max: return INT64_MIN;
    case REDUCE_min: return INT64_MAX;
    default: return 0;
  }
}

typedef struct Job {
  int op;
  char *y;
  const char *x;
  fnn_Dtype from, to;
  int64_t n, inner;
} Job;

/* The place of the first extreme number of a column. */
static int64_t place (const Job *k, const char *p) {
  int64_t buf[LEAF], at = 0, best = 0;
  for (int64_t i = 0; i < k->n; i += LEAF) {
    int64_t m = min64(LEAF, k->n - i);
    const int64_t *v = ONCE(run_load)(
        buf, p + i * k->inner * (int64_t)fnn_dtype_size(k->from), k->from,
        FNN_I64, k->inner, m);
    for (int64_t j = 0; j < m; j++)
      if (i + j == 0 || (k->op == REDUCE_argmax ? v[j] > best : v[j] < best)) {
        best = v[j];
        at = i + j;
      }
  }
  return at;
}

static int64_t column (const Job *k, const char *p) {
  int64_t buf[LEAF], s = start_int(k->op);
  for (int64_t i = 0; i < k->n; i += LEAF) {
    int64_t m = min64(LEAF, k->n - i);
    const int64_t *v = ONCE(run_load)(
        buf, p + i * k->inner * (int64_t)fnn_dtype_size(k->from), k->from,
        FNN_I64, k->inner, m);
    s = fold_int(k->op, s, v, m);
  }
  return s;
}

static void job_range (void *ud, int64_t lo, int64_t hi) {
  const Job *k = ud;
  bool id = k->op == REDUCE_argmax || k->op == REDUCE_argmin;
  for (int64_t t = lo; t < hi; t++) {
    int64_t o = t / k->inner, j = t % k->inner;
    const char *p =
        k->x + (o * k->n * k->inner + j) * (int64_t)fnn_dtype_size(k->from);
    int64_t s = id ? place(k, p) : column(k, p);
    ONCE(run_store)
    (k->y + t * (int64_t)fnn_dtype_size(k->to), k->to, 1, &s, FNN_I64, 1);
  }
}

static void reduce_int (int op, Tensor *y, const Tensor *x, int64_t outer,
                        int64_t n, int64_t inner) {
  Job k = { op,
            tensor_data(y),
            tensor_data(x),
            (fnn_Dtype)x->dtype,
            (fnn_Dtype)y->dtype,
            n,
            inner };
  threads_range(outer * inner, grain_rows(n), job_range, &k);
}

/* The double pass's. */
#define F64(name) CPU_PASTE(name, CPU_ISA, f64)

void F64(reduce_real)(int op, void *y, bool test, const double *x,
                      int64_t outer, int64_t n, int64_t inner, double a);
void F64(argmax_real)(int64_t *y, const double *x, int64_t outer, int64_t n,
                      int64_t inner, bool least);

void CPU (reduce)(int op, Tensor *y, const Tensor *x, int64_t outer, int64_t n,
                  int64_t inner, double a) {
  void *to = tensor_data(y), *from = tensor_data(x);
  bool id = op == REDUCE_argmax || op == REDUCE_argmin;
  bool least = op == REDUCE_argmin, test = y->dtype == FNN_BOOL;
  if (!tensor_is_float(x)) {
    reduce_int(op, y, x, outer, n, inner);
  } else if (x->dtype == FNN_F64) {
    if (id) F64(argmax_real)(to, from, outer, n, inner, least);
    else F64(reduce_real)(op, to, test, from, outer, n, inner, a);
  } else {
    if (id) CPU(argmax_real)(to, from, outer, n, inner, least);
    else CPU(reduce_real)(op, to, test, from, outer, n, inner, a);
  }
}

#endif
