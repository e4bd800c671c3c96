/* norm.c - layer and RMS normalization over the last dims. */

#include <string.h>

#include "ops.h"

static void norm_back (Node *n, Tensor *gy) {
  Tensor *x = graph_saved(n, 0), *stats = graph_saved(n, 1);
  Tensor *w = graph_saved(n, 2);
  int nargs = n->nin; /* x, then the weight, then the bias, if given */
  int iw = n->i[1] ? 1 : 0, ib = n->i[2] ? nargs - 1 : 0;
  const int64_t *shape;
  Tensor *gx =
      graph_wants(n, 0) || !x->storage->device->host ? tensor_like(x) : NULL;
  Tensor *gw = NULL, *gb = NULL;
  if (iw != 0 && graph_wants(n, iw)) {
    int ndim = graph_shape(n, iw, &shape);
    gw = tensor_new(ndim, shape, graph_dtype(n, iw), x->storage->device);
  }
  if (ib != 0 && graph_wants(n, ib)) {
    int ndim = graph_shape(n, ib, &shape);
    gb = tensor_new(ndim, shape, graph_dtype(n, ib), x->storage->device);
  }
  int64_t rows = stats->shape[0];
  kernel(x, layer_norm_back)(gx, gw, gb, tensor_dense(gy), x, w, stats, rows,
                             n->i[0], n->i[3] != 0);
  if (graph_wants(n, 0)) graph_give(n, 0, gx);
  if (gw != NULL) graph_give(n, iw, gw);
  if (gb != NULL) graph_give(n, ib, gb);
}

static const Rule layer_rule = { "layer_norm", norm_back };
static const Rule rms_rule = { "rms_norm", norm_back };

/* w has the shape of x's last n dims, and its dtype or f32. */
static void check_weight (const char *op, const char *what, const Tensor *x,
                          int n, const Tensor *w) {
  if (w == NULL) return;
  tensor_check_device(op, x, w);
  if (w->ndim != n || memcmp(w->shape, x->shape + x->ndim - n,
                             (size_t)n * sizeof *w->shape) != 0)
    fnn_throw(FNN_ESHAPE,
              "%s: %s has shape %s, but the input %s (the "
              "last %d of its dims must agree)",
              op, what, shape_text(w), shape_text(x), n);
  if (w->dtype != x->dtype && w->dtype != dtype_wide((fnn_Dtype)x->dtype))
    fnn_throw(FNN_EDTYPE, "%s: %s is %s, the input %s", op, what,
              fnn_dtype_name((fnn_Dtype)w->dtype),
              fnn_dtype_name((fnn_Dtype)x->dtype));
}

static Tensor *norm (const Rule *rule, Tensor *x, int n, Tensor *weight,
                     Tensor *bias, double eps) {
  x = autocast_wide(x);
  tensor_check_float(rule->name, x);
  if (n < 1 || n > x->ndim)
    fnn_throw(FNN_EARG,
              "%s: cannot normalize the last %d dims of a "
              "tensor of shape %s",
              rule->name, n, shape_text(x));
  check_weight(rule->name, "the weight", x, n, weight);
  check_weight(rule->name, "the bias", x, n, bias);
  bool centred = rule == &layer_rule;
  int64_t size = dims_behind(x, x->ndim - n - 1);
  int64_t rows = dims_before(x, x->ndim - n);
  Tensor *from = tensor_dense(x), *y = tensor_like(x);
  Tensor *w = weight != NULL ? tensor_dense(weight) : NULL;
  Tensor *b = bias != NULL ? tensor_dense(bias) : NULL;
  Tensor *stats =
      tensor_new(2, (int64_t[]){ rows, 2 }, dtype_wide((fnn_Dtype)x->dtype),
                 x->storage->device);
  if (w != NULL && b != NULL && w->dtype != b->dtype) {
    w = tensor_convert(w, FNN_F32);
    b = tensor_convert(b, FNN_F32);
  }
  kernel(x, layer_norm)(y, stats, from, w, b, rows, size, eps, centred);
  Tensor *in[3] = { x };
  int nin = 1;
  if (weight != NULL) in[nin++] = weight;
  if (bias != NULL) in[nin++] = bias;
  Node *k = graph_record(y, rule, nin, in, 3);
  if (k == NULL) return y;
  k->i[0] = size;
  k->i[1] = weight != NULL;
  k->i[2] = bias != NULL;
  k->i[3] = centred;
  graph_save(k, 0, from);
  graph_save(k, 1, stats);
  graph_save(k, 2, w);
  return y;
}

Tensor *fnn_layer_norm (Tensor *x, int n, Tensor *weight, Tensor *bias,
                        double eps) {
  return norm(&layer_rule, x, n, weight, bias, eps);
}

Tensor *fnn_rms_norm (Tensor *x, int n, Tensor *weight, double eps) {
  return norm(&rms_rule, x, n, weight, NULL, eps);
}
