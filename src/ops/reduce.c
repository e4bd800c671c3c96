/* reduce.c - reductions over one, several or all dims: the rows of
** reduce.def.
**
** A kernel sees x as (outer, n, inner).  Where the reduced dims lie side by
** side in memory that is a matter of counting; where they do not, sums and the
** like are taken run by run, and other rows get a copy with the reduced dims
** last. */

#include <math.h>
#include <string.h>

#include "ops.h"

static void reduce_back (Node *n, Tensor *gy);

#define REDUCE(name, ...) { #name, reduce_back },
static const Rule rules[REDUCE_COUNT] = {
#include "../core/reduce.def"
};
#undef REDUCE

/*
** {======================================================
** Layout
** =======================================================
*/

/* How a kernel sees x.  dims: x's dims in the order of data. */
typedef struct Layout {
  Tensor *data; /* dense */
  int dims[FNN_MAXDIM];
  int64_t outer, n, inner;
} Layout;

static Tensor *permuted (const Tensor *x, const int *dims) {
  int64_t shape[FNN_MAXDIM], stride[FNN_MAXDIM];
  for (int i = 0; i < x->ndim; i++) {
    shape[i] = x->shape[dims[i]];
    stride[i] = x->stride[dims[i]];
  }
  return tensor_view(x, x->ndim, shape, stride, x->offset);
}

/* Sizes before, in and behind the run of reduced dims in l->dims; false when
** they make more than one run.  Dims of size 1 break none. */
static bool one_run (Layout *l, const Tensor *x, unsigned set) {
  l->outer = l->n = l->inner = 1;
  bool begun = false, over = false;
  for (int i = 0; i < x->ndim; i++) {
    int64_t size = x->shape[l->dims[i]];
    if (set >> l->dims[i] & 1) {
      if (over && size != 1) return false;
      begun = begun || size != 1;
      l->n *= size;
    } else if (begun) {
      over = over || size != 1;
      l->inner *= size;
    } else l->outer *= size;
  }
  return true;
}

/* The dims of x from large strides to small; whether the kept ones are still
** in order and the whole is dense. */
static bool by_strides (Layout *l, const Tensor *x, unsigned set) {
  for (int i = 0; i < x->ndim; i++) {
    int k = i;
    for (; k > 0 && x->stride[l->dims[k - 1]] < x->stride[i]; k--)
      l->dims[k] = l->dims[k - 1];
    l->dims[k] = i;
  }
  int kept = -1;
  for (int i = 0; i < x->ndim; i++) {
    if (set >> l->dims[i] & 1) continue;
    if (l->dims[i] < kept) return false;
    kept = l->dims[i];
  }
  return tensor_is_dense(permuted(x, l->dims));
}

/* Views, or copies, x with its dims in set as one.  ordered: the reduced
** numbers must keep their order (for the places that argmax gives). */
static Layout layout (const Tensor *x, unsigned set, bool ordered) {
  Layout l;
  bool dense = tensor_is_dense(x);
  if (!ordered && !dense && by_strides(&l, x, set) && one_run(&l, x, set)) {
    l.data = permuted(x, l.dims);
    return l;
  }
  for (int i = 0; i < x->ndim; i++) l.dims[i] = i;
  if (one_run(&l, x, set)) {
    l.data = dense ? (Tensor *)x : tensor_dense(x);
    return l;
  }
  int k = 0;
  for (int i = 0; i < x->ndim; i++)
    if (!(set >> i & 1)) l.dims[k++] = i;
  for (int i = 0; i < x->ndim; i++)
    if (set >> i & 1) l.dims[k++] = i;
  one_run(&l, x, set);
  l.data = tensor_dense(permuted(x, l.dims));
  return l;
}

/* }====================================================== */

/*
** {======================================================
** Forward
** =======================================================
*/

