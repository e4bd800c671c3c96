/* conv_depthwise.c - convolution where channels do not mix: vectors run over
** channels, and some places side by side share the loads of the weights. */

#include "conv.h"

enum {
  SIDE = 6,       /* places side by side */
  SHARES = 16,    /* of the gradient of the weights */
  SHARE = 1 << 20 /* multiplications that one has at least */
};

/* The taps that meet a line of the image: as places of x and of w. */
typedef struct Reach {
  int64_t count;
  int64_t *x, *w, *at; /* at: on the line, from the origin */
} Reach;

/* What all tasks share, and the room of each for its Reach. */
typedef struct Run {
  const Depthwise *d;
  const real *w; /* (taps of the kernel, channels) */
  int64_t *reach;
} Run;

static int64_t lines_of (const Patches *p) { return p->out[0] * p->out[1]; }

/* The taps inside the image for line (z, y) of the grid of one image. */
static void reach_line (const Patches *p, const Taps *t, int64_t image,
                        int64_t z, int64_t y, Reach *r) {
  r->count = 0;
  for (int64_t i = 0; i < t->count; i++) {
    int64_t iz = z * p->step[0] + t->offset[i][0];
    int64_t iy = y * p->step[1] + t->offset[i][1];
    if (iz < 0 || iz >= p->in[0] || iy < 0 || iy >= p->in[1]) continue;
    int64_t line = ((image * p->in[0] + iz) * p->in[1] + iy) * p->in[2];
    r->x[r->count] = (line + t->offset[i][2]) * p->ld;
    r->w[r->count] = t->tap[i] * p->ld;
    r->at[r->count++] = t->offset[i][2];
  }
}

/* n places from x on that all taps of r reach, step reals apart, and VEC
** channels, or part of them. */
VEC_INLINE void sum_places (const real *x, int64_t step, const real *w,
                            const Reach *r, vec bias, bool relu, real *y,
                            int64_t place, int n, int64_t part) {
  vec sum[SIDE];
  for (int i = 0; i < n; i++) sum[i] = bias;
  for (int64_t t = 0; t < r->count; t++) {
    const real *xt = x + r->x[t], *wt = w + r->w[t];
    vec v = part == VEC ? vec_load(wt) : vec_load_part(wt, part);
    for (int i = 0; i < n; i++)
      sum[i] += v * (part == VEC ? vec_load(xt + i * step)
                                 : vec_load_part(xt + i * step, part));
  }
  for (int i = 0; i < n; i++) {
    if (relu) sum[i] = vec_relu(sum[i]);
    if (part == VEC) vec_store(y + i * place, sum[i]);
    else vec_store_part(y + i * place, sum[i], part);
  }
}

/* Places lo .. hi of a line, inside for all taps of r. */
static void line_inside (const Run *run, const Reach *r, real *y, int64_t lo,
                         int64_t hi) {
  const Depthwise *d = run->d;
  const Patches *p = &d->patches;
  int64_t step = p->step[2] * p->ld, place = d->place[3];
  for (int64_t c = 0; c < p->ld; c += VEC) {
    int64_t part = min64(VEC, p->ld - c), x = lo;
    vec bias = { 0 };
    if (d->bias != NULL)
      bias = part == VEC ? vec_load(d->bias + c)
                         : vec_load_part(d->bias + c, part);
    const real *from = p->data + c, *w = run->w + c;
    if (part == VEC)
      for (; x + SIDE <= hi; x += SIDE)
        sum_places(from + x * step, step, w, r, bias, d->relu,
                   y + x * place + c, place, SIDE, VEC);
    if (part == VEC)
      for (; x < hi; x++)
        sum_places(from + x * step, step, w, r, bias, d->relu,
                   y + x * place + c, place, 1, VEC);
    for (; x < hi; x++)
      sum_places(from + x * step, step, w, r, bias, d->relu, y + x * place + c,
                 place, 1, part);
  }
}

/* One place, with only the taps inside. */
static void place_at_edge (const Run *run, const Reach *r, real *y,
                           int64_t x) {
  const Patches *p = &run->d->patches;
  int64_t n = run->d->size;
  Reach in = { 0, r->x + n, r->w + n, r->at + n };
  for (int64_t t = 0; t < r->count; t++) {
    int64_t at = x * p->step[2] + r->at[t];
    if (at < 0 || at >= p->in[2]) continue;
    in.x[in.count] = r->x[t];
    in.w[in.count++] = r->w[t];
  }
  line_inside(run, &in, y, x, x + 1);
}

static void line_task (void *ud, int64_t task, int worker) {
  const Run *run = ud;
  const Depthwise *d = run->d;
  const Patches *p = &d->patches;
  int64_t image = task / lines_of(p), line = task % lines_of(p);
  int64_t z = line / p->out[1], y = line % p->out[1];
  int64_t *room = run->reach + worker * 6 * d->size;
  Reach r = { 0, room, room + 2 * d->size, room + 4 * d->size };
  reach_line(p, d->taps, image, z, y, &r);
  real *to = d->y + image * d->place[0] + z * d->place[1] + y * d->place[2];
  int64_t least = 0, most = 0; /* offsets of the taps */
  for (int64_t t = 0; t < d->taps->count; t++) {
    least = min64(least, d->taps->offset[t][2]);
    most = max64(most, d->taps->offset[t][2]);
  }
  int64_t n = p->out[2], step = p->step[2];
  int64_t lo = min64(n, divide_up(-least, step));
  int64_t hi = p->in[2] - 1 - most;
  hi = max64(lo, hi < 0 ? 0 : min64(n, hi / step + 1));
  for (int64_t x = 0; x < lo; x++) place_at_edge(run, &r, to, x);
  line_inside(run, &r, to, lo, hi);
  for (int64_t x = hi; x < n; x++) place_at_edge(run, &r, to, x);
}

