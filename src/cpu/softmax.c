/* softmax.c - normalized exponentials, and their logarithms, along the middle
** of (outer, n, inner).
**
** A row is read for its maximum, read again for the exponentials and their
** sum, and scaled; columns so in tiles, side by side.  Where the result is
** large and a row fits into a buffer the exponentials wait there and the scaled
** row goes past the caches. */

#include "reduce.h"

#include "../core/vmath.h"

enum { LEAF = 512, COLUMNS = 128, ROW = 4096, SHORT = 16 };
/* Rows: of long columns, at a time, and asked for ahead. */
enum { LONG = 2048, FEW = 16, AHEAD = 16 };

typedef struct Job {
  real *y; /* or gx */
  const real *x, *gy;
  int64_t n, inner, chunks;
  bool log, stream;
} Job;

/*
** {======================================================
** Rows
** =======================================================
*/

/* Rows of a few classes: a loop of SHORT turns has no rest to deal with. */
static double short_exp_sum (real *y, const real *x, int64_t n, real m) {
  real e[SHORT];
  double sum = 0;
  for (int j = 0; j < SHORT; j++) e[j] = -INFINITY;
  for (int64_t j = 0; j < n; j++) e[j] = x[j] - m;
  LANES for (int j = 0; j < SHORT; j++) e[j] = exp(e[j]);
  for (int64_t j = 0; j < n; j++) sum += (double)e[j];
  if (y != NULL)
    for (int64_t j = 0; j < n; j++) y[j] = e[j];
  return sum;
}

real CPU (row_max)(const real *x, int64_t n) {
  real m = -INFINITY;
  int nan = 0;
  if (n <= SHORT) {
    for (int64_t i = 0; i < n; i++)
      m = x[i] > m || x[i] != x[i] ? x[i] : m; /* a NaN stays */
    return m;
  }
  _Pragma("omp simd reduction(max:m) reduction(|:nan)") for (int64_t i = 0;
                                                             i < n; i++) {
    m = x[i] > m ? x[i] : m;
    nan |= x[i] != x[i];
  }
  return nan ? NAN : m;
}

double CPU (row_exp_sum)(real *y, const real *x, int64_t n, real m) {
  double sum = 0;
  if (n <= SHORT) return short_exp_sum(y, x, n, m);
  for (int64_t i = 0; i < n; i += LEAF) {
    int64_t k = min64(LEAF, n - i);
    const real *p = x + i;
    real s = 0;
    if (y == NULL) {
      _Pragma("omp simd reduction(+:s)") for (int64_t j = 0; j < k; j++) s +=
          exp_flush(p[j] - m);
    } else {
      real *z = y + i;
      _Pragma("omp simd reduction(+:s)") for (int64_t j = 0; j < k; j++) {
        real e = exp_flush(p[j] - m);
        z[j] = e;
        s += e;
      }
    }
    sum += (double)s;
  }
  return sum;
}

static double sum_row (const real *x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += LEAF) {
    int64_t k = min64(LEAF, n - i);
    const real *p = x + i;
    real s = 0;
    _Pragma("omp simd reduction(+:s)") for (int64_t j = 0; j < k; j++) s +=
        p[j];
    sum += (double)s;
  }
  return sum;
}

static double dot_row (const real *x, const real *y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += LEAF) {
    int64_t k = min64(LEAF, n - i);
    const real *p = x + i, *q = y + i;
    real s = 0;
    _Pragma("omp simd reduction(+:s)") for (int64_t j = 0; j < k; j++) s +=
        p[j] * q[j];
    sum += (double)s;
  }
  return sum;
}

/* y = x a, in place too */
static void scale_row (real *y, const real *x, int64_t n, real a) {
  if (n <= SHORT) {
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * a;
    return;
  }
  LANES for (int64_t i = 0; i < n; i++) y[i] = x[i] * a;
}

/* y = x - a */
static void shift_row (real *y, const real *x, int64_t n, real a) {
  LANES for (int64_t i = 0; i < n; i++) y[i] = x[i] - a;
}

