/* channel_norm_back.c - the derivatives of batch, group and instance
** normalization.
**
** With h = (x - mean) r, u = gy w and means over what shares the statistics,
** gx = r (u - mean(u) - h mean(u h)), gw = sum gy h, gb = sum gy.  A plane's
** sums of gy and of gy (x - mean) give all of these, and
**
**   gx = gy p + (x - m) q + o   with m, p, q, o of the plane. */

#include "channel_norm.h"

static const real *stats_of (const Job *j, int64_t n, int64_t c) {
  const Norm *k = j->k;
  if (shares(k)) return j->stats + 2 * c;
  return j->stats + 2 * (n * k->groups + c / (k->channels / k->groups));
}

static void sums_rows (void *ud, int64_t lo, int64_t hi) {
  const Job *j = ud;
  int64_t n = j->k->channels, s = j->k->space;
  for (int64_t i = lo; i < hi; i++) {
    int64_t plane = j->first * n + i, c = i % n;
    const real *x = j->x + plane * s, *gy = j->gy + plane * s;
    const real m = *stats_of(j, plane / n, c);
    double *to = plane_of(j, plane / n) + c;
    to[0] = to[n] = 0;
    for (int64_t at = 0; at < s; at += LEAF) {
      int64_t end = min64(at + LEAF, s);
      real a = 0, q = 0;
      _Pragma("omp simd reduction(+:a) reduction(+:q)") for (int64_t k = at;
                                                             k < end; k++) {
        a += gy[k];
        q += gy[k] * (x[k] - m);
      }
      to[0] += (double)a;
      to[n] += (double)q;
    }
  }
}

VEC_INLINE void tile_sums (const real *gy, const real *x, const real *mean,
                           int64_t rows, int64_t stride, int nv, int64_t part,
                           real *a, real *q) {
  vec m[COLS], s[COLS], t[COLS];
  VEC_UNROLL
  for (int v = 0; v < nv; v++) {
    m[v] = load(mean + v * VEC, part);
    s[v] = t[v] = vec_set(0);
  }
  for (int64_t r = 0; r < rows; r++) {
    VEC_UNROLL
    for (int v = 0; v < nv; v++) {
      vec g = load(gy + r * stride + v * VEC, part);
      s[v] += g;
      t[v] += g * (load(x + r * stride + v * VEC, part) - m[v]);
    }
  }
  VEC_UNROLL
  for (int v = 0; v < nv; v++) {
    store(a + v * VEC, s[v], part);
    store(q + v * VEC, t[v], part);
  }
}

static void chunk_sums (const real *gy, const real *x, const real *mean,
                        int64_t rows, int64_t n, real *a, real *q) {
  int64_t c = 0;
  if (n < VEC) {
    tile_sums(gy, x, mean, rows, n, 1, n, a, q);
    return;
  }
  for (; c + COLS * VEC <= n; c += COLS * VEC)
    tile_sums(gy + c, x + c, mean + c, rows, n, COLS, 0, a + c, q + c);
  for (; c < n; c += VEC) {
    int64_t at = min64(c, n - VEC);
    tile_sums(gy + at, x + at, mean + at, rows, n, 1, 0, a + at, q + at);
  }
}

static void sums_part (void *ud, int64_t task, int worker) {
  const Job *j = ud;
  int64_t n = j->k->channels, s = j->k->space;
  int64_t lo = task % j->parts * j->len, hi = min64(lo + j->len, s);
  int64_t image = j->first + task / j->parts;
  const real *x = j->x + image * s * n, *gy = j->gy + image * s * n;
  double *to = j->part + task * 2 * n;
  real *chunk = j->chunk + worker * 2 * n;
  memset(to, 0, (size_t)(2 * n) * sizeof *to);
  for (int64_t i = lo; i < hi; i += ROWS) {
    chunk_sums(gy + i * n, x + i * n, coef_of(j, image), min64(ROWS, hi - i),
               n, chunk, chunk + n);
    LANES for (int64_t c = 0; c < 2 * n; c++) to[c] += (double)chunk[c];
  }
}

/* The means come first: the sums in channels-last order read them there. */
static void block_sums (Job *j) {
  const Norm *k = j->k;
  int64_t n = 2 * k->channels;
  for (int64_t i = j->first; i < j->first + (shares(k) ? 1 : j->images); i++)
    for (int64_t c = 0; c < k->channels; c++)
      coef_of(j, i)[c] = *stats_of(j, i, c);
  if (!k->last) {
    threads_range(j->images * k->channels, grain_rows(k->space), sums_rows, j);
    return;
  }
  threads_run(j->images * j->parts, sums_part, j);
  for (int64_t i = 0; i < j->images; i++) {
    const double *part = j->part + i * j->parts * n;
    double *to = plane_of(j, j->first + i);
    memset(to, 0, (size_t)n * sizeof *to);
    for (int64_t p = 0; p < j->parts; p++)
      for (int64_t c = 0; c < n; c++) to[c] += part[p * n + c];
  }
}

