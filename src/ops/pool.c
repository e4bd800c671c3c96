/* pool.c - maxima and averages over windows, in the order in memory that x
** has. */

#include <inttypes.h>

#include "ops.h"

/* A node's arguments: four numbers an axis, and flags. */
enum { AXIS = 4, FLAGS = 2 * AXIS };
enum { MAX = 1, ADAPTIVE = 2, COUNT_PAD = 4 };

static void back (Node *n, Tensor *gy);

/* By the number of dims that are pooled. */
static const Rule max_rules[] = { { "max_pool1d", back },
                                  { "max_pool2d", back } };
static const Rule avg_rules[] = { { "avg_pool1d", back },
                                  { "avg_pool2d", back } };
static const Rule adaptive_max_rules[] = { { "adaptive_max_pool1d", back },
                                           { "adaptive_max_pool2d", back } };
static const Rule adaptive_avg_rules[] = { { "adaptive_avg_pool1d", back },
                                           { "adaptive_avg_pool2d", back } };

/*
** {======================================================
** Geometry
** =======================================================
*/

/* Whether vectors go across the channels of x. */
static bool is_last (const Tensor *x, int dims) {
  return x->ndim == dims + 2 && tensor_is_channels_last(x);
}

static void set_planes (Pooling *p, const Tensor *x, int dims) {
  bool last = is_last(x, dims);
  p->channels = last ? x->shape[1] : 1;
  p->planes = last ? x->shape[0] : dims_before(x, x->ndim - dims);
}

/* The axis of x's dim from the end; one that is not there has one place. */
static PoolAxis *axis_at (Pooling *p, int from_end) {
  return from_end == 0 ? &p->w : &p->h;
}

static const PoolAxis single = { 1, 1, 1, 1, 0, 1 };

/* As many windows as fit; rounded up, but none begins in the padding behind
** the end. */
static void set_out (const char *op, const Tensor *x, PoolAxis *a, bool up) {
  int64_t reach = a->dilation * (a->kernel - 1) + 1;
  int64_t room = a->in + 2 * a->pad - reach;
  if (room < 0)
    fnn_throw(FNN_ESHAPE,
              "%s: a window of %" PRId64 " does not fit into a dim of %" PRId64
              " with padding %" PRId64 " (shape %s)",
              op, reach, a->in, a->pad, shape_text(x));
  a->out = (room + (up ? a->stride - 1 : 0)) / a->stride + 1;
  if (up && (a->out - 1) * a->stride >= a->in + a->pad) a->out--;
}

static void check_input (const char *op, const Tensor *x, int dims) {
  tensor_check_float(op, x);
  if (x->ndim != dims + 1 && x->ndim != dims + 2)
    fnn_throw(FNN_ESHAPE,
              "%s: expected shape (n, channels, %s) or (channels, "
              "%s), got %s",
              op, dims == 1 ? "l" : "h, w", dims == 1 ? "l" : "h, w",
              shape_text(x));
  for (int i = x->ndim - dims; i < x->ndim; i++)
    if (x->shape[i] < 1 || x->shape[i] > INT32_MAX)
      fnn_throw(FNN_ESHAPE, "%s: nothing to pool in shape %s", op,
                shape_text(x));
  if (dims_behind(x, x->ndim - dims - 1) > INT32_MAX)
    fnn_throw(FNN_ESHAPE,
              "%s: planes of %" PRId64 " places (at most 2^31 - 1)", op,
              dims_behind(x, x->ndim - dims - 1));
}

/* }====================================================== */

static void back (Node *n, Tensor *gy) {
  const int64_t *shape;
  int ndim = graph_shape(n, 0, &shape);
  Tensor *ids = n->nsave > 0 ? graph_saved(n, 0) : NULL;
  int dims = (int)(n->i[FLAGS] >> 8);
  bool last = is_last(ids != NULL ? ids : gy, dims);
  gy = last ? tensor_channels_last(gy) : tensor_dense(gy);
  Tensor *gx = (last ? tensor_new_channels_last : tensor_new)(
      ndim, shape, (fnn_Dtype)gy->dtype, gy->storage->device);
  Pooling p = { .h = single, .w = single };
  set_planes(&p, gx, dims);
  for (int k = 0; k < dims; k++) {
    const int64_t *v = n->i + k * AXIS;
    *axis_at(&p, k) = (PoolAxis){
      shape[ndim - 1 - k], gy->shape[ndim - 1 - k], v[0], v[1], v[2], v[3]
    };
  }
  p.max = n->i[FLAGS] & MAX;
  p.adaptive = n->i[FLAGS] & ADAPTIVE;
  p.count_pad = n->i[FLAGS] & COUNT_PAD;
  if (gx->numel > 0) kernel(gy, pool_back)(gx, gy, ids, &p);
  graph_give(n, 0, gx);
}

