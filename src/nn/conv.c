/* conv.c - convolution layers over 1, 2 or 3 dims, and transposed ones. */

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "nn.h"

typedef struct Conv {
  fnn_Module m;
  int dims;
  bool transposed;
  int64_t in, out, size[3];
  fnn_ConvOptions o;
  fnn_Param *weight; /* (out, in / groups, ...) or (in, out / groups, ...) */
  fnn_Param *bias;   /* (out), or NULL */
} Conv;

/* x (n, in, ...), y (n, out, ...) */
static Tensor *forward (fnn_Module *m, Tensor *x) {
  Conv *l = (Conv *)m;
  Tensor *b = l->bias != NULL ? fnn_value(l->bias) : NULL;
  return (l->transposed ? fnn_conv_transpose
                        : fnn_conv)(x, fnn_value(l->weight), b, &l->o);
}

/*
** {======================================================
** As text: "3, 16, 3, { stride = 2, padding = 1 }"
** =======================================================
*/

typedef struct Text {
  char *to;
  size_t size, at;
  int options; /* so far */
} Text;

static void put (Text *t, const char *fmt, ...) FNN_PRINTF(2, 3);

static void put (Text *t, const char *fmt, ...) {
  va_list ap;
  if (t->at >= t->size) return;
  va_start(ap, fmt);
  t->at += (size_t)vsnprintf(t->to + t->at, t->size - t->at, fmt, ap);
  va_end(ap);
}

static void put_sizes (Text *t, int dims, const int64_t *v) {
  bool same = true;
  for (int d = 1; d < dims; d++) same = same && v[d] == v[0];
  if (same) {
    put(t, "%" PRId64, v[0]);
    return;
  }
  for (int d = 0; d < dims; d++)
    put(t, "%s%" PRId64, d == 0 ? "{ " : ", ", v[d]);
  put(t, " }");
}

static void put_name (Text *t, const char *name) {
  put(t, "%s%s = ", t->options++ == 0 ? ", { " : ", ", name);
}

/* An option, unless it has its usual value everywhere. */
static void put_option (Text *t, const char *name, int dims, const int64_t *v,
                        int64_t usual) {
  bool is = true;
  for (int d = 0; d < dims; d++) is = is && v[d] == usual;
  if (is) return;
  put_name(t, name);
  put_sizes(t, dims, v);
}

static void put_padding (Text *t, int dims, const fnn_ConvOptions *o) {
  if (memcmp(o->before, o->after, (size_t)dims * sizeof *o->before) == 0) {
    put_option(t, "padding", dims, o->before, 0);
    return;
  }
  put_name(t, "padding");
  for (int d = 0; d < dims; d++)
    put(t, "%s{ %" PRId64 ", %" PRId64 " }", d == 0 ? "{ " : ", ",
        o->before[d], o->after[d]);
  put(t, " }");
}

static void text (const fnn_Module *m, char *to, size_t size) {
  const Conv *l = (const Conv *)m;
  const fnn_ConvOptions *o = &l->o;
  Text t = { .to = to, .size = size };
  put(&t, "%" PRId64 ", %" PRId64 ", ", l->in, l->out);
  put_sizes(&t, l->dims, l->size);
  put_option(&t, "stride", l->dims, o->stride, 1);
  put_padding(&t, l->dims, o);
  put_option(&t, "dilation", l->dims, o->dilation, 1);
  put_option(&t, "groups", 1, &o->groups, 1);
  put_option(&t, "output_padding", l->dims, o->output_padding, 0);
  if (l->bias == NULL) {
    put_name(&t, "bias");
    put(&t, "false");
  }
  if (t.options > 0) put(&t, " }");
}

/* }====================================================== */

static const Class classes[2][3] = {
  { { { "Conv1d", module_destroy }, forward, text },
    { { "Conv2d", module_destroy }, forward, text },
    { { "Conv3d", module_destroy }, forward, text } },
  { { { "ConvTranspose1d", module_destroy }, forward, text },
    { { "ConvTranspose2d", module_destroy }, forward, text },
    { { "ConvTranspose3d", module_destroy }, forward, text } },
};

static void check (const char *name, int64_t in, int64_t out, int dims,
                   const int64_t *size, int64_t groups) {
  if (in < 1 || out < 1)
    fnn_throw(FNN_EARG,
              "%s: expected at least 1 channel, got in %" PRId64
              " and out %" PRId64,
              name, in, out);
  for (int d = 0; d < dims; d++)
    if (size[d] < 1)
      fnn_throw(FNN_EARG, "%s: expected a kernel of at least 1, got %s", name,
                shape_print(&(ShapeText){ "" }, dims, size));
  if (groups < 1 || in % groups != 0 || out % groups != 0)
    fnn_throw(FNN_EARG,
              "%s: expected groups to divide both channels in (%" PRId64
              ") and out (%" PRId64 "), got %" PRId64,
              name, in, out, groups);
}

/* Weight and bias are uniform in +-1/sqrt(fan), as PyTorch draws them; the
** fan of its transposed layers counts the weight's second dim too. */
static fnn_Module *conv_new (int dims, int64_t in, int64_t out,
                             const int64_t *size, const fnn_ConvOptions *o,
                             bool bias, fnn_Dtype t, const fnn_Device *d,
                             fnn_Generator *g, bool transposed) {
  if (dims < 1 || dims > 3)
    fnn_throw(FNN_EARG, "conv: expected 1 to 3 dims, got %d", dims);
  const Class *class = &classes[transposed][dims - 1];
  check(class->type.name, in, out, dims, size, o->groups);
  int64_t shape[5] = { transposed ? in : out,
                       (transposed ? out : in) / o->groups };
  memcpy(shape + 2, size, (size_t)dims * sizeof *size);
  double bound = fnn_init_std(dims + 2, shape, FNN_FAN_IN, 1);
  Conv *l = module_new(class, sizeof *l);
  l->dims = dims;
  l->transposed = transposed;
  l->in = in;
  l->out = out;
  memcpy(l->size, size, (size_t)dims * sizeof *size);
  l->o = *o;
  module_param(&l->m, "weight", &l->weight,
               fnn_uniform(dims + 2, shape, -bound, bound, t, d, g));
  module_param(&l->m, "bias", &l->bias,
               bias ? fnn_uniform(1, &out, -bound, bound, t, d, g) : NULL);
  return &l->m;
}

fnn_Module *fnn_nn_conv (int dims, int64_t in, int64_t out,
                         const int64_t *size, const fnn_ConvOptions *o,
                         bool bias, fnn_Dtype t, const fnn_Device *d,
                         fnn_Generator *g) {
  return conv_new(dims, in, out, size, o, bias, t, d, g, false);
}

fnn_Module *fnn_nn_conv_transpose (int dims, int64_t in, int64_t out,
                                   const int64_t *size,
                                   const fnn_ConvOptions *o, bool bias,
                                   fnn_Dtype t, const fnn_Device *d,
                                   fnn_Generator *g) {
  return conv_new(dims, in, out, size, o, bias, t, d, g, true);
}
