/* random.c - tensors of random numbers, and dropout.
**
** A draw takes from its generator as many blocks as it has need of, and the
** device's kernel makes the numbers from seed and counter.  The numbers of a
** torch generator are made on the host, one after another. */

#include <math.h>

#include "ops.h"

/* Elements of dtype t that one block of 128 bits gives. */
static int64_t per_block (fnn_Dtype t) { return t == FNN_F64 ? 2 : 4; }

static Draw take (fnn_Generator *g, const Tensor *y, int64_t each) {
  return generator_take(g, (uint64_t)((y->numel + each - 1) / each));
}

static const fnn_Device *or_cpu (const fnn_Device *d) {
  return d != NULL ? d : device_cpu();
}

static void check_law (const char *op, fnn_Dtype t, double a, double b,
                       bool ok, const char *law) {
  if (!dtype_is_float(t))
    fnn_throw(FNN_EDTYPE,
              "%s: no numbers of dtype %s (expected a float "
              "dtype)",
              op, fnn_dtype_name(t));
  if (!ok)
    fnn_throw(FNN_EARG, "%s: no such law (expected %s, got %g and %g)", op,
              law, a, b);
}

/* y, made on the host in a dtype of PyTorch's generator, as asked for. */
static fnn_Tensor *deliver (Tensor *y, fnn_Dtype t, const fnn_Device *d) {
  return tensor_move(tensor_convert(y, t), or_cpu(d));
}

static fnn_Dtype computed (fnn_Dtype t) {
  return t == FNN_F64 ? FNN_F64 : FNN_F32;
}

fnn_Tensor *fnn_uniform (int ndim, const int64_t *shape, double lo, double hi,
                         fnn_Dtype t, const fnn_Device *d, fnn_Generator *g) {
  g = generator_or_default(g);
  size_t m = fnn_mark();
  bool ok =
      lo <= hi && isfinite(t == FNN_F64 ? hi - lo : (float)hi - (float)lo);
  check_law("uniform", t, lo, hi, ok, "finite bounds, the lower first");
  if (g->is_torch) {
    Tensor *y = tensor_new(ndim, shape, computed(t), device_cpu());
    torch_uniform(g->torch, y, lo, hi);
    return fnn_escape(m, deliver(y, t, d));
  }
  Tensor *y = tensor_new(ndim, shape, t, or_cpu(d));
  kernel(y, uniform)(y, take(g, y, per_block(t)), lo, hi);
  return y;
}

fnn_Tensor *fnn_normal (int ndim, const int64_t *shape, double mean,
                        double std, fnn_Dtype t, const fnn_Device *d,
                        fnn_Generator *g) {
  g = generator_or_default(g);
  size_t m = fnn_mark();
  check_law("normal", t, mean, std, isfinite(mean) && std >= 0,
            "a finite mean, std of 0 or more");
  if (g->is_torch) {
    Tensor *y = tensor_new(ndim, shape, computed(t), device_cpu());
    torch_normal(g->torch, y, mean, std, t);
    return fnn_escape(m, deliver(y, t, d));
  }
  Tensor *y = tensor_new(ndim, shape, t, or_cpu(d));
  kernel(y, normal)(y, take(g, y, per_block(t)), mean, std);
  return y;
}

/* Throws unless t holds each integer of [lo, hi) exactly. */
static void check_integers (fnn_Dtype t, int64_t lo, int64_t hi) {
  static const struct {
    int64_t least, most;
  } range[] = {
    [FNN_BOOL] = { 0, 1 },
    [FNN_U8] = { 0, UINT8_MAX },
    [FNN_I32] = { INT32_MIN, INT32_MAX },
    [FNN_I64] = { INT64_MIN, INT64_MAX },
    [FNN_F16] = { -(1 << 11), 1 << 11 },
    [FNN_BF16] = { -(1 << 8), 1 << 8 },
    [FNN_F32] = { -(1 << 24), 1 << 24 },
    [FNN_F64] = { -(1LL << 53), 1LL << 53 },
  };
  if (lo >= hi)
    fnn_throw(FNN_EARG,
              "randint: no integer to draw (expected lo < hi, got "
              "%lld and %lld)",
              (long long)lo, (long long)hi);
  if (lo < range[t].least || hi - 1 > range[t].most)
    fnn_throw(FNN_EARG,
              "randint: beyond what %s holds (expected integers "
              "of %lld to %lld, got [%lld, %lld))",
              fnn_dtype_name(t), (long long)range[t].least,
              (long long)range[t].most, (long long)lo, (long long)hi);
}

