/* join.c - tensors put side by side: cat, stack, repeat; and elements moved
** along their dims: flip, roll. */

#include <string.h>

#include "ops.h"

/*
** {======================================================
** Cat and stack
** =======================================================
*/

/* The dtype that holds all n operands, which are on one device. */
static fnn_Dtype common_dtype (const char *op, int n, Tensor *const *x) {
  if (n < 1) fnn_throw(FNN_EARG, "%s: needs at least one tensor", op);
  fnn_Dtype t = (fnn_Dtype)x[0]->dtype;
  for (int i = 1; i < n; i++) {
    tensor_check_device(op, x[0], x[i]);
    t = fnn_promote(t, (fnn_Dtype)x[i]->dtype);
  }
  return t;
}

/* Each input's own stretch of gy; held are their lengths. */
static void cat_back (Node *n, Tensor *gy) {
  const int64_t *length = fnn_data((Tensor *)n->held);
  int dim = (int)n->i[0];
  for (int64_t i = 0, start = 0; i < n->nin; start += length[i++])
    if (graph_wants(n, (int)i))
      graph_give(n, (int)i, view_part(gy, dim, start, length[i], 1));
}

static Tensor *lengths (int n, Tensor *const *x, int dim) {
  Tensor *y = tensor_new(1, (int64_t[]){ n }, FNN_I64, device_cpu());
  int64_t *length = tensor_data(y);
  for (int i = 0; i < n; i++) length[i] = x[i]->shape[dim];
  return y;
}

static void check_cat (const Tensor *x, const Tensor *y, int dim, int i) {
  bool fits = x->ndim == y->ndim;
  for (int d = 0; fits && d < x->ndim; d++)
    fits = d == dim || x->shape[d] == y->shape[d];
  if (!fits)
    fnn_throw(FNN_ESHAPE,
              "cat: %s does not fit tensor %d, %s (only the "
              "joined dim may differ)",
              shape_text(x), i + 1, shape_text(y));
}

Tensor *fnn_cat (int n, Tensor *const *x, int dim) {
  static const Rule rule = { "cat", cat_back };
  int64_t shape[FNN_MAXDIM], start = 0;
  fnn_Dtype t = common_dtype("cat", n, x);
  if (x[0]->ndim == 0)
    fnn_throw(FNN_ESHAPE, "cat: a tensor without dims (join with stack)");
  dim = tensor_dim(x[0], dim, "cat");
  memcpy(shape, x[0]->shape, sizeof shape);
  for (int i = 1; i < n; i++) {
    check_cat(x[0], x[i], dim, i);
    if (__builtin_add_overflow(shape[dim], x[i]->shape[dim], &shape[dim]))
      fnn_throw(FNN_ESHAPE, "cat: the joined dim is too long");
  }
  bool last = tensor_is_channels_last(x[0]);
  Tensor *y = (last ? tensor_new_channels_last
                    : tensor_new)(x[0]->ndim, shape, t, x[0]->storage->device);
  for (int i = 0; i < n; i++) {
    int64_t length = x[i]->shape[dim];
    if (x[i]->numel > 0)
      kernel(y, copy)(view_part(y, dim, start, length, 1), x[i]);
    start += length;
  }
  Node *node = graph_record(y, &rule, n, x, 0);
  if (node != NULL) {
    node->i[0] = dim;
    node->held = fnn_retain(lengths(n, x, dim));
  }
  return y;
}

static void stack_back (Node *n, Tensor *gy) {
  int dim = (int)n->i[0];
  for (int i = 0; i < n->nin; i++)
    if (graph_wants(n, i))
      graph_give(n, i, view_drop(view_part(gy, dim, i, 1, 1), dim));
}

Tensor *fnn_stack (int n, Tensor *const *x, int dim) {
  static const Rule rule = { "stack", stack_back };
  int64_t shape[FNN_MAXDIM];
  fnn_Dtype t = common_dtype("stack", n, x);
  int ndim = x[0]->ndim + 1, at = dim < 0 ? dim + ndim : dim;
  if (ndim > FNN_MAXDIM || at < 0 || at >= ndim)
    fnn_throw(FNN_EARG, "stack: no such place for a dim in shape %s",
              shape_text(x[0]));
  for (int i = 1; i < n; i++)
    if (!tensor_same_shape(x[0], x[i]))
      fnn_throw(FNN_ESHAPE,
                "stack: %s does not fit tensor %d, %s (all shapes "
                "must be equal)",
                shape_text(x[0]), i + 1, shape_text(x[i]));
  for (int d = 0; d < ndim; d++)
    shape[d] = d == at ? n : x[0]->shape[d < at ? d : d - 1];
  Tensor *y = tensor_new(ndim, shape, t, x[0]->storage->device);
  for (int i = 0; i < n && y->numel > 0; i++)
    kernel(y, copy)(view_drop(view_part(y, at, i, 1, 1), at), x[i]);
  Node *node = graph_record(y, &rule, n, x, 0);
  if (node != NULL) node->i[0] = at;
  return y;
}

