/* triangle.c - the lower or upper triangle of matrices, the rest zero. */

#include "ops.h"

/* x (..., rows, cols) with what lies beyond the diagonal zeroed. */
static Tensor *triangle (const Tensor *x, int64_t diagonal, bool upper) {
  Tensor *y = tensor_like(x);
  if (y->numel > 0)
    kernel(y, triangle)(y, tensor_dense(x), x->shape[x->ndim - 2],
                        x->shape[x->ndim - 1], diagonal, upper);
  return y;
}

static void triangle_back (Node *n, Tensor *gy) {
  graph_give(n, 0, triangle(gy, n->i[0], n->i[1] != 0));
}

static Tensor *record (const Rule *rule, Tensor *x, int64_t diagonal,
                       bool upper) {
  if (x->ndim < 2)
    fnn_throw(FNN_ESHAPE,
              "%s: shape %s is no matrix (expected 2 dims or "
              "more)",
              rule->name, shape_text(x));
  /* Further out nothing changes, and the kernel's sums must not overflow. */
  int64_t most = x->shape[x->ndim - 1], least = -x->shape[x->ndim - 2];
  diagonal = max64(least, min64(diagonal, most));
  Tensor *y = triangle(x, diagonal, upper);
  Node *n = graph_record1(y, rule, x, 0);
  if (n != NULL) {
    n->i[0] = diagonal;
    n->i[1] = upper;
  }
  return y;
}

Tensor *fnn_tril (Tensor *x, int64_t diagonal) {
  static const Rule rule = { "tril", triangle_back };
  return record(&rule, x, diagonal, false);
}

Tensor *fnn_triu (Tensor *x, int64_t diagonal) {
  static const Rule rule = { "triu", triangle_back };
  return record(&rule, x, diagonal, true);
}
