/* cumsum.c - running sums along the middle of (outer, n, inner), forwards or
** from the end; floats are summed in double. */

#include "sweep.h"

#ifdef CPU_ANY

enum { COLUMNS = 128 };

typedef struct Job {
  char *y;
  const char *x;
  fnn_Dtype t, to;
  int64_t n, inner, chunks;
  bool reverse;
} Job;

/* s += x, and s to y, for w columns side by side. */
#define STEP(name, T, S) \
  static void name(void *y_, const void *x_, void *s_, int64_t w) { \
    T *y = y_; \
    const T *x = x_; \
    S *s = s_; \
    LANES for (int64_t j = 0; j < w; j++) { \
      s[j] += (S)x[j]; \
      y[j] = (T)s[j]; \
    } \
  }

STEP(step_f32, float, double)
STEP(step_f64, double, double)
STEP(step_i64, int64_t, uint64_t)

/* Numbers in a row: one after the other. */
#define ROW(name, T, S) \
  static void name(T *y, const T *x, S *sum, int64_t n, bool reverse) { \
    S s = *sum; \
    if (reverse) \
      for (int64_t i = n - 1; i >= 0; i--) y[i] = (T)(s += (S)x[i]); \
    else \
      for (int64_t i = 0; i < n; i++) y[i] = (T)(s += (S)x[i]); \
    *sum = s; \
  }

ROW(row_f32, float, double)
ROW(row_f64, double, double)
ROW(row_i64, int64_t, uint64_t)

static void row_range (void *ud, int64_t lo, int64_t hi) {
  const Job *k = ud;
  fnn_Dtype lane = lane_of(k->t);
  int64_t from = (int64_t)fnn_dtype_size(k->t), buf[COLUMNS];
  int64_t to = (int64_t)fnn_dtype_size(k->to);
  for (int64_t o = lo; o < hi; o++) {
    double s = 0;
    uint64_t whole = 0;
    for (int64_t i = 0; i < k->n; i += COLUMNS) {
      int64_t m = min64(COLUMNS, k->n - i);
      int64_t at = o * k->n + (k->reverse ? k->n - i - m : i);
      const void *x = ONCE(run_load)(buf, k->x + at * from, k->t, lane, 1, m);
      void *y = k->y + at * to;
      if (lane == FNN_I64) row_i64(y, x, &whole, m, k->reverse);
      else if (lane == FNN_F64) row_f64(y, x, &s, m, k->reverse);
      else row_f32(y, x, &s, m, k->reverse);
    }
  }
}

static void column_range (void *ud, int64_t lo, int64_t hi) {
  const Job *k = ud;
  fnn_Dtype lane = lane_of(k->t);
  int64_t from = (int64_t)fnn_dtype_size(k->t);
  int64_t to = (int64_t)fnn_dtype_size(k->to);
  for (int64_t t = lo; t < hi; t++) {
    int64_t o = t / k->chunks, j = t % k->chunks * COLUMNS;
    int64_t w = min64(COLUMNS, k->inner - j);
    double s[COLUMNS] = { 0 }; /* or uint64_t: all bits 0 either way */
    int64_t buf[COLUMNS];
    for (int64_t i = 0; i < k->n; i++) {
      int64_t row = o * k->n + (k->reverse ? k->n - 1 - i : i);
      int64_t at = row * k->inner + j;
      const void *x = ONCE(run_load)(buf, k->x + at * from, k->t, lane, 1, w);
      void *y = k->y + at * to;
      if (lane == FNN_I64) step_i64(y, x, s, w);
      else if (lane == FNN_F64) step_f64(y, x, s, w);
      else step_f32(y, x, s, w);
    }
  }
}

void CPU (cumsum)(Tensor *y, const Tensor *x, int64_t outer, int64_t n,
                  int64_t inner, bool reverse) {
  Job k = { tensor_data(y),
            tensor_data(x),
            (fnn_Dtype)x->dtype,
            (fnn_Dtype)y->dtype,
            n,
            inner,
            (inner + COLUMNS - 1) / COLUMNS,
            reverse };
  if (inner == 1) threads_range(outer, grain_rows(n), row_range, &k);
  else
    threads_range(outer * k.chunks, grain_rows(n * min64(inner, COLUMNS)),
                  column_range, &k);
}

#endif
