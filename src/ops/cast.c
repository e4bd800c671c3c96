/* cast.c - the same numbers elsewhere: in another dtype, on another device, in
** row-major order, in storage of their own. */

#include "ops.h"

/* The gradient passes as it is; graph_give casts it to the input's dtype. */
static void pass (Node *n, Tensor *gy) { graph_give(n, 0, gy); }

Tensor *fnn_cast (Tensor *x, fnn_Dtype t) {
  static const Rule rule = { "cast", pass };
  Tensor *y = tensor_convert(x, t);
  if (y != x && dtype_is_float(t)) graph_record1(y, &rule, x, 0);
  return y;
}

/* The input's device is kept as a number: devices last as long as the
** engine. */
static void to_device_back (Node *n, Tensor *gy) {
  graph_give(n, 0, tensor_move(gy, (const fnn_Device *)(intptr_t)n->i[0]));
}

Tensor *fnn_to_device (Tensor *x, const fnn_Device *d) {
  static const Rule rule = { "to_device", to_device_back };
  Tensor *y = tensor_move(x, d != NULL ? d : device_cpu());
  if (y == x) return x;
  Node *n = graph_record1(y, &rule, x, 0);
  if (n != NULL) n->i[0] = (int64_t)(intptr_t)x->storage->device;
  return y;
}

Tensor *fnn_contiguous (Tensor *x) {
  static const Rule rule = { "contiguous", pass };
  Tensor *y = tensor_dense(x);
  if (y != x) graph_record1(y, &rule, x, 0);
  return y;
}

Tensor *fnn_channels_last (Tensor *x) {
  static const Rule rule = { "channels_last", pass };
  if (x->ndim < 3)
    fnn_throw(FNN_ESHAPE,
              "channels_last: expected a tensor (n, channels, ...) of at "
              "least 3 dims, got shape %s",
              shape_text(x));
  Tensor *y = tensor_channels_last(x);
  if (y != x) graph_record1(y, &rule, x, 0);
  return y;
}

Tensor *fnn_clone (Tensor *x) {
  static const Rule rule = { "clone", pass };
  Tensor *y = like_in_order(x, (fnn_Dtype)x->dtype);
  kernel(x, copy)(y, x);
  graph_record1(y, &rule, x, 0);
  return y;
}
