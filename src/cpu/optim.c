/* optim.c - updates of a parameter in one pass over memory. */

#include "cpu.h"

static inline real root (real x) {
#ifdef CPU_DOUBLE
  return sqrt(x);
#else
  return sqrtf(x);
#endif
}

/* One update: its arrays and its constants, all in the kernel's type. */
typedef struct Pass {
  real *p, *s[3];
  const real *g;
  real lr, decay, h[6], rest[2]; /* rest: 1 - h[0], 1 - h[1] */
  bool flag[4], first;
} Pass;

static Pass pass_of (Tensor *p, const Tensor *g, Tensor *const *s,
                     const Update *u) {
  Pass a = { .p = tensor_data(p),
             .g = tensor_data(g),
             .lr = (real)u->lr,
             .decay = (real)u->weight_decay,
             .first = u->step == 1 };
  for (int i = 0; i < 3; i++) a.s[i] = s[i] != NULL ? tensor_data(s[i]) : NULL;
  for (int i = 0; i < 6; i++) a.h[i] = (real)u->h[i];
  for (int i = 0; i < 2; i++) a.rest[i] = (real)(1 - u->h[i]);
  for (int i = 0; i < 4; i++) a.flag[i] = u->flag[i];
  return a;
}

/* h: momentum, dampening; flag: nesterov. */
static void sgd_range (void *ud, int64_t lo, int64_t hi) {
  const Pass *a = ud;
  real *restrict p = a->p, *restrict m = a->s[0];
  const real *restrict g = a->g;
  const real lr = a->lr, decay = a->decay, mu = a->h[0];
  const real keep = a->first ? 1 : 1 - a->h[1], old = a->first ? 0 : mu;
  if (m == NULL) {
    for (int64_t i = lo; i < hi; i++) p[i] -= lr * (g[i] + decay * p[i]);
    return;
  }
  const real ahead = a->flag[0] ? mu : 1, plain = a->flag[0] ? 1 : 0;
  for (int64_t i = lo; i < hi; i++) {
    real d = g[i] + decay * p[i];
    real v = old * m[i] + keep * d;
    m[i] = v;
    p[i] -= lr * (plain * d + ahead * v);
  }
}

void CPU (sgd)(Tensor *p, const Tensor *g, Tensor *const *s, const Update *u) {
  Pass a = pass_of(p, g, s, u);
  threads_range(p->numel, GRAIN, sgd_range, &a);
}

/* h: beta1, beta2, eps, lr / (1 - beta1^t), 1 / sqrt(1 - beta2^t);
** flag: decoupled decay, amsgrad. */
static void adam_range (void *ud, int64_t lo, int64_t hi) {
  const Pass *a = ud;
  real *restrict p = a->p, *restrict m = a->s[0], *restrict v = a->s[1];
  real *restrict most = a->s[2];
  const real *restrict g = a->g;
  const real b2 = a->h[1], r1 = a->rest[0], r2 = a->rest[1];
  const real eps = a->h[2], step = a->h[3];
  const real scale = a->h[4], shrink = 1 - (a->flag[0] ? a->lr * a->decay : 0);
  const real couple = a->flag[0] ? 0 : a->decay;
  if (a->flag[1]) {
    for (int64_t i = lo; i < hi; i++) {
      real d = g[i] + couple * p[i];
      m[i] += r1 * (d - m[i]);
      v[i] = b2 * v[i] + r2 * d * d;
      most[i] = v[i] > most[i] ? v[i] : most[i];
      p[i] = shrink * p[i] - step * m[i] / (root(most[i]) * scale + eps);
    }
    return;
  }
  for (int64_t i = lo; i < hi; i++) {
    real d = g[i] + couple * p[i];
    real mi = m[i] + r1 * (d - m[i]);
    real vi = b2 * v[i] + r2 * d * d;
    m[i] = mi;
    v[i] = vi;
    p[i] = shrink * p[i] - step * mi / (root(vi) * scale + eps);
  }
}

void CPU (adam)(Tensor *p, const Tensor *g, Tensor *const *s,
                const Update *u) {
  Pass a = pass_of(p, g, s, u);
  a.h[3] = (real)(u->lr / (1 - pow(u->h[0], (double)u->step)));
  a.h[4] = (real)(1 / sqrt(1 - pow(u->h[1], (double)u->step)));
  threads_range(p->numel, GRAIN, adam_range, &a);
}

/* Partial sums of blocks, so that the split does not change the result. */
typedef struct Squares {
  const real *x;
  double *part;
} Squares;

static void squares_range (void *ud, int64_t lo, int64_t hi) {
  const Squares *s = ud;
  double sum = 0;
  for (int64_t i = lo; i < hi; i++) sum += (double)s->x[i] * (double)s->x[i];
  s->part[lo / GRAIN] = sum;
}

void CPU (square_sum)(const Tensor *x, double *sum) {
  int64_t n = (x->numel + GRAIN - 1) / GRAIN;
  double few[16], *part = few;
  if (n > countof(few)) part = mem_scratch((size_t)n * sizeof *part);
  Squares s = { tensor_data(x), part };
  threads_range(x->numel, GRAIN, squares_range, &s);
  for (int64_t i = 0; i < n; i++) *sum += part[i];
}
