/* muon.c - Muon: momentum whose matrix is made orthogonal (Jordan et al.
** 2024, as torch.optim.Muon has it).
**
** With X = U S V' the update is about U V'.  Five steps of a quintic bring
** the singular values of X, scaled to a norm of 1, near 1:
**
**     G = X X'          X <- a X + (b G + c G G) X
**
** or, where X has more rows than columns, with G = X' X on its right: G is
** the smaller of the two.  PyTorch iterates in bf16; here it is the dtype of
** the parameter. */

#include <math.h>

#include "optim.h"

/* y <- y + share (scale g - y) */
static void follow (Tensor *y, const Tensor *g, double share, double scale) {
  Pass pass = { .p = y,
                .g = tensor_convert(g, (fnn_Dtype)y->dtype),
                .u = { .scale = scale, .step = share } };
  kernel(y, optimize)(FORMULA_lerp, &pass, 1);
}

static Tensor *copy (const Tensor *x) {
  Tensor *y = tensor_like(x);
  kernel(y, copy)(y, x);
  return y;
}

/* beta x + alpha a b */
static Tensor *product (Tensor *x, double beta, Tensor *a, Tensor *b,
                        double alpha) {
  Tensor *y = fnn_scale(x, beta);
  Epilogue e = { .act = -1, .accumulate = true, .alpha = alpha };
  kernel(y, matmul)(y, a, b, &e);
  return y;
}

/* x / max(norm, eps) */
static void normalize (Tensor *x, double eps) {
  const fnn_Device *d = x->storage->device;
  Tensor *squares = fnn_zeros(0, NULL, FNN_F64, d);
  kernel(x, square_sum)(squares, (const Tensor *[]){ x }, 1);
  Tensor *norm = fnn_map(MAP_sqrt, squares, 0, 0);
  norm = fnn_zip_number(ZIP_maximum, norm, eps, false);
  kernel(x, scale_all)(&x, 1, fnn_map(MAP_reciprocal, norm, 0, 0));
}

static Tensor *orthogonal (Tensor *x, const Values *v) {
  const double *k = v->v[OPTION_ns_coefficients];
  normalize(x, value(v, eps));
  bool tall = x->shape[0] > x->shape[1];
  size_t m = fnn_mark();
  for (int i = 0; i < (int)value(v, ns_steps); i++) {
    Tensor *xt = fnn_transpose(x, 0, 1);
    Tensor *g = tall ? fnn_matmul(xt, x) : fnn_matmul(x, xt);
    Tensor *h = product(g, k[1], g, g, k[2]);
    x = fnn_escape(m, tall ? product(x, k[0], x, h, 1)
                           : product(x, k[0], h, x, 1));
  }
  return x;
}

/* ORDER optimizer_adjustments */
static double adjusted (const Tensor *p, const Values *v) {
  double rows = (double)p->shape[0], columns = (double)p->shape[1];
  double ratio = rows / columns;
  switch ((int)value(v, adjust_lr_fn)) {
    case 0: return value(v, lr) * sqrt(ratio > 1 ? ratio : 1);
    case 1: return value(v, lr) * 0.2 * sqrt(ratio > 1 ? rows : columns);
    default: return value(v, lr) * sqrt(ratio);
  }
}

void muon_update (Tensor *p, const Tensor *g, Tensor *const *s,
                  const Update *u, const Values *v) {
  if (p->numel == 0) return;
  size_t m = fnn_mark();
  double mu = value(v, momentum);
  follow(s[0], g, 1 - mu, u->scale);
  Tensor *x = copy(s[0]);
  if (value(v, nesterov) != 0) follow(x, g, 1 - mu, u->scale);
  Pass pass = { .p = p,
                .g = tensor_convert(orthogonal(x, v), (fnn_Dtype)p->dtype) };
  pass.u = (Update){ .scale = 1, .shrink = u->shrink, .step = adjusted(p, v) };
  kernel(p, optimize)(FORMULA_sgd, &pass, 1);
  fnn_escape(m, NULL);
}