/* p, q, o of channels lo .. hi-1, whose statistics come from count elements
** with the sums su of u and sh of u (x - mean); none when they were given. */
static void set_back (const Job *j, real *to, int64_t lo, int64_t hi, double r,
                      double su, double sh, double count) {
  int64_t n = j->k->channels;
  double o = j->k->given ? 0 : -r * su / count;
  double q = j->k->given ? 0 : -r * r * r * sh / count;
  for (int64_t c = lo; c < hi; c++) {
    to[n + c] = (real)(j->w != NULL ? r * (double)j->w[c] : r);
    to[2 * n + c] = (real)q;
    to[3 * n + c] = (real)o;
  }
}

/* Statistics of each channel: gw and gb are its sums over the images. */
static void pooled_back (const Job *j, real *gw, real *gb) {
  const Norm *k = j->k;
  int64_t n = k->channels;
  for (int64_t c = 0; c < n; c++) {
    double su = 0, sh = 0, w = j->w != NULL ? (double)j->w[c] : 1;
    double r = (double)stats_of(j, 0, c)[1];
    for (int64_t i = 0; i < k->batch; i++) {
      su += plane_of(j, i)[c];
      sh += plane_of(j, i)[n + c];
    }
    if (gb != NULL) gb[c] = (real)su;
    if (gw != NULL) gw[c] = (real)(r * sh);
    set_back(j, j->coef, c, c + 1, r, w * su, w * sh,
             (double)(k->batch * k->space));
  }
}

static void group_back (const Job *j) {
  const Norm *k = j->k;
  int64_t n = k->channels, size = n / k->groups;
  for (int64_t i = j->first; i < j->first + j->images; i++) {
    const double *p = plane_of(j, i);
    for (int64_t g = 0; g < k->groups; g++) {
      double su = 0, sh = 0, r = (double)stats_of(j, i, g * size)[1];
      for (int64_t c = g * size; c < (g + 1) * size; c++) {
        su += j->w != NULL ? (double)j->w[c] * p[c] : p[c];
        sh += j->w != NULL ? (double)j->w[c] * p[n + c] : p[n + c];
      }
      set_back(j, coef_of(j, i), g * size, (g + 1) * size, r, su, sh,
               (double)(size * k->space));
    }
  }
}

static void group_grads (const Job *j, real *gw, real *gb) {
  int64_t n = j->k->channels;
  for (int64_t c = 0; c < n; c++) {
    double a = 0, q = 0;
    for (int64_t i = 0; i < j->k->batch; i++) {
      a += plane_of(j, i)[c];
      q += plane_of(j, i)[n + c] * (double)stats_of(j, i, c)[1];
    }
    if (gb != NULL) gb[c] = (real)a;
    if (gw != NULL) gw[c] = (real)q;
  }
}

static void back_rows (void *ud, int64_t lo, int64_t hi) {
  const Job *j = ud;
  int64_t n = j->k->channels, s = j->k->space;
  for (int64_t i = lo; i < hi; i++) {
    int64_t plane = j->first * n + i;
    const real *f = coef_of(j, plane / n) + i % n;
    const real m = f[0], p = f[n], q = f[2 * n], o = f[3 * n];
    const real *x = j->x + plane * s, *gy = j->gy + plane * s;
    real *gx = j->y + plane * s;
    if (j->k->given) {
      LANES for (int64_t k = 0; k < s; k++) gx[k] = gy[k] * p;
      continue;
    }
    LANES for (int64_t k = 0; k < s; k++) gx[k] =
        gy[k] * p + ((x[k] - m) * q + o);
  }
}

static void back_last (void *ud, int64_t lo, int64_t hi) {
  const Job *j = ud;
  int64_t n = j->k->channels, s = j->k->space;
  for (int64_t i = lo; i < hi; i++) {
    int64_t row = j->first * s + i;
    const real *m = coef_of(j, row / s), *p = m + n, *q = p + n, *o = q + n;
    const real *x = j->x + row * n, *gy = j->gy + row * n;
    real *gx = j->y + row * n;
    if (j->k->given) {
      LANES for (int64_t c = 0; c < n; c++) gx[c] = gy[c] * p[c];
      continue;
    }
    LANES for (int64_t c = 0; c < n; c++) gx[c] =
        gy[c] * p[c] + ((x[c] - m[c]) * q[c] + o[c]);
  }
}

void CPU (channel_norm_back)(Tensor *gx, Tensor *gw, Tensor *gb,
                             const Tensor *gy, const Tensor *x,
                             const Tensor *w, const Tensor *stats,
                             const Norm *k) {
  size_t mark = fnn_mark();
  real *dw = (real *)data_or_null(gw), *db = (real *)data_or_null(gb);
  Job j = { .k = k,
            .x = tensor_data(x),
            .gy = tensor_data(gy),
            .w = data_or_null(w),
            .stats = tensor_data(stats),
            .y = (real *)data_or_null(gx) };
  int64_t block = CPU(channel_norm_open)(&j, true);
  for (; j.first < k->batch; j.first += block) {
    j.images = min64(block, k->batch - j.first);
    block_sums(&j);
    if (shares(k)) pooled_back(&j, dw, db);
    else group_back(&j);
    if (gx != NULL) CPU(channel_norm_pass)(&j, back_rows, back_last);
  }
  if (!shares(k)) group_grads(&j, dw, db);
  fnn_escape(mark, NULL);
}
