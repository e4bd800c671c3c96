/* view.c - other geometries of the same elements: reshape, permute, expand.
**
** A view costs a header, whatever its size, and its derivative is the view
** back.  reshape alone copies, and only when no strides can express the new
** shape.  (slice.c has the views of a part.) */

#include "ops.h"

static void check_ndim (const char *op, int ndim) {
  if (ndim < 0 || ndim > FNN_MAXDIM)
    fnn_throw(FNN_ESHAPE, "%s: %d dims (a tensor has at most %d)", op, ndim,
              FNN_MAXDIM);
}

/*
** {======================================================
** Reshape
** =======================================================
*/

/* Input 0's own shape back: for every view that keeps the elements' order. */
static void reshape_back (Node *n, Tensor *gy) {
  const int64_t *shape;
  int ndim = graph_shape(n, 0, &shape);
  graph_give(n, 0, fnn_reshape(gy, ndim, shape));
}

/* Copies shape to y with its -1 replaced by what x's numel leaves for it. */
static void infer (const Tensor *x, int ndim, const int64_t *shape,
                   int64_t *y) {
  ShapeText text;
  int64_t rest = 1;
  int hole = -1;
  shape_print(&text, ndim, shape);
  for (int d = 0; d < ndim; d++) {
    y[d] = shape[d];
    if (shape[d] >= 0)
      rest = mem_mul(rest, shape[d], "reshape: number of elements");
    else if (shape[d] == -1 && hole < 0) hole = d;
    else
      fnn_throw(FNN_ESHAPE,
                "reshape: bad shape %s (one size may be -1, no "
                "other may be negative)",
                text.s);
  }
  if (hole >= 0 && rest != 0 && x->numel % rest == 0)
    y[hole] = x->numel / rest;
  else if (hole >= 0 || rest != x->numel)
    fnn_throw(FNN_ESHAPE, "reshape: %s of %lld elements does not fit %s",
              shape_text(x), (long long)x->numel, text.s);
}

/* The strides that show x in the new shape, or false where there are none.
** Runs of dims of x that lie dense in one another become one chunk; the new
** dims must tile each chunk exactly. */
static bool restride (const Tensor *x, int ndim, const int64_t *shape,
                      int64_t *stride) {
  int v = ndim - 1;
  int64_t old = 1, new = 1, base;
  if (x->numel == 0 || x->ndim == 0) {
    shape_strides(ndim, shape, stride);
    return true;
  }
  base = x->stride[x->ndim - 1];
  for (int d = x->ndim - 1; d >= 0; d--) {
    old *= x->shape[d];
    if (d > 0 && (x->shape[d - 1] == 1 || x->stride[d - 1] == old * base))
      continue; /* the chunk goes on */
    for (; v >= 0 && (new < old || shape[v] == 1); v--) {
      stride[v] = new *base;
      new *= shape[v];
    }
    if (new != old) return false;
    old = new = 1;
    if (d > 0) base = x->stride[d - 1];
  }
  return v < 0;
}

Tensor *view_fold (const Tensor *x, int ndim, const int64_t *shape) {
  int64_t stride[FNN_MAXDIM];
  if (!restride(x, ndim, shape, stride)) return NULL;
  return tensor_view(x, ndim, shape, stride, x->offset);
}

static Tensor *reshaped (const Rule *rule, Tensor *x, int ndim,
                         const int64_t *shape) {
  Tensor *y = view_fold(x, ndim, shape);
  if (y == NULL) y = view_fold(tensor_dense(x), ndim, shape);
  graph_record1(y, rule, x, 0);
  return y;
}

Tensor *fnn_reshape (Tensor *x, int ndim, const int64_t *shape) {
  static const Rule rule = { "reshape", reshape_back };
  int64_t to[FNN_MAXDIM];
  check_ndim("reshape", ndim);
  infer(x, ndim, shape, to);
  return reshaped(&rule, x, ndim, to);
}

