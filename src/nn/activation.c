/* activation.c - functions of one number as layers: the rows of map.def. */

#include "nn.h"

typedef struct Activation {
  fnn_Module m;
  int op;
  double a, b;
} Activation;

static Tensor *forward (fnn_Module *m, Tensor *x) {
  Activation *l = (Activation *)m;
  return fnn_map(l->op, x, l->a, l->b);
}

static const Class activation = { { "Activation", module_destroy },
                                  forward,
                                  NULL };

fnn_Module *fnn_nn_activation (int op, double a, double b) {
  Activation *l = module_new(&activation, sizeof *l);
  l->op = op;
  l->a = a;
  l->b = b;
  return &l->m;
}
