/* gemv.c - products with at most GEMV_ROWS rows or columns.
**
** y (rows, n) = x (rows, k) w (k, n), where w is the large operand, read once
** and in place; a product of few columns is the same of its transposes.  Where
** k is w's contiguous side each y is a dot product; where n is, rows of w are
** added up.  Sums over k run in pieces of DEPTH, so that long ones stay
** exact. */

#include "gemm.h"

enum {
  /* Columns, or rows, of w read side by side: memory likes many. */
  STREAMS = VEC_BYTES == 64 ? 16 : 8,
  DEEP = 8,
  DEPTH = 512, /* of k: so much of all streams fits in the first cache */
  WIDE = 1024, /* columns of y summed at a time */
  SHARE_LEAST = 65536, /* elements of w that a task reads */
  SHARE_MOST = 524288, /* for dot products */
  ROWS_MOST = 1 << 27  /* for sums of rows: it ends within 50 ms */
};

/* bias: of row i and column j at i * bias_row + j * bias_col. */
typedef struct Gemv {
  int64_t rows, n, k;
  const real *x; /* rows k apart */
  Operand w;     /* element (k, j) */
  real *y;
  int64_t y_row, y_col;
  const real *bias;
  int64_t bias_row, bias_col;
  real alpha;
  bool accumulate, relu;
  int64_t grain; /* columns of a task */
} Gemv;

static void finish (const Gemv *g, int64_t i, int64_t j, real sum) {
  real *y = g->y + i * g->y_row + j * g->y_col;
  sum *= g->alpha;
  if (g->accumulate) sum += *y;
  if (g->bias != NULL) sum += g->bias[i * g->bias_row + j * g->bias_col];
  *y = g->relu && sum < 0 ? 0 : sum;
}

/*
** {======================================================
** Dot products
** =======================================================
*/

/* The dot products of `rows` rows of x and `cols` columns of w, from j on;
** as many as there are registers for. */
VEC_INLINE void dots (const Gemv *g, int64_t j, int rows, int cols,
                      Source source) {
  vec sum[STREAMS] = { 0 };
  Operand w = operand_at(g->w, 0, j);
  for (int64_t k = 0; k + VEC <= g->k;) {
    int64_t end = min64(k + DEPTH, g->k);
    vec part[STREAMS] = { 0 };
    for (; k + VEC <= end; k += VEC) {
      VEC_UNROLL
      for (int c = 0; c < cols; c++) {
        vec v = vec_from(source, w.data, c * w.col + k);
        VEC_UNROLL
        for (int i = 0; i < rows; i++)
          part[c * rows + i] += vec_load(g->x + i * g->k + k) * v;
      }
    }
    for (int c = 0; c < rows * cols; c++) sum[c] += part[c];
  }
  real total[STREAMS];
  int c = 0;
  for (; c + VEC <= rows * cols; c += VEC)
    vec_store(total + c, vec_sums(sum + c));
  for (; c < rows * cols; c++) total[c] = vec_sum(sum[c]);
  for (c = 0; c < rows * cols; c++) {
    int i = c % rows;
    real left = 0;
    for (int64_t k = g->k / VEC * VEC; k < g->k; k++)
      left += g->x[i * g->k + k] *
              source_get(source, w.data, k + c / rows * w.col);
    finish(g, i, j + c / rows, total[c] + left);
  }
}

VEC_INLINE void dots_rows (const Gemv *g, int64_t lo, int64_t hi, int rows,
                           int cols, Source source) {
  int64_t j = lo;
  for (; j + cols <= hi; j += cols) dots(g, j, rows, cols, source);
  for (; j < hi; j++) dots(g, j, rows, 1, source);
}

VEC_INLINE void dots_range (const Gemv *g, int64_t lo, int64_t hi,
                            Source source) {
  switch (g->rows) {
    case 1: dots_rows(g, lo, hi, 1, STREAMS, source); break;
    case 2: dots_rows(g, lo, hi, 2, STREAMS / 2, source); break;
    case 3: dots_rows(g, lo, hi, 3, STREAMS / 4, source); break;
    default: dots_rows(g, lo, hi, 4, STREAMS / 4, source);
  }
}

/* }====================================================== */

/*
** {======================================================
** Sums of rows
** =======================================================
*/

/* sum[j] += x[0] w[0][j] + ... over `deep` rows of w, in that order. */
VEC_INLINE void add_rows (int deep, int64_t n, const real *x, Operand w,
                          real *sum, Source source) {
  int64_t j = 0;
  for (; j + VEC <= n; j += VEC) {
    vec s = vec_load(sum + j);
    VEC_UNROLL
    for (int d = 0; d < deep; d++)
      s += x[d] * vec_from(source, w.data, d * w.row + j);
    vec_store(sum + j, s);
  }
  for (; j < n; j++)
    for (int d = 0; d < deep; d++)
      sum[j] += x[d] * source_get(source, w.data, d * w.row + j);
}