Tensor *fnn_flatten (Tensor *x, int first, int last) {
  static const Rule rule = { "flatten", reshape_back };
  int64_t shape[FNN_MAXDIM] = { 1 };
  int n = 0;
  if (x->ndim == 0) return reshaped(&rule, x, 1, shape);
  first = tensor_dim(x, first, "flatten");
  last = tensor_dim(x, last, "flatten");
  if (first > last)
    fnn_throw(FNN_EARG, "flatten: the first dim comes after the last");
  for (int d = 0; d < x->ndim; d++)
    if (d > first && d <= last) shape[n - 1] *= x->shape[d];
    else shape[n++] = x->shape[d];
  return reshaped(&rule, x, n, shape);
}

Tensor *fnn_unflatten (Tensor *x, int dim, int n, const int64_t *sizes) {
  static const Rule rule = { "unflatten", reshape_back };
  int64_t shape[FNN_MAXDIM], rest = 1;
  int hole = -1;
  dim = tensor_dim(x, dim, "unflatten");
  check_ndim("unflatten", x->ndim - 1 + n);
  for (int d = 0; d < x->ndim; d++)
    shape[d < dim ? d : d + n - 1] = x->shape[d];
  for (int i = 0; i < n; i++) {
    shape[dim + i] = sizes[i];
    if (sizes[i] == -1 && hole < 0) hole = dim + i;
    else rest = mem_mul(rest, sizes[i], "unflatten: number of elements");
  }
  if (hole >= 0 && rest > 0) shape[hole] = x->shape[dim] / rest;
  if (n < 1 || rest < 0 || (hole >= 0 && rest == 0) ||
      (hole >= 0 ? shape[hole] * rest : rest) != x->shape[dim])
    fnn_throw(FNN_ESHAPE, "unflatten: the %lld of dim %d of %s are not %s",
              (long long)x->shape[dim], dim + 1, shape_text(x),
              shape_print(&(ShapeText){ "" }, n, sizes));
  return reshaped(&rule, x, x->ndim - 1 + n, shape);
}

/* x without the dims of size 1 whose bit is set. */
static Tensor *squeezed (Tensor *x, unsigned dims) {
  static const Rule rule = { "squeeze", reshape_back };
  int64_t shape[FNN_MAXDIM], stride[FNN_MAXDIM];
  int n = 0;
  for (int d = 0; d < x->ndim; d++) {
    if (x->shape[d] == 1 && (dims >> d & 1)) continue;
    shape[n] = x->shape[d];
    stride[n++] = x->stride[d];
  }
  Tensor *y = tensor_view(x, n, shape, stride, x->offset);
  graph_record1(y, &rule, x, 0);
  return y;
}

Tensor *fnn_squeeze (Tensor *x, int dim) {
  return squeezed(x, 1u << tensor_dim(x, dim, "squeeze"));
}

Tensor *fnn_squeeze_all (Tensor *x) { return squeezed(x, ~0u); }

Tensor *view_insert (const Tensor *x, int dim) {
  int64_t shape[FNN_MAXDIM], stride[FNN_MAXDIM];
  for (int d = 0, n = 0; d <= x->ndim; d++) {
    shape[d] = d == dim ? 1 : x->shape[n];
    stride[d] = d == dim ? 1 : x->stride[n++];
  }
  return tensor_view(x, x->ndim + 1, shape, stride, x->offset);
}

Tensor *view_drop (const Tensor *x, int dim) {
  int64_t shape[FNN_MAXDIM], stride[FNN_MAXDIM];
  for (int d = 0, n = 0; d < x->ndim; d++)
    if (d != dim) {
      shape[n] = x->shape[d];
      stride[n++] = x->stride[d];
    }
  return tensor_view(x, x->ndim - 1, shape, stride, x->offset);
}

Tensor *fnn_unsqueeze (Tensor *x, int dim) {
  static const Rule rule = { "unsqueeze", reshape_back };
  int at = dim < 0 ? dim + x->ndim + 1 : dim;
  check_ndim("unsqueeze", x->ndim + 1);
  if (at < 0 || at > x->ndim)
    fnn_throw(FNN_EARG, "unsqueeze: no such place for a dim in shape %s",
              shape_text(x));
  Tensor *y = view_insert(x, at);
  graph_record1(y, &rule, x, 0);
  return y;
}