/* }====================================================== */

/*
** {======================================================
** Repeat
** =======================================================
*/

int64_t dims_before (const Tensor *x, int dim) {
  int64_t n = 1;
  for (int d = 0; d < dim; d++) n *= x->shape[d];
  return n;
}

int64_t dims_behind (const Tensor *x, int dim) {
  int64_t n = 1;
  for (int d = dim + 1; d < x->ndim; d++) n *= x->shape[d];
  return n;
}

/* x, times over along dim: (outer, 1, rest) stretched to (outer, times, rest)
** and read as one dim. */
static Tensor *repeat_dim (Tensor *x, int dim, int64_t times) {
  int64_t outer = dims_before(x, dim), shape[FNN_MAXDIM];
  int64_t rest = x->shape[dim] * dims_behind(x, dim);
  memcpy(shape, x->shape, sizeof shape);
  shape[dim] = mem_mul(shape[dim], times, "repeat: number of elements");
  Tensor *y = fnn_reshape(x, 3, (int64_t[]){ outer, 1, rest });
  y = fnn_expand(y, 3, (int64_t[]){ outer, times, rest });
  return fnn_reshape(y, x->ndim, shape);
}

/* Composed of views, which give its derivative. */
Tensor *fnn_repeat (Tensor *x, int n, const int64_t *times) {
  int64_t shape[FNN_MAXDIM];
  int lead = n - x->ndim;
  if (lead < 0 || n > FNN_MAXDIM)
    fnn_throw(FNN_ESHAPE,
              "repeat: %d counts for shape %s (expected %d or "
              "more, at most %d)",
              n, shape_text(x), x->ndim, FNN_MAXDIM);
  for (int d = 0; d < n; d++) {
    if (times[d] < 0)
      fnn_throw(FNN_EARG, "repeat: a count of %lld", (long long)times[d]);
    shape[d] = d < lead ? 1 : x->shape[d - lead];
  }
  size_t mark = fnn_mark();
  Tensor *y = fnn_reshape(x, n, shape);
  for (int d = n - 1; d >= 0; d--)
    if (times[d] != 1) y = repeat_dim(y, d, times[d]);
  if (y->storage == x->storage) y = fnn_clone(y);
  return fnn_escape(mark, y);
}

/* }====================================================== */

/*
** {======================================================
** Flip and roll
** =======================================================
*/

/* A copy of x that runs backwards along the dims whose bit is set. */
static Tensor *flipped (const Tensor *x, unsigned dims) {
  Tensor *y = tensor_like(x);
  const Tensor *from = x;
  for (int d = 0; d < x->ndim; d++)
    if ((dims >> d & 1) && x->shape[d] > 1)
      from = view_part(from, d, x->shape[d] - 1, x->shape[d], -1);
  if (y->numel > 0) kernel(y, copy)(y, from);
  return y;
}

static void flip_back (Node *n, Tensor *gy) {
  graph_give(n, 0, flipped(gy, (unsigned)n->i[0]));
}

Tensor *fnn_flip (Tensor *x, int n, const int *dims) {
  static const Rule rule = { "flip", flip_back };
  unsigned which = tensor_dims(x, n, dims, "flip");
  Tensor *y = flipped(x, which);
  Node *node = graph_record1(y, &rule, x, 0);
  if (node != NULL) node->i[0] = which;
  return y;
}

/* A copy of x with place i moved to (i + shift) % n, 0 <= shift < n. */
static Tensor *rolled (const Tensor *x, int64_t shift, int dim) {
  Tensor *y = tensor_like(x);
  int64_t rest = x->shape[dim] - shift;
  if (y->numel == 0) return y;
  kernel(y, copy)(view_part(y, dim, shift, rest, 1),
                  view_part(x, dim, 0, rest, 1));
  if (shift > 0)
    kernel(y, copy)(view_part(y, dim, 0, shift, 1),
                    view_part(x, dim, rest, shift, 1));
  return y;
}

static void roll_back (Node *n, Tensor *gy) {
  int dim = (int)n->i[0];
  int64_t size = gy->shape[dim], shift = n->i[1];
  graph_give(n, 0, rolled(gy, shift > 0 ? size - shift : 0, dim));
}

Tensor *fnn_roll (Tensor *x, int64_t shift, int dim) {
  static const Rule rule = { "roll", roll_back };
  dim = tensor_dim(x, dim, "roll");
  int64_t size = x->shape[dim];
  shift = size > 0 ? shift % size : 0;
  if (shift < 0) shift += size;
  Tensor *y = rolled(x, shift, dim);
  Node *n = graph_record1(y, &rule, x, 0);
  if (n != NULL) {
    n->i[0] = dim;
    n->i[1] = shift;
  }
  return y;
}

/* }====================================================== */
