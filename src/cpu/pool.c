/* pool.c - maxima and averages over windows of planes.
**
** x is (planes, h, w, channels), channels being 1 in row-major order.  With
** channels the loops go across them; without, along a row of windows, one
** place of the window after the other.  Of equal maxima the first wins, and
** NaN over all else. */

#include "sweep.h"

/* Where a window lies along one axis: places lo, lo + dilation .. below hi;
** size counts padding too. */
typedef struct Span {
  int64_t lo, hi, size;
} Span;

typedef struct Job {
  const Pooling *p;
  const real *x; /* or gy */
  real *y;       /* or gx */
  int32_t *ids;  /* of maxima: places in a plane, -1 for none; or NULL */
  Span *h, *w;   /* of each output */
  real *wide;    /* what each counts along w */
  double *sum;   /* (workers, channels): of averages */
  real *row;     /* (workers, w.out + w.in): on the way back */
  int64_t tile;  /* channels of a task on the way back */
} Job;

/* Windows of more places than SMALL are summed in double, PART places of each
** channel at a time; TILE channels are a task on the way back. */
enum { SMALL = 64, PART = 16, TILE = 64 };

static Span span (const PoolAxis *a, int64_t o, bool adaptive) {
  Span s;
  if (adaptive) {
    s.lo = o * a->in / a->out;
    s.hi = ((o + 1) * a->in + a->out - 1) / a->out;
    s.size = s.hi - s.lo;
    return s;
  }
  int64_t start = o * a->stride - a->pad;
  int64_t end = start + a->dilation * (a->kernel - 1) + 1;
  s.lo = start;
  if (start < 0) s.lo += (a->dilation - 1 - start) / a->dilation * a->dilation;
  s.hi = min64(end, a->in);
  s.size = min64(end, a->in + a->pad) - start;
  return s;
}

/* The outputs lo .. hi-1 whose window has its place t in the input, which is
** then o stride + *off. */
static void reach (const PoolAxis *a, int64_t t, int64_t *lo, int64_t *hi,
                   int64_t *off) {
  *off = t * a->dilation - a->pad;
  *lo = *off < 0 ? (a->stride - 1 - *off) / a->stride : 0;
  *hi = *off < a->in ? min64(a->out, (a->in - 1 - *off) / a->stride + 1) : 0;
}

/* The places first .. end-1 of a window that are in the input for any output:
** of one that reaches far into the padding a few. */
static void taps (const PoolAxis *a, int64_t *first, int64_t *end) {
  int64_t before = a->pad - (a->out - 1) * a->stride;
  *first = before > 0 ? (before + a->dilation - 1) / a->dilation : 0;
  *end = min64(a->kernel, (a->pad + a->in - 1) / a->dilation + 1);
}

/* What a window counts along an axis for an average. */
static real count (const Pooling *p, const Span *s) {
  return (real)(p->count_pad || p->adaptive ? s->size : s->hi - s->lo);
}

/* The places that a window has in the input, about. */
static int64_t window (const Pooling *p) {
  if (p->adaptive) return (p->h.in / p->h.out + 2) * (p->w.in / p->w.out + 2);
  return min64(p->h.kernel, p->h.in) * min64(p->w.kernel, p->w.in);
}

/* Whether the windows of a row are alike and small. */
static bool regular (const Pooling *p) {
  return !p->adaptive && p->h.kernel <= SMALL && p->w.kernel <= SMALL &&
         p->h.kernel * p->w.kernel <= SMALL;
}

/*
** {======================================================
** Maxima
** =======================================================
*/

#ifdef CPU_DOUBLE
typedef int64_t Bits;
#else
typedef int32_t Bits;
#endif

typedef union Word {
  real v;
  Bits bits;
} Word;

/* Takes x[i] at place id into y and ids (unless NULL) for elements 0 .. n-1,
** whose places are step apart.  Chosen by masks: a branch would be guessed
** wrong every other time. */
static inline void take (const real *x, int64_t step, int64_t n, int32_t id,
                         int32_t apart, real *y, int32_t *ids) {
  if (ids == NULL) {
    LANES for (int64_t i = 0; i < n; i++) {
      Word v = { x[i * step] }, m = { y[i] };
      Bits wins = -(Bits)((v.v > m.v) | (v.v != v.v));
      m.bits = (v.bits & wins) | (m.bits & ~wins);
      y[i] = m.v;
    }
    return;
  }
  LANES for (int64_t i = 0; i < n; i++) {
    Word v = { x[i * step] }, m = { y[i] };
    Bits wins = -(Bits)((v.v > m.v) | (v.v != v.v) | (ids[i] < 0));
    int32_t at = id + (int32_t)i * apart;
    m.bits = (v.bits & wins) | (m.bits & ~wins);
    y[i] = m.v;
    ids[i] = (at & (int32_t)wins) | (ids[i] & ~(int32_t)wins);
  }
}

