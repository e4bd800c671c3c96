/* reduce.c - the rows of reduce.def over floats and doubles.
**
** x is (outer, n, inner).  A leaf folds LEAF numbers of a row, or TALL of each
** column, in `real`, vector lanes side by side; what leaves give is folded in
** double, by halves where the numbers lie in a row.  So the error of a sum
** does not grow with its length.  Work is split by the shape alone: rows go to
** tasks, a long row in pieces of SPLIT whose folds are folded in order. */

#include "reduce.h"

#include "../core/ops.h"

#define select(c, a, b) ((c) ? (a) : (b))

/* How the fold s of n numbers becomes the result: in double, with the C
** library's words. */
#define REDUCE(name, kind, centre, fold, f, result, reads, gx) \
  __attribute__((unused)) static double result_##name( \
      double s, double c, double n, double m, double a) { \
    (void)s, (void)c, (void)n, (void)m, (void)a; \
    return result; \
  }
#include "../core/reduce.def"
#undef REDUCE

#include "../core/vmath.h"

enum { LEAF = 256, TALL = 64, COLUMNS = 256, SPLIT = 65536 };

/*
** {======================================================
** Leaves
** =======================================================
*/

/* n <= LEAF numbers in a row: a vector reduction each. */
#define LEAF_ADD(f) \
  real s = 0; \
  _Pragma("omp simd reduction(+:s)") for (int64_t i = 0; i < n; i++) { \
    const real x = p[i]; \
    s += (real)(f); \
  } \
  return (double)s;

/* Products leave float's range early. */
#define LEAF_MUL(f) \
  double s = 1; \
  _Pragma("omp simd reduction(*:s)") for (int64_t i = 0; i < n; i++) { \
    const real x = p[i]; \
    s *= (double)(f); \
  } \
  return s;

#define PRAGMA(words) _Pragma(#words)

#define LEAF_BEST(which, than, start, f) \
  real s = start; \
  int nan = 0; \
  PRAGMA(omp simd reduction(which : s) reduction(| : nan)) \
  for (int64_t i = 0; i < n; i++) { \
    const real x = p[i], v = (real)(f); \
    s = v than s ? v : s; \
    nan |= v != v; \
  } \
  return nan ? NAN : (double)s;

#define LEAF_MAX(f) LEAF_BEST(max, >, -INFINITY, f)
#define LEAF_MIN(f) LEAF_BEST(min, <, INFINITY, f)

/* Columns: s[j] folds p[0, j], p[stride, j] ... */
#define COLS_ADD(f) s[j] += (real)(f);
#define COLS_MUL(f) s[j] *= (double)(f);
#define COLS_BEST(than, f) \
  const real v = (real)(f); \
  s[j] = v != v || v than s[j] ? v : s[j];
#define COLS_MAX(f) COLS_BEST(>, f)
#define COLS_MIN(f) COLS_BEST(<, f)

#define TYPE_ADD real
#define TYPE_MUL double
#define TYPE_MAX real
#define TYPE_MIN real

enum { ADD, MUL, MAX, MIN };

static const double start_of[] = { 0, 1, -INFINITY, INFINITY };

static double fold (int how, double a, double b) {
  switch (how) {
    case ADD: return a + b;
    case MUL: return a * b;
    case MAX: return b != b || b > a ? b : a;
    default: return b != b || b < a ? b : a;
  }
}

