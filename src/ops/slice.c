/* slice.c - views of a part of a tensor: narrow, slice, select, diagonal.
**
** They share its storage.  The derivative is zeros with gy copied into the
** place of the part. */

#include <string.h>

#include "ops.h"

/* Zeros of input 0's shape for a gradient that fills a part of it. */
static Tensor *zeros_like_input (Node *n, const Tensor *gy) {
  const int64_t *shape;
  int ndim = graph_shape(n, 0, &shape);
  return fnn_zeros(ndim, shape, (fnn_Dtype)gy->dtype, gy->storage->device);
}

Tensor *view_part (const Tensor *x, int dim, int64_t start, int64_t length,
                   int64_t step) {
  int64_t shape[FNN_MAXDIM], stride[FNN_MAXDIM], offset = x->offset;
  memcpy(shape, x->shape, sizeof shape);
  memcpy(stride, x->stride, sizeof stride);
  if (length > 0) offset += start * stride[dim];
  shape[dim] = length;
  stride[dim] *= step;
  return tensor_view(x, x->ndim, shape, stride, offset);
}

static void slice_back (Node *n, Tensor *gy) {
  Tensor *gx = zeros_like_input(n, gy);
  int dim = (int)n->i[0];
  kernel(gx, copy)(view_part(gx, dim, n->i[1], gy->shape[dim], n->i[2]), gy);
  graph_give(n, 0, gx);
}

static Tensor *sliced (const Rule *rule, Tensor *x, int dim, int64_t start,
                       int64_t length, int64_t step) {
  Tensor *y = view_part(x, dim, start, length, step);
  Node *n = graph_record1(y, rule, x, 0);
  if (n != NULL) {
    n->i[0] = dim;
    n->i[1] = start;
    n->i[2] = step;
  }
  return y;
}

Tensor *fnn_narrow (Tensor *x, int dim, int64_t start, int64_t length) {
  static const Rule rule = { "narrow", slice_back };
  dim = tensor_dim(x, dim, "narrow");
  int64_t n = x->shape[dim], first = start < 0 ? start + n : start;
  if (length < 0 || first < 0 || first > n || length > n - first)
    fnn_throw(FNN_EARG,
              "narrow: %lld elements do not follow the first %lld of %lld "
              "along the dim (shape %s)",
              (long long)length, (long long)first, (long long)n,
              shape_text(x));
  return sliced(&rule, x, dim, first, length, 1);
}

/* Whether start and the last place, length - 1 steps on, lie in 0 .. n-1. */
static bool slice_fits (int64_t n, int64_t start, int64_t length,
                        int64_t step) {
  if (length == 0) return start >= 0 && start <= n;
  if (length < 0 || start < 0 || start >= n) return false;
  if (length == 1) return true;
  int64_t room = step > 0 ? n - 1 - start : start;
  uint64_t stride = step > 0 ? (uint64_t)step : -(uint64_t)step;
  return (uint64_t)room / stride >= (uint64_t)(length - 1);
}

Tensor *fnn_slice (Tensor *x, int dim, int64_t start, int64_t length,
                   int64_t step) {
  static const Rule rule = { "slice", slice_back };
  dim = tensor_dim(x, dim, "slice");
  if (step == 0) fnn_throw(FNN_EARG, "slice: a step of 0 leads nowhere");
  if (!slice_fits(x->shape[dim], start, length, step))
    fnn_throw(FNN_EARG,
              "slice: %lld elements, %lld apart, do not follow the first %lld "
              "of %lld along the dim (shape %s)",
              (long long)length, (long long)step, (long long)start,
              (long long)x->shape[dim], shape_text(x));
  return sliced(&rule, x, dim, start, length, length > 1 ? step : 1);
}

static void select_back (Node *n, Tensor *gy) {
  Tensor *gx = zeros_like_input(n, gy);
  int dim = (int)n->i[0];
  Tensor *place = view_part(gx, dim, n->i[1], 1, 1);
  kernel(gx, copy)(view_drop(place, dim), gy);
  graph_give(n, 0, gx);
}

Tensor *fnn_select (Tensor *x, int dim, int64_t i) {
  static const Rule rule = { "select", select_back };
  dim = tensor_dim(x, dim, "select");
  int64_t size = x->shape[dim], at = i < 0 ? i + size : i;
  if (at < 0 || at >= size)
    fnn_throw(FNN_EARG,
              "select: the place is outside the %lld of the dim (shape %s)",
              (long long)size, shape_text(x));
  Tensor *y = view_drop(view_part(x, dim, at, 1, 1), dim);
  Node *n = graph_record1(y, &rule, x, 0);
  if (n != NULL) {
    n->i[0] = dim;
    n->i[1] = at;
  }
  return y;
}

/* The plain view of x's diagonal through dims a and b, as the last dim. */
static Tensor *diagonal_of (const Tensor *x, int64_t offset, int a, int b) {
  int64_t shape[FNN_MAXDIM], stride[FNN_MAXDIM], at = x->offset;
  int64_t low = max64(-offset, 0), high = max64(offset, 0);
  int64_t size = max64(min64(x->shape[a] - low, x->shape[b] - high), 0);
  int n = 0;
  for (int d = 0; d < x->ndim; d++)
    if (d != a && d != b) {
      shape[n] = x->shape[d];
      stride[n++] = x->stride[d];
    }
  shape[n] = size;
  stride[n++] = x->stride[a] + x->stride[b];
  if (size > 0) at += low * x->stride[a] + high * x->stride[b];
  return tensor_view(x, n, shape, stride, at);
}

static void diagonal_back (Node *n, Tensor *gy) {
  Tensor *gx = zeros_like_input(n, gy);
  kernel(gx, copy)(diagonal_of(gx, n->i[0], (int)n->i[1], (int)n->i[2]), gy);
  graph_give(n, 0, gx);
}

Tensor *fnn_diagonal (Tensor *x, int64_t offset, int a, int b) {
  static const Rule rule = { "diagonal", diagonal_back };
  a = tensor_dim(x, a, "diagonal");
  b = tensor_dim(x, b, "diagonal");
  if (a == b)
    fnn_throw(FNN_EARG, "diagonal: needs two different dims (shape %s)",
              shape_text(x));
  /* Beyond either edge the diagonal is empty, and -offset must not wrap. */
  offset = max64(-x->shape[a], min64(offset, x->shape[b]));
  Tensor *y = diagonal_of(x, offset, a, b);
  Node *n = graph_record1(y, &rule, x, 0);
  if (n != NULL) {
    n->i[0] = offset;
    n->i[1] = a;
    n->i[2] = b;
  }
  return y;
}
