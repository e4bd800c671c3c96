/* channel_norm.c - batch, group and instance normalization, in the order in
** memory that x has. */

#include <inttypes.h>

#include "ops.h"

enum { GROUPS, POOLED, GIVEN, WEIGHT, BIAS }; /* a node's arguments */

/* x (n, channels, ...) as the kernel sees it.  Statistics of each channel over
** the batch see images that follow one another as one. */
static Norm norm_of (const Tensor *x, bool shared) {
  Norm k = { .batch = x->shape[0],
             .channels = x->shape[1],
             .space = dims_behind(x, 1),
             .groups = x->shape[1],
             .last = x->ndim == 2 || x->order == CHANNELSLAST };
  if (shared && k.last) {
    k.space *= k.batch;
    k.batch = 1;
  }
  return k;
}

/* In channels-last order where x says so, else row-major. */
static Tensor *in_order (const Tensor *x, bool last) {
  return last ? tensor_channels_last(x) : tensor_dense(x);
}

static Tensor *gradient_of (const Node *n, int i, const Tensor *like) {
  const int64_t *shape;
  if (i == 0 || !graph_wants(n, i)) return NULL;
  int ndim = graph_shape(n, i, &shape);
  return tensor_new(ndim, shape, graph_dtype(n, i), like->storage->device);
}

/* Inputs: x, then the weight, then the bias, if given. */
static void back (Node *n, Tensor *gy) {
  Tensor *x = graph_saved(n, 0), *w = graph_saved(n, 1);
  Tensor *stats = graph_saved(n, 2);
  int iw = n->i[WEIGHT] ? 1 : 0, ib = n->i[BIAS] ? n->nin - 1 : 0;
  bool wants = graph_wants(n, 0) || !x->storage->device->host;
  Tensor *gx = wants ? like_in_order(x, (fnn_Dtype)x->dtype) : NULL;
  Tensor *gw = gradient_of(n, iw, x), *gb = gradient_of(n, ib, x);
  Norm k = norm_of(x, n->i[POOLED] || n->i[GIVEN]);
  k.groups = n->i[GROUPS];
  k.pooled = n->i[POOLED];
  k.given = n->i[GIVEN];
  if (x->numel > 0)
    kernel(x, channel_norm_back)(
        gx, gw, gb, in_order(gy, x->order == CHANNELSLAST), x, w, stats, &k);
  else {
    if (gw != NULL) kernel(gw, fill)(gw, 0);
    if (gb != NULL) kernel(gb, fill)(gb, 0);
  }
  if (gx != NULL) graph_give(n, 0, gx);
  if (gw != NULL) graph_give(n, iw, gw);
  if (gb != NULL) graph_give(n, ib, gb);
}

static const Rule batch_rule = { "batch_norm", back };
static const Rule group_rule = { "group_norm", back };
static const Rule instance_rule = { "instance_norm", back };

/*
** {======================================================
** Checks
** =======================================================
*/

static void check_input (const char *op, const Tensor *x, int least) {
  tensor_check_float(op, x);
  if (x->ndim < least)
    fnn_throw(FNN_ESHAPE, "%s: expected shape (n, channels%s), got %s", op,
              least > 2 ? ", ..." : " ...", shape_text(x));
}

/* A weight or a statistic has one element a channel, of x's dtype or f32. */
static void check_channels (const char *op, const char *what, const Tensor *x,
                            const Tensor *w) {
  if (w == NULL) return;
  tensor_check_device(op, x, w);
  if (w->ndim != 1 || w->shape[0] != x->shape[1])
    fnn_throw(FNN_ESHAPE,
              "%s: %s has shape %s, but the input %s (expected (%" PRId64 "))",
              op, what, shape_text(w), shape_text(x), x->shape[1]);
  if (w->dtype != x->dtype && w->dtype != dtype_wide((fnn_Dtype)x->dtype))
    fnn_throw(FNN_EDTYPE, "%s: %s is %s, the input %s", op, what,
              fnn_dtype_name((fnn_Dtype)w->dtype),
              fnn_dtype_name((fnn_Dtype)x->dtype));
}

/* A running statistic is written in place. */
static void check_running (const char *what, const Tensor *x, Tensor *s,
                           bool training) {
  check_channels("batch_norm", what, x, s);
  if (s == NULL || !training) return;
  tensor_check_write("batch_norm", s);
  if (!tensor_is_dense(s))
    fnn_throw(FNN_ESHAPE, "batch_norm: %s is a view that is not contiguous",
              what);
}