/* Strides that the compiler knows make loads of whole vectors. */
static void take_row (const real *x, int64_t stride, int64_t n, int32_t id,
                      real *y, int32_t *ids) {
  if (stride == 1) take(x, 1, n, id, 1, y, ids);
  else if (stride == 2) take(x, 2, n, id, 2, y, ids);
  else take(x, stride, n, id, (int32_t)stride, y, ids);
}

/* One row of windows of a plane without channels. */
static void max_row (const Job *j, const real *x, int64_t o, real *y,
                     int32_t *ids) {
  const Pooling *p = j->p;
  int64_t lo, hi, off, step = p->adaptive ? 1 : p->h.dilation;
  int64_t first = 0, end = 0;
  if (!p->adaptive) taps(&p->w, &first, &end);
  for (int64_t i = j->h[o].lo; i < j->h[o].hi; i += step) {
    if (!p->adaptive) {
      for (int64_t t = first; t < end; t++) {
        reach(&p->w, t, &lo, &hi, &off);
        int64_t at = i * p->w.in + off + lo * p->w.stride;
        if (lo < hi)
          take_row(x + at, p->w.stride, hi - lo, (int32_t)at, y + lo,
                   ids != NULL ? ids + lo : NULL);
      }
      continue;
    }
    for (int64_t k = 0; k < p->w.out; k++)
      for (int64_t c = j->w[k].lo; c < j->w[k].hi; c++)
        take(x + i * p->w.in + c, 1, 1, (int32_t)(i * p->w.in + c), 0, y + k,
             ids != NULL ? ids + k : NULL);
  }
}

/* The same with n channels. */
static void max_channels (const Job *j, const real *x, int64_t o, real *y,
                          int32_t *ids) {
  const Pooling *p = j->p;
  int64_t n = p->channels, hstep = p->adaptive ? 1 : p->h.dilation;
  int64_t wstep = p->adaptive ? 1 : p->w.dilation;
  for (int64_t k = 0; k < p->w.out; k++)
    for (int64_t i = j->h[o].lo; i < j->h[o].hi; i += hstep)
      for (int64_t c = j->w[k].lo; c < j->w[k].hi; c += wstep) {
        int64_t at = i * p->w.in + c;
        take(x + at * n, 1, n, (int32_t)at, 0, y + k * n,
             ids != NULL ? ids + k * n : NULL);
      }
}

static void max_rows (void *ud, int64_t lo, int64_t hi) {
  const Job *j = ud;
  const Pooling *p = j->p;
  int64_t row = p->w.out * p->channels;
  for (int64_t i = lo; i < hi; i++) {
    const real *x = j->x + i / p->h.out * p->h.in * p->w.in * p->channels;
    real *y = j->y + i * row;
    int32_t *ids = j->ids != NULL ? j->ids + i * row : NULL;
    for (int64_t k = 0; k < row; k++) y[k] = -(real)INFINITY;
    if (ids != NULL) memset(ids, -1, (size_t)row * sizeof *ids);
    if (p->channels == 1) max_row(j, x, i % p->h.out, y, ids);
    else max_channels(j, x, i % p->h.out, y, ids);
  }
}

/* }====================================================== */

/*
** {======================================================
** Averages
** =======================================================
*/

static inline void add_row (real *y, const real *x, int64_t ystep,
                            int64_t xstep, int64_t n) {
  LANES for (int64_t i = 0; i < n; i++) y[i * ystep] += x[i * xstep];
}

static void add_strided (real *y, const real *x, int64_t stride, int64_t n) {
  if (stride == 1) add_row(y, x, 1, 1, n);
  else if (stride == 2) add_row(y, x, 1, 2, n);
  else add_row(y, x, 1, stride, n);
}

/* Small windows of a plane without channels, a place at a time. */
static void mean_row (const Job *j, const real *x, int64_t o, real *y) {
  const Pooling *p = j->p;
  int64_t lo, hi, off;
  memset(y, 0, (size_t)p->w.out * sizeof *y);
  for (int64_t i = j->h[o].lo; i < j->h[o].hi; i++)
    for (int64_t t = 0; t < p->w.kernel; t++) {
      reach(&p->w, t, &lo, &hi, &off);
      if (lo < hi)
        add_strided(y + lo, x + i * p->w.in + off + lo * p->w.stride,
                    p->w.stride, hi - lo);
    }
  const real high = count(p, &j->h[o]);
  LANES for (int64_t k = 0; k < p->w.out; k++) y[k] /= high * j->wide[k];
}

