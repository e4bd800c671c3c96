/* argmax.c - places of the largest and least numbers: the first of equals,
** and a NaN before all. */

#include "reduce.h"

enum { LEAF = 256, COLUMNS = 256, SPLIT = 65536 };

typedef struct Job {
  const real *x;
  int64_t *y;
  real *value; /* (outer, splits) bests of pieces, or NULL */
  int64_t n, inner, splits, len, chunks;
  bool least;
} Job;

/* The best of n <= LEAF numbers times sign, NaN if there is one. */
static real leaf (const real *p, int64_t n, real sign) {
  real s = -INFINITY;
  int nan = 0;
  _Pragma("omp simd reduction(max:s) reduction(|:nan)") for (int64_t i = 0;
                                                             i < n; i++) {
    real v = p[i] * sign;
    s = v > s ? v : s;
    nan |= v != v;
  }
  return nan ? NAN : s;
}

/* Whether v comes before the best so far, which came earlier. */
static inline bool better (real v, real best) {
  return v > best || (v != v && best == best);
}

/* The place of the best in a row; its value to *best. */
static int64_t best_of (const real *p, int64_t n, real sign, real *best) {
  int64_t at = 0;
  *best = n > 0 ? p[0] * sign : 0;
  if (n <= 32) {
    for (int64_t i = 1; i < n; i++)
      if (better(p[i] * sign, *best)) *best = p[at = i] * sign;
    return at;
  }
  for (int64_t i = 0; i < n && *best == *best; i += LEAF) {
    int64_t m = min64(LEAF, n - i);
    real v = leaf(p + i, m, sign);
    if (!better(v, *best)) continue;
    *best = v;
    for (at = i; v == v ? p[at] * sign != v : p[at] == p[at]; at++)
      ;
  }
  return at;
}

static void best_columns (const real *p, int64_t n, int64_t inner, int64_t w,
                          real sign, int64_t *y) {
  real best[COLUMNS];
  for (int64_t j = 0; j < w; j++) {
    best[j] = p[j] * sign;
    y[j] = 0;
  }
  for (int64_t i = 1; i < n; i++) {
    p += inner;
    LANES for (int64_t j = 0; j < w; j++) {
      real v = p[j] * sign;
      bool c = (v > best[j]) | ((v != v) & (best[j] == best[j]));
      best[j] = c ? v : best[j];
      y[j] = c ? i : y[j];
    }
  }
}

static void job_range (void *ud, int64_t lo, int64_t hi) {
  const Job *k = ud;
  real sign = k->least ? -1 : 1, best;
  for (int64_t t = lo; t < hi; t++)
    if (k->inner == 1) {
      int64_t o = t / k->splits, i = t % k->splits * k->len;
      int64_t at =
          best_of(k->x + o * k->n + i, min64(k->len, k->n - i), sign, &best);
      k->y[t] = i + at;
      if (k->value != NULL) k->value[t] = best;
    } else {
      int64_t o = t / k->chunks, j = t % k->chunks * COLUMNS;
      best_columns(k->x + o * k->n * k->inner + j, k->n, k->inner,
                   min64(COLUMNS, k->inner - j), sign,
                   k->y + o * k->inner + j);
    }
}

void CPU (argmax_real)(int64_t *y, const real *x, int64_t outer, int64_t n,
                       int64_t inner, bool least) {
  Job k = {
    x, y, NULL, n, inner, 1, n, (inner + COLUMNS - 1) / COLUMNS, least
  };
  if (inner != 1 || n < 2 * SPLIT) {
    threads_range(outer * k.chunks, grain_rows(n * min64(inner, COLUMNS)),
                  job_range, &k);
    return;
  }
  size_t mark = fnn_mark();
  k.len = SPLIT;
  k.splits = (n + SPLIT - 1) / SPLIT;
  size_t count = (size_t)(outer * k.splits);
  k.value = mem_scratch(count * sizeof(real));
  k.y = mem_scratch(count * sizeof(int64_t));
  threads_range((int64_t)count, 1, job_range, &k);
  for (int64_t o = 0; o < outer; o++) {
    const real *v = k.value + o * k.splits;
    int64_t at = 0;
    for (int64_t i = 1; i < k.splits; i++)
      if (better(v[i], v[at])) at = i;
    y[o] = k.y[o * k.splits + at];
  }
  fnn_escape(mark, NULL);
}