/* }====================================================== */

static Tensor *norm (const Rule *rule, Tensor *x, Tensor *mean, Tensor *var,
                     Tensor *weight, Tensor *bias, Norm *k) {
  check_channels(rule->name, "the weight", x, weight);
  check_channels(rule->name, "the bias", x, bias);
  Tensor *from = in_order(x, tensor_is_channels_last(x));
  Tensor *y = like_in_order(from, (fnn_Dtype)x->dtype);
  Tensor *w = weight != NULL ? tensor_dense(weight) : NULL;
  Tensor *b = bias != NULL ? tensor_dense(bias) : NULL;
  int64_t count = k->groups * (k->pooled || k->given ? 1 : x->shape[0]);
  Tensor *stats =
      tensor_new(2, (int64_t[]){ count, 2 }, dtype_wide((fnn_Dtype)x->dtype),
                 x->storage->device);
  if (w != NULL && b != NULL && w->dtype != b->dtype) {
    w = tensor_convert(w, FNN_F32);
    b = tensor_convert(b, FNN_F32);
  }
  Norm shape = norm_of(from, k->pooled || k->given);
  k->batch = shape.batch;
  k->channels = shape.channels;
  k->space = shape.space;
  k->last = shape.last;
  if (k->pooled && mean != NULL && x->numel > 0) {
    tensor_written(mean);
    tensor_written(var);
  }
  if (x->numel > 0)
    kernel(x, channel_norm)(y, stats, mean, var, from, w, b, k);
  Tensor *in[3] = { x };
  int nin = 1;
  if (weight != NULL) in[nin++] = weight;
  if (bias != NULL) in[nin++] = bias;
  Node *n = graph_record(y, rule, nin, in, 3);
  if (n == NULL) return y;
  n->i[GROUPS] = k->groups;
  n->i[POOLED] = k->pooled;
  n->i[GIVEN] = k->given;
  n->i[WEIGHT] = weight != NULL;
  n->i[BIAS] = bias != NULL;
  graph_save(n, 0, from);
  graph_save(n, 1, w);
  graph_save(n, 2, stats);
  return y;
}

Tensor *fnn_batch_norm (Tensor *x, Tensor *mean, Tensor *var, Tensor *weight,
                        Tensor *bias, bool training, double momentum,
                        double eps) {
  x = autocast_wide(x);
  check_input("batch_norm", x, 2);
  check_running("the running mean", x, mean, training);
  check_running("the running variance", x, var, training);
  if ((mean == NULL) != (var == NULL))
    fnn_throw(FNN_EARG, "batch_norm: a running mean comes with a running "
                        "variance");
  if (!training && mean == NULL)
    fnn_throw(FNN_EARG, "batch_norm: outside of training the running mean and "
                        "variance are needed");
  if (training && x->shape[1] > 0 && x->numel / x->shape[1] == 1)
    fnn_throw(FNN_ESHAPE,
              "batch_norm: one value a channel has no variance: expected more "
              "in training, got shape %s",
              shape_text(x));
  Norm k = { .groups = x->shape[1],
             .pooled = training,
             .given = !training,
             .eps = eps,
             .momentum = momentum };
  if (!training) {
    mean = tensor_dense(mean);
    var = tensor_dense(var);
  }
  return norm(&batch_rule, x, mean, var, weight, bias, &k);
}

Tensor *fnn_group_norm (Tensor *x, int64_t groups, Tensor *weight,
                        Tensor *bias, double eps) {
  x = autocast_wide(x);
  check_input("group_norm", x, 2);
  if (groups < 1 || x->shape[1] % groups != 0)
    fnn_throw(
        FNN_EARG,
        "group_norm: the channels of shape %s do not divide into %" PRId64
        " groups",
        shape_text(x), groups);
  Norm k = { .groups = groups, .eps = eps };
  return norm(&group_rule, x, NULL, NULL, weight, bias, &k);
}

Tensor *fnn_instance_norm (Tensor *x, Tensor *weight, Tensor *bias,
                           double eps) {
  x = autocast_wide(x);
  check_input("instance_norm", x, 3);
  if (x->numel > 0 && dims_behind(x, 1) == 1)
    fnn_throw(FNN_ESHAPE,
              "instance_norm: one value a channel has no variance: expected "
              "more, got shape %s",
              shape_text(x));
  Norm k = { .groups = x->shape[1], .eps = eps };
  return norm(&instance_rule, x, NULL, NULL, weight, bias, &k);
}
