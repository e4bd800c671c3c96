/* gemm.c - which way a matrix product goes.
**
** Slices: c is cut into as many rectangles as there are threads; each packs
** what it needs for itself and nobody waits.  For small and middling products,
** elements of a batch, and packed weights.
**
** Phases: for each block of columns and of k, all threads pack b together,
** then take tasks of (rows, columns); each packs its own rows of a.
**
** How c is cut depends on the number of threads, but no element of c does: it
** is always summed in blocks of gemm_depth(k) (see gemm.h). */

#include "gemm.h"

/* Bounds of blocks, from measurements: a block of a should fill about half of
** a core's second-level cache, one of b a part of the last. */
#if VEC_BYTES == 64
enum { DEPTH = 512, ROWS = 168, COLS = 4096 };
#else
enum { DEPTH = 344, ROWS = 144, COLS = 2048 };
#endif

/* Columns of b packed at a time within a slice: they stay in cache until the
** tiles have read them. */
enum { SLICE_COLS = 4 * TILE_COLS };

/* Products (in multiplications) that one thread does alone; that go by
** slices; scratch (in reals) that lies on the stack. */
enum { ALONE = 400000, SLICES = 200000000, STACK = 4096 };

/* Depth of the blocks that k is cut into: about equal, a multiple of 8. */
static int64_t gemm_depth (int64_t k) {
  int64_t blocks = k <= DEPTH ? 1 : (k + DEPTH - 1) / DEPTH;
  return ((k + blocks - 1) / blocks + 7) / 8 * 8;
}

static int64_t panels (int64_t n) { return (n + TILE_COLS - 1) / TILE_COLS; }

static int64_t divide_up (int64_t a, int64_t b) { return (a + b - 1) / b; }

static int flags_of (const Gemm *g, int64_t k0, int64_t k) {
  int flags = g->alpha != 1 ? TILE_SCALE : 0;
  if (k0 > 0 || g->accumulate) flags |= TILE_ADD;
  if (k0 + k >= g->k) {
    if (g->bias != NULL) flags |= TILE_BIAS;
    if (g->relu) flags |= TILE_RELU;
  }
  return flags;
}

/* Whether the tiles read a in place, since few of them share what packing
** would cost.  Not rows that are whole pages apart, which would share the sets
** of the first cache, nor columns that are nearly so. */
static bool a_in_place (const Gemm *g) {
  enum { PAGE = 4096 / sizeof(real), ROWS_SHARED = 512, COLS_SHARED = 128 };
  if (g->a.source != SOURCE_REAL) return false;
  if (g->a.col == 1)
    return (g->n <= ROWS_SHARED || g->m <= 2 * TILE_ROWS) &&
           (TILE_ROWS <= 8 || g->a.row % PAGE != 0 || g->m <= 8);
  return g->a.row == 1 && g->n <= COLS_SHARED && g->a.col > 0 &&
         g->a.col <= PAGE / 2;
}

/* Whether they read whole panels of b in place.  A narrow panel would be a
** few bytes of each page it touches. */
static bool b_in_place (const Gemm *g) {
  return g->b.source == SOURCE_REAL && g->b.col == 1 &&
         g->m <= (VEC_BYTES == 64 ? ROWS : 2 * TILE_ROWS);
}

/* Reals of scratch for a's block of m rows, a multiple of a cache line. */
static int64_t a_size (const Gemm *g, int64_t m) {
  if (a_in_place(g)) return 0;
  return (gemm_pack_a_size(m, gemm_depth(g->k)) + 15) / 16 * 16;
}

/* A block of g at row i, column j and k0, with a in place or packed at ap. */
static Block block_at (const Gemm *g, int64_t i, int64_t m, int64_t j,
                       int64_t n, int64_t k0, int64_t k, const real *ap) {
  Block s = { .m = m, .n = n, .k = k, .a = ap, .alpha = g->alpha,
              .ldb = TILE_COLS, .panel = gemm_panel(k),
              .c = g->c + i * g->ldc + j, .ldc = g->ldc,
              .flags = flags_of(g, k0, k) };
  if (a_in_place(g)) {
    s.a = operand_at(g->a, i, k0).data;
    s.a_row = g->a.row;
    s.a_col = g->a.col;
  }
  if (g->bias != NULL) s.bias = g->bias + j;
  return s;
}