#define LEAVES(name, how, f) \
  static double leaf_##name(const real *p, int64_t n, real c, real a) { \
    (void)c, (void)a; \
    LEAF_##how(f) \
  } \
  static void cols_##name(double *acc, const real *p, int64_t n, \
                          int64_t stride, int64_t w, const real *pc, \
                          real a) { \
    TYPE_##how s[COLUMNS]; \
    (void)pc, (void)a; \
    for (int64_t j = 0; j < w; j++) s[j] = (TYPE_##how)start_of[how]; \
    for (int64_t i = 0; i < n; i++, p += stride) { \
      LANES for (int64_t j = 0; j < w; j++) { \
        const real x = p[j], c = pc[j]; \
        (void)c; \
        COLS_##how(f) \
      } \
    } \
    for (int64_t j = 0; j < w; j++) acc[j] = fold(how, acc[j], (double)s[j]); \
  }

#define REAL(name, how, f) LEAVES(name, how, f)
#define SUM(name, how, f) LEAVES(name, how, f)
#define SAME(name, how, f) LEAVES(name, how, f)
#define TEST(name, how, f) LEAVES(name, how, f)
#define ID(name, how, f)
#define REDUCE(name, kind, centre, how, f, result, reads, gx) \
  kind(name, how, f)
#include "../core/reduce.def"
#undef REDUCE

/* }====================================================== */

/* A row of the table. */
typedef struct Row {
  double (*leaf)(const real *p, int64_t n, real c, real a);
  void (*cols)(double *acc, const real *p, int64_t n, int64_t stride,
               int64_t w, const real *pc, real a);
  double (*result)(double s, double c, double n, double m, double a);
  int fold;
  int centre; /* the row that makes c, or -1 */
} Row;

#undef REAL
#undef SUM
#undef SAME
#undef TEST
#undef ID
#define REAL(name, centre, how) \
  [REDUCE_##name] = { leaf_##name, cols_##name, result_##name, how, centre },
#define SUM(name, centre, how) REAL(name, centre, how)
#define SAME(name, centre, how) REAL(name, centre, how)
#define TEST(name, centre, how) REAL(name, centre, how)
#define ID(name, centre, how)
#define REDUCE_NONE (-1)
#define REDUCE(name, kind, centre, how, f, result, reads, gx) \
  kind(name, REDUCE_##centre, how)
static const Row rows[REDUCE_COUNT] = {
#include "../core/reduce.def"
};
#undef REDUCE

/*
** {======================================================
** Pieces
** =======================================================
*/

/* One reduction: where it reads and what it gives. */
typedef struct Job {
  const Row *row;
  const real *x;
  real *centre; /* (outer, inner), or NULL: made on the way */
  double *part; /* (outer, splits, inner), or NULL: to y */
  void *y;
  bool test; /* y is bool */
  int64_t outer, n, inner;
  int64_t splits, len; /* pieces of n, and numbers in one */
  int64_t chunks;      /* runs of COLUMNS in inner */
  double a;
} Job;

/* Numbers in a row, by halves down to the leaf; the first half first, since
** memory is fetched ahead only for who reads it in order. */
static double fold_row (const Row *r, const real *p, int64_t n, real c,
                        real a) {
  if (n <= LEAF) return r->leaf(p, n, c, a);
  int64_t half = (n / 2 + LEAF - 1) / LEAF * LEAF;
  double first = fold_row(r, p, half, c, a);
  return fold(r->fold, first, fold_row(r, p + half, n - half, c, a));
}

/* s[j] of w columns of n numbers. */
static void fold_piece (const Row *r, double *s, const real *p, int64_t n,
                        int64_t inner, int64_t w, const real *c, double a) {
  if (inner == 1) {
    s[0] = fold_row(r, p, n, c[0], (real)a);
    return;
  }
  for (int64_t j = 0; j < w; j++) s[j] = start_of[r->fold];
  for (int64_t i = 0; i < n; i += TALL)
    r->cols(s, p + i * inner, min64(TALL, n - i), inner, w, c, (real)a);
}

static double finish (const Job *k, const Row *r, double s, double c) {
  double n = (double)k->n, m = n > k->a ? n - k->a : 0;
  return r->result(s, c, n, m, k->a);
}

/* The centre of w columns: an infinite maximum centres nothing. */
static void centre_piece (const Job *k, real *c, const real *p, int64_t w) {
  static const real none[COLUMNS];
  const Row *r = &rows[k->row->centre];
  double s[COLUMNS];
  fold_piece(r, s, p, k->n, k->inner, w, none, k->a);
  for (int64_t j = 0; j < w; j++) {
    double v = finish(k, r, s[j], 0);
    c[j] = (real)(r->fold == MAX && isinf(v) ? 0 : v);
  }
}

static void store (const Job *k, int64_t i, double v) {
  if (k->test) ((uint8_t *)k->y)[i] = v > 0;
  else ((real *)k->y)[i] = (real)v;
}

/* Piece (o, split, chunk). */
static void job_piece (const Job *k, int64_t piece) {
  int64_t chunk = piece % k->chunks, rest = piece / k->chunks;
  int64_t split = rest % k->splits, o = rest / k->splits;
  int64_t j0 = chunk * COLUMNS, w = min64(COLUMNS, k->inner - j0);
  int64_t i0 = split * k->len, n = min64(k->len, k->n - i0);
  const real *p = k->x + (o * k->n + i0) * k->inner + j0;
  real c[COLUMNS];
  double s[COLUMNS];
  memset(c, 0, (size_t)w * sizeof *c);
  int64_t at = o * k->inner + j0;
  if (k->row->centre >= 0) {
    if (k->centre != NULL) memcpy(c, k->centre + at, (size_t)w * sizeof *c);
    else centre_piece(k, c, p, w);
  }
  fold_piece(k->row, s, p, n, k->inner, w, c, k->a);
  if (k->part != NULL)
    memcpy(k->part + (o * k->splits + split) * k->inner + j0, s,
           (size_t)w * sizeof *s);
  else
    for (int64_t j = 0; j < w; j++)
      store(k, at + j, finish(k, k->row, s[j], (double)c[j]));
}

static void job_range (void *ud, int64_t lo, int64_t hi) {
  for (int64_t i = lo; i < hi; i++) job_piece(ud, i);
}

/* Whole rows, which may be short and many. */
static void row_range (void *ud, int64_t lo, int64_t hi) {
  const Job *k = ud;
  for (int64_t o = lo; o < hi; o++) {
    const real *p = k->x + o * k->n;
    real c = 0;
    if (k->row->centre >= 0) centre_piece(k, &c, p, 1);
    double s = fold_row(k->row, p, k->n, c, (real)k->a);
    store(k, o, finish(k, k->row, s, (double)c));
  }
}

/* }====================================================== */

static void job_run (const Job *k) {
  int64_t size = k->len * min64(k->inner, COLUMNS);
  if (k->inner == 1 && k->part == NULL) {
    threads_range(k->outer, grain_rows(size), row_range, (void *)k);
    return;
  }
  threads_range(k->outer * k->splits * k->chunks, grain_rows(size), job_range,
                (void *)k);
}

/* Runs a split job and folds its parts in order. */
static void job_parts (Job *k) {
  job_run(k);
  for (int64_t o = 0; o < k->outer; o++)
    for (int64_t j = 0; j < k->inner; j++) {
      double s = start_of[k->row->fold];
      for (int64_t i = 0; i < k->splits; i++)
        s = fold(k->row->fold, s, k->part[(o * k->splits + i) * k->inner + j]);
      int64_t at = o * k->inner + j;
      store(k, at,
            finish(k, k->row, s, k->centre ? (double)k->centre[at] : 0));
    }
}

/* Splits n where the rows and columns alone are too few. */
static void job_split (Job *k) {
  int64_t w = min64(k->inner, COLUMNS);
  k->chunks = (k->inner + COLUMNS - 1) / COLUMNS;
  k->len = k->n;
  k->splits = 1;
  if (k->n * w < 2 * SPLIT || k->outer * k->chunks > 64) return;
  k->len = max64(SPLIT / w, LEAF);
  k->splits = (k->n + k->len - 1) / k->len;
}

/* The result, real or bool, to y. */
void CPU (reduce_real)(int op, void *y, bool test, const real *x,
                       int64_t outer, int64_t n, int64_t inner, double a) {
  Job k = { .row = &rows[op],
            .x = x,
            .y = y,
            .test = test,
            .outer = outer,
            .n = n,
            .inner = inner,
            .a = a };
  if (outer == 0 || inner == 0) return;
  job_split(&k);
  if (k.splits == 1) {
    job_run(&k);
    return;
  }
  size_t mark = fnn_mark();
  size_t count = (size_t)(outer * inner);
  k.part = mem_scratch(count * (size_t)k.splits * sizeof(double));
  if (k.row->centre >= 0) {
    Job c = k;
    c.row = &rows[k.row->centre];
    c.y = mem_scratch(count * sizeof(real));
    c.test = false;
    job_parts(&c);
    k.centre = c.y;
    for (size_t i = 0; i < count; i++)
      if (c.row->fold == MAX && isinf(k.centre[i])) k.centre[i] = 0;
  }
  job_parts(&k);
  fnn_escape(mark, NULL);
}