static void softmax_rows (void *ud, int64_t lo, int64_t hi) {
  const Job *k = ud;
  _Alignas(64) real buf[ROW];
  for (int64_t o = lo; o < hi; o++) {
    const real *x = k->x + o * k->n;
    real *y = k->y + o * k->n, *e = k->stream ? buf : y;
    if (k->stream) run_prefetch(x + k->n, (size_t)k->n * sizeof *x);
    real m = CPU(row_max)(x, k->n);
    double s = CPU(row_exp_sum)(k->log ? NULL : e, x, k->n, m);
    if (k->log) shift_row(e, x, k->n, m + log((real)s));
    else scale_row(e, e, k->n, (real)(1 / s));
    if (k->stream) ONCE(run_stream)(y, buf, (size_t)k->n * sizeof *y);
  }
  if (k->stream) ONCE(run_fence)();
}

static void back_rows (void *ud, int64_t lo, int64_t hi) {
  const Job *k = ud;
  for (int64_t o = lo; o < hi; o++) {
    const real *y = k->x + o * k->n, *g = k->gy + o * k->n;
    real *gx = k->y + o * k->n;
    if (k->log) {
      const real s = (real)sum_row(g, k->n);
      LANES for (int64_t i = 0; i < k->n; i++) gx[i] = g[i] - exp(y[i]) * s;
    } else {
      const real s = (real)dot_row(g, y, k->n);
      LANES for (int64_t i = 0; i < k->n; i++) gx[i] = y[i] * (g[i] - s);
    }
  }
}

/* }====================================================== */

/*
** {======================================================
** Columns: the same with w of them side by side
** =======================================================
*/

static void softmax_columns (const Job *k, const real *x, real *y, int64_t w) {
  real m[COLUMNS], c[COLUMNS];
  double s[COLUMNS];
  int64_t n = k->n, step = k->inner;
  for (int64_t j = 0; j < w; j++) {
    m[j] = -INFINITY;
    s[j] = 0;
  }
  for (int64_t i = 0; i < n; i++) {
    const real *p = x + i * step;
    LANES for (int64_t j = 0; j < w; j++) m[j] =
        p[j] != p[j] || p[j] > m[j] ? p[j] : m[j];
  }
  for (int64_t i = 0; i < n; i++) {
    const real *p = x + i * step;
    real *q = y + i * step;
    LANES for (int64_t j = 0; j < w; j++) {
      real e = exp_flush(p[j] - m[j]);
      s[j] += (double)e;
      q[j] = k->log ? p[j] : e;
    }
  }
  for (int64_t j = 0; j < w; j++)
    c[j] = k->log ? m[j] + log((real)s[j]) : (real)(1 / s[j]);
  for (int64_t i = 0; i < n; i++) {
    real *q = y + i * step;
    if (k->log) {
      LANES for (int64_t j = 0; j < w; j++) q[j] -= c[j];
    } else {
      LANES for (int64_t j = 0; j < w; j++) q[j] *= c[j];
    }
  }
}

/* Maxima and sums of exponentials of columns too long to be read thrice from a
** cache: of a few rows at a time, the sums scaled where a maximum has grown
** (Milakov and Gimelshein 2018, arXiv:1805.02867). */
static void long_sums (const Job *k, const real *x, int64_t w, real *m,
                       double *s) {
  real c[COLUMNS], part[COLUMNS];
  int64_t step = k->inner;
  for (int64_t j = 0; j < w; j++) m[j] = -INFINITY, s[j] = 0;
  for (int64_t i = 0; i < k->n; i += FEW) {
    int64_t end = min64(k->n, i + FEW);
    for (int64_t j = 0; j < w; j++) c[j] = m[j], part[j] = 0;
    for (int64_t r = i; r < end; r++) {
      const real *p = x + r * step;
      run_prefetch(p + AHEAD * step, (size_t)w * sizeof *x);
      LANES for (int64_t j = 0; j < w; j++) m[j] =
          p[j] != p[j] || p[j] > m[j] ? p[j] : m[j];
    }
    for (int64_t j = 0; j < w; j++) {
      real from = m[j] == -INFINITY ? 0 : m[j]; /* nothing but -inf yet */
      if (c[j] != m[j]) s[j] *= (double)exp(c[j] - from);
      c[j] = from;
    }
    for (int64_t r = i; r < end; r++) {
      const real *p = x + r * step;
      LANES for (int64_t j = 0; j < w; j++) part[j] += exp_flush(p[j] - c[j]);
    }
    for (int64_t j = 0; j < w; j++) s[j] += (double)part[j];
  }
}

