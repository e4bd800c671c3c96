/* optim.c - updates of a parameter in one pass over memory.
**
** Each row of optim.def becomes a loop for each set of states that its
** options may leave it with, so that what is not there costs nothing. */

#include "cpu.h"

#include "../core/vmath.h"

/* One parameter's arrays, and the constants in the kernel's type. */
typedef struct Constants {
  UPDATE(real);
} Constants;

typedef struct Arrays {
  real *p, *s[3];
  const real *g;
  Constants k;
} Arrays;

/* a, b and c stay 0 where there is no such state. */
#define FORMULA(name, needs, s0, s1, s2, ...) \
  static inline __attribute__((always_inline)) void name##_loop( \
      const Arrays *x, int64_t lo, int64_t hi, const bool A, const bool B, \
      const bool C) { \
    real *restrict xp = x->p, *restrict xa = x->s[0], *restrict xb = x->s[1], \
                   *restrict xc = x->s[2]; \
    const real *restrict xg = x->g; \
    const Constants k = x->k; \
    _Pragma("omp simd") for (int64_t i = lo; i < hi; i++) { \
      real p = xp[i], g = k.scale * xg[i] + k.couple * p; \
      real a = A ? xa[i] : 0, b = B ? xb[i] : 0, c = C ? xc[i] : 0; \
      __VA_ARGS__; \
      xp[i] = p; \
      if (A) xa[i] = a; \
      if (B) xb[i] = b; \
      if (C) xc[i] = c; \
    } \
  } \
  static void name##_range(void *ud, int64_t lo, int64_t hi) { \
    const Arrays *x = ud; \
    int have = \
        (x->s[0] != NULL) | (x->s[1] != NULL) << 1 | (x->s[2] != NULL) << 2; \
    const int may = \
        needs | (s0 != NULL) | (s1 != NULL) << 1 | (s2 != NULL) << 2; \
    CASE(name, needs, may, 0) \
    CASE(name, needs, may, 1) \
    CASE(name, needs, may, 2) \
    CASE(name, needs, may, 3) \
    CASE(name, needs, may, 4) \
    CASE(name, needs, may, 5) \
    CASE(name, needs, may, 6) \
    CASE(name, needs, may, 7) \
  }

/* The loop for one set of states, unless the row cannot have that. */
#define CASE(name, needs, may, set) \
  if (((set) & (needs)) == (needs) && ((set) & ~(may)) == 0 && have == (set)) \
    name##_loop(x, lo, hi, (set)&1, ((set)&2) != 0, ((set)&4) != 0);

#include "../core/optim.def"
#undef FORMULA

static const Range ranges[] = {
#define FORMULA(name, ...) name##_range,
#include "../core/optim.def"
#undef FORMULA
};

static void optimize_one (Formula row, const Pass *pass) {
  Arrays x = { .p = tensor_data(pass->p), .g = tensor_data(pass->g) };
  for (int i = 0; i < 3; i++)
    if (pass->s[i] != NULL) x.s[i] = tensor_data(pass->s[i]);
  Update u = pass->u;
  if (pass->factor != NULL)
    u.scale *= *(const double *)tensor_data(pass->factor);
  const double *from = (const double *)&u;
  real *to = (real *)&x.k;
  for (size_t i = 0; i < sizeof u / sizeof *from; i++) to[i] = (real)from[i];
  threads_range(pass->p->numel, GRAIN, ranges[row], &x);
}

void CPU (optimize)(Formula row, const Pass *list, int n) {
  for (int i = 0; i < n; i++) optimize_one(row, &list[i]);
}

/* Partial sums of blocks, so that the split does not change the result. */
typedef struct Squares {
  const real *x;
  double *part;
} Squares;

static void squares_range (void *ud, int64_t lo, int64_t hi) {
  const Squares *s = ud;
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = lo; i < hi; i++) sum += (double)s->x[i] * (double)s->x[i];
  s->part[lo / GRAIN] = sum;
}

static double squares_of (const Tensor *x) {
  int64_t n = (x->numel + GRAIN - 1) / GRAIN;
  double few[16], *part = few, sum = 0;
  if (n > countof(few)) part = mem_scratch((size_t)n * sizeof *part);
  Squares s = { tensor_data(x), part };
  threads_range(x->numel, GRAIN, squares_range, &s);
  for (int64_t i = 0; i < n; i++) sum += part[i];
  return sum;
}

void CPU (square_sum)(Tensor *sum, const Tensor *const *x, int n) {
  for (int i = 0; i < n; i++) *(double *)tensor_data(sum) += squares_of(x[i]);
}

typedef struct Scaled {
  real *x, factor;
} Scaled;

static void scale_range (void *ud, int64_t lo, int64_t hi) {
  const Scaled *s = ud;
  for (int64_t i = lo; i < hi; i++) s->x[i] *= s->factor;
}

void CPU (scale_all)(Tensor *const *x, int n, const Tensor *factor) {
  double by = *(const double *)tensor_data(factor);
  for (int i = 0; i < n && by != 1; i++) {
    Scaled s = { tensor_data(x[i]), (real)by };
    threads_range(x[i]->numel, GRAIN, scale_range, &s);
  }
}

#ifdef CPU_ANY
void CPU (norm_factor)(Tensor *factor, Tensor *norm, const Tensor *squares,
                       double scale, double most) {
  /* not the words of vmath.h, which are of floats here */
  double length = __builtin_fabs(scale) *
                  __builtin_sqrt(*(const double *)tensor_data(squares));
  if (norm != NULL) *(double *)tensor_data(norm) = length;
  if (length > most) scale = scale * most / (length + 1e-6);
  *(double *)tensor_data(factor) = scale;
}
#endif
