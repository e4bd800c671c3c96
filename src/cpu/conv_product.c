/* conv_product.c - patches times weights.
**
** Weights are packed whole: for each block of k the panels of all columns.  A
** task takes some places and all columns, or some; for each block of k it
** gathers the patches, which the tiles read in place, and adds to its part of
** the result.  Elements are summed in the order of k, however the result is
** cut. */

#include "conv.h"

enum { ROWS = VEC_BYTES == 64 ? 168 : 96 };

/* Multiplications that a task has at most. */
enum { TASK = VEC * 32000000 };

static int64_t panels (int64_t n) { return divide_up(n, TILE_COLS); }

/*
** {======================================================
** Weights
** =======================================================
*/

static KBlocks blocks_of (const Weights *w) {
  return kblocks_of(w->taps->count * w->rows, w->taps->across * w->rows);
}

int64_t CPU (weights_size)(const Weights *w) {
  KBlocks k = blocks_of(w);
  return kblocks_count(&k) * panels(w->n) * gemm_panel(k.depth);
}

typedef struct Packing {
  const Weights *w;
  real *to;
} Packing;

/* Panels lo .. hi: where row k of panel p goes, and what it holds. */
static void pack_panels (void *ud, int64_t lo, int64_t hi) {
  const Packing *pack = ud;
  const Weights *w = pack->w;
  KBlocks blocks = blocks_of(w);
  int64_t step = gemm_panel(blocks.depth), block = panels(w->n) * step;
  for (int64_t p = lo; p < hi; p++) {
    int64_t n = min64(TILE_COLS, w->n - p * TILE_COLS);
    const real *from = w->data + p * TILE_COLS * w->ldc;
    for (int64_t r = 0; r < w->rows; r++, from += w->ldr)
      for (int64_t t = 0; t < w->taps->count; t++) {
        int64_t k = t * w->rows + r;
        real *to = pack->to + kblocks_index(&blocks, k) * block + p * step;
        to += kblocks_row(&blocks, k) * TILE_COLS;
        const real *x = from + w->taps->tap[t];
        for (int64_t j = 0; j < n; j++) to[j] = x[j * w->ldc];
        for (int64_t j = n; j < TILE_COLS; j++) to[j] = 0;
      }
  }
}

void CPU (weights_pack)(const Weights *w, real *to) {
  int64_t k = w->taps->count * w->rows;
  int64_t grain = max64(1, GRAIN / max64(1, k * TILE_COLS));
  threads_range(panels(w->n), grain, pack_panels,
                &(Packing){ .w = w, .to = to });
}

/* }====================================================== */

/* The result cut into tasks of `rows` by `cols`. */
typedef struct Cut {
  const PatchProduct *p;
  KBlocks k;
  int64_t ld;
  int64_t rows, cols, across; /* across: tasks side by side */
  real *scratch;
} Cut;

static void product_task (void *ud, int64_t task, int worker) {
  const Cut *t = ud;
  const PatchProduct *p = t->p;
  int64_t i = task / t->across * t->rows, j = task % t->across * t->cols;
  real *a = t->scratch + worker * t->rows * t->ld;
  int64_t step = gemm_panel(t->k.depth), block = panels(p->n) * step;
  Block b = { .m = min64(t->rows, p->m - i),
              .n = min64(t->cols, p->n - j),
              .a = a,
              .in_place = true,
              .a_row = t->ld,
              .a_col = 1,
              .ldb = TILE_COLS,
              .panel = step,
              .c = p->c + i * p->ldc + j,
              .ldc = p->ldc,
              .bias = p->bias != NULL ? p->bias + j : NULL,
              .alpha = 1 };
  b.next_panels = panels(b.n) - 1;
  b.next_panel = step * (int64_t)sizeof(real);
  for (int64_t k0 = 0; k0 < t->k.k; k0 += b.k) {
    b.k = kblocks_left(&t->k, k0);
    b.b = p->weights + kblocks_index(&t->k, k0) * block + j / TILE_COLS * step;
    b.next = (Ahead){ .at = (const char *)(b.b + step),
                      .step = TILE_COLS * sizeof(real) };
    b.flags = k0 > 0 ? TILE_ADD : 0;
    if (k0 + b.k == t->k.k) {
      if (p->bias != NULL) b.flags |= TILE_BIAS;
      if (p->relu) b.flags |= TILE_RELU;
    }
    CPU(patches_gather)(p->patches, i, b.m, k0, b.k, a, t->ld);
    CPU(gemm_block)(&b);
  }
}

/* Rows of about equal number for all threads; where they are few, or a task
** would last long, columns are split too. */
static void cut (Cut *t) {
  const PatchProduct *p = t->p;
  int64_t width = threads_width();
  int64_t rounds = divide_up(p->m, width * ROWS);
  int64_t rows = divide_up(divide_up(p->m, width * rounds), TILE_ROWS);
  t->rows = min64(p->m, max64(4, rows) * TILE_ROWS);
  int64_t down = divide_up(p->m, t->rows);
  int64_t split = down < width ? divide_up(width, down) : 1;
  double work = (double)t->rows * (double)t->k.k * (double)p->n;
  split = max64(split, (int64_t)(work / TASK) + 1);
  t->cols = divide_up(panels(p->n), min64(split, panels(p->n))) * TILE_COLS;
  t->across = divide_up(p->n, t->cols);
}

void CPU (patches_product)(const PatchProduct *p) {
  if (CPU(block_product)(p)) return;
  size_t mark = fnn_mark();
  const Patches *q = p->patches;
  Cut t = { .p = p };
  t.k = kblocks_of(patches_width(q), q->across * q->channels);
  t.ld = patches_ld(t.k.depth);
  cut(&t);
  int64_t tasks = divide_up(p->m, t.rows) * t.across;
  int64_t reals = (tasks > 1 ? threads_width() : 1) * t.rows * t.ld;
  t.scratch = mem_scratch((size_t)reals * sizeof(real));
  threads_run(tasks, product_task, &t);
  fnn_escape(mark, NULL);
}
