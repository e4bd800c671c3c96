/* channel_norm.c - batch, group and instance normalization.
**
** x is seen as planes, one for each image and channel: in row-major order a
** plane is dense, in channels-last order planes lie side by side and vectors
** go across them.  Each plane's mean and sum of squared distances from it are
** taken in two passes over chunks that stay in the first cache, from a first
** element outwards, so that a constant plane has variance 0; they are joined
** (Chan et al. 1983) to those of a group or a channel.  Then
**
**   y = (x - m) a + b   with m, a, b of the plane. */

#include "channel_norm.h"

/* CHUNK: of a dense run; PARTS: most of an image's rows; BLOCK: bytes of images
** that are worth keeping in a cache between passes. */
enum { CHUNK = 2048, PARTS = 32, BLOCK = 1 << 20 };

/*
** {======================================================
** Moments
** =======================================================
*/

typedef struct Moments {
  double n, mean, spread; /* spread: the sum of squared distances */
} Moments;

/* Those of count sets, of size elements each but for the last. */
static Moments join (const double *mean, const double *spread, int64_t count,
                     int64_t step, int64_t size, int64_t last) {
  Moments m = { (double)(size * (count - 1) + last), 0, 0 };
  for (int64_t i = 0; i < count; i++)
    m.mean +=
        (double)(i < count - 1 ? size : last) * (mean[i * step] - mean[0]);
  m.mean = mean[0] + m.mean / m.n;
  for (int64_t i = 0; i < count; i++) {
    double d = mean[i * step] - m.mean;
    m.spread += spread[i * step];
    m.spread += (double)(i < count - 1 ? size : last) * d * d;
  }
  return m;
}

/* Of a dense run within the first cache. */
static Moments run_moments (const real *x, int64_t n) {
  Moments m = { (double)n, 0, 0 };
  const real o = x[0];
  for (int64_t i = 0; i < n; i += LEAF) {
    int64_t k = min64(LEAF, n - i);
    const real *p = x + i;
    real s = 0;
    _Pragma("omp simd reduction(+:s)") for (int64_t j = 0; j < k; j++) s +=
        p[j] - o;
    m.mean += (double)s;
  }
  m.mean = (double)o + m.mean / m.n;
  const real c = (real)m.mean;
  for (int64_t i = 0; i < n; i += LEAF) {
    int64_t k = min64(LEAF, n - i);
    const real *p = x + i;
    real s = 0;
    _Pragma("omp simd reduction(+:s)") for (int64_t j = 0; j < k; j++) s +=
        (p[j] - c) * (p[j] - c);
    m.spread += (double)s;
  }
  return m;
}

static void moments_rows (void *ud, int64_t lo, int64_t hi) {
  const Job *j = ud;
  int64_t c = j->k->channels, s = j->k->space;
  for (int64_t i = lo; i < hi; i++) {
    int64_t n = j->first + i / c;
    const real *x = j->x + (n * c + i % c) * s;
    double *to = plane_of(j, n) + i % c;
    to[0] = to[c] = 0;
    for (int64_t at = 0; at < s; at += CHUNK) {
      Moments m = run_moments(x + at, min64(CHUNK, s - at));
      double all = (double)at + m.n, d = m.mean - to[0];
      to[c] += m.spread;
      if (at > 0) to[c] += d * d * ((double)at * m.n / all);
      to[0] = at > 0 ? to[0] + d * (m.n / all) : m.mean;
    }
  }
}

/* Means and spreads over rows of nv vectors, stride apart. */
VEC_INLINE void tile_moments (const real *x, int64_t rows, int64_t stride,
                              int nv, int64_t part, real *mean, real *spread) {
  vec c[COLS], s[COLS];
  const real n = (real)rows;
  VEC_UNROLL
  for (int v = 0; v < nv; v++) {
    c[v] = load(x + v * VEC, part);
    s[v] = vec_set(0);
  }
  for (int64_t r = 1; r < rows; r++) {
    VEC_UNROLL
    for (int v = 0; v < nv; v++)
      s[v] += load(x + r * stride + v * VEC, part) - c[v];
  }
  VEC_UNROLL
  for (int v = 0; v < nv; v++) {
    c[v] += s[v] / n;
    s[v] = vec_set(0);
  }
  for (int64_t r = 0; r < rows; r++) {
    VEC_UNROLL
    for (int v = 0; v < nv; v++) {
      vec d = load(x + r * stride + v * VEC, part) - c[v];
      s[v] += d * d;
    }
  }
  VEC_UNROLL
  for (int v = 0; v < nv; v++) {
    store(mean + v * VEC, c[v], part);
    store(spread + v * VEC, s[v], part);
  }
}

