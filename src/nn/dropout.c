/* dropout.c - zeroing at random in training (Srivastava et al. 2014), with
** what is kept scaled up, so that evaluation needs nothing. */

#include <stdio.h>

#include "nn.h"

typedef struct Dropout {
  fnn_Module m;
  double p;
  fnn_Generator *generator; /* retained; NULL: the context's */
} Dropout;

static Tensor *forward (fnn_Module *m, Tensor *x) {
  Dropout *l = (Dropout *)m;
  if (!m->training || l->p == 0) return x;
  return fnn_dropout(x, l->p, l->generator);
}

static void text (const fnn_Module *m, char *to, size_t size) {
  snprintf(to, size, "%g", ((const Dropout *)m)->p);
}

static void destroy (void *o) {
  fnn_release(((Dropout *)o)->generator);
  module_destroy(o);
}

static const Class dropout = { { "Dropout", destroy }, forward, text };

fnn_Module *fnn_nn_dropout (double p, fnn_Generator *g) {
  if (!(p >= 0 && p <= 1))
    fnn_throw(FNN_EARG, "Dropout: expected a probability from 0 to 1, got %g",
              p);
  Dropout *l = module_new(&dropout, sizeof *l);
  l->p = p;
  l->generator = fnn_retain(g);
  return &l->m;
}
