/* layer_norm.c - normalization over the last dims: LayerNorm (Ba et al. 2016),
** and RMSNorm, which leaves the mean out (Zhang and Sennrich 2019). */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "nn.h"

typedef struct LayerNorm {
  fnn_Module m;
  int n;
  int64_t shape[FNN_MAXDIM];
  double eps;
  fnn_Param *weight; /* (shape), or NULL */
  fnn_Param *bias;   /* (shape), or NULL; RMSNorm has none */
} LayerNorm;

static const Class layer_norm, rms_norm;

static Tensor *forward (fnn_Module *m, Tensor *x) {
  LayerNorm *l = (LayerNorm *)m;
  int skip = x->ndim - l->n;
  if (skip < 0 ||
      memcmp(x->shape + skip, l->shape, (size_t)l->n * sizeof *l->shape) != 0)
    fnn_throw(FNN_ESHAPE, "%s: expected a shape that ends in %s, got %s",
              fnn_module_class(m),
              shape_print(&(ShapeText){ "" }, l->n, l->shape), shape_text(x));
  Tensor *w = l->weight != NULL ? fnn_value(l->weight) : NULL;
  if (m->o.type == &rms_norm.type) return fnn_rms_norm(x, l->n, w, l->eps);
  return fnn_layer_norm(x, l->n, w, l->bias ? fnn_value(l->bias) : NULL,
                        l->eps);
}

static void text (const fnn_Module *m, char *to, size_t size) {
  const LayerNorm *l = (const LayerNorm *)m;
  char sizes[SHAPE_TEXT] = "";
  size_t at = 0;
  for (int i = 0; i < l->n && at < sizeof sizes; i++)
    at += (size_t)snprintf(sizes + at, sizeof sizes - at,
                           i == 0 ? "%" PRId64 : ", %" PRId64, l->shape[i]);
  snprintf(to, size, l->n == 1 ? "%s%s" : "{ %s }%s", sizes,
           l->weight != NULL ? "" : ", { affine = false }");
}

static const Class layer_norm = { { "LayerNorm", module_destroy },
                                  forward,
                                  text };
static const Class rms_norm = { { "RMSNorm", module_destroy }, forward, text };

static LayerNorm *norm_new (const Class *class, int n, const int64_t *shape,
                            double eps, bool affine, fnn_Dtype t,
                            const fnn_Device *d) {
  const char *name = class->type.name;
  if (n < 1 || n > FNN_MAXDIM)
    fnn_throw(FNN_EARG, "%s: expected 1 to %d sizes, got %d", name, FNN_MAXDIM,
              n);
  for (int i = 0; i < n; i++)
    if (shape[i] < 1)
      fnn_throw(FNN_EARG, "%s: expected sizes of at least 1, got %s", name,
                shape_print(&(ShapeText){ "" }, n, shape));
  check_eps(name, eps);
  LayerNorm *l = module_new(class, sizeof *l);
  l->n = n;
  memcpy(l->shape, shape, (size_t)n * sizeof *shape);
  l->eps = eps;
  module_param(&l->m, "weight", &l->weight,
               affine ? fnn_full(n, shape, 1, t, d) : NULL);
  return l;
}

fnn_Module *fnn_nn_layer_norm (int n, const int64_t *shape, double eps,
                               bool affine, fnn_Dtype t, const fnn_Device *d) {
  LayerNorm *l = norm_new(&layer_norm, n, shape, eps, affine, t, d);
  module_param(&l->m, "bias", &l->bias,
               affine ? fnn_zeros(n, shape, t, d) : NULL);
  return &l->m;
}

fnn_Module *fnn_nn_rms_norm (int n, const int64_t *shape, double eps,
                             bool affine, fnn_Dtype t, const fnn_Device *d) {
  return &norm_new(&rms_norm, n, shape, eps, affine, t, d)->m;
}
