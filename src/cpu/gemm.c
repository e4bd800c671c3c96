/* gemm.c - which way a matrix product goes.
**
** c is cut into rectangles, one or more for each thread, and whoever takes one
** packs for himself what it needs: no thread waits for another.  Within a
** rectangle, for each block of k: columns of b are packed, or read in place;
** then, for each block of rows, a is packed, or read in place, and the tiles
** run.  Meanwhile they fetch what comes next into the cache.
**
** How c is cut depends on the number of threads, but no element of c does: k
** is always cut as gemm_depth tells (see gemm.h). */

#include "gemm.h"

/* The largest block of a: k by rows.  It should fill about half of a core's
** second-level cache, which has 1 MB or more where AVX-512 is; a depth that
** makes a panel larger than the first-level cache costs less than the passes
** over c that it saves. */
#if VEC_BYTES == 64
enum { DEPTH = 512, ROWS = 168 };
#else
enum { DEPTH = 344, ROWS = 144 };
#endif

/* Columns of b packed at a time: few where one block holds all rows, so that
** tiles start soon; else as many as make it worth to pack a again for them. */
enum { NARROW = 4 * TILE_COLS, WIDE = 16 * TILE_COLS };

enum {
  ALONE = 400000,         /* multiplications that one thread does by itself */
  TASK = VEC * 100000000, /* that a task has at most: it ends within 50 ms */
  PACKING = 16,           /* multiplications that packing an element costs */
  STACK = 4096            /* reals of scratch that lie on the stack */
};

/* Depth of the blocks that k is cut into: about equal, a multiple of 8. */
static int64_t gemm_depth (int64_t k) {
  int64_t blocks = k <= DEPTH ? 1 : (k + DEPTH - 1) / DEPTH;
  return ((k + blocks - 1) / blocks + 7) / 8 * 8;
}

static int64_t panels (int64_t n) { return divide_up(n, TILE_COLS); }

static double work_of (const Gemm *g) {
  return (double)g->m * (double)g->n * (double)g->k;
}

/* Whether the tiles read a in place, since few of them share what packing
** would cost.  Not rows that are whole pages apart, which would share the sets
** of the first cache, nor columns that are nearly so. */
static bool a_in_place (const Gemm *g) {
  enum { PAGE = 4096 / sizeof(real), ROWS_SHARED = 512, COLS_SHARED = 128 };
  if (!source_is_real(g->a.source)) return false;
  if (g->a.col == 1)
    return (g->n <= ROWS_SHARED || g->m <= 2 * TILE_ROWS) &&
           (TILE_ROWS <= 8 || g->a.row % PAGE != 0 || g->m <= 8);
  return g->a.row == 1 && g->n <= COLS_SHARED && g->a.col > 0 &&
         g->a.col <= PAGE / 2;
}

/* Whether they read whole panels of b in place.  A narrow panel would be a
** few bytes of each page it touches. */
static bool b_in_place (const Gemm *g) {
  return source_is_real(g->b.source) && g->b.col == 1 &&
         g->m <= (VEC_BYTES == 64 ? ROWS : 2 * TILE_ROWS);
}

/* A rectangle of c, and the range of k that is summed into it. */
typedef struct Slice {
  int64_t i, m, j, n, k0, k1;
} Slice;

/* Columns of b that a slice of m rows packs at a time. */
static int64_t columns (int64_t m) { return m <= ROWS ? NARROW : WIDE; }

/* Reals of scratch for a's block, a multiple of a cache line, and in all. */
static int64_t a_scratch (const Gemm *g, int64_t m) {
  if (a_in_place(g)) return 0;
  return (gemm_pack_a_size(min64(m, ROWS), gemm_depth(g->k)) + 15) / 16 * 16;
}

static int64_t slice_scratch (const Gemm *g, int64_t m, int64_t n,
                              bool packed) {
  int64_t size = a_scratch(g, m);
  if (!packed)
    size += panels(min64(n, columns(m))) * gemm_panel(gemm_depth(g->k));
  return size;
}

/*
** {======================================================
** One slice, by one thread
** =======================================================
*/

/* Where the tiles find columns of b, and what they fetch. */
typedef struct Columns {
  int64_t j, n, k0, k;
  Block b; /* only the members that speak of b */
} Columns;

static int flags_of (const Gemm *g, int64_t k0, int64_t k) {
  int flags = g->alpha != 1 ? TILE_SCALE : 0;
  if (k0 > 0 || g->accumulate) flags |= TILE_ADD;
  if (k0 + k >= g->k) {
    if (g->bias != NULL) flags |= TILE_BIAS;
    if (g->relu) flags |= TILE_RELU;
  }
  return flags;
}

/* Has the tiles fetch x (k, n), which is packed next: for each k a row of a
** panel or, where columns are contiguous, a line of one column, and after each
** round of columns the lines beside those. */
static void fetch_next (Block *block, Operand x, int64_t n) {
  int64_t size = source_is_real(x.source) ? sizeof(real) : 2;
  int64_t step = (x.col == 1 ? x.row : x.col) * size;
  int64_t line = TILE_COLS * size;
  block->next_panels = 0;
  if (n <= 0 || (x.col != 1 && x.row != 1)) return;
  block->next = (Ahead){ .at = x.data, .step = step };
  block->next_panels = panels(n);
  block->next_panel = line;
  if (x.col == 1) return;
  block->next.turn = line - TILE_COLS * step;
  block->next_panel = TILE_COLS * step;
}