/*
** {======================================================
** Slices
** =======================================================
*/

/* A rectangle of c. */
typedef struct Slice {
  int64_t i, m, j, n;
} Slice;

static int64_t slice_scratch (const Gemm *g, int64_t m, int64_t n,
                              bool packed) {
  int64_t size = a_size(g, min64(m, ROWS));
  if (!packed)
    size += panels(min64(n, SLICE_COLS)) * gemm_panel(gemm_depth(g->k));
  return size;
}

/* The columns j .. j + n of a slice over one block of k, once b is found:
** block holds where, and what comes next. */
static void slice_rows (const Gemm *g, Slice s, int64_t j, int64_t n,
                        int64_t k0, int64_t k, real *ap, const Block *b) {
  for (int64_t i = 0; i < s.m; i += ROWS) {
    int64_t m = min64(ROWS, s.m - i);
    bool first = j == s.j; /* else a's only block is still packed */
    if (!a_in_place(g) && (first || s.m > ROWS))
      CPU(gemm_pack_a)(m, k, operand_at(g->a, s.i + i, k0), ap);
    Block block = block_at(g, s.i + i, m, j, n, k0, k, ap);
    block.b = b->b;
    block.ldb = b->ldb;
    block.panel = b->panel;
    if (i == 0) {
      block.next = b->next;
      block.next_panels = b->next_panels;
      block.next_panel = b->next_panel;
    }
    CPU(gemm_block)(&block);
  }
}

/* Has the tiles fetch the n columns of b at (k0, j): for each k a row of a
** panel or, where columns are contiguous, a line of one column, and after each
** round of columns the lines beside those. */
static void fetch_next (Block *block, const Gemm *g, int64_t k0, int64_t j,
                        int64_t n) {
  int64_t size = g->b.source == SOURCE_REAL ? sizeof(real) : 2;
  int64_t step = (g->b.col == 1 ? g->b.row : g->b.col) * size;
  int64_t line = TILE_COLS * size;
  if (g->b.col != 1 && g->b.row != 1) return;
  block->next_panels = panels(n);
  block->next = (Ahead){ .at = operand_at(g->b, k0, j).data, .step = step };
  block->next_panel = line;
  if (g->b.col == 1) return;
  block->next.turn = line - TILE_COLS * step;
  block->next_panel = TILE_COLS * step;
}

/* One slice by the calling thread.  packed: all of b as gemm_prepack left
** it, or NULL. */
static void slice_run (const Gemm *g, Slice s, real *scratch,
                       const real *packed) {
  int64_t depth = gemm_depth(g->k), k0 = 0, end = s.j + s.n;
  real *bp = scratch + a_size(g, min64(s.m, ROWS));
  do {
    int64_t k = min64(depth, g->k - k0), n;
    for (int64_t j = s.j; j < end; j += n) {
      Block b = { .b = bp, .ldb = TILE_COLS, .panel = gemm_panel(k) };
      n = min64(SLICE_COLS, end - j);
      if (packed != NULL) {
        n = end - j;
        b.b = packed + k0 / max64(depth, 1) * panels(g->n) *
                           gemm_panel(depth) + j / TILE_COLS * b.panel;
      } else if (b_in_place(g) && n >= TILE_COLS) {
        n = TILE_COLS;
        b.b = operand_at(g->b, k0, j).data;
        b.ldb = g->b.row;
      } else {
        CPU(gemm_pack_b)(n, k, operand_at(g->b, k0, j), bp);
      }
      if (packed == NULL && j + n < end)
        fetch_next(&b, g, k0, j + n, min64(n, end - j - n));
      slice_rows(g, s, j, n, k0, k, scratch, &b);
    }
    k0 += depth;
  } while (k0 < g->k);
}