/* Rows that may be taken in steps. */
static bool in_steps (int op) {
  return op == REDUCE_sum || op == REDUCE_mean || op == REDUCE_prod ||
         op == REDUCE_max || op == REDUCE_min || op == REDUCE_any ||
         op == REDUCE_all;
}

/* The last run of dims in set, if there are others before it; else 0. */
static unsigned last_run (const Tensor *x, unsigned set) {
  unsigned run = 0;
  bool over = false;
  for (int i = x->ndim - 1; i >= 0; i--) {
    if (x->shape[i] == 1) continue;
    if (!(set >> i & 1)) over = run != 0;
    else if (over) return run;
    else run |= 1u << i;
  }
  return 0;
}

static Tensor *result (const Tensor *x, unsigned set, fnn_Dtype t,
                       bool keepdim) {
  int64_t shape[FNN_MAXDIM];
  int ndim = 0;
  for (int i = 0; i < x->ndim; i++) {
    bool gone = set >> i & 1;
    if (!gone || keepdim) shape[ndim++] = gone ? 1 : x->shape[i];
  }
  return tensor_new(ndim, shape, t, x->storage->device);
}

static fnn_Dtype result_dtype (int op, const Tensor *x) {
  fnn_Dtype t = (fnn_Dtype)x->dtype;
  switch (reduce_rows[op].kind) {
    case KIND_TEST: return FNN_BOOL;
    case KIND_ID: return FNN_I64;
    case KIND_SUM: return dtype_is_float(t) ? t : FNN_I64;
    default: return t;
  }
}

static Tensor *forward (int op, Tensor *x, unsigned set, bool keepdim,
                        double a) {
  unsigned run = in_steps(op) && tensor_is_dense(x) ? last_run(x, set) : 0;
  if (run != 0)
    return forward(op, forward(op, x, run, true, a), set, keepdim, a);
  Layout l = layout(x, set, reduce_rows[op].kind == KIND_ID);
  Tensor *y = result(x, set, result_dtype(op, x), keepdim);
  kernel(x, reduce)(op, y, l.data, l.outer, l.n, l.inner, a);
  return y;
}

static void check (int op, const Tensor *x, int n, unsigned set) {
  const ReduceRow *row = &reduce_rows[op];
  check_computes(row->name, x);
  if (row->kind == KIND_REAL && !tensor_is_float(x))
    fnn_throw(FNN_EDTYPE,
              "%s: expected a float tensor, got %s of shape %s "
              "(convert it with :to(\"f32\"))",
              row->name, fnn_dtype_name((fnn_Dtype)x->dtype), shape_text(x));
  if (row->kind == KIND_ID && n > 1)
    fnn_throw(FNN_EARG, "%s: takes one dim or all (got %d)", row->name, n);
  if (row->kind != KIND_SAME && row->kind != KIND_ID) return;
  for (int i = 0; i < x->ndim; i++)
    if ((set >> i & 1) && x->shape[i] == 0)
      fnn_throw(FNN_ESHAPE,
                "%s: nothing to choose from in an empty dim of "
                "shape %s",
                row->name, shape_text(x));
}

/* The row over n dims; share: all equal winners of max and min take part in
** the gradient. */
static Tensor *reduce (int op, Tensor *x, int n, const int *dims, bool keepdim,
                       double a, bool share) {
  const ReduceRow *row = &reduce_rows[op];
  unsigned set = tensor_dims(x, n, dims, row->name);
  check(op, x, n, set);
  Tensor *y = forward(op, x, set, keepdim, a);
  if (!tensor_is_float(y)) return y;
  Node *node = graph_record1(y, &rules[op], x, 2);
  if (node == NULL) return y;
  node->i[0] = set;
  node->a[0] = op == REDUCE_max || op == REDUCE_min ? share : a;
  if (row->reads & READ_X) graph_save(node, 0, x);
  if (row->reads & READ_Y) graph_save(node, 1, y);
  return y;
}

