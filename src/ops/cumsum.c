/* cumsum.c - running sums along one dim. */

#include "ops.h"

static Tensor *running (const Tensor *x, int dim, fnn_Dtype t, bool reverse) {
  Tensor *y = tensor_like_as(x, t);
  kernel(x, cumsum)(y, tensor_dense(x), dims_before(x, dim), x->shape[dim],
                    dims_behind(x, dim), reverse);
  return y;
}

/* x[i] is in every sum from the i-th on: the running sum from the end. */
static void cumsum_back (Node *n, Tensor *gy) {
  graph_give(n, 0, running(gy, (int)n->i[0], (fnn_Dtype)gy->dtype, true));
}

Tensor *fnn_cumsum (Tensor *x, int dim) {
  static const Rule rule = { "cumsum", cumsum_back };
  x = autocast_wide(x);
  check_computes("cumsum", x);
  dim = tensor_dim(x, dim, "cumsum");
  fnn_Dtype t = tensor_is_float(x) ? (fnn_Dtype)x->dtype : FNN_I64;
  Tensor *y = running(x, dim, t, false);
  if (!tensor_is_float(y)) return y;
  Node *n = graph_record1(y, &rule, x, 0);
  if (n != NULL) n->i[0] = dim;
  return y;
}