/* c cut into slices of m rows and n columns. */
typedef struct Slices {
  const Gemm *g;
  int64_t m, n, across; /* across: slices side by side */
  const real *packed;
  real *scratch;
  int64_t each; /* reals of scratch per worker */
} Slices;

static void slice_task (void *ud, int64_t task, int worker) {
  const Slices *p = ud;
  const Gemm *g = p->g;
  Slice s = { .i = task / p->across * p->m, .j = task % p->across * p->n };
  s.m = min64(p->m, g->m - s.i);
  s.n = min64(p->n, g->n - s.j);
  slice_run(g, s, p->scratch + worker * p->each, p->packed);
}

/* Chooses the cut of c for which one slice's tiles and packing take least:
** packing an element costs about as much as PACKING multiplications. */
static Slices slices_cut (const Gemm *g, int width) {
  enum { PACKING = 16 };
  Slices best = { .g = g };
  int64_t least = INT64_MAX;
  for (int down = 1; down <= width; down++) {
    int64_t m = divide_up(g->m, min64(down, g->m));
    int64_t n = divide_up(panels(g->n), width / down) * TILE_COLS;
    int64_t cost = m * n + PACKING * (m + n);
    if (cost < least) {
      least = cost;
      best.m = m;
      best.n = n;
    }
  }
  best.across = divide_up(g->n, best.n);
  return best;
}

static void slices_run (const Gemm *g, int width, const real *packed) {
  Slices p = slices_cut(g, width);
  if (packed != NULL) p.m = min64(p.m, ROWS);
  p.packed = packed;
  p.each = slice_scratch(g, p.m, p.n, packed != NULL);
  int64_t tasks = divide_up(g->m, p.m) * p.across;
  int64_t reals = p.each * (tasks > 1 ? threads_width() : 1);
  p.scratch = mem_scratch((size_t)reals * sizeof(real));
  threads_run(tasks, slice_task, &p);
}

/* }====================================================== */

/*
** {======================================================
** Phases
** =======================================================
*/

typedef struct Phases {
  const Gemm *g;
  int64_t rows, chunk;    /* a task's rows and columns of c */
  int64_t chunks;         /* tasks per row of tasks */
  int64_t j, n, k0, k;    /* the block of b at hand */
  int64_t each;           /* panels of b that one task packs */
  real *a, *b;
  int64_t a_each;         /* reals of a per worker */
  int64_t *held;          /* per worker: the rows of a it holds packed */
} Phases;

enum { HELD = 8 }; /* a cache line for each worker */

static void pack_task (void *ud, int64_t task, int worker) {
  const Phases *p = ud;
  int64_t first = task * p->each, j = first * TILE_COLS;
  int64_t n = min64(p->each * TILE_COLS, p->n - j);
  (void)worker;
  CPU(gemm_pack_b)(n, p->k, operand_at(p->g->b, p->k0, p->j + j),
                   p->b + first * gemm_panel(p->k));
}

static void tile_task (void *ud, int64_t task, int worker) {
  const Phases *p = ud;
  const Gemm *g = p->g;
  int64_t i = task / p->chunks * p->rows, j = task % p->chunks * p->chunk;
  int64_t m = min64(p->rows, g->m - i), n = min64(p->chunk, p->n - j);
  real *ap = p->a + worker * p->a_each;
  if (n <= 0) return;
  if (!a_in_place(g) && p->held[worker * HELD] != i) {
    CPU(gemm_pack_a)(m, p->k, operand_at(g->a, i, p->k0), ap);
    p->held[worker * HELD] = i;
  }
  Block s = block_at(g, i, m, p->j + j, n, p->k0, p->k, ap);
  int64_t panel = gemm_panel(p->k);
  s.b = p->b + j / TILE_COLS * panel;
  s.next.at = (const char *)(s.b + panel); /* each panel fetches the next */
  s.next.step = TILE_COLS * sizeof(real);
  s.next_panel = panel * (int64_t)sizeof(real);
  s.next_panels = panels(n) - 1;
  CPU(gemm_block)(&s);
}