/* The sum of a dense run. */
static double run_sum (const real *x, int64_t n) {
  enum { LEAF = 128 };
  double sum = 0;
  for (int64_t i = 0; i < n; i += LEAF) {
    int64_t k = min64(LEAF, n - i);
    const real *p = x + i;
    real s = 0;
    _Pragma("omp simd reduction(+:s)") for (int64_t c = 0; c < k; c++) s +=
        p[c];
    sum += (double)s;
  }
  return sum;
}

/* Windows of any size and place. */
static void mean_spans (const Job *j, const real *x, int64_t o, real *y) {
  const Pooling *p = j->p;
  const Span *h = &j->h[o];
  for (int64_t k = 0; k < p->w.out; k++) {
    const Span *w = &j->w[k];
    double sum = 0;
    if (w->lo == 0 && w->hi == p->w.in)
      sum = run_sum(x + h->lo * p->w.in, (h->hi - h->lo) * p->w.in);
    else
      for (int64_t i = h->lo; i < h->hi; i++)
        sum += run_sum(x + i * p->w.in + w->lo, w->hi - w->lo);
    y[k] = (real)(sum / (double)(count(p, h) * j->wide[k]));
  }
}

/* The sums of n channels over one window: in y, and from there in sum each
** time that PART places have been added. */
static void mean_channels (const Job *j, const real *x, int64_t o, real *y,
                           double *sum) {
  const Pooling *p = j->p;
  int64_t n = p->channels;
  const Span *h = &j->h[o];
  for (int64_t k = 0; k < p->w.out; k++, y += n) {
    const Span *w = &j->w[k];
    bool small = (h->hi - h->lo) * (w->hi - w->lo) <= SMALL;
    int64_t added = 0;
    memset(y, 0, (size_t)n * sizeof *y);
    if (!small) memset(sum, 0, (size_t)n * sizeof *sum);
    for (int64_t i = h->lo; i < h->hi; i++)
      for (int64_t c = w->lo; c < w->hi; c++) {
        const real *from = x + (i * p->w.in + c) * n;
        add_row(y, from, 1, 1, n);
        if (small || ++added % PART != 0) continue;
        LANES for (int64_t e = 0; e < n; e++) {
          sum[e] += (double)y[e];
          y[e] = 0;
        }
      }
    const real d = count(p, h) * j->wide[k];
    if (small) {
      LANES for (int64_t e = 0; e < n; e++) y[e] /= d;
    } else {
      LANES for (int64_t e = 0; e < n; e++) y[e] =
          (real)((sum[e] + (double)y[e]) / (double)d);
    }
  }
}

/* A task is a run of rows of windows. */
static void mean_rows (void *ud, int64_t task, int worker) {
  const Job *j = ud;
  const Pooling *p = j->p;
  int64_t end = min64((task + 1) * j->tile, p->planes * p->h.out);
  for (int64_t i = task * j->tile; i < end; i++) {
    const real *x = j->x + i / p->h.out * p->h.in * p->w.in * p->channels;
    real *y = j->y + i * p->w.out * p->channels;
    int64_t o = i % p->h.out;
    if (p->channels > 1)
      mean_channels(j, x, o, y, j->sum + worker * p->channels);
    else if (regular(p)) mean_row(j, x, o, y);
    else mean_spans(j, x, o, y);
  }
}

/* }====================================================== */

static void open_job (Job *j) {
  const Pooling *p = j->p;
  j->h = mem_scratch((size_t)p->h.out * sizeof *j->h);
  j->w = mem_scratch((size_t)p->w.out * sizeof *j->w);
  j->wide = mem_scratch((size_t)p->w.out * sizeof *j->wide);
  for (int64_t i = 0; i < p->h.out; i++) j->h[i] = span(&p->h, i, p->adaptive);
  for (int64_t i = 0; i < p->w.out; i++) {
    j->w[i] = span(&p->w, i, p->adaptive);
    j->wide[i] = count(p, &j->w[i]);
  }
}

void CPU (pool)(Tensor *y, Tensor *ids, const Tensor *x, const Pooling *p) {
  size_t mark = fnn_mark();
  Job j = { .p = p,
            .x = tensor_data(x),
            .y = tensor_data(y),
            .ids = ids != NULL ? tensor_data(ids) : NULL };
  open_job(&j);
  int64_t rows = p->planes * p->h.out;
  int64_t places = min64(window(p), GRAIN);
  int64_t grain = grain_rows(p->w.out * p->channels * places);
  if (p->max) threads_range(rows, grain, max_rows, &j);
  else {
    j.tile = grain;
    j.sum =
        mem_scratch((size_t)(threads_width() * p->channels) * sizeof *j.sum);
    threads_run((rows + grain - 1) / grain, mean_rows, &j);
  }
  fnn_escape(mark, NULL);
}