/* All rows of the slice with these columns; a is packed at ap.  Each block of
** rows fetches the next, the last the columns that come next. */
static void slice_rows (const Gemm *g, Slice s, const Columns *at, real *ap) {
  Block block = at->b;
  int64_t end = s.i + s.m;
  block.n = at->n;
  block.k = at->k;
  block.a = ap;
  block.ldc = g->ldc;
  block.alpha = g->alpha;
  block.flags = flags_of(g, at->k0, at->k);
  if (g->bias != NULL) block.bias = g->bias + at->j;
  for (int64_t i = s.i; i < end; i += ROWS) {
    Operand a = operand_at(g->a, i, at->k0);
    block.m = min64(ROWS, end - i);
    block.c = g->c + i * g->ldc + at->j;
    if (a_in_place(g)) {
      block.in_place = true;
      block.a = a.data;
      block.a_row = a.row;
      block.a_col = a.col;
    } else if (s.m > ROWS || at->j == s.j) { /* else it still is packed */
      CPU(gemm_pack_a)(block.m, at->k, a, ap);
    }
    if (i + ROWS < end) {
      Operand next = operand_at(a, ROWS, 0);
      fetch_next(&block, operand_transposed(next),
                 min64(ROWS, end - i - ROWS));
    } else {
      block.next = at->b.next;
      block.next_panels = at->b.next_panels;
      block.next_panel = at->b.next_panel;
    }
    CPU(gemm_block)(&block);
  }
}

/* The columns of s from at->j on: all in packed, one panel of b in place, or as
** many as are packed now at bp.  What comes next is columns beside these, or
** the first ones of the next block of k. */
static void take_columns (const Gemm *g, Slice s, Columns *at, real *bp,
                          const real *packed) {
  int64_t panel = gemm_panel(at->k), left = s.j + s.n - at->j;
  at->b = (Block){ .b = bp, .ldb = TILE_COLS, .panel = panel };
  if (packed != NULL) {
    int64_t depth = gemm_depth(g->k), size = panels(g->n) * gemm_panel(depth);
    at->n = left;
    at->b.b = packed + (at->k0 > 0 ? at->k0 / depth : 0) * size +
              at->j / TILE_COLS * panel;
    at->b.next = (Ahead){ .at = (const char *)(at->b.b + panel),
                          .step = TILE_COLS * sizeof(real) };
    at->b.next_panels = panels(left) - 1;
    at->b.next_panel = panel * (int64_t)sizeof(real);
    return;
  }
  Operand b = operand_at(g->b, at->k0, at->j);
  if (b_in_place(g) && left >= TILE_COLS) {
    at->n = TILE_COLS;
    at->b.b = b.data;
    at->b.ldb = b.row;
  } else {
    at->n = min64(columns(s.m), left);
    CPU(gemm_pack_b)(at->n, at->k, b, bp);
  }
  if (left > at->n)
    fetch_next(&at->b, operand_at(b, 0, at->n), min64(at->n, left - at->n));
  else if (at->k0 + at->k < s.k1)
    fetch_next(&at->b, operand_at(g->b, at->k0 + at->k, s.j),
               min64(at->n, s.n));
}

/* packed: all of b as gemm_prepack left it, or NULL. */
static void strip_run (const Gemm *g, Slice s, real *scratch,
                       const real *packed) {
  int64_t depth = gemm_depth(g->k);
  real *bp = scratch + a_scratch(g, s.m);
  Columns at = { .k0 = s.k0 };
  do {
    at.k = min64(depth, s.k1 - at.k0);
    for (at.j = s.j; at.j < s.j + s.n; at.j += at.n) {
      take_columns(g, s, &at, bp, packed);
      slice_rows(g, s, &at, scratch);
    }
    at.k0 += depth;
  } while (at.k0 < s.k1);
}

/* Few rows go through all columns for each block of k, so that a is packed
** once; many go through all k for some columns, so that c is in reach. */
static void slice_run (const Gemm *g, Slice s, real *scratch,
                       const real *packed) {
  int64_t end = s.j + s.n, most = s.m > ROWS ? WIDE : s.n;
  for (; s.j < end; s.j += most) {
    s.n = min64(most, end - s.j);
    strip_run(g, s, scratch, packed);
  }
}

/* }====================================================== */

/*
** {======================================================
** All slices, by all threads
** =======================================================
*/

/* c cut into slices of m rows and n columns. */
typedef struct Slices {
  const Gemm *g;
  int64_t m, n, across; /* across: slices side by side */
  int64_t k0, k1;
  const real *packed;
  real *scratch;
  int64_t each; /* reals of scratch per worker */
} Slices;