fnn_Tensor *fnn_randint (int ndim, const int64_t *shape, int64_t lo,
                         int64_t hi, fnn_Dtype t, const fnn_Device *d,
                         fnn_Generator *g) {
  g = generator_or_default(g);
  size_t m = fnn_mark();
  check_integers(t, lo, hi);
  if (g->is_torch) {
    Tensor *y = tensor_new(ndim, shape, FNN_I64, device_cpu());
    torch_randint(g->torch, y, lo, (uint64_t)hi - (uint64_t)lo);
    return fnn_escape(m, deliver(y, t, d));
  }
  Tensor *y = tensor_new(ndim, shape, t, or_cpu(d));
  kernel(y, randint)(y, take(g, y, 2), lo, hi);
  return y;
}

/* Shuffles 0 .. n-1 (Fisher and Yates), two steps a block. */
static void permute (Tensor *y, Draw draw) {
  int64_t *to = tensor_data(y), n = y->numel;
  uint32_t w[4];
  for (int64_t i = 0; i < n; i++) to[i] = i;
  for (int64_t i = 0; i < n - 1; i++) {
    if (i % 2 == 0) philox(draw.seed, draw.counter + (uint64_t)i / 2, w);
    uint64_t r = (uint64_t)w[i % 2 * 2 + 1] << 32 | w[i % 2 * 2];
    unsigned __int128 product = (unsigned __int128)r * (uint64_t)(n - i);
    int64_t j = i + (int64_t)(product >> 64), was = to[i];
    to[i] = to[j];
    to[j] = was;
  }
}

fnn_Tensor *fnn_randperm (int64_t n, const fnn_Device *d, fnn_Generator *g) {
  g = generator_or_default(g);
  if (n < 0)
    fnn_throw(FNN_EARG,
              "randperm: count out of range (expected 0 or more, "
              "got %lld)",
              (long long)n);
  size_t m = fnn_mark();
  Tensor *y = tensor_new(1, &n, FNN_I64, device_cpu());
  if (g->is_torch) torch_randperm(g->torch, y);
  else permute(y, take(g, y, 2));
  return fnn_escape(m, deliver(y, FNN_I64, d));
}

/* y = x where the mask of the draw keeps it, times 1/(1-p); and gx so of
** gy. */
static Tensor *drop (const Tensor *x, double p, Draw draw) {
  Tensor *y = tensor_like(x);
  kernel(y, dropout)(y, tensor_dense(x), p, draw);
  return y;
}

void node_keep_draw (Node *n, Draw draw) {
  n->i[0] = (int64_t)draw.seed;
  n->i[1] = (int64_t)draw.counter;
  n->i[2] = (int64_t)(intptr_t)draw.ahead;
  if (draw.ahead != NULL)
    n->held = fnn_retain(capture_ahead(context()->capture, draw.ahead));
}

Draw node_draw (const Node *n) {
  return (Draw){ (uint64_t)n->i[0], (uint64_t)n->i[1],
                 (const uint64_t *)(intptr_t)n->i[2] };
}

static void dropout_back (Node *n, Tensor *gy) {
  graph_give(n, 0, drop(gy, n->a[0], node_draw(n)));
}

fnn_Tensor *fnn_dropout (fnn_Tensor *x, double p, fnn_Generator *g) {
  static const Rule rule = { "dropout", dropout_back };
  g = generator_or_default(g);
  tensor_check_float("dropout", x);
  if (!(p >= 0 && p <= 1))
    fnn_throw(FNN_EARG, "dropout: p out of range (expected 0 to 1, got %g)",
              p);
  if (p == 0) return x;
  Draw draw = take(g, x, 4);
  Tensor *y = drop(x, p, draw);
  Node *n = graph_record1(y, &rule, x, 0);
  if (n != NULL) {
    node_keep_draw(n, draw);
    n->a[0] = p;
  }
  return y;
}

/* A product with the dropped out ones of x's first n dims. */
fnn_Tensor *fnn_dropout_channels (fnn_Tensor *x, int n, double p,
                                  fnn_Generator *g) {
  int64_t shape[FNN_MAXDIM];
  tensor_check_float("dropout", x);
  if (n < 1 || n > x->ndim)
    fnn_throw(FNN_ESHAPE,
              "dropout: the channels of shape %s cannot be its first %d dims",
              shape_text(x), n);
  if (p == 0) return x;
  for (int i = 0; i < x->ndim; i++) shape[i] = i < n ? x->shape[i] : 1;
  Tensor *keep =
      fnn_full(x->ndim, shape, 1, (fnn_Dtype)x->dtype, x->storage->device);
  return fnn_mul(x, fnn_dropout(keep, p, g));
}
