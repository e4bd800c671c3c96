/* prelu.c - relu with a slope that is learned (He et al. 2015). */

#include <inttypes.h>
#include <stdio.h>

#include "nn.h"

typedef struct PReLU {
  fnn_Module m;
  int64_t count;
  double start;
  fnn_Param *weight; /* (count): 1, or the channels */
} PReLU;

static Tensor *forward (fnn_Module *m, Tensor *x) {
  return fnn_prelu(x, fnn_value(((PReLU *)m)->weight));
}

static void text (const fnn_Module *m, char *to, size_t size) {
  const PReLU *l = (const PReLU *)m;
  if (l->start == 0.25) snprintf(to, size, "%" PRId64, l->count);
  else snprintf(to, size, "%" PRId64 ", %g", l->count, l->start);
}

static const Class prelu = { { "PReLU", module_destroy }, forward, text };

fnn_Module *fnn_nn_prelu (int64_t count, double start, fnn_Dtype t,
                          const fnn_Device *d) {
  if (count < 1)
    fnn_throw(FNN_EARG, "PReLU: expected at least 1 slope, got %" PRId64,
              count);
  PReLU *l = module_new(&prelu, sizeof *l);
  l->count = count;
  l->start = start;
  module_param(&l->m, "weight", &l->weight, fnn_full(1, &count, start, t, d));
  return &l->m;
}