/* Tiles of one row of channels; the last ones overlap. */
static void chunk_moments (const real *x, int64_t rows, int64_t n, real *mean,
                           real *spread) {
  int64_t c = 0;
  if (n < VEC) {
    tile_moments(x, rows, n, 1, n, mean, spread);
    return;
  }
  for (; c + COLS * VEC <= n; c += COLS * VEC)
    tile_moments(x + c, rows, n, COLS, 0, mean + c, spread + c);
  for (; c < n; c += VEC) {
    int64_t at = min64(c, n - VEC);
    tile_moments(x + at, rows, n, 1, 0, mean + at, spread + at);
  }
}

static void moments_part (void *ud, int64_t task, int worker) {
  const Job *j = ud;
  int64_t n = j->k->channels, s = j->k->space;
  int64_t lo = task % j->parts * j->len, hi = min64(lo + j->len, s);
  const real *x = j->x + (j->first + task / j->parts) * s * n;
  double *mean = j->part + task * 2 * n, *spread = mean + n;
  real *m = j->chunk + worker * 2 * n, *q = m + n;
  memset(mean, 0, (size_t)(2 * n) * sizeof *mean);
  for (int64_t i = lo; i < hi; i += ROWS) {
    int64_t rows = min64(ROWS, hi - i);
    chunk_moments(x + i * n, rows, n, m, q);
    double share = (double)rows / (double)(i - lo + rows);
    double weight = (double)(i - lo) * share;
    if (i == lo)
      for (int64_t c = 0; c < n; c++) mean[c] = (double)m[c];
    LANES for (int64_t c = 0; c < n; c++) {
      double d = (double)m[c] - mean[c];
      mean[c] += d * share;
      spread[c] += (double)q[c] + d * d * weight;
    }
  }
}

static void join_parts (const Job *j) {
  int64_t n = j->k->channels, last = j->k->space - (j->parts - 1) * j->len;
  for (int64_t i = 0; i < j->images; i++) {
    const double *part = j->part + i * j->parts * 2 * n;
    double *to = plane_of(j, j->first + i);
    for (int64_t c = 0; c < n; c++) {
      Moments m = join(part + c, part + n + c, j->parts, 2 * n, j->len, last);
      to[c] = m.mean;
      to[n + c] = m.spread;
    }
  }
}

/* Fills the block's planes. */
static void block_moments (Job *j) {
  const Norm *k = j->k;
  if (k->last) {
    threads_run(j->images * j->parts, moments_part, j);
    join_parts(j);
  } else
    threads_range(j->images * k->channels, grain_rows(k->space), moments_rows,
                  j);
}

/* }====================================================== */

/*
** {======================================================
** Coefficients and the second pass
** =======================================================
*/

/* m, a, b of channel c from a mean and 1/std. */
static void set_coef (const Job *j, real *to, int64_t c, real mean, real r) {
  int64_t n = j->k->channels;
  to[c] = mean;
  to[n + c] = j->w != NULL ? r * j->w[c] : r;
  to[2 * n + c] = j->b != NULL ? j->b[c] : 0;
}

/* Each channel's statistics over all images, or those given.  The running
** ones move towards them, the variance being that of a sample. */
static void pooled_coefs (const Job *j, real *stats, real *mean, real *var) {
  const Norm *k = j->k;
  int64_t n = k->channels;
  const double *p = j->plane;
  for (int64_t c = 0; c < n; c++) {
    double centre, spread;
    if (k->given) {
      centre = (double)mean[c];
      spread = (double)var[c];
    } else {
      Moments m = join(p + c, p + n + c, k->batch, 2 * n, k->space, k->space);
      centre = m.mean;
      spread = m.spread / m.n;
      if (mean != NULL) {
        double f = k->momentum, v = m.spread / (m.n - 1);
        mean[c] = (real)((1 - f) * (double)mean[c] + f * centre);
        var[c] = (real)((1 - f) * (double)var[c] + f * v);
      }
    }
    stats[2 * c] = (real)centre;
    stats[2 * c + 1] = (real)(1 / sqrt(spread + k->eps));
    set_coef(j, j->coef, c, stats[2 * c], stats[2 * c + 1]);
  }
}

