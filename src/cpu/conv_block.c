/* conv_block.c - patches times weights where patches need not be gathered.
**
** A task takes a rectangle of places, copies what they meet of the image, with
** zeros around where it ends, and lets the tiles read the patches there: for
** each run of taps, the patches of a line lie at equal distances.  The copy is
** about the size of the image, where gathered patches are that times taps. */

#include "conv.h"

enum {
  RUN = 48,         /* reals of a run that are worth a visit to the result */
  PLACES = 12,      /* tiles of places that a task has, about */
  SEGMENT = 6,      /* tiles of a line */
  COPY = 1 << 19,   /* reals of a copy at most */
  CACHED = 3 << 14, /* reals of weights that stay in the second cache */
  TASK = VEC * 32000000
};

/* The rectangles, and the copy of each: of `size` places of the image. */
typedef struct Plan {
  const PatchProduct *p;
  int64_t least[3], size[3]; /* least: offset */
  int64_t ld;                /* reals from place to place of the copy */
  int64_t h, w, cols;        /* of a rectangle; columns of a task */
  int64_t down, across, split;
  KBlocks k;
  real *scratch;
  int64_t each;
} Plan;

static int64_t panels (int64_t n) { return divide_up(n, TILE_COLS); }

/*
** {======================================================
** The copy
** =======================================================
*/

/* Places x .. x + n of a line of the image (NULL: outside). */
static void copy_line (const Plan *t, const real *line, int64_t x, int64_t n,
                       real *to) {
  const Patches *p = t->p->patches;
  int64_t lo = line == NULL ? n : max64(0, min64(n, -x));
  int64_t hi = line == NULL ? n : max64(lo, min64(n, p->in[2] - x));
  memset(to, 0, (size_t)(lo * t->ld) * sizeof(real));
  memset(to + hi * t->ld, 0, (size_t)((n - hi) * t->ld) * sizeof(real));
  if (t->ld == p->ld) {
    if (hi > lo)
      memcpy(to + lo * t->ld, line + (x + lo) * p->ld,
             (size_t)((hi - lo - 1) * t->ld + p->channels) * sizeof(real));
    return;
  }
  for (int64_t i = lo; i < hi; i++)
    memcpy(to + i * t->ld, line + (x + i) * p->ld,
           (size_t)p->channels * sizeof(real));
}

/* What the rectangle with its first place at `at` of an image meets. */
static void copy_block (const Plan *t, int64_t image, const int64_t at[3],
                        real *to) {
  const Patches *p = t->p->patches;
  int64_t from[3], row = t->size[2] * t->ld;
  for (int d = 0; d < 3; d++) from[d] = at[d] * p->step[d] + t->least[d];
  for (int64_t z = from[0]; z < from[0] + t->size[0]; z++)
    for (int64_t y = from[1]; y < from[1] + t->size[1]; y++, to += row) {
      bool in = z >= 0 && z < p->in[0] && y >= 0 && y < p->in[1];
      int64_t line = ((image * p->in[0] + z) * p->in[1] + y) * p->in[2];
      copy_line(t, in ? p->data + line * p->ld : NULL, from[2], t->size[2],
                to);
    }
}

/* }====================================================== */

/* One block of k for all lines of a rectangle, some columns at a time, whose
** weights stay in reach. */
static void add_block (const Plan *t, Block b, const real *weights,
                       int64_t lines, int64_t step, int64_t cols) {
  const PatchProduct *p = t->p;
  int64_t group = max64(1, CACHED / (b.k * TILE_COLS)) * TILE_COLS;
  const real *a = b.a, *bias = b.bias;
  real *c = b.c;
  for (int64_t j = 0; j < cols; j += group) {
    b.n = min64(group, cols - j);
    b.b = weights + j / TILE_COLS * b.panel;
    b.next = (Ahead){ .at = (const char *)(b.b + b.panel),
                      .step = TILE_COLS * sizeof(real) };
    b.next_panels = panels(b.n) - 1;
    b.next_panel = b.panel * (int64_t)sizeof(real);
    if (bias != NULL) b.bias = bias + j;
    for (int64_t i = 0; i < lines; i++) {
      b.a = a + i * step;
      b.c = c + j + i * p->patches->out[2] * p->ldc;
      CPU(gemm_block)(&b);
    }
  }
}

