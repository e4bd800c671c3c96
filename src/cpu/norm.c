/* norm.c - layer normalization: rows of n numbers shifted to mean 0 (RMS norm
** leaves this out) and scaled to variance 1, times w, plus b.
**
** The variance is taken from the mean outwards, in a second pass over a row
** that is still in the first cache. */

#include "sweep.h"

enum { LEAF = 512, ROW = 4096, PARTS = 32 };

typedef struct Job {
  real *y, *stats; /* y: or gx */
  const real *x, *w, *b, *gy;
  double *part; /* (parts, 2, n): sums for gw and gb, or NULL */
  int64_t rows, n, len;
  double eps;
  bool stream, centred;
} Job;

/*
** {======================================================
** Forward
** =======================================================
*/

/* The mean; a row of equal numbers has exactly theirs. */
static double mean_row (const real *x, int64_t n) {
  const real o = n > 0 ? x[0] : 0;
  double sum = 0;
  for (int64_t i = 0; i < n; i += LEAF) {
    int64_t k = min64(LEAF, n - i);
    const real *p = x + i;
    real s = 0;
    _Pragma("omp simd reduction(+:s)") for (int64_t j = 0; j < k; j++) s +=
        p[j] - o;
    sum += (double)s;
  }
  return (double)o + sum / (double)n;
}

/* The sum of squared distances from c. */
static double spread_row (const real *x, int64_t n, real c) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += LEAF) {
    int64_t k = min64(LEAF, n - i);
    const real *p = x + i;
    real s = 0;
    _Pragma("omp simd reduction(+:s)") for (int64_t j = 0; j < k; j++) s +=
        (p[j] - c) * (p[j] - c);
    sum += (double)s;
  }
  return sum;
}

static void write_row (real *y, const real *x, int64_t n, real mean, real r,
                       const real *w, const real *b) {
  if (w != NULL && b != NULL) {
    LANES for (int64_t i = 0; i < n; i++) y[i] =
        (x[i] - mean) * r * w[i] + b[i];
    return;
  }
  LANES for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * r;
  if (w != NULL) {
    LANES for (int64_t i = 0; i < n; i++) y[i] *= w[i];
  }
  if (b != NULL) {
    LANES for (int64_t i = 0; i < n; i++) y[i] += b[i];
  }
}

static void forward_rows (void *ud, int64_t lo, int64_t hi) {
  const Job *k = ud;
  _Alignas(64) real buf[ROW];
  for (int64_t o = lo; o < hi; o++) {
    const real *x = k->x + o * k->n;
    real *y = k->y + o * k->n;
    double n = (double)k->n;
    if (k->stream) run_prefetch(x + k->n, (size_t)k->n * sizeof *x);
    real mean = k->centred ? (real)mean_row(x, k->n) : 0;
    double var = spread_row(x, k->n, mean) / n;
    real r = (real)(1 / sqrt(var + k->eps));
    k->stats[2 * o] = mean;
    k->stats[2 * o + 1] = r;
    write_row(k->stream ? buf : y, x, k->n, mean, r, k->w, k->b);
    if (k->stream) ONCE(run_stream)(y, buf, (size_t)k->n * sizeof *y);
  }
  if (k->stream) ONCE(run_fence)();
}

static const real *data_or_null (const Tensor *x) {
  return x != NULL ? tensor_data(x) : NULL;
}

void CPU (layer_norm)(Tensor *y, Tensor *stats, const Tensor *x,
                      const Tensor *w, const Tensor *b, int64_t rows,
                      int64_t n, double eps, bool centred) {
  Job k = { .y = tensor_data(y),
            .stats = tensor_data(stats),
            .x = tensor_data(x),
            .w = data_or_null(w),
            .b = data_or_null(b),
            .rows = rows,
            .n = n,
            .eps = eps,
            .centred = centred };
  k.stream = n <= ROW && y->numel * (int64_t)sizeof(real) > STREAM;
  threads_range(rows, grain_rows(n), forward_rows, &k);
}

