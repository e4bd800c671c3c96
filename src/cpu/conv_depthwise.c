/* conv_depthwise.c - convolution where channels do not mix: vectors run over
** channels, and some places side by side share the loads of the weights. */

#include "conv.h"

enum {
  SIDE = 6,       /* places side by side */
  WIDE = 4,       /* vectors of channels where places are alone */
  BLOCK = 6,      /* sums in registers */
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
  const real *w; /* (taps of the kernel, channels), rows ldw apart */
  int64_t ldw;
  int row; /* how many taps are side by side: 0 where they are not */
  int64_t *reach;
} Run;

static int64_t lines_of (const Patches *p) { return p->out[0] * p->out[1]; }

/* The taps inside the image for line (z, y) of the grid of one image. */
static void reach_line (const Run *run, int64_t image, int64_t z, int64_t y,
                        Reach *r) {
  const Patches *p = &run->d->patches;
  const Taps *t = run->d->taps;
  r->count = 0;
  for (int64_t i = 0; i < t->count; i++) {
    int64_t iz = z * p->step[0] + t->offset[i][0];
    int64_t iy = y * p->step[1] + t->offset[i][1];
    if (iz < 0 || iz >= p->in[0] || iy < 0 || iy >= p->in[1]) continue;
    int64_t line = ((image * p->in[0] + iz) * p->in[1] + iy) * p->in[2];
    r->x[r->count] = (line + t->offset[i][2]) * p->ld;
    r->w[r->count] = t->tap[i] * run->ldw;
    r->at[r->count++] = t->offset[i][2];
  }
}

/* More turns than VEC_UNROLL takes. */
#define UNROLL_ALL _Pragma("GCC unroll 32")

VEC_INLINE vec load (const real *p, int64_t part) {
  return part == VEC ? vec_load(p) : vec_load_part(p, part);
}

/* A block of sums in registers: `side` places, step apart in the image, by
** `wide` vectors of channels from c on, of the last one only `part` lanes. */
typedef struct Sums {
  const Run *run;
  const Reach *r;
  const real *x;
  int64_t step, c;
  real *y;
} Sums;

VEC_INLINE void sums_begin (const Sums *s, vec *sum, int side, int wide,
                            int64_t part) {
  const real *bias = s->run->d->bias;
  VEC_UNROLL
  for (int i = 0; i < side * wide; i++) {
    sum[i] = (vec){ 0 };
    if (bias != NULL) sum[i] = load(bias + s->c + i % wide * VEC, part);
  }
}

VEC_INLINE void sums_end (const Sums *s, const vec *sum, int side, int wide,
                          int64_t part) {
  VEC_UNROLL
  for (int i = 0; i < side * wide; i++) {
    real *to = s->y + i / wide * s->run->d->place[3] + i % wide * VEC;
    vec v = s->run->d->relu ? vec_relu(sum[i]) : sum[i];
    if (part == VEC) vec_store(to, v);
    else vec_store_part(to, v, part);
  }
}

/* Tap by tap. */
VEC_INLINE void sum_taps (const Sums *s, int side, int wide, int64_t part) {
  vec sum[BLOCK];
  const Reach *r = s->r;
  const real *w = s->run->w + s->c;
  sums_begin(s, sum, side, wide, part);
  for (int64_t t = 0; t < r->count; t++) {
    const real *xt = s->x + r->x[t], *wt = w + r->w[t];
    VEC_UNROLL
    for (int v = 0; v < wide; v++) {
      vec weight = load(wt + v * VEC, part);
      VEC_UNROLL
      for (int i = 0; i < side; i++)
        sum[i * wide + v] += weight * load(xt + i * s->step + v * VEC, part);
    }
  }
  sums_end(s, sum, side, wide, part);
}