/*
** {======================================================
** Backward: a task has a plane, or some channels of one
** =======================================================
*/

/* Channels lo .. hi-1 of a plane: what each maximum was taken from. */
static void max_back (const Job *j, const real *gy, const int32_t *ids,
                      real *gx, int64_t lo, int64_t hi) {
  const Pooling *p = j->p;
  int64_t n = p->channels, outputs = p->h.out * p->w.out;
  if (n == 1) {
    for (int64_t o = 0; o < outputs; o++)
      if (ids[o] >= 0) gx[ids[o]] += gy[o];
    return;
  }
  for (int64_t o = 0; o < outputs; o++) {
    const real *g = gy + o * n;
    const int32_t *id = ids + o * n;
    LANES for (int64_t c = lo; c < hi; c++) if (id[c] >= 0)
        gx[id[c] * n + c] += g[c];
  }
}

static void mean_back (const Job *j, const real *gy, real *gx, int64_t lo,
                       int64_t hi) {
  const Pooling *p = j->p;
  int64_t n = p->channels;
  for (int64_t o = 0; o < p->h.out; o++)
    for (int64_t k = 0; k < p->w.out; k++) {
      const Span *h = &j->h[o], *w = &j->w[k];
      const real *g = gy + (o * p->w.out + k) * n;
      const real d = count(p, h) * j->wide[k];
      for (int64_t i = h->lo; i < h->hi; i++)
        for (int64_t c = w->lo; c < w->hi; c++) {
          real *to = gx + (i * p->w.in + c) * n;
          LANES for (int64_t e = lo; e < hi; e++) to[e] += g[e] / d;
        }
    }
}

/* The same for small windows without channels: a row of windows gives one line
** to each row of the plane that it covers.  g: room for an output's and an
** input's row. */
static void mean_back_rows (const Job *j, const real *gy, real *gx, real *g) {
  const Pooling *p = j->p;
  int64_t lo, hi, off, n = p->w.in;
  real *line = g + p->w.out;
  for (int64_t o = 0; o < p->h.out; o++, gy += p->w.out) {
    const Span *h = &j->h[o];
    const real high = count(p, h);
    LANES for (int64_t k = 0; k < p->w.out; k++) g[k] =
        gy[k] / (high * j->wide[k]);
    memset(line, 0, (size_t)n * sizeof *line);
    for (int64_t t = 0; t < p->w.kernel; t++) {
      reach(&p->w, t, &lo, &hi, &off);
      if (lo < hi)
        add_row(line + off + lo * p->w.stride, g + lo, p->w.stride, 1,
                hi - lo);
    }
    for (int64_t i = h->lo; i < h->hi; i++) add_row(gx + i * n, line, 1, 1, n);
  }
}

static void back_part (void *ud, int64_t task, int worker) {
  const Job *j = ud;
  const Pooling *p = j->p;
  int64_t n = p->channels, tiles = (n + j->tile - 1) / j->tile;
  int64_t plane = task / tiles, lo = task % tiles * j->tile;
  int64_t hi = min64(lo + j->tile, n), in = p->h.in * p->w.in;
  int64_t out = p->h.out * p->w.out;
  const real *gy = j->x + plane * out * n;
  real *gx = j->y + plane * in * n;
  if (tiles == 1) memset(gx, 0, (size_t)(in * n) * sizeof *gx);
  else
    for (int64_t i = 0; i < in; i++)
      memset(gx + i * n + lo, 0, (size_t)(hi - lo) * sizeof *gx);
  if (p->max) max_back(j, gy, j->ids + plane * out * n, gx, lo, hi);
  else if (n == 1 && regular(p))
    mean_back_rows(j, gy, gx, j->row + worker * (p->w.out + p->w.in));
  else mean_back(j, gy, gx, lo, hi);
}

void CPU (pool_back)(Tensor *gx, const Tensor *gy, const Tensor *ids,
                     const Pooling *p) {
  size_t mark = fnn_mark();
  Job j = { .p = p,
            .x = tensor_data(gy),
            .y = tensor_data(gx),
            .ids = ids != NULL ? tensor_data(ids) : NULL,
            .tile = TILE };
  open_job(&j);
  j.row = mem_scratch((size_t)(threads_width() * (p->w.out + p->w.in)) *
                      sizeof *j.row);
  int64_t tiles = (p->channels + TILE - 1) / TILE;
  threads_run(p->planes * tiles, back_part, &j);
  fnn_escape(mark, NULL);
}

/* }====================================================== */
