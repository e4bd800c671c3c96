/* gate.c - products of one half of x with a function of the other, and what
** else has a second operand that is learned: over the rows of zip.def. */

#include <inttypes.h>

#include "ops.h"

/* The halves of x along dim. */
static void halves (const char *op, Tensor *x, int dim, Tensor **a,
                    Tensor **b) {
  tensor_check_float(op, x);
  dim = tensor_dim(x, dim, op);
  int64_t n = x->shape[dim] / 2;
  if (x->shape[dim] % 2 != 0)
    fnn_throw(FNN_ESHAPE, "%s: dim %d of shape %s has no halves", op, dim + 1,
              shape_text(x));
  *a = fnn_narrow(x, dim, 0, n);
  *b = fnn_narrow(x, dim, n, n);
}

Tensor *fnn_glu (Tensor *x, int dim) {
  Tensor *a, *b;
  halves("glu", x, dim, &a, &b);
  return fnn_zip(ZIP_mul_sigmoid, a, b);
}

Tensor *fnn_swiglu (Tensor *x, int dim) {
  Tensor *a, *b;
  halves("swiglu", x, dim, &a, &b);
  return fnn_zip(ZIP_mul_silu, b, a);
}

Tensor *fnn_geglu (Tensor *x, int dim) {
  Tensor *a, *b;
  halves("geglu", x, dim, &a, &b);
  return fnn_zip(ZIP_mul_gelu, a, b);
}

Tensor *fnn_prelu (Tensor *x, Tensor *weight) {
  int64_t shape[FNN_MAXDIM];
  int64_t channels = x->ndim > 1 ? x->shape[1] : 1;
  tensor_check_float("prelu", x);
  if (weight->ndim > 1 || (weight->numel != 1 && weight->numel != channels))
    fnn_throw(FNN_ESHAPE,
              "prelu: the weight has shape %s, the input %s (expected (1) or "
              "(%" PRId64 "))",
              shape_text(weight), shape_text(x), channels);
  for (int i = 0; i < x->ndim; i++) shape[i] = i == 1 ? weight->numel : 1;
  if (x->ndim < 2) return fnn_zip(ZIP_leaky, x, weight);
  return fnn_zip(ZIP_leaky, x, fnn_reshape(weight, x->ndim, shape));
}

/* x A for all of A's matrices at once, then by y. */
Tensor *fnn_bilinear (Tensor *x, Tensor *y, Tensor *weight, Tensor *bias) {
  int64_t shape[FNN_MAXDIM], n, m, out;
  int lead = x->ndim - 1;
  bool fits = weight->ndim == 3 && x->ndim >= 1 && x->ndim == y->ndim;
  for (int i = 0; fits && i < lead; i++) fits = x->shape[i] == y->shape[i];
  fits = fits && weight->shape[1] == x->shape[lead] &&
         weight->shape[2] == y->shape[lead];
  if (!fits)
    fnn_throw(FNN_ESHAPE,
              "bilinear: x %s and y %s do not fit the weight %s (expected "
              "(..., n), (..., m) and (out, n, m))",
              shape_text(x), shape_text(y), shape_text(weight));
  out = weight->shape[0], n = weight->shape[1], m = weight->shape[2];
  int64_t rows = dims_before(x, lead);
  Tensor *a = fnn_reshape(fnn_permute(weight, 3, (int[]){ 1, 0, 2 }), 2,
                          (int64_t[]){ n, out * m });
  Tensor *t = fnn_matmul(fnn_reshape(x, 2, (int64_t[]){ rows, n }), a);
  t = fnn_reshape(t, 3, (int64_t[]){ rows, out, m });
  t = fnn_matmul(t, fnn_reshape(y, 3, (int64_t[]){ rows, m, 1 }));
  for (int i = 0; i < lead; i++) shape[i] = x->shape[i];
  shape[lead] = out;
  t = fnn_reshape(t, x->ndim, shape);
  return bias != NULL ? fnn_add(t, bias) : t;
}