static void slice_task (void *ud, int64_t task, int worker) {
  const Slices *p = ud;
  const Gemm *g = p->g;
  Slice s = { .i = task / p->across * p->m,
              .j = task % p->across * p->n,
              .k0 = p->k0,
              .k1 = p->k1 };
  s.m = min64(p->m, g->m - s.i);
  s.n = min64(p->n, g->n - s.j);
  slice_run(g, s, p->scratch + worker * p->each, p->packed);
}

/* Cuts c into about `pieces` slices: so that the thread with most of them has
** least to compute and to pack. */
static void slices_cut (Slices *p, int64_t pieces, int width) {
  const Gemm *g = p->g;
  double least = INFINITY;
  for (int64_t down = 1; down <= min64(pieces, g->m); down++) {
    int64_t m = divide_up(g->m, down);
    int64_t n = divide_up(panels(g->n), pieces / down) * TILE_COLS;
    int64_t rounds = divide_up(divide_up(g->m, m) * divide_up(g->n, n), width);
    double packed = (double)m * (double)divide_up(n, WIDE) + (double)n;
    double cost = (double)rounds * ((double)m * (double)n + PACKING * packed);
    if (cost >= least) continue;
    least = cost;
    p->m = m;
    p->n = n;
  }
  p->across = divide_up(g->n, p->n);
}

/* As many tasks as threads, since large ones pack least; where they would take
** long a part of k at a time, and where even one block would, more of them. */
static void slices_run (const Gemm *g, int width, const real *packed) {
  Slices p = { .g = g, .packed = packed };
  int64_t depth = max64(gemm_depth(g->k), 1);
  int64_t each = divide_up(g->m * g->n, width);
  slices_cut(&p, width * divide_up(each, TASK / depth), width);
  int64_t blocks = max64(1, TASK / depth / (p.m * p.n));
  int64_t tasks = divide_up(g->m, p.m) * p.across;
  p.each = slice_scratch(g, p.m, p.n, packed != NULL);
  int64_t reals = p.each * (tasks > 1 ? threads_width() : 1);
  p.scratch = mem_scratch((size_t)reals * sizeof(real));
  do {
    p.k1 = min64(g->k, p.k0 + blocks * depth);
    threads_run(tasks, slice_task, &p);
    p.k0 = p.k1;
  } while (p.k0 < g->k);
}

/* }====================================================== */

int64_t CPU (gemm_scratch)(const Gemm *g) {
  if (CPU(gemv_fits)(g)) return CPU(gemv_scratch)(g);
  return slice_scratch(g, g->m, g->n, false);
}

void CPU (gemm_serial)(const Gemm *g, real *scratch) {
  if (CPU(gemv_fits)(g)) CPU(gemv_serial)(g, scratch);
  else slice_run(g, (Slice){ 0, g->m, 0, g->n, 0, g->k }, scratch, NULL);
}

void CPU (gemm)(const Gemm *g) {
  size_t mark = fnn_mark();
  if (work_of(g) <= ALONE) {
    _Alignas(64) real stack[STACK];
    int64_t size = CPU(gemm_scratch)(g);
    real *scratch = stack;
    if (size > STACK) scratch = mem_scratch((size_t)size * sizeof(real));
    CPU(gemm_serial)(g, scratch);
  } else if (CPU(gemv_fits)(g)) {
    CPU(gemv)(g);
  } else {
    slices_run(g, threads_width(), NULL);
  }
  fnn_escape(mark, NULL);
}

/*
** {======================================================
** Packed weights
** =======================================================
*/

size_t CPU (gemm_packed_size)(int64_t k, int64_t n) {
  int64_t depth = gemm_depth(k);
  int64_t blocks = max64(1, divide_up(k, max64(depth, 1)));
  return (size_t)(blocks * panels(n) * gemm_panel(depth)) * sizeof(real);
}

void CPU (gemm_prepack)(int64_t k, int64_t n, Operand b, void *blob) {
  int64_t depth = gemm_depth(k);
  real *to = blob;
  for (int64_t k0 = 0; k0 < k; k0 += depth) {
    CPU(gemm_pack_b)(n, min64(depth, k - k0), operand_at(b, k0, 0), to);
    to += panels(n) * gemm_panel(depth);
  }
}

void CPU (gemm_packed)(const Gemm *g, const void *blob) {
  size_t mark = fnn_mark();
  slices_run(g, work_of(g) <= ALONE ? 1 : threads_width(), blob);
  fnn_escape(mark, NULL);
}

real *CPU (gemm_packed_at)(int64_t k, int64_t n, int64_t i, int64_t j,
                           void *blob) {
  int64_t depth = gemm_depth(k), first = i / depth * depth;
  int64_t panel = gemm_panel(min64(depth, k - first));
  return (real *)blob + i / depth * panels(n) * gemm_panel(depth) +
         j / TILE_COLS * panel + (i - first) * TILE_COLS + j % TILE_COLS;
}

int64_t CPU (gemm_packed_scratch)(const Gemm *g) {
  return slice_scratch(g, g->m, g->n, true);
}

void CPU (gemm_packed_serial)(const Gemm *g, const void *blob, int64_t j,
                              int64_t n, real *scratch) {
  slice_run(g, (Slice){ 0, g->m, j, n, 0, g->k }, scratch, blob);
}

/* }====================================================== */