static void group_coefs (const Job *j, real *stats) {
  const Norm *k = j->k;
  int64_t n = k->channels, size = n / k->groups;
  for (int64_t i = j->first; i < j->first + j->images; i++)
    for (int64_t g = 0; g < k->groups; g++) {
      const double *p = plane_of(j, i) + g * size;
      Moments m = join(p, p + n, size, 1, k->space, k->space);
      real *to = stats + 2 * (i * k->groups + g);
      to[0] = (real)m.mean;
      to[1] = (real)(1 / sqrt(m.spread / m.n + k->eps));
      for (int64_t c = g * size; c < (g + 1) * size; c++)
        set_coef(j, coef_of(j, i), c, to[0], to[1]);
    }
}

static void apply_rows (void *ud, int64_t lo, int64_t hi) {
  const Job *j = ud;
  int64_t n = j->k->channels, s = j->k->space;
  for (int64_t i = lo; i < hi; i++) {
    int64_t plane = j->first * n + i, c = i % n;
    const real *f = coef_of(j, plane / n) + c, *x = j->x + plane * s;
    const real m = f[0], a = f[n], b = f[2 * n];
    real *y = j->y + plane * s;
    LANES for (int64_t k = 0; k < s; k++) y[k] = (x[k] - m) * a + b;
  }
}

static void apply_last (void *ud, int64_t lo, int64_t hi) {
  const Job *j = ud;
  int64_t n = j->k->channels, s = j->k->space;
  for (int64_t i = lo; i < hi; i++) {
    int64_t row = j->first * s + i;
    const real *m = coef_of(j, row / s), *a = m + n, *b = a + n;
    const real *x = j->x + row * n;
    real *y = j->y + row * n;
    LANES for (int64_t c = 0; c < n; c++) y[c] = (x[c] - m[c]) * a[c] + b[c];
  }
}

void CPU (channel_norm_pass)(Job *j, Range rows, Range last) {
  const Norm *k = j->k;
  if (k->last)
    threads_range(j->images * k->space, grain_rows(k->channels), last, j);
  else threads_range(j->images * k->channels, grain_rows(k->space), rows, j);
}

/* }====================================================== */

int64_t CPU (channel_norm_open)(Job *j, bool sums) {
  const Norm *k = j->k;
  size_t n = (size_t)k->channels, images = (size_t)k->batch;
  int64_t bytes = max64(k->channels * k->space, 1) * (int64_t)sizeof(real);
  int64_t block = shares(k) ? k->batch : max64(BLOCK / bytes, 1);
  j->coef = mem_scratch((shares(k) ? 1 : images) * 4 * n * sizeof *j->coef);
  if (!sums) return block;
  j->plane = mem_scratch(images * 2 * n * sizeof *j->plane);
  if (!k->last) return block;
  block = min64(block, k->batch);
  int64_t most = max64(2 * PARTS / block, 1);
  j->len = max64(grain_rows(k->channels), (k->space + most - 1) / most);
  j->parts = (k->space + j->len - 1) / j->len;
  j->part = mem_scratch((size_t)(block * j->parts) * 2 * n * sizeof *j->part);
  j->chunk = mem_scratch((size_t)threads_width() * 2 * n * sizeof *j->chunk);
  return block;
}

void CPU (channel_norm)(Tensor *y, Tensor *stats, Tensor *mean, Tensor *var,
                        const Tensor *x, const Tensor *w, const Tensor *b,
                        const Norm *k) {
  size_t mark = fnn_mark();
  Job j = { .k = k,
            .x = tensor_data(x),
            .w = data_or_null(w),
            .b = data_or_null(b),
            .y = tensor_data(y) };
  int64_t block = CPU(channel_norm_open)(&j, !k->given);
  for (; j.first < k->batch; j.first += block) {
    j.images = min64(block, k->batch - j.first);
    if (!k->given) block_moments(&j);
    if (shares(k))
      pooled_coefs(&j, tensor_data(stats), (real *)data_or_null(mean),
                   (real *)data_or_null(var));
    else group_coefs(&j, tensor_data(stats));
    CPU(channel_norm_pass)(&j, apply_rows, apply_last);
  }
  fnn_escape(mark, NULL);
}