/* The exponentials are made once more, as they are written. */
static void long_columns (const Job *k, const real *x, real *y, int64_t w) {
  real m[COLUMNS], c[COLUMNS];
  _Alignas(64) real buf[COLUMNS];
  double s[COLUMNS];
  int64_t step = k->inner;
  size_t run = (size_t)w * sizeof *x;
  long_sums(k, x, w, m, s);
  for (int64_t j = 0; j < w; j++)
    c[j] = k->log ? m[j] + log((real)s[j]) : (real)(1 / s[j]);
  for (int64_t i = 0; i < k->n; i++) {
    const real *p = x + i * step;
    real *q = y + i * step, *e = k->stream ? buf : q;
    run_prefetch(p + AHEAD * step, run);
    if (k->log) {
      LANES for (int64_t j = 0; j < w; j++) e[j] = p[j] - c[j];
    } else {
      LANES for (int64_t j = 0; j < w; j++) e[j] =
          exp_flush(p[j] - m[j]) * c[j];
    }
    if (k->stream) ONCE(run_stream)(q, buf, run);
  }
  if (k->stream) ONCE(run_fence)();
}

static void back_columns (const Job *k, const real *y, const real *gy,
                          real *gx, int64_t w) {
  double s[COLUMNS] = { 0 };
  int64_t n = k->n, step = k->inner;
  for (int64_t i = 0; i < n; i++) {
    const real *g = gy + i * step, *p = y + i * step;
    LANES for (int64_t j = 0; j < w; j++) s[j] +=
        (double)(k->log ? g[j] : g[j] * p[j]);
  }
  for (int64_t i = 0; i < n; i++) {
    const real *g = gy + i * step, *p = y + i * step;
    real *q = gx + i * step;
    LANES for (int64_t j = 0; j < w; j++) {
      real t = (real)s[j];
      q[j] = k->log ? g[j] - exp(p[j]) * t : p[j] * (g[j] - t);
    }
  }
}

static void column_range (void *ud, int64_t lo, int64_t hi) {
  const Job *k = ud;
  for (int64_t t = lo; t < hi; t++) {
    int64_t j = t % k->chunks * COLUMNS, w = min64(COLUMNS, k->inner - j);
    int64_t at = t / k->chunks * k->n * k->inner + j;
    if (k->gy != NULL) back_columns(k, k->x + at, k->gy + at, k->y + at, w);
    else if (k->n > LONG) long_columns(k, k->x + at, k->y + at, w);
    else softmax_columns(k, k->x + at, k->y + at, w);
  }
}

/* }====================================================== */

static void run (Job *k, int64_t outer, Range rows) {
  k->chunks = (k->inner + COLUMNS - 1) / COLUMNS;
  if (k->inner == 1) threads_range(outer, grain_rows(2 * k->n), rows, k);
  else
    threads_range(outer * k->chunks,
                  grain_rows(2 * k->n * min64(k->inner, COLUMNS)),
                  column_range, k);
}

void CPU (softmax)(Tensor *y, const Tensor *x, int64_t outer, int64_t n,
                   int64_t inner, bool log) {
  Job k = { .y = tensor_data(y),
            .x = tensor_data(x),
            .n = n,
            .inner = inner,
            .log = log };
  k.stream =
      (inner > 1 || n <= ROW) && y->numel * (int64_t)sizeof(real) > STREAM;
  run(&k, outer, softmax_rows);
}

void CPU (softmax_back)(Tensor *gx, const Tensor *gy, const Tensor *y,
                        int64_t outer, int64_t n, int64_t inner, bool log) {
  Job k = { .y = tensor_data(gx),
            .x = tensor_data(y),
            .gy = tensor_data(gy),
            .n = n,
            .inner = inner,
            .log = log };
  run(&k, outer, back_rows);
}