static void block_task (void *ud, int64_t task, int worker) {
  const Plan *t = ud;
  const PatchProduct *p = t->p;
  const Patches *q = p->patches;
  int64_t j = task % t->split * t->cols, rest = task / t->split, at[3];
  at[2] = rest % t->across * t->w;
  rest /= t->across;
  at[1] = rest % t->down * t->h;
  rest /= t->down;
  at[0] = rest % q->out[0];
  int64_t image = rest / q->out[0], cols = min64(t->cols, p->n - j);
  int64_t lines = min64(t->h, q->out[1] - at[1]);
  int64_t place = ((image * q->out[0] + at[0]) * q->out[1] + at[1]);
  real *copy = t->scratch + worker * t->each;
  Block b = { .m = min64(t->w, q->out[2] - at[2]),
              .in_place = true,
              .a_row = q->step[2] * t->ld,
              .a_col = 1,
              .ldb = TILE_COLS,
              .panel = gemm_panel(t->k.depth),
              .c = p->c + (place * q->out[2] + at[2]) * p->ldc + j,
              .ldc = p->ldc,
              .bias = p->bias != NULL ? p->bias + j : NULL,
              .alpha = 1 };
  int64_t row = t->size[2] * t->ld, plane = t->size[1] * row;
  int64_t taps = t->ld == q->channels ? q->across : 1;
  int64_t run = taps * q->channels, size = panels(p->n) * b.panel;
  copy_block(t, image, at, copy);
  for (int64_t k0 = 0, k; k0 < t->k.k; k0 += k) {
    int64_t in = k0 % run;
    const int64_t *offset = q->offset[k0 / run * taps];
    k = min64(run - in, kblocks_left(&t->k, k0));
    b.k = k;
    b.a = copy + (offset[0] - t->least[0]) * plane +
          (offset[1] - t->least[1]) * row + (offset[2] - t->least[2]) * t->ld +
          in;
    b.flags = k0 > 0 ? TILE_ADD : 0;
    if (k0 + k == t->k.k) {
      if (p->bias != NULL) b.flags |= TILE_BIAS;
      if (p->relu) b.flags |= TILE_RELU;
    }
    const real *weights = p->weights + kblocks_index(&t->k, k0) * size +
                          kblocks_row(&t->k, k0) * TILE_COLS +
                          j / TILE_COLS * b.panel;
    add_block(t, b, weights, lines, q->step[1] * row, cols);
  }
}

/* The rectangles of all places: a few tiles of a line, as many lines as make
** a task; fewer where threads would be idle, and then columns are split. */
static void plan_cut (Plan *t, int64_t images) {
  const PatchProduct *p = t->p;
  const Patches *q = p->patches;
  int64_t pieces = divide_up(q->out[2], SEGMENT * TILE_ROWS);
  int64_t width = threads_width(), lines = images * q->out[0] * q->out[1];
  t->w = divide_up(divide_up(q->out[2], pieces), TILE_ROWS) * TILE_ROWS;
  t->w = pieces == 1 ? q->out[2] : t->w;
  t->across = divide_up(q->out[2], t->w);
  t->h = max64(1, PLACES * TILE_ROWS / t->w);
  t->h = min64(t->h, max64(1, lines * t->across / (2 * width)));
  t->h = min64(t->h, q->out[1]);
  t->h = divide_up(q->out[1], divide_up(q->out[1], t->h));
  t->down = divide_up(q->out[1], t->h);
  int64_t tasks = images * q->out[0] * t->down * t->across;
  double work = (double)(t->h * t->w) * (double)t->k.k * (double)p->n;
  int64_t split = tasks < width ? divide_up(width, tasks) : 1;
  split = max64(split, (int64_t)(work / TASK) + 1);
  t->cols = divide_up(panels(p->n), min64(split, panels(p->n))) * TILE_COLS;
  t->split = divide_up(p->n, t->cols);
}

static Plan plan_of (const PatchProduct *p) {
  const Patches *q = p->patches;
  Plan t = { .p = p, .ld = q->channels };
  int64_t taps = q->runs * q->across, most[3] = { 0 };
  int64_t images = p->m / (q->out[0] * q->out[1] * q->out[2]);
  t.k = kblocks_of(patches_width(q), q->across * q->channels);
  if (t.ld % (2048 / (int64_t)sizeof(real)) == 0) t.ld += VEC;
  plan_cut(&t, images);
  for (int d = 0; d < 3; d++) t.least[d] = most[d] = q->offset[0][d];
  for (int64_t i = 0; i < taps; i++)
    for (int d = 0; d < 3; d++) {
      t.least[d] = min64(t.least[d], q->offset[i][d]);
      most[d] = max64(most[d], q->offset[i][d]);
    }
  const int64_t part[3] = { 1, t.h, t.w };
  t.each = t.ld;
  for (int d = 0; d < 3; d++) {
    t.size[d] = (part[d] - 1) * q->step[d] + most[d] - t.least[d] + 1;
    /* Taps may be so far apart that the product is beyond any integer. */
    t.each = t.size[d] > COPY / t.each ? COPY + 1 : t.each * t.size[d];
  }
  t.each = (t.each + 15) / 16 * 16;
  return t;
}

/* Lines of a few places would leave tiles empty, and what taps far apart meet
** is too much to copy. */
bool CPU (block_product)(const PatchProduct *p) {
  const Patches *q = p->patches;
  if (q->across * q->channels < RUN || 2 * q->out[2] < TILE_ROWS) return false;
  size_t mark = fnn_mark();
  Plan t = plan_of(p);
  if (t.each > COPY) return false;
  int64_t images = p->m / (q->out[0] * q->out[1] * q->out[2]);
  int64_t tasks = images * q->out[0] * t.down * t.across * t.split;
  int64_t reals = (tasks > 1 ? threads_width() : 1) * t.each;
  t.scratch = mem_scratch((size_t)reals * sizeof(real));
  threads_run(tasks, block_task, &t);
  fnn_escape(mark, NULL);
  return true;
}