/* Runs p, whose axes are set, and records it. */
static Tensor *pool (const Rule *rule, Tensor *x, int dims, Pooling *p,
                     Tensor **places) {
  bool last = is_last(x, dims), recorded = graph_is_on(x);
  int64_t shape[FNN_MAXDIM];
  Tensor *from = last ? x : tensor_dense(x), *ids = NULL;
  for (int d = 0; d < x->ndim; d++) shape[d] = x->shape[d];
  for (int k = 0; k < dims; k++) shape[x->ndim - 1 - k] = axis_at(p, k)->out;
  set_planes(p, from, dims);
  Tensor *y = (last ? tensor_new_channels_last : tensor_new)(
      x->ndim, shape, (fnn_Dtype)x->dtype, x->storage->device);
  if (p->max && (recorded || places != NULL)) ids = like_in_order(y, FNN_I32);
  if (y->numel > 0) kernel(x, pool)(y, ids, from, p);
  if (places != NULL) *places = tensor_convert(ids, FNN_I64);
  Node *n = graph_record1(y, rule, x, ids != NULL);
  if (n == NULL) return y;
  if (ids != NULL) graph_save(n, 0, ids);
  for (int k = 0; k < dims; k++) {
    const PoolAxis *a = axis_at(p, k);
    int64_t *v = n->i + k * AXIS;
    v[0] = a->kernel;
    v[1] = a->stride;
    v[2] = a->pad;
    v[3] = a->dilation;
  }
  n->i[FLAGS] = (p->max ? MAX : 0) | (p->adaptive ? ADAPTIVE : 0) |
                (p->count_pad ? COUNT_PAD : 0) | dims << 8;
  return y;
}

static void check_axis (const char *op, const PoolAxis *a) {
  if (a->kernel < 1 || a->stride < 1 || a->dilation < 1 || a->pad < 0)
    fnn_throw(FNN_EARG,
              "%s: expected kernel, stride and dilation of at least 1 and no "
              "negative padding, got %" PRId64 ", %" PRId64 ", %" PRId64
              " and %" PRId64,
              op, a->kernel, a->stride, a->dilation, a->pad);
  if (a->kernel > INT32_MAX || a->stride > INT32_MAX ||
      a->dilation > INT32_MAX)
    fnn_throw(FNN_EARG, "%s: kernel, stride or dilation above 2^31 - 1", op);
  if (a->pad > a->kernel / 2)
    fnn_throw(FNN_EARG,
              "%s: padding %" PRId64
              " is more than half of the kernel, %" PRId64,
              op, a->pad, a->kernel);
}

/* The rule of a number of dims, which is checked. */
static const Rule *rule_of (const Rule *rules, int dims) {
  if (dims != 1 && dims != 2)
    fnn_throw(FNN_EARG, "pool: expected 1 or 2 dims, got %d", dims);
  return &rules[dims - 1];
}

static Tensor *windows (const Rule *rules, Tensor *x, const fnn_PoolOptions *o,
                        bool max, Tensor **ids) {
  const Rule *rule = rule_of(rules, o->dims);
  Pooling p = {
    .h = single, .w = single, .max = max, .count_pad = o->count_include_pad
  };
  check_input(rule->name, x, o->dims);
  for (int k = 0; k < o->dims; k++) {
    int d = o->dims - 1 - k;
    PoolAxis *a = axis_at(&p, k);
    a->in = x->shape[x->ndim - 1 - k];
    a->kernel = o->kernel[d];
    a->stride = o->stride[d] != 0 ? o->stride[d] : o->kernel[d];
    a->pad = o->padding[d];
    a->dilation = max && o->dilation[d] != 0 ? o->dilation[d] : 1;
    check_axis(rule->name, a);
    set_out(rule->name, x, a, o->ceil_mode);
  }
  return pool(rule, x, o->dims, &p, ids);
}

Tensor *fnn_max_pool (Tensor *x, const fnn_PoolOptions *o, Tensor **ids) {
  return windows(max_rules, x, o, true, ids);
}

Tensor *fnn_avg_pool (Tensor *x, const fnn_PoolOptions *o) {
  return windows(avg_rules, x, o, false, NULL);
}

static Tensor *adaptive (const Rule *rules, Tensor *x, int dims,
                         const int64_t *size, bool max, Tensor **ids) {
  const Rule *rule = rule_of(rules, dims);
  Pooling p = { .h = single, .w = single, .max = max, .adaptive = true };
  check_input(rule->name, x, dims);
  for (int k = 0; k < dims; k++) {
    PoolAxis *a = axis_at(&p, k);
    a->in = x->shape[x->ndim - 1 - k];
    a->out = size[dims - 1 - k] == -1 ? a->in : size[dims - 1 - k];
    if (a->out < 0 || a->out > INT32_MAX)
      fnn_throw(FNN_EARG, "%s: bad size %" PRId64 " (-1 keeps a dim)",
                rule->name, a->out);
  }
  return pool(rule, x, dims, &p, ids);
}

Tensor *fnn_adaptive_max_pool (Tensor *x, int dims, const int64_t *size,
                               Tensor **ids) {
  return adaptive(adaptive_max_rules, x, dims, size, true, ids);
}

Tensor *fnn_adaptive_avg_pool (Tensor *x, int dims, const int64_t *size) {
  return adaptive(adaptive_avg_rules, x, dims, size, false, NULL);
}
