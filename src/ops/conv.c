/* conv.c - convolution over 1, 2 or 3 dims, and its transpose.
**
** With C the linear map that weights, stride and the rest make of an input,
** y = C x and gx = C' gy.  The transposed convolution is y = C' x, so gx = C
** gy, and the gradient of its weights is that of C with x and gy exchanged.
** Both compute in channels-last order and give such tensors. */

#include <string.h>

#include "ops.h"

static const Epilogue plain = { NULL, -1, false, 1 };

/* What a node needs of the call. */
typedef struct Conv {
  Object o;
  ConvShape s;
  bool transposed;
  int act;
} Conv;

static const Type conv_type = { "convolution", NULL };

static const char *const names[2][4] = {
  { "conv", "conv1d", "conv2d", "conv3d" },
  { "conv_transpose", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d" },
};

/*
** {======================================================
** Checks
** =======================================================
*/

/* x with a batch of its own where it has none, or throws. */
static Tensor *batched (const char *op, Tensor *x, const Tensor *w) {
  int dims = w->ndim - 2;
  if (x->ndim == dims + 2) return x;
  if (x->ndim == dims + 1) return fnn_unsqueeze(x, 0);
  fnn_throw(FNN_ESHAPE,
            "%s: x %s and weight %s: expected x of %d dims (n, channels and "
            "%d more), or %d without n",
            op, shape_text(x), shape_text(w), dims + 2, dims, dims + 1);
}

static void check_positive (const char *op, const char *what, int64_t v,
                            int64_t least) {
  if (v < least || v > INT32_MAX)
    fnn_throw(FNN_EARG, "%s: %s is %lld (expected %lld or more)", op, what,
              (long long)v, (long long)least);
}

static void check_options (const char *op, int dims, const fnn_ConvOptions *o,
                           bool transposed) {
  check_positive(op, "groups", o->groups, 1);
  if (o->act >= MAP_COUNT)
    fnn_throw(FNN_EARG, "%s: there is no row %d of map.def", op, o->act);
  for (int d = 0; d < dims; d++) {
    check_positive(op, "stride", o->stride[d], 1);
    check_positive(op, "dilation", o->dilation[d], 1);
    check_positive(op, "padding", o->before[d], 0);
    check_positive(op, "padding", o->after[d], 0);
    check_positive(op, "output_padding", o->output_padding[d], 0);
    int64_t least = max64(o->stride[d], o->dilation[d]);
    if (o->output_padding[d] > 0 && !transposed)
      fnn_throw(FNN_EARG, "%s: output_padding is for conv_transpose", op);
    if (o->output_padding[d] >= least && o->output_padding[d] > 0)
      fnn_throw(FNN_EARG,
                "%s: output_padding %lld (expected less than the stride, "
                "%lld, or the dilation, %lld)",
                op, (long long)o->output_padding[d], (long long)o->stride[d],
                (long long)o->dilation[d]);
  }
}

/* The weight is (cout, cin / groups, ...), or of a transposed convolution
** (cin, cout / groups, ...). */
static void check_channels (const char *op, const Tensor *x, const Tensor *w,
                            int64_t groups, bool transposed) {
  int64_t c = x->shape[1], all = mem_mul(w->shape[1], groups, op);
  int64_t want = transposed ? w->shape[0] : all;
  for (int d = 0; d < w->ndim; d++)
    if (w->shape[d] == 0)
      fnn_throw(FNN_ESHAPE, "%s: the weight %s is empty", op, shape_text(w));
  if (c != want)
    fnn_throw(FNN_ESHAPE,
              "%s: x %s and weight %s, groups %lld: expected x of %lld "
              "channels, got %lld",
              op, shape_text(x), shape_text(w), (long long)groups,
              (long long)want, (long long)c);
  if (w->shape[0] % groups != 0)
    fnn_throw(FNN_ESHAPE,
              "%s: %lld channels %s do not split into %lld groups (x %s, "
              "weight %s)",
              op, (long long)w->shape[0], transposed ? "in" : "out",
              (long long)groups, shape_text(x), shape_text(w));
}

static void check_bias (const char *op, const Tensor *x, const Tensor *w,
                        const Tensor *b, int64_t cout) {
  if (b == NULL) return;
  tensor_check_device(op, x, b);
  if (!tensor_is_float(b)) tensor_check_float(op, b);
  if (b->ndim != 1 || b->shape[0] != cout)
    fnn_throw(FNN_ESHAPE, "%s: bias %s for weight %s (expected (%lld))", op,
              shape_text(b), shape_text(w), (long long)cout);
}

/* }====================================================== */

/*
** {======================================================
** Geometry
** =======================================================
*/

/* The most places of a dim: sums of some of them do not overflow. */
static const int64_t most_places = INT64_MAX / 8;

/* Places n - 1 steps apart, or throws. */
static int64_t places (const char *op, int64_t n, int64_t step) {
  int64_t v = mem_mul(n - 1, step, op);
  if (v >= most_places)
    fnn_throw(FNN_ESHAPE, "%s: %lld places, %lld apart, are too many", op,
              (long long)n, (long long)step);
  return v + 1;
}

/* How far the kernel reaches along dim d of w's last ones. */
static int64_t reach (const char *op, const Tensor *w, int d,
                      int64_t dilation) {
  return places(op, w->shape[2 + d], dilation);
}

static int64_t conv_size (const char *op, const Tensor *x, const Tensor *w,
                          int d, const fnn_ConvOptions *o) {
  int64_t kernel = reach(op, w, d, o->dilation[d]), n = x->shape[2 + d];
  int64_t room = n + o->before[d] + o->after[d];
  if (n < 1 || kernel > room)
    fnn_throw(FNN_ESHAPE,
              "%s: x %s and weight %s: the kernel reaches over %lld places of "
              "dim %d, which has %lld with its padding",
              op, shape_text(x), shape_text(w), (long long)kernel, d + 3,
              (long long)room);
  return (room - kernel) / o->stride[d] + 1;
}

static int64_t transpose_size (const char *op, const Tensor *x,
                               const Tensor *w, int d,
                               const fnn_ConvOptions *o) {
  int64_t kernel = reach(op, w, d, o->dilation[d]), n = x->shape[2 + d];
  int64_t size = places(op, n, o->stride[d]) - 1 - o->before[d] - o->after[d] +
                 kernel + o->output_padding[d];
  if (n < 1 || size < 1)
    fnn_throw(FNN_ESHAPE,
              "%s: x %s and weight %s: dim %d of the result would have size "
              "%lld (less padding, or a larger kernel)",
              op, shape_text(x), shape_text(w), d + 3, (long long)size);
  return size;
}

/* The shape of C, which for a transposed convolution maps y to x. */
static ConvShape shape_of (const char *op, const Tensor *x, const Tensor *w,
                           const fnn_ConvOptions *o, bool transposed) {
  int dims = w->ndim - 2;
  ConvShape s = { .n = x->shape[0], .groups = o->groups };
  s.cout = w->shape[0];
  s.cin = w->shape[1] * o->groups;
  for (int d = 0; d < 3; d++) {
    s.in[d] = s.out[d] = s.size[d] = s.stride[d] = s.dilation[d] = 1;
    int from = d - (3 - dims);
    if (from < 0) continue;
    int64_t y = transposed ? transpose_size(op, x, w, from, o)
                           : conv_size(op, x, w, from, o);
    s.in[d] = transposed ? y : x->shape[2 + from];
    s.out[d] = transposed ? x->shape[2 + from] : y;
    s.size[d] = w->shape[2 + from];
    s.stride[d] = o->stride[from];
    s.dilation[d] = o->dilation[from];
    s.before[d] = o->before[from];
  }
  return s;
}

/* A new channels-last tensor like x but for channels and size. */
static Tensor *result (const Tensor *x, fnn_Dtype t, int64_t channels,
                       const int64_t size[3]) {
  int64_t shape[FNN_MAXDIM] = { x->shape[0], channels };
  int dims = x->ndim - 2;
  memcpy(shape + 2, size + 3 - dims, (size_t)dims * sizeof *shape);
  return tensor_new_channels_last(x->ndim, shape, t, x->storage->device);
}

/* }====================================================== */

/*
** {======================================================
** Gradients
** =======================================================
*/

/* The sum over all places. */
static Tensor *bias_gradient (const Tensor *gy) {
  int64_t c = gy->shape[1];
  Tensor *gb = tensor_new(1, &c, (fnn_Dtype)gy->dtype, gy->storage->device);
  kernel(gy, reduce)(REDUCE_sum, gb, gy, 1, gy->numel / c, c, 0);
  return gb;
}

static Tensor *weight_gradient (Node *n, const ConvShape *s, const Tensor *x,
                                const Tensor *gy) {
  const int64_t *shape;
  int ndim = graph_shape(n, 1, &shape);
  fnn_Dtype t = (fnn_Dtype)gy->dtype;
  if (gy->numel == 0) return fnn_zeros(ndim, shape, t, gy->storage->device);
  Tensor *gw = tensor_new(ndim, shape, t, gy->storage->device);
  kernel(gy, conv_back_weight)(gw, gy, x, s);
  return gw;
}

static void conv_back (Node *n, Tensor *gy) {
  const Conv *c = (const Conv *)n->held;
  const ConvShape *s = &c->s;
  const int64_t *shape;
  gy = tensor_channels_last(gy);
  if (c->act >= 0) {
    Tensor *gz = like_in_order(gy, (fnn_Dtype)gy->dtype);
    kernel(gy, map_back)(c->act, gz, gy, graph_saved(n, 2), 0, 0);
    gy = gz;
  }
  if (graph_wants(n, 0)) {
    Tensor *w = graph_saved(n, 1);
    int ndim = graph_shape(n, 0, &shape);
    Tensor *gx = tensor_new_channels_last(ndim, shape, (fnn_Dtype)gy->dtype,
                                          gy->storage->device);
    if (gx->numel > 0) {
      if (c->transposed) kernel(gy, conv)(gx, gy, w, &plain, s);
      else kernel(gy, conv_back_input)(gx, gy, w, &plain, s);
    }
    graph_give(n, 0, gx);
  }
  if (graph_wants(n, 1)) {
    Tensor *x = graph_saved(n, 0);
    graph_give(n, 1,
               c->transposed ? weight_gradient(n, s, gy, x)
                             : weight_gradient(n, s, x, gy));
  }
  if (n->nin > 2 && graph_wants(n, 2)) graph_give(n, 2, bias_gradient(gy));
}

/* }====================================================== */

/* Input, weight and bias (or NULL): those that are recorded, and what is read
** of them. */
typedef struct Operands {
  Tensor *x, *w, *b;
} Operands;

static void record (Tensor *y, Operands in, Operands read, const ConvShape *s,
                    bool transposed, int act) {
  static const Rule rules[2][4] = {
    { { "conv", conv_back },
      { "conv1d", conv_back },
      { "conv2d", conv_back },
      { "conv3d", conv_back } },
    { { "conv_transpose", conv_back },
      { "conv_transpose1d", conv_back },
      { "conv_transpose2d", conv_back },
      { "conv_transpose3d", conv_back } },
  };
  Node *n =
      graph_record(y, &rules[transposed][in.w->ndim - 2], in.b != NULL ? 3 : 2,
                   (Tensor *[]){ in.x, in.w, in.b }, 3);
  if (n == NULL) return;
  Conv *c = object_new(&conv_type, sizeof *c);
  c->s = *s;
  c->transposed = transposed;
  c->act = act;
  n->held = fnn_retain(c);
  graph_save(n, 0, graph_wants(n, 1) ? read.x : NULL);
  graph_save(n, 1, graph_wants(n, 0) ? read.w : NULL);
  graph_save(n, 2, act >= 0 ? y : NULL);
}

/* act: a row whose derivative reads the result alone, or -1. */
static Tensor *run (const char *op, Operands in, Operands read,
                    const fnn_ConvOptions *o, bool transposed, int act) {
  ConvShape s = shape_of(op, read.x, read.w, o, transposed);
  Tensor *x = read.x = tensor_channels_last(read.x);
  Tensor *w = read.w = tensor_dense(read.w);
  int64_t channels = transposed ? s.cin : s.cout;
  Tensor *y =
      result(x, (fnn_Dtype)x->dtype, channels, transposed ? s.in : s.out);
  Epilogue e = { read.b != NULL ? tensor_dense(read.b) : NULL, act, false, 1 };
  if (y->numel > 0) {
    if (transposed) kernel(x, conv_back_input)(y, x, w, &e, &s);
    else kernel(x, conv)(y, x, w, &e, &s);
  }
  record(y, in, read, &s, transposed, act);
  return y;
}

/* The CPU computes in f32 with the rounded numbers. */
static Tensor *rounded (Tensor *x) {
  Tensor *y = x != NULL ? autocast_data(x) : NULL;
  return y != NULL && y->storage->device->host ? tensor_convert(y, FNN_F32)
                                               : y;
}

/* The dtype to compute in: f32 where that of promotion only stores. */
static fnn_Dtype result_dtype (const char *op, const Tensor *x,
                               const Tensor *w) {
  if (!tensor_is_float(x)) tensor_check_float(op, x);
  if (!tensor_is_float(w)) tensor_check_float(op, w);
  tensor_check_device(op, x, w);
  fnn_Dtype t = fnn_promote((fnn_Dtype)x->dtype, (fnn_Dtype)w->dtype);
  return dtype_is_compute(t) || !x->storage->device->host ? t : FNN_F32;
}

static Tensor *convolve (Tensor *x, Tensor *w, Tensor *b,
                         const fnn_ConvOptions *o, bool transposed) {
  static const fnn_ConvOptions usual = FNN_CONV_INIT;
  if (o == NULL) o = &usual;
  if (w->ndim < 3 || w->ndim > 5)
    fnn_throw(FNN_ESHAPE,
              "%s: x %s and weight %s: expected a weight of 3, 4 or 5 dims "
              "(%s, kernel size ...)",
              names[transposed][0], shape_text(x), shape_text(w),
              transposed ? "in, out / groups" : "out, in / groups");
  const char *op = names[transposed][w->ndim - 2];
  fnn_Dtype t = result_dtype(op, x, w);
  check_options(op, w->ndim - 2, o, transposed);
  bool alone = x->ndim == w->ndim - 1;
  x = batched(op, x, w);
  check_channels(op, x, w, o->groups, transposed);
  check_bias(op, x, w, b, transposed ? w->shape[1] * o->groups : w->shape[0]);
  Operands in = { x, w, b }, read = in;
  if (autocast_is_on(t)) read = (Operands){ rounded(x), rounded(w), b };
  else {
    in = (Operands){ fnn_cast(x, t), fnn_cast(w, t), b };
    if (b != NULL) in.b = fnn_cast(b, t);
    read = in;
  }
  if (b != NULL) read.b = tensor_convert(read.b, (fnn_Dtype)read.x->dtype);
  const MapRow *row = o->act >= 0 ? &map_rows[o->act] : NULL;
  bool fused = row != NULL && row->saves == READ_Y && row->nargs == 0;
  Tensor *y = run(op, in, read, o, transposed, fused ? o->act : -1);
  if (row != NULL && !fused)
    y = fnn_map(o->act, y, row->fallback[0], row->fallback[1]);
  return alone ? fnn_squeeze(y, 0) : y;
}

Tensor *fnn_conv (Tensor *x, Tensor *w, Tensor *b, const fnn_ConvOptions *o) {
  return convolve(x, w, b, o, false);
}

Tensor *fnn_conv_transpose (Tensor *x, Tensor *w, Tensor *b,
                            const fnn_ConvOptions *o) {
  return convolve(x, w, b, o, true);
}
