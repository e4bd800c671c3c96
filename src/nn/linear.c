/* linear.c - the affine layer. */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "nn.h"

typedef struct Linear {
  fnn_Module m;
  int64_t in, out;
  fnn_Param *weight; /* (out, in) */
  fnn_Param *bias;   /* (out), or NULL */
} Linear;

/* y = x W' + b.  x (..., in), y (..., out) */
static Tensor *forward (fnn_Module *m, Tensor *x) {
  Linear *l = (Linear *)m;
  return fnn_linear(x, fnn_value(l->weight),
                    l->bias != NULL ? fnn_value(l->bias) : NULL, -1);
}

static void text (const fnn_Module *m, char *to, size_t size) {
  const Linear *l = (const Linear *)m;
  snprintf(to, size, "%" PRId64 ", %" PRId64 "%s", l->in, l->out,
           l->bias != NULL ? "" : ", { bias = false }");
}

static const Class linear = { { "Linear", module_destroy }, forward, text };

/* Both are uniform in +-1/sqrt(in), as PyTorch draws them: its kaiming law
** with slope sqrt(5) comes to the same. */
fnn_Module *fnn_nn_linear (int64_t in, int64_t out, bool bias, fnn_Dtype t,
                           const fnn_Device *d, fnn_Generator *g) {
  if (in < 1 || out < 1)
    fnn_throw(FNN_EARG,
              "Linear: expected sizes of at least 1, got in %" PRId64
              " and out %" PRId64,
              in, out);
  double bound = 1 / sqrt((double)in);
  Linear *l = module_new(&linear, sizeof *l);
  l->in = in;
  l->out = out;
  module_param(&l->m, "weight", &l->weight,
               fnn_uniform(2, (int64_t[]){ out, in }, -bound, bound, t, d, g));
  module_param(&l->m, "bias", &l->bias,
               bias ? fnn_uniform(1, &out, -bound, bound, t, d, g) : NULL);
  return &l->m;
}
