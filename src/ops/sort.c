/* sort.c - the order of elements along a dim: topk and sort.
**
** NaN counts as larger than any number, equal elements keep their order, and
** the ids count from 0.  A gradient goes to the place an element came from. */

#include <string.h>

#include "ops.h"

/* gx = zeros with gy at ids, all of them different. */
static void sort_back (Node *n, Tensor *gy) {
  const int64_t *shape;
  int ndim = graph_shape(n, 0, &shape);
  Tensor *gx =
      fnn_zeros(ndim, shape, (fnn_Dtype)gy->dtype, gy->storage->device);
  if (gy->numel > 0)
    kernel(gx, scatter_add)(gx, graph_saved(n, 0), tensor_dense(gy),
                            (int)n->i[0]);
  graph_give(n, 0, gx);
}

/* The k first along dim, in order. */
static Tensor *first (const Rule *rule, Tensor *x, int64_t k, int dim,
                      bool largest, Tensor **ids) {
  int64_t shape[FNN_MAXDIM];
  memcpy(shape, x->shape, sizeof shape);
  shape[dim] = k;
  Tensor *y =
      tensor_new(x->ndim, shape, (fnn_Dtype)x->dtype, x->storage->device);
  Tensor *places = tensor_like_as(y, FNN_I64);
  if (y->numel > 0)
    kernel(x, topk)(y, places, tensor_dense(x), dims_before(x, dim),
                    x->shape[dim], dims_behind(x, dim), k, largest);
  Node *n = graph_record1(y, rule, x, 1);
  if (n != NULL) {
    graph_save(n, 0, places);
    n->i[0] = dim;
  }
  *ids = places;
  return y;
}

/* A tensor without dims is sorted as a line of one. */
static Tensor *as_line (Tensor *x, int dim) {
  return x->ndim == 0 && (dim == 0 || dim == -1) ? fnn_unsqueeze(x, 0) : x;
}

/* y and its ids in the number of dims that x has. */
static Tensor *as_before (const Tensor *x, Tensor *y, Tensor **ids) {
  if (x->ndim > 0) return y;
  *ids = fnn_squeeze(*ids, 0);
  return fnn_squeeze(y, 0);
}

Tensor *fnn_topk (Tensor *x, int64_t k, int dim, bool largest, Tensor **ids) {
  static const Rule rule = { "topk", sort_back };
  Tensor *from = as_line(x, dim);
  dim = tensor_dim(from, dim, "topk");
  if (k < 0 || k > from->shape[dim] || (x->ndim == 0 && k == 0))
    fnn_throw(FNN_EARG,
              "topk: %lld of the %lld elements along the dim "
              "(shape %s)",
              (long long)k, (long long)from->shape[dim], shape_text(x));
  return as_before(x, first(&rule, from, k, dim, largest, ids), ids);
}

Tensor *fnn_sort (Tensor *x, int dim, bool descending, Tensor **ids) {
  static const Rule rule = { "sort", sort_back };
  Tensor *from = as_line(x, dim);
  dim = tensor_dim(from, dim, "sort");
  Tensor *y = first(&rule, from, from->shape[dim], dim, descending, ids);
  return as_before(x, y, ids);
}
