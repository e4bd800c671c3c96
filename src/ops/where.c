/* where.c - elements of one tensor or another: where, masked_fill. */

#include "ops.h"

/* Each side gets the gradient where it was taken, 0 elsewhere. */
static void where_back (Node *n, Tensor *gy) {
  Tensor *c = graph_saved(n, 0);
  Tensor *zero = tensor_scalar(0, (fnn_Dtype)gy->dtype, gy->storage->device);
  zero = view_broadcast(zero, gy->ndim, gy->shape);
  for (int i = 0; i < n->nin; i++) {
    if (!graph_wants(n, i)) continue;
    bool first = i + (int)n->i[0] == 0;
    Tensor *gx = tensor_like(gy);
    kernel(gy, where)(gx, c, first ? gy : zero, first ? zero : gy);
    graph_give(n, i, gx);
  }
}

static const Rule where_rule = { "where", where_back };
static const Rule masked_fill_rule = { "masked_fill", where_back };

static void check_mask (const char *op, const Tensor *c) {
  if (c->dtype != FNN_BOOL)
    fnn_throw(FNN_EDTYPE,
              "%s: the mask must be bool (compare first), got %s "
              "of shape %s",
              op, fnn_dtype_name((fnn_Dtype)c->dtype), shape_text(c));
}

/* The shape of c, a and b together. */
static int common_shape (const char *op, const Tensor *c, const Tensor *a,
                         const Tensor *b, int64_t *shape) {
  int64_t stride[FNN_MAXDIM] = { 0 };
  int ndim = shape_broadcast(op, a, b, shape);
  Tensor *both = tensor_view(a, ndim, shape, stride, 0);
  return shape_broadcast(op, c, both, shape);
}

Tensor *fnn_where (Tensor *c, Tensor *a, Tensor *b) {
  int64_t shape[FNN_MAXDIM];
  check_mask("where", c);
  tensor_check_device("where", c, a);
  tensor_check_device("where", a, b);
  fnn_Dtype t = fnn_promote((fnn_Dtype)a->dtype, (fnn_Dtype)b->dtype);
  int ndim = common_shape("where", c, a, b, shape);
  Tensor *y = tensor_new(ndim, shape, t, a->storage->device);
  Tensor *mask = view_broadcast(c, ndim, shape);
  kernel(y, where)(y, mask, view_broadcast(tensor_convert(a, t), ndim, shape),
                   view_broadcast(tensor_convert(b, t), ndim, shape));
  if (!tensor_is_float(y)) return y;
  Node *n = graph_record2(y, &where_rule, a, b, 1);
  if (n != NULL) graph_save(n, 0, mask);
  return y;
}

/* x where the mask is false, value where it is true; x's dtype. */
Tensor *fnn_masked_fill (Tensor *x, Tensor *mask, double value) {
  int64_t shape[FNN_MAXDIM];
  check_mask("masked_fill", mask);
  tensor_check_device("masked_fill", x, mask);
  int ndim = shape_broadcast("masked_fill", x, mask, shape);
  fnn_Dtype t = (fnn_Dtype)x->dtype;
  Tensor *y = tensor_new(ndim, shape, t, x->storage->device);
  Tensor *c = view_broadcast(mask, ndim, shape);
  Tensor *v = tensor_scalar(value, t, x->storage->device);
  kernel(y, where)(y, c, view_broadcast(v, ndim, shape),
                   view_broadcast(x, ndim, shape));
  if (!tensor_is_float(y)) return y;
  Node *n = graph_record1(y, &masked_fill_rule, x, 1);
  if (n != NULL) {
    graph_save(n, 0, c);
    n->i[0] = 1; /* the input is the second choice */
  }
  return y;
}
