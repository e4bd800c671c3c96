/* cross.c - the cross product of vectors of three numbers. */

#include "ops.h"

/* x and y of one dtype, in the shape of z. */
static Tensor *product (Tensor *z, const Tensor *x, const Tensor *y, int dim) {
  x = tensor_dense(view_broadcast(x, z->ndim, z->shape));
  y = tensor_dense(view_broadcast(y, z->ndim, z->shape));
  kernel(z, cross)(z, x, y, dims_before(z, dim), dims_behind(z, dim));
  return z;
}

/* g . (x cross y) = x . (y cross g) = y . (g cross x) */
static void cross_back (Node *n, Tensor *g) {
  Tensor *x = graph_saved(n, 0), *y = graph_saved(n, 1);
  int dim = (int)n->i[0];
  if (graph_wants(n, 0)) graph_give(n, 0, product(tensor_like(g), y, g, dim));
  if (graph_wants(n, 1)) graph_give(n, 1, product(tensor_like(g), g, x, dim));
}

Tensor *fnn_cross (Tensor *x, Tensor *y, int dim) {
  static const Rule rule = { "cross", cross_back };
  int64_t shape[FNN_MAXDIM];
  tensor_check_device("cross", x, y);
  fnn_Dtype t = fnn_promote((fnn_Dtype)x->dtype, (fnn_Dtype)y->dtype);
  if (!dtype_is_float(t))
    fnn_throw(FNN_EDTYPE, "cross: expected float tensors, got %s",
              fnn_dtype_name(t));
  int ndim = shape_broadcast("cross", x, y, shape);
  Tensor *z = tensor_new(ndim, shape, t, x->storage->device);
  check_computes("cross", z);
  dim = tensor_dim(z, dim, "cross");
  if (shape[dim] != 3)
    fnn_throw(FNN_ESHAPE,
              "cross: the vectors must have 3 numbers (got shapes %s and %s)",
              shape_text(x), shape_text(y));
  Tensor *a = tensor_convert(x, t), *b = tensor_convert(y, t);
  product(z, a, b, dim);
  Node *n = graph_record2(z, &rule, x, y, 2);
  if (n == NULL) return z;
  graph_save(n, 0, a);
  graph_save(n, 1, b);
  n->i[0] = dim;
  return z;
}