/* All of c for the block of b at hand. */
static void phases_step (Phases *p, int width) {
  int64_t count = panels(p->n), down = divide_up(p->g->m, p->rows);
  p->each = max64(1, min64(8, count / (2 * width)));
  threads_run(divide_up(count, p->each), pack_task, p);
  int64_t want = divide_up(2 * width, down); /* so that none idles long */
  p->chunk = divide_up(count, min64(want, count)) * TILE_COLS;
  p->chunks = divide_up(p->n, p->chunk);
  for (int w = 0; w < width; w++) p->held[w * HELD] = -1;
  threads_run(down * p->chunks, tile_task, p);
}

static void phases_run (const Gemm *g, int width) {
  int64_t depth = gemm_depth(g->k), blocks = divide_up(g->m, ROWS);
  if (blocks > 1) blocks = divide_up(blocks, width) * width;
  Phases p = { .g = g };
  p.rows = divide_up(divide_up(g->m, blocks), TILE_ROWS) * TILE_ROWS;
  p.a_each = a_size(g, p.rows);
  int64_t b_size = panels(min64(g->n, COLS)) * gemm_panel(depth);
  p.a = mem_scratch((size_t)(p.a_each * width) * sizeof(real));
  p.b = mem_scratch((size_t)b_size * sizeof(real));
  p.held = mem_scratch((size_t)(width * HELD) * sizeof *p.held);
  for (p.j = 0; p.j < g->n; p.j += COLS) {
    p.n = min64(COLS, g->n - p.j);
    for (p.k0 = 0; p.k0 < g->k; p.k0 += depth) {
      p.k = min64(depth, g->k - p.k0);
      phases_step(&p, width);
    }
  }
}

/* }====================================================== */

int64_t CPU(gemm_scratch) (const Gemm *g) {
  return max64(slice_scratch(g, g->m, g->n, false), CPU(gemv_scratch)(g));
}

void CPU(gemm_serial) (const Gemm *g, real *scratch) {
  if (CPU(gemv_fits)(g))
    CPU(gemv_serial)(g, scratch);
  else
    slice_run(g, (Slice){ 0, g->m, 0, g->n }, scratch, NULL);
}

/* Whether a product of m n k multiplications is at most `most`. */
static bool at_most (const Gemm *g, double most) {
  return (double)g->m * (double)g->n * (double)g->k <= most;
}

void CPU(gemm) (const Gemm *g) {
  size_t mark = fnn_mark();
  if (at_most(g, ALONE)) {
    _Alignas(64) real stack[STACK];
    int64_t size = CPU(gemm_scratch)(g);
    CPU(gemm_serial)(g, size <= STACK ? stack
                        : mem_scratch((size_t)size * sizeof(real)));
  } else if (CPU(gemv_fits)(g)) {
    CPU(gemv)(g);
  } else {
    int width = threads_width();
    bool tall = g->m * gemm_depth(g->k) > 2 * ROWS * DEPTH;
    if (g->m > ROWS && (tall || !at_most(g, SLICES)))
      phases_run(g, width);
    else
      slices_run(g, width, NULL);
  }
  fnn_escape(mark, NULL);
}

/*
** {======================================================
** Packed weights
** =======================================================
*/

size_t CPU(gemm_packed_size) (int64_t k, int64_t n) {
  int64_t depth = gemm_depth(k);
  int64_t blocks = max64(1, divide_up(k, max64(depth, 1)));
  return (size_t)(blocks * panels(n) * gemm_panel(depth)) * sizeof(real);
}

void CPU(gemm_prepack) (int64_t k, int64_t n, Operand b, void *blob) {
  int64_t depth = gemm_depth(k);
  real *to = blob;
  for (int64_t k0 = 0; k0 < k; k0 += depth) {
    CPU(gemm_pack_b)(n, min64(depth, k - k0), operand_at(b, k0, 0), to);
    to += panels(n) * gemm_panel(depth);
  }
}

void CPU(gemm_packed) (const Gemm *g, const void *blob) {
  size_t mark = fnn_mark();
  slices_run(g, at_most(g, ALONE) ? 1 : threads_width(), blob);
  fnn_escape(mark, NULL);
}

/* }====================================================== */
