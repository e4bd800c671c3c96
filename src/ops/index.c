/* index.c - elements and rows named by ids: index_select, gather, scatter_add,
** masked_select, nonzero, one_hot.
**
** Ids are integer tensors and count from 0.  A gradient goes back to where
** the ids took its element from; ids that repeat add up, in the order in
** which they stand, whatever the number of threads. */

#include <string.h>

#include "ops.h"

/*
** {======================================================
** Ids
** =======================================================
*/

/* Throws for the id at a place of ids, i64.  Positions are told as Lua counts
** them, from 1. */
static void throw_id (const char *op, const Tensor *ids, int64_t at, int64_t n,
                      const char *what) {
  int64_t id;
  fnn_read(tensor_view(ids, 0, NULL, NULL, ids->offset + at), &id);
  fnn_throw(FNN_EARG,
            "%s: id %lld at position %lld is out of range for %lld "
            "%s (ids count from 0)",
            op, (long long)id, (long long)at + 1, (long long)n, what);
}

Tensor *ids_checked (const char *op, const Tensor *x, Tensor *ids, int64_t n,
                     const char *what) {
  tensor_check_ids(op, ids);
  tensor_check_device(op, x, ids);
  ids = tensor_dense(tensor_convert(ids, FNN_I64));
  int64_t bad = -1;
  if (ids->numel == 0) return ids;
  if (n == 0) throw_id(op, ids, 0, n, what);
  /* "ignore" is an id that fits */
  kernel(ids, check_ids)(ids, n, 0, op, what, &bad);
  if (bad >= 0) throw_id(op, ids, bad, n, what);
  return ids;
}

/* }====================================================== */

/*
** {======================================================
** Index_select
** =======================================================
*/

/* gx is zeros with the rows of gy added at ids. */
static void index_select_back (Node *n, Tensor *gy) {
  const int64_t *shape;
  int ndim = graph_shape(n, 0, &shape), dim = (int)n->i[0];
  Tensor *gx =
      fnn_zeros(ndim, shape, (fnn_Dtype)gy->dtype, gy->storage->device);
  if (gx->numel > 0 && gy->numel > 0)
    kernel(gx, index_add)(gx, tensor_dense(gy), graph_saved(n, 0),
                          dims_before(gx, dim), shape[dim],
                          dims_behind(gx, dim));
  graph_give(n, 0, gx);
}

/* The dims of ids take dim's place: ids (b, t) of a table (n, c) give
** (b, t, c). */
Tensor *fnn_index_select (Tensor *x, int dim, Tensor *ids) {
  static const Rule rule = { "index_select", index_select_back };
  int64_t shape[FNN_MAXDIM];
  dim = tensor_dim(x, dim, "index_select");
  ids = ids_checked("index_select", x, ids, x->shape[dim], "rows");
  int ndim = x->ndim - 1 + ids->ndim;
  if (ndim > FNN_MAXDIM)
    fnn_throw(FNN_ESHAPE, "index_select: ids %s make too many dims of %s",
              shape_text(ids), shape_text(x));
  for (int d = 0; d < dim; d++) shape[d] = x->shape[d];
  for (int d = 0; d < ids->ndim; d++) shape[dim + d] = ids->shape[d];
  for (int d = dim + ids->ndim; d < ndim; d++)
    shape[d] = x->shape[d - ids->ndim + 1];
  Tensor *y = tensor_new(ndim, shape, (fnn_Dtype)x->dtype, x->storage->device);
  if (y->numel > 0)
    kernel(x, index_select)(y, tensor_dense(x), ids, dims_before(x, dim),
                            x->shape[dim], dims_behind(x, dim));
  Node *n = graph_record1(y, &rule, x, 1);
  if (n != NULL) {
    graph_save(n, 0, ids);
    n->i[0] = dim;
  }
  return y;
}

/* }====================================================== */

/*
** {======================================================
** Gather and scatter_add
** =======================================================
*/

/* Throws unless ids fits into x: as many dims, no size but that of dim
** larger (nor that one, where whole is set). */
static void check_ids_shape (const char *op, const Tensor *x,
                             const Tensor *ids, int dim, bool whole) {
  bool fits = x->ndim == ids->ndim;
  for (int d = 0; fits && d < x->ndim; d++)
    fits = (d == dim && !whole) || ids->shape[d] <= x->shape[d];
  if (!fits)
    fnn_throw(FNN_ESHAPE,
              "%s: ids %s do not fit %s (expected as many dims "
              "and no larger sizes)",
              op, shape_text(ids), shape_text(x));
}

/* The corner of x that ids reaches: all dims but dim cut to ids' sizes. */
static Tensor *corner (const Tensor *x, const Tensor *ids, int dim) {
  Tensor *y = tensor_alias(x);
  for (int d = 0; d < x->ndim; d++)
    if (d != dim && ids->shape[d] < x->shape[d])
      y = view_part(y, d, 0, ids->shape[d], 1);
  return y;
}

/* y[ids] += x along dim, for y of any size and stride in the other dims. */
static void scatter_into (Tensor *y, const Tensor *ids, const Tensor *x,
                          int dim) {
  if (ids->numel == 0) return;
  Tensor *into = corner(y, ids, dim), *dense = tensor_dense(into);
  kernel(y, scatter_add)(dense, ids, tensor_dense(x), dim);
  if (dense != into) kernel(y, copy)(into, dense);
}

/* y of ids' shape: y[..., i, ...] = x[..., ids[..., i, ...], ...]. */
static Tensor *gathered (const Tensor *x, const Tensor *ids, int dim) {
  Tensor *y = tensor_new(ids->ndim, ids->shape, (fnn_Dtype)x->dtype,
                         x->storage->device);
  if (y->numel > 0)
    kernel(x, gather)(y, tensor_dense(corner(x, ids, dim)), ids, dim);
  return y;
}

