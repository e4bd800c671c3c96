/* loss.c - the rows of loss.def: losses of a prediction and a target, summed
** in the same pass, and their slopes. */

#include "sweep.h"

#include "../core/ops.h"
#include "../core/vmath.h"

/*
** {======================================================
** One loop a row.  in: x, t, u and the weights
** =======================================================
*/

#define OPERANDS(in) \
  const real *px = (in)[0], *pt = (in)[1], *pu = (in)[2], *pw = (in)[3]; \
  const real a = (real)a_, b = (real)b_; \
  (void)a, (void)b

#define ELEMENT(i) \
  const real x = px[i], t = pt[i], d = x - t, u = pu[i], w = pw[i]; \
  (void)d, (void)u

#define LOSS(name, y, gx, gt, gu) \
  static void loss_##name(void *z_, const void *const *in, int64_t n, \
                          double a_, double b_) { \
    real *z = z_; \
    OPERANDS(in); \
    LANES for (int64_t i = 0; i < n; i++) { \
      ELEMENT(i); \
      z[i] = w * (y); \
    } \
  }
#include "../core/loss.def"
#undef LOSS

/* The slopes, with the gradient of y before the operands. */
#define SLOPE(name, slope) \
  static void name(void *z_, const void *const *in, int64_t n, double a_, \
                   double b_) { \
    real *z = z_; \
    const real *pg = in[0]; \
    OPERANDS(in + 1); \
    LANES for (int64_t i = 0; i < n; i++) { \
      ELEMENT(i); \
      z[i] = pg[i] * w * (slope); \
    } \
  }

#define LOSS(name, y, gx, gt, gu) \
  SLOPE(first_##name, gx) SLOPE(second_##name, gt) SLOPE(third_##name, gu)
#include "../core/loss.def"
#undef LOSS

#define LOSS(name, y, gx, gt, gu) [LOSS_##name] = loss_##name,
static const Loop losses[LOSS_COUNT] = {
#include "../core/loss.def"
};
#undef LOSS

#define LOSS(name, y, gx, gt, gu) \
  [LOSS_##name] = { first_##name, second_##name, third_##name },
static const Loop slopes[LOSS_COUNT][3] = {
#include "../core/loss.def"
};
#undef LOSS

/* }====================================================== */

enum { INPUTS = 4 };

/* A sweep of z, of gy unless that is NULL, and of the inputs; 1 for those
** that are NULL. */
static void open (Sweep *s, const Tensor *z, const Tensor *gy,
                  const Tensor *const *in, Number *one) {
  const Tensor *t[SWEEP_MAX] = { z, gy };
  int first = gy != NULL ? 2 : 1;
  for (int k = 0; k < INPUTS; k++)
    t[first + k] = in[k] != NULL ? in[k] : in[0];
  ONCE(sweep_open)(s, first + INPUTS, t);
  for (int k = 0; k < INPUTS; k++)
    if (in[k] == NULL) ONCE(sweep_number)(s, first + k, one, 1);
}

void CPU (loss)(int op, Tensor *y, const Tensor *const *in, double a, double b,
                double scale) {
  bool each = y->numel != 1;
  Sweep s;
  Number one;
  /* A sum is laid out by x, which is not written. */
  open(&s, each ? y : in[0], NULL, in, &one);
  s.loop = losses[op];
  s.a = a;
  s.b = b;
  if (each) {
    ONCE(sweep_run)(&s);
    return;
  }
  int64_t n = (s.numel + GRAIN - 1) / GRAIN;
  size_t mark = fnn_mark();
  double few[16], sum = 0;
  s.sums = n > countof(few) ? mem_scratch((size_t)n * sizeof *few) : few;
  ONCE(sweep_run)(&s);
  for (int64_t i = 0; i < n; i++) sum += s.sums[i];
  *(real *)tensor_data(y) = (real)(sum * scale);
  fnn_escape(mark, NULL);
}

void CPU (loss_back)(int op, int which, Tensor *gx, const Tensor *gy,
                     const Tensor *const *in, double a, double b,
                     double scale) {
  Sweep s;
  Number one, g;
  bool single = gy->numel == 1;
  open(&s, gx, single ? gx : gy, in, &one);
  if (single)
    ONCE(sweep_number)(&s, 1, &g, (double)*(real *)tensor_data(gy) * scale);
  s.loop = slopes[op][which];
  s.a = a;
  s.b = b;
  ONCE(sweep_run)(&s);
}
