/* resize.c - images of another size: nearest, linear and cubic.
**
** Along each axis an output is a weighted sum of inputs: a sparse matrix.  A
** row of the result first adds up rows of x, dense runs, then places within
** the sum.  The derivative is the same with both matrices transposed. */

#include "sweep.h"

enum { TAPS = 4 }; /* of the cubic, the widest but for antialias */

/* Rows of a sparse matrix: at and w from first[i] to first[i + 1]. */
typedef struct Axis {
  int64_t *first, *at;
  real *w;
} Axis;

typedef struct Job {
  const Resize *r;
  const real *x;
  real *y, *sum; /* sum: (workers, w, channels) of x */
  Axis h, w;
  int64_t xh, xw, yh, yw; /* sizes of what is read and written */
  int64_t rows;           /* of a task */
} Job;

/*
** {======================================================
** Weights
** =======================================================
*/

/* Where output o lies among the inputs. */
static double source (const Resize *r, const ResizeAxis *a, int64_t o) {
  if (r->align_corners)
    return a->out > 1
               ? (double)o * ((double)(a->in - 1) / (double)(a->out - 1))
               : 0;
  return ((double)o + 0.5) * a->scale - 0.5;
}

/* Keys 1981: the weight of a place at distance d < 2. */
static double cubic (double a, double d) {
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

/* The places and weights of output o; returns how many. */
static int taps (const Resize *r, const ResizeAxis *a, int64_t o, int64_t *at,
                 double *w) {
  if (r->mode == FNN_NEAREST) {
    real place = (real)o * (real)a->scale; /* as PyTorch rounds it */
    at[0] = min64((int64_t)place, a->in - 1);
    w[0] = 1;
    return 1;
  }
  double place = source(r, a, o);
  if (r->mode == FNN_LINEAR) {
    if (place < 0) place = 0;
    at[0] = min64((int64_t)place, a->in - 1);
    at[1] = min64(at[0] + 1, a->in - 1);
    w[1] = place - (double)at[0];
    w[0] = 1 - w[1];
    return 2;
  }
  double whole = floor(place), part = place - whole;
  for (int t = 0; t < TAPS; t++) {
    at[t] = min64(max64((int64_t)whole - 1 + t, 0), a->in - 1);
    w[t] = cubic(-0.75, fabs(part + 1 - t));
  }
  return TAPS;
}

/* Antialiasing, as Pillow and PyTorch have it: the filter is as wide as what
** an output covers, cut at the edges, and its weights add up to 1. */
static double reach (const Resize *r, const ResizeAxis *a) {
  return (r->mode == FNN_LINEAR ? 1 : 2) * (a->scale > 1 ? a->scale : 1);
}

static double filter (const Resize *r, double d) {
  d = fabs(d);
  if (r->mode == FNN_LINEAR) return d < 1 ? 1 - d : 0;
  return d < 2 ? cubic(-0.5, d) : 0;
}

static int64_t taps_wide (const Resize *r, const ResizeAxis *a, int64_t o,
                          int64_t *at, double *w) {
  double centre = a->scale * ((double)o + 0.5), sum = 0, side = reach(r, a);
  int64_t lo = max64((int64_t)(centre - side + 0.5), 0);
  int64_t hi = min64((int64_t)(centre + side + 0.5), a->in);
  lo = min64(lo, a->in - 1);
  hi = max64(hi, lo + 1);
  for (int64_t i = lo; i < hi; i++) {
    at[i - lo] = i;
    w[i - lo] =
        filter(r, ((double)i - centre + 0.5) / (a->scale > 1 ? a->scale : 1));
    sum += w[i - lo];
  }
  for (int64_t i = 0; i < hi - lo; i++) w[i] = sum != 0 ? w[i] / sum : 0;
  return hi - lo;
}

static Axis axis_new (const Resize *r, const ResizeAxis *a) {
  Axis m;
  int64_t n = 0;
  int64_t most =
      r->antialias ? min64(2 * (int64_t)reach(r, a) + 3, a->in) : TAPS;
  int64_t *at = mem_scratch((size_t)most * sizeof *at);
  double *w = mem_scratch((size_t)most * sizeof *w);
  m.first = mem_scratch((size_t)(a->out + 1) * sizeof *m.first);
  m.at = mem_scratch((size_t)(a->out * most) * sizeof *m.at);
  m.w = mem_scratch((size_t)(a->out * most) * sizeof *m.w);
  for (int64_t o = 0; o < a->out; o++) {
    m.first[o] = n;
    int64_t k =
        r->antialias ? taps_wide(r, a, o, at, w) : taps(r, a, o, at, w);
    for (int64_t t = 0; t < k; t++, n++) {
      m.at[n] = at[t];
      m.w[n] = (real)w[t];
    }
  }
  m.first[a->out] = n;
  return m;
}

/* The transpose of a matrix with out rows and in columns. */
static Axis axis_flip (Axis m, int64_t in, int64_t out) {
  int64_t n = m.first[out];
  Axis f;
  f.first = mem_scratch((size_t)(in + 2) * sizeof *f.first);
  f.at = mem_scratch((size_t)max64(n, 1) * sizeof *f.at);
  f.w = mem_scratch((size_t)max64(n, 1) * sizeof *f.w);
  memset(f.first, 0, (size_t)(in + 2) * sizeof *f.first);
  for (int64_t i = 0; i < n; i++) f.first[m.at[i] + 2]++;
  for (int64_t i = 2; i < in + 2; i++) f.first[i] += f.first[i - 1];
  for (int64_t o = 0; o < out; o++)
    for (int64_t i = m.first[o]; i < m.first[o + 1]; i++) {
      int64_t to = f.first[m.at[i] + 1]++; /* which becomes its own end */
      f.at[to] = o;
      f.w[to] = m.w[i];
    }
  return f;
}

/* }====================================================== */

/* The rows of the plane x that make row o, added up: in sum, or in x itself
** where it is one row as it stands. */
static const real *add_rows (const Job *j, const real *x, int64_t o,
                             real *sum) {
  int64_t lo = j->h.first[o], hi = j->h.first[o + 1];
  int64_t n = j->xw * j->r->channels;
  if (hi == lo + 1 && j->h.w[lo] == 1) return x + j->h.at[lo] * n;
  if (lo == hi) memset(sum, 0, (size_t)n * sizeof *sum);
  for (int64_t i = lo; i < hi; i++) {
    const real w = j->h.w[i], *row = x + j->h.at[i] * n;
    if (i == lo) {
      LANES for (int64_t k = 0; k < n; k++) sum[k] = w * row[k];
    } else {
      LANES for (int64_t k = 0; k < n; k++) sum[k] += w * row[k];
    }
  }
  return sum;
}

/* Outputs of k places each, of a row without channels. */
static inline void add_few (const Axis *w, int k, const real *row, real *y,
                            int64_t n) {
  const int64_t *at = w->at;
  LANES for (int64_t o = 0; o < n; o++) {
    real s = 0;
    for (int t = 0; t < k; t++) s += w->w[o * k + t] * row[at[o * k + t]];
    y[o] = s;
  }
}

/* The same, k being known to the compiler; false for another k. */
static bool add_alike (const Job *j, const real *row, real *y) {
  if (j->r->channels != 1) return false;
  switch (j->r->back || j->r->antialias ? 0 : j->w.first[1]) {
    case 1: add_few(&j->w, 1, row, y, j->yw); return true;
    case 2: add_few(&j->w, 2, row, y, j->yw); return true;
    case 4: add_few(&j->w, 4, row, y, j->yw); return true;
    default: return false;
  }
}

static void add_places (const Job *j, const real *row, real *y) {
  int64_t n = j->r->channels;
  if (add_alike(j, row, y)) return;
  for (int64_t o = 0; o < j->yw; o++, y += n) {
    int64_t lo = j->w.first[o], hi = j->w.first[o + 1];
    if (n == 1) {
      real s = 0;
      for (int64_t i = lo; i < hi; i++) s += j->w.w[i] * row[j->w.at[i]];
      *y = s;
      continue;
    }
    if (lo == hi) memset(y, 0, (size_t)n * sizeof *y);
    for (int64_t i = lo; i < hi; i++) {
      const real w = j->w.w[i], *from = row + j->w.at[i] * n;
      if (i == lo) {
        LANES for (int64_t c = 0; c < n; c++) y[c] = w * from[c];
      } else {
        LANES for (int64_t c = 0; c < n; c++) y[c] += w * from[c];
      }
    }
  }
}

static void resize_rows (void *ud, int64_t task, int worker) {
  const Job *j = ud;
  int64_t n = j->r->channels;
  int64_t end = min64((task + 1) * j->rows, j->r->planes * j->yh);
  real *sum = j->sum + worker * j->xw * n;
  for (int64_t i = task * j->rows; i < end; i++) {
    const real *x = j->x + i / j->yh * j->xh * j->xw * n;
    add_places(j, add_rows(j, x, i % j->yh, sum), j->y + i * j->yw * n);
  }
}

void CPU (resize)(Tensor *y, const Tensor *x, const Resize *r) {
  size_t mark = fnn_mark();
  Job j = { .r = r,
            .x = tensor_data(x),
            .y = tensor_data(y),
            .h = axis_new(r, &r->h),
            .w = axis_new(r, &r->w),
            .xh = r->h.in,
            .xw = r->w.in,
            .yh = r->h.out,
            .yw = r->w.out };
  if (r->back) {
    j.h = axis_flip(j.h, r->h.in, r->h.out);
    j.w = axis_flip(j.w, r->w.in, r->w.out);
    j.xh = r->h.out;
    j.xw = r->w.out;
    j.yh = r->h.in;
    j.yw = r->w.in;
  }
  int64_t row = j.xw * r->channels, rows = r->planes * j.yh;
  j.sum = mem_scratch((size_t)(threads_width() * row) * sizeof *j.sum);
  j.rows = grain_rows(row + j.yw * r->channels);
  threads_run((rows + j.rows - 1) / j.rows, resize_rows, &j);
  fnn_escape(mark, NULL);
}