/* Orders of norm that are other rows: largest, least, count and sum. */
static Tensor *special_norm (Tensor *x, int n, const int *dims, bool keepdim,
                             double p) {
  check(REDUCE_norm, x, n, 0);
  if (p == 0) {
    Tensor *some = fnn_zip_number(ZIP_ne, x, 0, false);
    return fnn_cast(fnn_sum(some, n, dims, keepdim), (fnn_Dtype)x->dtype);
  }
  Tensor *m = fnn_map(MAP_abs, x, 0, 0);
  int op = p == 1 ? REDUCE_sum : p > 0 ? REDUCE_max : REDUCE_min;
  return reduce(op, m, n, dims, keepdim, 0, true);
}

/* As in PyTorch the winner along one dim is the first, over several dims all
** share. */
Tensor *fnn_reduce (int op, Tensor *x, int n, const int *dims, bool keepdim,
                    double a) {
  if (op < 0 || op >= REDUCE_COUNT)
    fnn_throw(FNN_EARG, "reduce: there is no row %d", op);
  if (op == REDUCE_sum || op == REDUCE_prod || op == REDUCE_norm ||
      op == REDUCE_logsumexp)
    x = autocast_wide(x);
  if (op == REDUCE_norm && (a == 0 || a == 1 || isinf(a)))
    return special_norm(x, n, dims, keepdim, a);
  return reduce(op, x, n, dims, keepdim, a, n != 1);
}

/* }====================================================== */

/*
** {======================================================
** Derivative
** =======================================================
*/

/* gy with the dims of set back, as views that repeat it. */
static Tensor *spread (Node *n, const Tensor *gy, unsigned set) {
  const int64_t *shape;
  int64_t stride[FNN_MAXDIM];
  int ndim = graph_shape(n, 0, &shape), k = gy->ndim;
  bool kept = k == ndim;
  for (int i = ndim - 1; i >= 0; i--) {
    bool gone = set >> i & 1;
    if (!gone || kept) k--;
    stride[i] = gone ? 0 : gy->stride[k];
  }
  return tensor_view(gy, ndim, shape, stride, gy->offset);
}

/* How many numbers made one. */
static double count (Node *n, unsigned set) {
  const int64_t *shape;
  int ndim = graph_shape(n, 0, &shape);
  double c = 1;
  for (int i = 0; i < ndim; i++)
    if (set >> i & 1) c *= (double)shape[i];
  return c;
}

static void reduce_back (Node *n, Tensor *gy) {
  int op = (int)(n->rule - rules);
  unsigned set = (unsigned)n->i[0];
  if (op == REDUCE_mean) {
    Tensor *g = tensor_like(gy);
    kernel(gy, zip_number)(ZIP_div, g, gy, count(n, set), false);
    gy = g;
  }
  if (op == REDUCE_sum || op == REDUCE_mean) {
    graph_give(n, 0, spread(n, gy, set));
    return;
  }
  Tensor *x = graph_saved(n, 0), *y = graph_saved(n, 1);
  Layout l = layout(x, set, true);
  Tensor *gx = tensor_like(l.data);
  kernel(gy, reduce_back)(op, gx, tensor_dense(gy), l.data, y, l.outer, l.n,
                          l.inner, n->a[0]);
  int back[FNN_MAXDIM];
  for (int i = 0; i < x->ndim; i++) back[l.dims[i]] = i;
  graph_give(n, 0, permuted(gx, back));
}

/* }====================================================== */

Tensor *fnn_sum (Tensor *x, int n, const int *dims, bool keepdim) {
  return fnn_reduce(REDUCE_sum, x, n, dims, keepdim, 0);
}

Tensor *fnn_mean (Tensor *x, int n, const int *dims, bool keepdim) {
  return fnn_reduce(REDUCE_mean, x, n, dims, keepdim, 0);
}

Tensor *fnn_argmax (Tensor *x, int dim, bool keepdim) {
  return fnn_reduce(REDUCE_argmax, x, 1, &dim, keepdim, 0);
}