/* (channels, taps) to (taps, channels). */
static const real *turned (const real *w, int64_t channels, int64_t taps) {
  real *y = mem_scratch((size_t)(channels * taps) * sizeof(real));
  for (int64_t c = 0; c < channels; c++)
    for (int64_t t = 0; t < taps; t++) y[t * channels + c] = w[c * taps + t];
  return y;
}

void CPU (depthwise)(const Depthwise *d) {
  size_t mark = fnn_mark();
  Run run = { .d = d, .w = turned(d->weights, d->patches.ld, d->size) };
  int64_t room = threads_width() * 6 * d->size;
  run.reach = mem_scratch((size_t)room * sizeof *run.reach);
  threads_run(d->n * lines_of(&d->patches), line_task, &run);
  fnn_escape(mark, NULL);
}

/*
** {======================================================
** The gradient of the weights
** =======================================================
*/

/* Lines are shared out; each share sums for itself. */
typedef struct Sum {
  const Patches *p;
  int64_t taps, lines, each, shares;
  const real *gy;
  real *to; /* (shares, taps, channels) */
} Sum;

/* to += the sum over places lo .. hi of a line. */
static void add_line (const Patches *p, const real *x, const real *gy,
                      int64_t lo, int64_t hi, real *to) {
  int64_t step = p->step[2] * p->ld, ld = p->ld, c = 0;
  for (; c + VEC <= ld; c += VEC) {
    vec sum[2] = { { 0 }, { 0 } };
    int64_t i = lo;
    for (; i + 2 <= hi; i += 2) {
      sum[0] += vec_load(x + i * step + c) * vec_load(gy + i * ld + c);
      sum[1] +=
          vec_load(x + (i + 1) * step + c) * vec_load(gy + (i + 1) * ld + c);
    }
    if (i < hi)
      sum[0] += vec_load(x + i * step + c) * vec_load(gy + i * ld + c);
    vec_store(to + c, vec_load(to + c) + (sum[0] + sum[1]));
  }
  for (; c < ld; c++) {
    real sum = 0;
    for (int64_t i = lo; i < hi; i++) sum += x[i * step + c] * gy[i * ld + c];
    to[c] += sum;
  }
}

static void sum_task (void *ud, int64_t task, int worker) {
  const Sum *s = ud;
  const Patches *p = s->p;
  real *to = s->to + task * s->taps * p->ld;
  (void)worker;
  memset(to, 0, (size_t)(s->taps * p->ld) * sizeof(real));
  int64_t end = min64(s->lines, (task + 1) * s->each);
  for (int64_t i = task * s->each; i < end; i++) {
    int64_t image = i / lines_of(p), z = i % lines_of(p) / p->out[1];
    int64_t y = i % p->out[1];
    const real *gy = s->gy + i * p->out[2] * p->ld;
    for (int64_t t = 0; t < s->taps; t++) {
      int64_t iz = z * p->step[0] + p->offset[t][0];
      int64_t iy = y * p->step[1] + p->offset[t][1], dx = p->offset[t][2];
      if (iz < 0 || iz >= p->in[0] || iy < 0 || iy >= p->in[1]) continue;
      int64_t lo = dx < 0 ? divide_up(-dx, p->step[2]) : 0;
      int64_t last = p->in[2] - 1 - dx;
      int64_t hi = last < 0 ? 0 : min64(p->out[2], last / p->step[2] + 1);
      int64_t line = ((image * p->in[0] + iz) * p->in[1] + iy) * p->in[2];
      add_line(p, p->data + (line + dx) * p->ld, gy, lo, hi, to + t * p->ld);
    }
  }
}

void CPU (depthwise_gradient)(const Patches *p, int64_t n, const real *gy,
                              real *gw) {
  size_t mark = fnn_mark();
  Sum s = { .p = p, .taps = p->runs * p->across, .gy = gy };
  s.lines = n * lines_of(p);
  double work = (double)(s.lines * p->out[2]) * (double)(s.taps * p->ld);
  int64_t shares = max64(1, min64(SHARES, (int64_t)(work / SHARE)));
  s.each = max64(1, divide_up(s.lines, shares));
  s.shares = divide_up(s.lines, s.each);
  int64_t size = s.taps * p->ld;
  s.to = mem_scratch((size_t)(s.shares * size) * sizeof(real));
  threads_run(s.shares, sum_task, &s);
  for (int64_t c = 0; c < p->ld; c++)
    for (int64_t t = 0; t < s.taps; t++) {
      real sum = 0;
      for (int64_t q = 0; q < s.shares; q++)
        sum += s.to[q * size + t * p->ld + c];
      gw[c * s.taps + t] = sum;
    }
  fnn_escape(mark, NULL);
}

/* }====================================================== */