/* Row by row of `row` taps side by side, places `stride` apart: what an
** element of the image gives is added to all sums that it is part of. */
VEC_INLINE void sum_rows (const Sums *s, int row, int stride) {
  vec sum[BLOCK], weight[8];
  const Reach *r = s->r;
  int64_t ld = s->run->d->patches.ld, turn = r->w[1] - r->w[0];
  sums_begin(s, sum, SIDE, 1, VEC);
  for (int64_t t = 0; t < r->count; t += row) {
    const real *xt = s->x + r->x[t], *wt = s->run->w + s->c + r->w[t];
    VEC_UNROLL
    for (int i = 0; i < row; i++) weight[i] = vec_load(wt + i * turn);
    UNROLL_ALL
    for (int j = 0; j < (SIDE - 1) * stride + row; j++) {
      vec x = vec_load(xt + j * ld);
      VEC_UNROLL
      for (int i = 0; i < SIDE; i++)
        if (j - i * stride >= 0 && j - i * stride < row)
          sum[i] += weight[j - i * stride] * x;
    }
  }
  sums_end(s, sum, SIDE, 1, VEC);
}

/* SIDE places and one vector, by the rows of these taps if any fit. */
VEC_INLINE void sum_side (const Sums *s, int row, int64_t stride) {
  if (row == 3 && stride == 1) sum_rows(s, 3, 1);
  else if (row == 3 && stride == 2) sum_rows(s, 3, 2);
  else if (row == 5 && stride == 1) sum_rows(s, 5, 1);
  else if (row == 7 && stride == 1) sum_rows(s, 7, 1);
  else sum_taps(s, SIDE, 1, VEC);
}

/* `side` places, SIDE or one, and all channels; the last vector of channels
** may be computed twice. */
VEC_INLINE void sum_channels (const Run *run, const Reach *r, int64_t at,
                              real *y, int side) {
  const Patches *p = &run->d->patches;
  int64_t step = p->step[2] * p->ld, n = p->ld, c = 0;
  Sums s = { run, r, p->data + at * step, step, 0, NULL };
  const real *x = s.x;
  y += at * run->d->place[3];
  while (c < n) {
    int64_t left = n - c;
    if (left < VEC && n >= VEC) c = n - VEC;
    s.c = c;
    s.x = x + c;
    s.y = y + c;
    if (side == 1 && left >= WIDE * VEC) {
      sum_taps(&s, 1, WIDE, VEC);
      c += WIDE * VEC;
    } else if (n < VEC) {
      sum_taps(&s, side, 1, n);
      c = n;
    } else {
      if (side == 1) sum_taps(&s, 1, 1, VEC);
      else sum_side(&s, run->row, p->step[2]);
      c += VEC;
    }
  }
}

