/* reduce_back.c - gradients of reductions.  x and gx are (outer, n, inner),
** gy and y (outer, inner). */

#include "reduce.h"

#include "../core/ops.h"
#include "../core/vmath.h"

typedef struct Job Job;
struct Job {
  void (*back)(const Job *k, int64_t o, int64_t lo, int64_t hi);
  real *gx;
  const real *gy, *x, *y, *c; /* what is not read is a place to read */
  int64_t xs, ys;             /* 0 where x, y are not read, else 1 */
  int64_t n, inner;
  int64_t splits, len; /* pieces of n, and numbers in one */
  double a;
};

/*
** {======================================================
** Formulas
** =======================================================
*/

/* Numbers lo .. hi - 1 of row o: one loop along n where they lie in a row,
** else loops along inner. */
#define BACK(name, gradient) \
  static void back_##name(const Job *k, int64_t o, int64_t lo, int64_t hi) { \
    const real a = (real)k->a, n = (real)k->n, m = n > a ? n - a : 0; \
    int64_t w = k->inner; \
    const real *pg = k->gy + o * w, *py = k->y + o * w * k->ys; \
    const real *pc = k->c + o * w; \
    (void)a, (void)n, (void)m, (void)pc; \
    if (w == 1) { \
      const real *px = k->x + o * k->n * k->xs; \
      real *z = k->gx + o * k->n; \
      const real g = pg[0], y = py[0], c = pc[0]; \
      (void)g, (void)y, (void)c; \
      LANES for (int64_t i = lo; i < hi; i++) { \
        const real x = px[i]; \
        (void)x; \
        z[i] = (gradient); \
      } \
      return; \
    } \
    for (int64_t i = lo; i < hi; i++) { \
      const real *px = k->x + (o * k->n + i) * w * k->xs; \
      real *z = k->gx + (o * k->n + i) * w; \
      LANES for (int64_t j = 0; j < w; j++) { \
        const real x = px[j], y = py[j], g = pg[j], c = pc[j]; \
        (void)x, (void)y, (void)g, (void)c; \
        z[j] = (gradient); \
      } \
    } \
  }

#define REAL(name, gx) BACK(name, gx)
#define SUM(name, gx) BACK(name, gx)
#define SAME(name, gx)
#define TEST(name, gx)
#define ID(name, gx)
#define REDUCE(name, kind, centre, how, f, result, reads, gx) kind(name, gx)
#include "../core/reduce.def"
#undef REDUCE

/* }====================================================== */

/*
** {======================================================
** Products and extremes
** =======================================================
*/

/* The product of the others, without dividing: from the left, then times what
** lies on the right. */
static void product (const Job *k, int64_t o, int64_t lo, int64_t hi) {
  int64_t w = k->inner;
  (void)lo, (void)hi;
  for (int64_t j = 0; j < w; j++) {
    const real *x = k->x + o * k->n * w + j;
    real *z = k->gx + o * k->n * w + j;
    double s = (double)k->gy[o * w + j];
    for (int64_t i = 0; i < k->n; i++) {
      z[i * w] = (real)s;
      s *= (double)x[i * w];
    }
    s = 1;
    for (int64_t i = k->n - 1; i >= 0; i--) {
      z[i * w] = (real)((double)z[i * w] * s);
      s *= (double)x[i * w];
    }
  }
}

static inline bool same (real x, real y) {
  return x == y || (x != x && y != y);
}

/* To the first number equal to the result or, with a set, to all that are, in
** equal parts. */
static void extreme (const Job *k, int64_t o, int64_t lo, int64_t hi) {
  int64_t w = k->inner;
  (void)lo, (void)hi;
  for (int64_t j = 0; j < w; j++) {
    const real *x = k->x + o * k->n * w + j;
    real *z = k->gx + o * k->n * w + j, y = k->y[o * w + j];
    int64_t equal = 0;
    for (int64_t i = 0; i < k->n; i++) equal += same(x[i * w], y);
    real g = k->gy[o * w + j];
    if (k->a != 0) g /= (real)equal;
    else equal = 1;
    for (int64_t i = 0; i < k->n; i++) {
      bool take = equal > 0 && same(x[i * w], y);
      z[i * w] = take ? g : 0;
      equal -= take;
    }
  }
}

/* }====================================================== */

#undef REAL
#undef SUM
#undef SAME
#define REAL(name) [REDUCE_##name] = back_##name,
#define SUM(name) REAL(name)
#define SAME(name) [REDUCE_##name] = extreme,
#undef TEST
#undef ID
#define TEST(name)
#define ID(name)
#define REDUCE(name, kind, centre, how, f, result, reads, gx) kind(name)
static void (*const backs[REDUCE_COUNT])(const Job *k, int64_t o, int64_t lo,
                                         int64_t hi) = {
#include "../core/reduce.def"
};
#undef REDUCE

static void job_range (void *ud, int64_t lo, int64_t hi) {
  const Job *k = ud;
  for (int64_t t = lo; t < hi; t++) {
    int64_t i = t % k->splits * k->len;
    k->back(k, t / k->splits, i, min64(i + k->len, k->n));
  }
}

void CPU (reduce_back)(int op, Tensor *gx, const Tensor *gy, const Tensor *x,
                       const Tensor *y, int64_t outer, int64_t n,
                       int64_t inner, double a) {
  size_t mark = fnn_mark();
  Job k = { .back = op == REDUCE_prod ? product : backs[op],
            .n = n,
            .inner = inner,
            .a = a,
            .xs = x != NULL,
            .ys = y != NULL };
  k.gx = tensor_data(gx);
  k.gy = k.c = tensor_data(gy);
  k.x = x != NULL ? tensor_data(x) : k.gy;
  k.y = y != NULL ? tensor_data(y) : k.gy;
  if (op == REDUCE_var || op == REDUCE_std) {
    real *c = mem_scratch((size_t)(outer * inner) * sizeof *c);
    CPU(reduce_real)(REDUCE_mean, c, false, k.x, outer, n, inner, 0);
    k.c = c;
  }
  bool apart = k.back != product && k.back != extreme;
  k.len = apart && n > 0 ? min64(n, grain_rows(inner)) : n;
  k.splits = n > 0 ? (n + k.len - 1) / k.len : 1;
  threads_range(outer * k.splits, grain_rows(k.len * inner), job_range, &k);
  fnn_escape(mark, NULL);
}