static void gather_back (Node *n, Tensor *gy) {
  const int64_t *shape;
  int ndim = graph_shape(n, 0, &shape);
  Tensor *gx =
      fnn_zeros(ndim, shape, (fnn_Dtype)gy->dtype, gy->storage->device);
  scatter_into(gx, graph_saved(n, 0), gy, (int)n->i[0]);
  graph_give(n, 0, gx);
}

Tensor *fnn_gather (Tensor *x, int dim, Tensor *ids) {
  static const Rule rule = { "gather", gather_back };
  dim = tensor_dim(x, dim, "gather");
  tensor_check_ids("gather", ids);
  check_ids_shape("gather", x, ids, dim, false);
  ids = ids_checked("gather", x, ids, x->shape[dim], "places");
  Tensor *y = gathered(x, ids, dim);
  Node *n = graph_record1(y, &rule, x, 1);
  if (n != NULL) {
    graph_save(n, 0, ids);
    n->i[0] = dim;
  }
  return y;
}

/* x passes through; what was added at a place has its gradient.  Elements of
** src beyond ids' sizes were not read. */
static void scatter_add_back (Node *n, Tensor *gy) {
  graph_give(n, 0, gy);
  if (graph_wants(n, 1))
    graph_give(n, 1, gathered(gy, graph_saved(n, 0), (int)n->i[0]));
}

Tensor *fnn_scatter_add (Tensor *x, int dim, Tensor *ids, Tensor *src) {
  static const Rule rule = { "scatter_add", scatter_add_back };
  dim = tensor_dim(x, dim, "scatter_add");
  tensor_check_ids("scatter_add", ids);
  tensor_check_device("scatter_add", x, src);
  if (x->dtype != src->dtype)
    fnn_throw(FNN_EDTYPE, "scatter_add: expected src of dtype %s, got %s",
              fnn_dtype_name((fnn_Dtype)x->dtype),
              fnn_dtype_name((fnn_Dtype)src->dtype));
  check_ids_shape("scatter_add", x, ids, dim, false);
  check_ids_shape("scatter_add", src, ids, dim, true);
  ids = ids_checked("scatter_add", x, ids, x->shape[dim], "places");
  for (int d = 0; d < ids->ndim; d++)
    if (src->shape[d] > ids->shape[d])
      src = fnn_narrow(src, d, 0, ids->shape[d]);
  Tensor *y = tensor_like(x);
  if (y->numel > 0) kernel(y, copy)(y, x);
  scatter_into(y, ids, src, dim);
  Node *n = graph_record2(y, &rule, x, src, 1);
  if (n != NULL) {
    graph_save(n, 0, ids);
    n->i[0] = dim;
  }
  return y;
}

/* }====================================================== */

/*
** {======================================================
** Masks
** =======================================================
*/

Tensor *fnn_nonzero (Tensor *x) {
  const Tensor *mask = tensor_dense(tensor_convert(x, FNN_BOOL));
  int64_t count = 0;
  if (x->numel > 0) kernel(mask, nonzero)(NULL, mask, &count);
  Tensor *y = tensor_new(2, (int64_t[]){ count, x->ndim }, FNN_I64,
                         x->storage->device);
  if (y->numel > 0) kernel(mask, nonzero)(y, mask, &count);
  return y;
}

/* The rows of the flattened x that the mask names; both broadcast. */
Tensor *fnn_masked_select (Tensor *x, Tensor *mask) {
  int64_t shape[FNN_MAXDIM], all = -1;
  if (mask->dtype != FNN_BOOL)
    fnn_throw(FNN_EDTYPE, "masked_select: expected a bool mask, got %s",
              fnn_dtype_name((fnn_Dtype)mask->dtype));
  tensor_check_device("masked_select", x, mask);
  int ndim = shape_broadcast("masked_select", x, mask, shape);
  all = shape_numel(ndim, shape);
  x = fnn_reshape(fnn_expand(x, ndim, shape), 1, &all);
  mask = fnn_reshape(fnn_expand(mask, ndim, shape), 1, &all);
  return fnn_index_select(
      x, 0, fnn_reshape(fnn_nonzero(mask), 1, (int64_t[]){ -1 }));
}

/* One more than the largest id, as far as a double counts. */
static int64_t count_classes (Tensor *ids) {
  if (ids->numel == 0)
    fnn_throw(FNN_EARG, "one_hot: no ids of shape %s to count classes by",
              shape_text(ids));
  int max = fnn_reduce_find("max");
  double most = fnn_item(fnn_reduce(max, ids, 0, NULL, false, 0));
  if (most > 1e15) fnn_throw(FNN_EARG, "one_hot: too many classes");
  return most < 0 ? 0 : (int64_t)most + 1;
}

Tensor *fnn_one_hot (Tensor *ids, int64_t classes) {
  int64_t shape[FNN_MAXDIM];
  tensor_check_ids("one_hot", ids);
  if (ids->ndim == FNN_MAXDIM)
    fnn_throw(FNN_ESHAPE, "one_hot: no room for a new dim in shape %s",
              shape_text(ids));
  if (classes < 0) classes = count_classes(ids);
  Tensor *id = ids_checked("one_hot", ids, ids, classes, "classes");
  memcpy(shape, ids->shape, sizeof shape);
  shape[ids->ndim] = classes;
  const fnn_Device *d = ids->storage->device;
  Tensor *y = fnn_zeros(ids->ndim + 1, shape, FNN_I64, d);
  Tensor *one = fnn_full(ids->ndim, ids->shape, 1, FNN_I64, d);
  scatter_into(y, view_insert(id, ids->ndim), view_insert(one, ids->ndim),
               ids->ndim);
  return y;
}

/* }====================================================== */