/* Places lo .. hi of a line, inside for all taps of r; the last ones may be
** computed twice. */
static void line_inside (const Run *run, const Reach *r, real *y, int64_t lo,
                         int64_t hi) {
  int64_t x = lo;
  for (; x + SIDE <= hi; x += SIDE) sum_channels(run, r, x, y, SIDE);
  if (x < hi && hi - lo >= SIDE) {
    sum_channels(run, r, hi - SIDE, y, SIDE);
    x = hi;
  }
  for (; x < hi; x++) sum_channels(run, r, x, y, 1);
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
  reach_line(run, image, z, y, &r);
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
static const real *turned (const real *w, int64_t channels, int64_t taps,
                           int64_t ld) {
  real *y = mem_scratch((size_t)(ld * taps) * sizeof(real));
  for (int64_t c = 0; c < channels; c++)
    for (int64_t t = 0; t < taps; t++) y[t * ld + c] = w[c * taps + t];
  return y;
}

/* How many taps make a row of the kernel, if they meet places side by side. */
static int row_of (int64_t taps, const int64_t (*offset)[3]) {
  int64_t n = 1;
  for (; n < taps && offset[n][0] == offset[0][0] &&
         offset[n][1] == offset[0][1];
       n++)
    if (offset[n][2] != offset[n - 1][2] + 1) return 0;
  return (int)min64(n, 8);
}

/* Rows of weights are not whole pages apart, where images' places may be. */
void CPU (depthwise)(const Depthwise *d) {
  size_t mark = fnn_mark();
  int64_t channels = d->patches.ld;
  Run run = { .d = d,
              .ldw = channels + VEC,
              .row = row_of(d->taps->count, d->patches.offset) };
  run.w = turned(d->weights, channels, d->size, run.ldw);
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
  int row; /* taps side by side that are taken together */
  const real *gy;
  real *to; /* (shares, taps, channels) */
} Sum;

/* to += the sums over places lo .. hi of a line for `row` taps side by side,
** whose elements of x are: an element of gy is read once.  One vector, or
** `part` of its lanes. */
VEC_INLINE void add_lanes (const Patches *p, const real *x, const real *gy,
                           int64_t lo, int64_t hi, real *to, int row,
                           int64_t part) {
  int64_t step = p->step[2] * p->ld, ld = p->ld, i = lo;
  vec sum[2 * 7];
  VEC_UNROLL
  for (int t = 0; t < 2 * row; t++) sum[t] = (vec){ 0 };
  for (; i + 2 <= hi; i += 2) {
    vec g0 = load(gy + i * ld, part), g1 = load(gy + (i + 1) * ld, part);
    VEC_UNROLL
    for (int t = 0; t < row; t++) {
      const real *at = x + i * step + t * ld;
      sum[t] += g0 * load(at, part);
      sum[row + t] += g1 * load(at + step, part);
    }
  }
  if (i < hi) {
    vec g = load(gy + i * ld, part);
    VEC_UNROLL
    for (int t = 0; t < row; t++)
      sum[t] += g * load(x + i * step + t * ld, part);
  }
  VEC_UNROLL
  for (int t = 0; t < row; t++) {
    vec v = load(to + t * ld, part) + (sum[t] + sum[row + t]);
    if (part == VEC) vec_store(to + t * ld, v);
    else vec_store_part(to + t * ld, v, part);
  }
}

VEC_INLINE void add_row (const Patches *p, const real *x, const real *gy,
                         int64_t lo, int64_t hi, real *to, int row) {
  int64_t c = 0, ld = p->ld;
  if (hi <= lo) return;
  for (; c + VEC <= ld; c += VEC)
    add_lanes(p, x + c, gy + c, lo, hi, to + c, row, VEC);
  if (c < ld) add_lanes(p, x + c, gy + c, lo, hi, to + c, row, ld - c);
}

/* A row of `row` taps from tap t on, whose line of x starts at `line`: places
** that all taps reach, then at both ends what some do. */
static void add_taps (const Sum *s, int64_t t, int row, const real *line,
                      const real *gy, real *to) {
  const Patches *p = s->p;
  int64_t n = p->out[2], step = p->step[2], first = n, last = 0;
  int64_t lo[7], hi[7], from = 0, end = n;
  for (int i = 0; i < row; i++) {
    int64_t dx = p->offset[t + i][2], left = p->in[2] - 1 - dx;
    lo[i] = dx < 0 ? min64(n, divide_up(-dx, step)) : 0;
    hi[i] = max64(lo[i], left < 0 ? 0 : min64(n, left / step + 1));
    from = max64(from, lo[i]);
    end = min64(end, hi[i]);
    first = min64(first, lo[i]);
    last = max64(last, hi[i]);
  }
  end = max64(from, end);
  const real *x = line + p->offset[t][2] * p->ld;
  if (row == 3) add_row(p, x, gy, from, end, to, 3);
  else if (row == 5) add_row(p, x, gy, from, end, to, 5);
  else if (row == 7) add_row(p, x, gy, from, end, to, 7);
  else from = end = first;
  for (int i = 0; i < row; i++, x += p->ld, to += p->ld) {
    add_row(p, x, gy, lo[i], min64(hi[i], from), to, 1);
    add_row(p, x, gy, max64(lo[i], end), hi[i], to, 1);
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
    for (int64_t t = 0; t < s->taps; t += s->row) {
      int64_t iz = z * p->step[0] + p->offset[t][0];
      int64_t iy = y * p->step[1] + p->offset[t][1];
      if (iz < 0 || iz >= p->in[0] || iy < 0 || iy >= p->in[1]) continue;
      int64_t line = ((image * p->in[0] + iz) * p->in[1] + iy) * p->in[2];
      add_taps(s, t, s->row, p->data + line * p->ld, gy, to + t * p->ld);
    }
  }
}

void CPU (depthwise_gradient)(const Patches *p, int64_t n, const real *gy,
                              real *gw) {
  size_t mark = fnn_mark();
  Sum s = { .p = p, .taps = p->runs * p->across, .gy = gy };
  int row = row_of(s.taps, p->offset);
  s.lines = n * lines_of(p);
  s.row = row == 3 || row == 5 || row == 7 ? row : 1;
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
