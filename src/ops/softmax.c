/* softmax.c - normalized exponentials along one dim, and their logarithms. */

#include "ops.h"

/* softmax: gx = y (gy - sum gy y).  log_softmax: gx = gy - e^y sum gy. */
static void softmax_back (Node *n, Tensor *gy) {
  Tensor *y = graph_saved(n, 0), *gx = tensor_like(gy);
  int dim = (int)n->i[0];
  kernel(gy, softmax_back)(gx, tensor_dense(gy), y, dims_before(y, dim),
                           y->shape[dim], dims_behind(y, dim), n->i[1] != 0);
  graph_give(n, 0, gx);
}

static const Rule softmax_rule = { "softmax", softmax_back };
static const Rule log_softmax_rule = { "log_softmax", softmax_back };

static Tensor *forward (const Rule *rule, Tensor *x, int dim, bool log) {
  x = autocast_wide(x);
  tensor_check_float(rule->name, x);
  dim = tensor_dim(x, dim, rule->name);
  Tensor *y = tensor_like(x);
  kernel(x, softmax)(y, tensor_dense(x), dims_before(x, dim), x->shape[dim],
                     dims_behind(x, dim), log);
  Node *n = graph_record1(y, rule, x, 1);
  if (n == NULL) return y;
  n->i[0] = dim;
  n->i[1] = log;
  graph_save(n, 0, y);
  return y;
}

Tensor *fnn_softmax (Tensor *x, int dim) {
  return forward(&softmax_rule, x, dim, false);
}

Tensor *fnn_log_softmax (Tensor *x, int dim) {
  return forward(&log_softmax_rule, x, dim, true);
}