/* }====================================================== */

/*
** {======================================================
** Orders and broadcasts
** =======================================================
*/

/* The plain view whose dim d is x's dim dims[d]. */
static Tensor *permuted (const Tensor *x, const int64_t *dims) {
  int64_t shape[FNN_MAXDIM], stride[FNN_MAXDIM];
  for (int d = 0; d < x->ndim; d++) {
    shape[d] = x->shape[dims[d]];
    stride[d] = x->stride[dims[d]];
  }
  return tensor_view(x, x->ndim, shape, stride, x->offset);
}

Tensor *view_swap (const Tensor *x, int a, int b) {
  int64_t dims[FNN_MAXDIM];
  for (int d = 0; d < x->ndim; d++) dims[d] = d == a ? b : d == b ? a : d;
  return permuted(x, dims);
}

static void permute_back (Node *n, Tensor *gy) {
  graph_give(n, 0, permuted(gy, n->i));
}

/* Records y with the permutation that undoes dims. */
static Tensor *record_permute (const Rule *rule, Tensor *x,
                               const int64_t *dims) {
  Tensor *y = permuted(x, dims);
  Node *n = graph_record1(y, rule, x, 0);
  if (n != NULL)
    for (int d = 0; d < x->ndim; d++) n->i[dims[d]] = d;
  return y;
}

Tensor *fnn_permute (Tensor *x, int n, const int *dims) {
  static const Rule rule = { "permute", permute_back };
  int64_t to[FNN_MAXDIM];
  unsigned seen = 0;
  if (n != x->ndim)
    fnn_throw(FNN_ESHAPE, "permute: got %d dims for a tensor of %d (shape %s)",
              n, x->ndim, shape_text(x));
  for (int d = 0; d < n; d++) {
    to[d] = tensor_dim(x, dims[d], "permute");
    if (seen >> to[d] & 1)
      fnn_throw(FNN_EARG, "permute: a dim is given twice (shape %s)",
                shape_text(x));
    seen |= 1u << to[d];
  }
  return record_permute(&rule, x, to);
}

Tensor *fnn_transpose (Tensor *x, int a, int b) {
  static const Rule rule = { "transpose", permute_back };
  int64_t to[FNN_MAXDIM];
  for (int d = 0; d < x->ndim; d++) to[d] = d;
  a = tensor_dim(x, a, "transpose");
  b = tensor_dim(x, b, "transpose");
  to[a] = b;
  to[b] = a;
  return record_permute(&rule, x, to);
}

/* graph_give sums over what was stretched. */
static void expand_back (Node *n, Tensor *gy) { graph_give(n, 0, gy); }

Tensor *fnn_expand (Tensor *x, int ndim, const int64_t *shape) {
  static const Rule rule = { "expand", expand_back };
  int64_t to[FNN_MAXDIM], stride[FNN_MAXDIM];
  int lead = ndim - x->ndim;
  bool fits = lead >= 0;
  check_ndim("expand", ndim);
  for (int d = 0; d < ndim && fits; d++) {
    int64_t have = d < lead ? 1 : x->shape[d - lead];
    to[d] = shape[d] == -1 && d >= lead ? have : shape[d];
    stride[d] = d >= lead && to[d] == have ? x->stride[d - lead] : 0;
    fits = to[d] >= 0 && (have == 1 || to[d] == have);
  }
  if (!fits)
    fnn_throw(FNN_ESHAPE,
              "expand: %s cannot become %s (only sizes of 1 "
              "stretch, and new dims come first)",
              shape_text(x), shape_print(&(ShapeText){ "" }, ndim, shape));
  shape_numel(ndim, to); /* must not overflow */
  Tensor *y = tensor_view(x, ndim, to, stride, x->offset);
  graph_record1(y, &rule, x, 0);
  return y;
}

/* }====================================================== */
