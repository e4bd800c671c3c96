/* norm.c - layer normalization over the last dims. */

#include <string.h>

#include "ops.h"

static void layer_norm_back (Node *n, Tensor *gy) {
  Tensor *x = graph_saved(n, 0), *stats = graph_saved(n, 1);
  Tensor *w = graph_saved(n, 2);
  int nargs = n->nin; /* x, then the weight, then the bias, if given */
  int iw = n->i[1] ? 1 : 0, ib = n->i[2] ? nargs - 1 : 0;
  const int64_t *shape;
  Tensor *gx = tensor_like(x), *gw = NULL, *gb = NULL;
  if (iw != 0 && graph_wants(n, iw)) {
    int ndim = graph_shape(n, iw, &shape);
    gw = tensor_new(ndim, shape, (fnn_Dtype)x->dtype, x->storage->device);
  }
  if (ib != 0 && graph_wants(n, ib)) {
    int ndim = graph_shape(n, ib, &shape);
    gb = tensor_new(ndim, shape, (fnn_Dtype)x->dtype, x->storage->device);
  }
  int64_t rows = stats->shape[0];
  kernel(x, layer_norm_back)(gx, gw, gb, tensor_dense(gy), x, w, stats, rows,
                             n->i[0]);
  if (graph_wants(n, 0)) graph_give(n, 0, gx);
  if (gw != NULL) graph_give(n, iw, gw);
  if (gb != NULL) graph_give(n, ib, gb);
}

/* w has the shape of x's last n dims. */
static void check_weight (const char *what, const Tensor *x, int n,
                          const Tensor *w) {
  if (w == NULL) return;
  tensor_check_device("layer_norm", x, w);
  if (w->ndim != n || memcmp(w->shape, x->shape + x->ndim - n,
                             (size_t)n * sizeof *w->shape) != 0)
    fnn_throw(FNN_ESHAPE,
              "layer_norm: %s has shape %s, but the input %s (the "
              "last %d of its dims must agree)",
              what, shape_text(w), shape_text(x), n);
  if (w->dtype != x->dtype)
    fnn_throw(FNN_EDTYPE, "layer_norm: %s is %s, the input %s", what,
              fnn_dtype_name((fnn_Dtype)w->dtype),
              fnn_dtype_name((fnn_Dtype)x->dtype));
}

Tensor *fnn_layer_norm (Tensor *x, int n, Tensor *weight, Tensor *bias,
                        double eps) {
  static const Rule rule = { "layer_norm", layer_norm_back };
  tensor_check_float("layer_norm", x);
  if (n < 1 || n > x->ndim)
    fnn_throw(FNN_EARG,
              "layer_norm: cannot normalize the last %d dims of a "
              "tensor of shape %s",
              n, shape_text(x));
  check_weight("the weight", x, n, weight);
  check_weight("the bias", x, n, bias);
  int64_t size = dims_behind(x, x->ndim - n - 1);
  int64_t rows = dims_before(x, x->ndim - n);
  Tensor *from = tensor_dense(x), *y = tensor_like(x);
  Tensor *w = weight != NULL ? tensor_dense(weight) : NULL;
  Tensor *b = bias != NULL ? tensor_dense(bias) : NULL;
  Tensor *stats = tensor_new(2, (int64_t[]){ rows, 2 }, (fnn_Dtype)x->dtype,
                             x->storage->device);
  kernel(x, layer_norm)(y, stats, from, w, b, rows, size, eps);
  Tensor *in[3] = { x };
  int nin = 1;
  if (weight != NULL) in[nin++] = weight;
  if (bias != NULL) in[nin++] = bias;
  Node *k = graph_record(y, &rule, nin, in, 3);
  if (k == NULL) return y;
  k->i[0] = size;
  k->i[1] = weight != NULL;
  k->i[2] = bias != NULL;
  graph_save(k, 0, from);
  graph_save(k, 1, stats);
  graph_save(k, 2, w);
  return y;
}