/* Columns j .. j + n of y, n <= WIDE. */
VEC_INLINE void sums (const Gemv *g, int64_t j, int64_t n, Source source) {
  _Alignas(64) real total[GEMV_ROWS][WIDE], part[GEMV_ROWS][WIDE];
  for (int64_t i = 0; i < g->rows; i++) memset(total[i], 0, n * sizeof(real));
  for (int64_t k0 = 0; k0 < g->k; k0 += DEPTH) {
    int64_t end = min64(k0 + DEPTH, g->k), k = k0;
    for (int64_t i = 0; i < g->rows; i++) memset(part[i], 0, n * sizeof(real));
    for (; k + DEEP <= end; k += DEEP)
      for (int64_t i = 0; i < g->rows; i++)
        add_rows(DEEP, n, g->x + i * g->k + k, operand_at(g->w, k, j), part[i],
                 source);
    for (; k < end; k++)
      for (int64_t i = 0; i < g->rows; i++)
        add_rows(1, n, g->x + i * g->k + k, operand_at(g->w, k, j), part[i],
                 source);
    for (int64_t i = 0; i < g->rows; i++)
      for (int64_t l = 0; l < n; l++) total[i][l] += part[i][l];
  }
  for (int64_t i = 0; i < g->rows; i++)
    for (int64_t l = 0; l < n; l++) finish(g, i, j + l, total[i][l]);
}

VEC_INLINE void sums_range (const Gemv *g, int64_t lo, int64_t hi,
                            Source source) {
  for (int64_t j = lo; j < hi; j += WIDE)
    sums(g, j, min64(WIDE, hi - j), source);
}

/* }====================================================== */

static bool by_dots (const Gemv *g) { return g->w.row == 1; }

VEC_INLINE void range_of (const Gemv *g, int64_t lo, int64_t hi, Source s) {
  if (by_dots(g)) dots_range(g, lo, hi, s);
  else sums_range(g, lo, hi, s);
}

static void range (const Gemv *g, int64_t lo, int64_t hi) {
  if (source_is_real(g->w.source)) range_of(g, lo, hi, SOURCE_REAL);
  else if (g->w.source == SOURCE_F16) range_of(g, lo, hi, SOURCE_F16);
  else range_of(g, lo, hi, SOURCE_BF16);
}

/* Whether y's few rows are c's columns. */
static bool is_swapped (const Gemm *p) { return p->n < p->m; }

/* Sums of rows are for one row of y, which tiles do as well from two on, and
** for columns, of which tiles would hold too few. */
bool CPU (gemv_fits)(const Gemm *p) {
  if (is_swapped(p))
    return p->n <= GEMV_ROWS && (p->a.col == 1 || p->a.row == 1);
  return (p->m <= GEMV_ROWS && p->b.row == 1) || (p->m == 1 && p->b.col == 1);
}

int64_t CPU (gemv_scratch)(const Gemm *p) {
  return CPU(gemv_fits)(p) ? (is_swapped(p) ? p->n : p->m) * p->k : 0;
}

/* x is read in place where it can be, else copied to scratch. */
static const real *rows_of (Operand x, int64_t rows, int64_t k, real *to) {
  if (source_is_real(x.source) && x.col == 1 && (rows == 1 || x.row == k))
    return x.data;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < k; j++)
      to[i * k + j] = source_get(x.source, x.data, i * x.row + j * x.col);
  return to;
}

static Gemv gemv_of (const Gemm *p, real *scratch) {
  Gemv g = { .k = p->k,
             .y = p->c,
             .bias = p->bias,
             .alpha = p->alpha,
             .accumulate = p->accumulate,
             .relu = p->relu };
  Operand x = p->a;
  if (is_swapped(p)) {
    x = operand_transposed(p->b);
    g.w = operand_transposed(p->a);
    g.rows = p->n;
    g.n = p->m;
    g.y_row = g.bias_row = 1;
    g.y_col = p->ldc;
  } else {
    g.w = p->b;
    g.rows = p->m;
    g.n = p->n;
    g.y_row = p->ldc;
    g.y_col = g.bias_col = 1;
  }
  g.x = rows_of(x, g.rows, g.k, scratch);
  return g;
}

void CPU (gemv_serial)(const Gemm *p, real *scratch) {
  Gemv g = gemv_of(p, scratch);
  range(&g, 0, g.n);
}

static void task (void *ud, int64_t t, int worker) {
  const Gemv *g = ud;
  (void)worker;
  range(g, t * g->grain, min64(g->n, (t + 1) * g->grain));
}

/* Equal shares for all threads, but no tiny ones; huge ones in parts. */
void CPU (gemv)(const Gemm *p) {
  int64_t size = CPU(gemv_scratch)(p);
  Gemv g = gemv_of(p, mem_scratch((size_t)size * sizeof(real)));
  int64_t least = SHARE_LEAST / max64(1, g.k);
  int64_t most = max64(1, SHARE_MOST / max64(1, g.k)), unit = STREAMS;
  if (!by_dots(&g)) { /* long pieces of w's rows */
    most = max64(1, min64(WIDE, ROWS_MOST / max64(1, g.k)));
    unit = 64;
  }
  int64_t share = divide_up(g.n, threads_width());
  share = max64(divide_up(share, divide_up(share, most)), least);
  g.grain = divide_up(share, unit) * unit;
  threads_run(divide_up(g.n, g.grain), task, &g);
}