/* }====================================================== */

/*
** {======================================================
** Backward.  With h = (x - mean) r and u = gy w:
** gx = r (u - mean(u) - h mean(u h)), gw = sum gy h, gb = sum gy
** =======================================================
*/

static void back_row (const Job *k, int64_t o) {
  int64_t n = k->n;
  const real *x = k->x + o * n, *gy = k->gy + o * n, *w = k->w;
  const real mean = k->stats[2 * o], r = k->stats[2 * o + 1];
  real *gx = k->y + o * n;
  double su = 0, suh = 0;
  for (int64_t i = 0; i < n; i += LEAF) {
    int64_t m = min64(LEAF, n - i);
    real a = 0, c = 0;
    _Pragma("omp simd reduction(+:a) reduction(+:c)") for (int64_t j = i;
                                                           j < i + m; j++) {
      real u = w != NULL ? gy[j] * w[j] : gy[j];
      a += u;
      c += u * (x[j] - mean);
    }
    su += (double)a;
    suh += (double)c;
  }
  const real mu = k->centred ? (real)(su / (double)n) : 0;
  const real mh = (real)(suh * (double)r / (double)n);
  LANES for (int64_t j = 0; j < n; j++) {
    real u = w != NULL ? gy[j] * w[j] : gy[j], h = (x[j] - mean) * r;
    gx[j] = r * (u - mu - h * mh);
  }
}

/* Adds row o to the sums for gw and gb. */
static void sum_grads (const Job *k, int64_t o, double *gw, double *gb) {
  const real *x = k->x + o * k->n, *gy = k->gy + o * k->n;
  const real mean = k->stats[2 * o], r = k->stats[2 * o + 1];
  LANES for (int64_t j = 0; j < k->n; j++) {
    gw[j] += (double)(gy[j] * ((x[j] - mean) * r));
    gb[j] += (double)gy[j];
  }
}

static void back_part (void *ud, int64_t part, int worker) {
  const Job *k = ud;
  int64_t lo = part * k->len, hi = min64(lo + k->len, k->rows);
  double *gw = k->part, *gb;
  (void)worker;
  if (gw != NULL) {
    gw += part * 2 * k->n;
    memset(gw, 0, (size_t)(2 * k->n) * sizeof *gw);
  }
  gb = gw != NULL ? gw + k->n : NULL;
  for (int64_t o = lo; o < hi; o++) {
    if (k->y != NULL) back_row(k, o);
    if (gw != NULL) sum_grads(k, o, gw, gb);
  }
}

static void add_parts (real *to, const double *part, int64_t parts,
                       int64_t n) {
  for (int64_t j = 0; j < n; j++) {
    double s = 0;
    for (int64_t i = 0; i < parts; i++) s += part[i * 2 * n + j];
    to[j] = (real)s;
  }
}

void CPU (layer_norm_back)(Tensor *gx, Tensor *gw, Tensor *gb,
                           const Tensor *gy, const Tensor *x, const Tensor *w,
                           const Tensor *stats, int64_t rows, int64_t n,
                           bool centred) {
  size_t mark = fnn_mark();
  Job k = { .y = (real *)data_or_null(gx),
            .stats = tensor_data(stats),
            .x = tensor_data(x),
            .w = data_or_null(w),
            .gy = tensor_data(gy),
            .rows = rows,
            .n = n,
            .centred = centred };
  k.len = max64(grain_rows(n), (rows + PARTS - 1) / PARTS);
  int64_t parts = (rows + k.len - 1) / k.len;
  if (gw != NULL || gb != NULL)
    k.part = mem_scratch((size_t)(parts * 2 * n + 1) * sizeof *k.part);
  threads_run(parts, back_part, &k);
  if (gw != NULL) add_parts(tensor_data(gw), k.part, parts, n);
  if (gb != NULL) add_parts(tensor_data(gb), k.part + n, parts, n);
  fnn_escape(mark, NULL);
}

/* }====================================================== */
