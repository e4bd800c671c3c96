/* conv_weight.c - the gradient of a convolution's weights: the sum over all
** places of patch times gradient.
**
** gw (k, n) = patches (m, k)' gy (m, n), m being long.  Tasks take blocks of
** rows of gw and, where gw is small, each a share of the places; the sums of
** the shares are then added in order.  How m is shared depends on the shape
** alone. */

#include "conv.h"

#if VEC_BYTES == 64
enum { DEPTH = 512, ROWS = 168 };
#else
enum { DEPTH = 344, ROWS = 96 };
#endif

enum {
  WIDE = 16 * TILE_COLS, /* columns of gy packed at a time */
  SHARES = 16,
  SHARE = VEC * 200000,   /* multiplications that a share has at least */
  SHARED = 1 << 16,       /* elements of gw that is small */
  TASK = VEC * 100000000, /* multiplications that a task has at most */
};

/* gw cut into slices of `rows` by `cols`, for shares of `depth` places. */
typedef struct Sum {
  const Patches *patches;
  const real *gy;
  int64_t m, k, n, ldg;
  int64_t rows, cols, down, across, places, shares;
  int64_t first; /* the place this round begins with */
  real *to;      /* (shares, k, n) */
  real *scratch;
  int64_t each;
} Sum;

static int64_t panels (int64_t n) { return divide_up(n, TILE_COLS); }

/* One slice over the places lo .. hi. */
static void sum_slice (const Sum *s, int64_t i0, int64_t j0, int64_t lo,
                       int64_t hi, real *c, real *scratch, bool add) {
  int64_t ld = patches_ld(ROWS);
  real *a = scratch, *b = scratch + DEPTH * ld;
  int64_t end = min64(s->k, i0 + s->rows), n = min64(s->cols, s->n - j0);
  for (int64_t p = lo; p < hi; p += DEPTH) {
    int64_t depth = min64(DEPTH, hi - p);
    Operand gy = { .data = s->gy + p * s->ldg + j0, .row = s->ldg, .col = 1 };
    CPU(gemm_pack_b)(n, depth, gy, b);
    for (int64_t i = i0; i < end; i += ROWS) {
      int64_t rows = min64(ROWS, end - i);
      CPU(patches_gather)(s->patches, p, depth, i, rows, a, ld);
      CPU(gemm_block)
      (&(Block){ .m = rows,
                 .n = n,
                 .k = depth,
                 .a = a,
                 .in_place = true,
                 .a_row = 1,
                 .a_col = ld,
                 .b = b,
                 .ldb = TILE_COLS,
                 .panel = gemm_panel(depth),
                 .c = c + i * s->n + j0,
                 .ldc = s->n,
                 .alpha = 1,
                 .flags = add || p > lo ? TILE_ADD : 0 });
    }
  }
}

static void sum_task (void *ud, int64_t task, int worker) {
  const Sum *s = ud;
  int64_t slices = s->down * s->across, slice = task % slices;
  int64_t share = task / slices;
  int64_t lo = s->first + share * s->places;
  sum_slice(s, slice / s->across * s->rows, slice % s->across * s->cols, lo,
            min64(s->m, lo + s->places), s->to + share * s->k * s->n,
            s->scratch + worker * s->each, s->first > 0);
}

/* Rows c of gw's channels: from (taps, channels, n) of all shares to (n,
** channels, taps). */
typedef struct Turn {
  const Sum *s;
  int64_t channels, taps;
  real *gw;
} Turn;

static void turn_channels (void *ud, int64_t lo, int64_t hi) {
  const Turn *t = ud;
  const Sum *s = t->s;
  for (int64_t c = lo; c < hi; c++)
    for (int64_t j = 0; j < s->n; j += VEC) {
      int64_t n = min64(VEC, s->n - j);
      for (int64_t k = 0; k < t->taps; k++) {
        const real *from = s->to + (k * t->channels + c) * s->n + j;
        real sum[VEC] = { 0 };
        for (int64_t q = 0; q < s->shares; q++, from += s->k * s->n)
          for (int64_t i = 0; i < n; i++) sum[i] += from[i];
        real *to = t->gw + (j * t->channels + c) * t->taps + k;
        for (int64_t i = 0; i < n; i++) to[i * t->channels * t->taps] = sum[i];
      }
    }
}

/* Shares of about equal number of places, and slices that keep all threads
** busy. */
static void cut (Sum *s) {
  int64_t width = threads_width();
  double work = (double)s->m * (double)s->k * (double)s->n;
  s->shares = 1;
  if (s->k * s->n <= SHARED)
    s->shares = max64(1, min64(SHARES, (int64_t)(work / SHARE)));
  s->places = divide_up(divide_up(s->m, s->shares), DEPTH) * DEPTH;
  s->shares = divide_up(s->m, s->places);
  s->rows = s->k;
  s->cols = min64(s->n, WIDE);
  s->across = divide_up(s->n, s->cols);
  if (s->shares < 2 * width && s->across < 2 * width) {
    int64_t pieces = divide_up(2 * width, s->shares * s->across);
    s->rows = divide_up(divide_up(s->k, pieces), TILE_ROWS) * TILE_ROWS;
  }
  s->down = divide_up(s->k, s->rows);
}

void CPU (patches_gradient)(const Patches *patches, int64_t m, const real *gy,
                            int64_t ldg, int64_t n, real *gw) {
  size_t mark = fnn_mark();
  Sum s = { .patches = patches, .gy = gy, .m = m, .n = n, .ldg = ldg };
  s.k = patches_width(patches);
  cut(&s);
  int64_t size = s.shares * s.k * s.n;
  s.to = mem_scratch((size_t)size * sizeof(real));
  s.each = DEPTH * patches_ld(ROWS) + panels(s.cols) * gemm_panel(DEPTH) + VEC;
  s.each = divide_up(s.each, 16) * 16;
  s.scratch = mem_scratch((size_t)(threads_width() * s.each) * sizeof(real));
  int64_t tasks = s.shares * s.down * s.across;
  int64_t places = s.places;
  if (s.shares == 1) { /* all places in rounds, that no task lasts long */
    int64_t most = TASK / max64(1, s.rows * s.cols) / DEPTH * DEPTH;
    s.places = max64(DEPTH, min64(places, most));
  }
  for (s.first = 0; s.first < (s.shares == 1 ? m : 1); s.first += s.places)
    threads_run(tasks, sum_task, &s);
  Turn t = { .s = &s, .channels = patches->channels, .gw = gw };
  t.taps = patches->runs * patches->across;
  threads_range(t.channels, max64(1, GRAIN / (t.taps * n * s.shares)),
                turn_channels, &t);
  fnn_escape(mark, NULL);
}
