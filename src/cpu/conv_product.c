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

/* at: of element (row, tap), the place of its row in a panel, or -1. */
typedef struct Packing {
  const Weights *w;
  real *to;
  const int64_t *at;
} Packing;

/* n columns of `count` elements side by side each, turned to rows. */
static void pack_columns (int64_t n, int64_t count, const real *from,
                          int64_t ldc, const int64_t *at, real *to) {
  for (int64_t e = 0; e < count; e += VEC)
    for (int64_t j = 0; j < TILE_COLS; j += VEC) {
      vec r[VEC];
      int64_t m = min64(VEC, count - e);
      for (int64_t l = 0; l < VEC; l++) {
        const real *x = from + (j + l) * ldc + e;
        r[l] = j + l >= n ? (vec){ 0 }
               : m == VEC ? vec_load(x)
                          : vec_load_part(x, m);
      }
      vec_transpose(r);
      for (int64_t l = 0; l < m; l++)
        if (at[e + l] >= 0) vec_store(to + at[e + l] + j, r[l]);
    }
}

/* Panels lo .. hi.  Taps are side by side in the weight, and for the result so
** are rows; where there is one tap alone, columns may be. */
static void pack_panels (void *ud, int64_t lo, int64_t hi) {
  const Packing *pack = ud;
  const Weights *w = pack->w;
  KBlocks blocks = blocks_of(w);
  int64_t step = gemm_panel(blocks.depth);
  for (int64_t p = lo; p < hi; p++) {
    int64_t n = min64(TILE_COLS, w->n - p * TILE_COLS);
    const real *from = w->data + p * TILE_COLS * w->ldc;
    real *to = pack->to + p * step;
    if (w->ldc != 1 && w->ldr == w->size) {
      pack_columns(n, w->rows * w->size, from, w->ldc, pack->at, to);
      continue;
    }
    for (int64_t r = 0; r < w->rows; r++, from += w->ldr) {
      const int64_t *at = pack->at + r * w->size;
      if (w->ldc != 1) {
        pack_columns(n, w->size, from, w->ldc, at, to);
        continue;
      }
      for (int64_t j = 0; j < n; j++) to[at[0] + j] = from[j];
      for (int64_t j = n; j < TILE_COLS; j++) to[at[0] + j] = 0;
    }
  }
}

void CPU (weights_pack)(const Weights *w, real *to) {
  size_t mark = fnn_mark();
  KBlocks blocks = blocks_of(w);
  int64_t k = w->rows * w->size;
  int64_t block = panels(w->n) * gemm_panel(blocks.depth);
  int64_t *at = mem_scratch((size_t)k * sizeof *at);
  for (int64_t i = 0; i < k; i++) at[i] = -1;
  for (int64_t t = 0; t < w->taps->count; t++)
    for (int64_t r = 0; r < w->rows; r++) {
      int64_t row = t * w->rows + r;
      at[r * w->size + w->taps->tap[t]] =
          kblocks_index(&blocks, row) * block +
          kblocks_row(&blocks, row) * TILE_COLS;
    }
  int64_t grain = max64(1, GRAIN / max64(1, k * TILE_COLS));
  threads_range(panels(w->n), grain, pack_panels,
                &(Packing){ .w = w, .to = to, .at = at });
  fnn_escape(mark, NULL);
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
