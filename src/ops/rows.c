/* rows.c - the rows of map.def, zip.def and reduce.def as tables, and the
** checks that all of them make. */

#include <math.h>
#include <string.h>

#include "ops.h"

/*
** {======================================================
** Tables
** =======================================================
*/

#define NOARGS \
  0, { NULL, NULL }, { 0, 0 }
#define ARGS1(p, v) \
  1, { p, NULL }, { v, 0 }
#define ARGS2(p, v, q, w) \
  2, { p, q }, { v, w }

#define MAP(name, parameters, kind, y, k, saves, gx) \
  { #name, KIND_##kind, READ_##saves, parameters },
const MapRow map_rows[MAP_COUNT] = {
#include "../core/map.def"
};

#define ZIP(name, kind, z, k, rx, gx, ry, gy) \
  { #name, KIND_##kind, READ_##rx, READ_##ry },
const ZipRow zip_rows[ZIP_COUNT] = {
#include "../core/zip.def"
};

#define REDUCE(name, kind, centre, fold, f, result, reads, gx) \
  { #name, KIND_##kind, READ_##reads },
const ReduceRow reduce_rows[REDUCE_COUNT] = {
#include "../core/reduce.def"
};

#define FIND(rows) \
  for (int i = 0; i < countof(rows); i++) \
    if (strcmp(rows[i].name, name) == 0) return i; \
  return -1;

int fnn_map_find (const char *name) { FIND(map_rows) }
int fnn_zip_find (const char *name) { FIND(zip_rows) }
int fnn_reduce_find (const char *name) { FIND(reduce_rows) }

/* }====================================================== */

/*
** {======================================================
** Checks
** =======================================================
*/

void check_computes (const char *op, const Tensor *x) {
  if ((x->dtype == FNN_F16 || x->dtype == FNN_BF16) &&
      x->storage->device->host)
    fnn_throw(FNN_EDTYPE,
              "%s: %s only stores on the cpu: convert it with "
              ":to(\"f32\")",
              op, fnn_dtype_name((fnn_Dtype)x->dtype));
}

/* bool < integers < floats */
static int category (fnn_Dtype t) {
  return t == FNN_BOOL ? 0 : dtype_is_float(t) ? 2 : 1;
}

void check_holds (const char *op, const Tensor *x, fnn_Dtype t) {
  if (category(t) > category((fnn_Dtype)x->dtype))
    fnn_throw(FNN_EDTYPE,
              "%s_: the result is %s and does not fit into the %s "
              "tensor of shape %s",
              op, fnn_dtype_name(t), fnn_dtype_name((fnn_Dtype)x->dtype),
              shape_text(x));
}

void check_operand (const char *op, const Tensor *x) {
  if (graph_is_on(x))
    fnn_throw(FNN_EGRAPH,
              "%s_: an in-place op with an operand of shape %s "
              "that is in a graph cannot be recorded (use no_grad, or the op "
              "that makes a new tensor)",
              op, shape_text(x));
}

/* }====================================================== */

/*
** {======================================================
** Geometry
** =======================================================
*/

Tensor *view_broadcast (const Tensor *x, int ndim, const int64_t *shape) {
  if (x->ndim == ndim &&
      memcmp(x->shape, shape, (size_t)ndim * sizeof *shape) == 0)
    return (Tensor *)x;
  int64_t stride[FNN_MAXDIM];
  int lead = ndim - x->ndim;
  for (int i = 0; i < ndim; i++)
    stride[i] =
        i < lead || x->shape[i - lead] != shape[i] ? 0 : x->stride[i - lead];
  return tensor_view(x, ndim, shape, stride, x->offset);
}

Tensor *apart_from (const Tensor *z, const Tensor *x) {
  bool same = z->offset == x->offset && z->dtype == x->dtype &&
              tensor_same_shape(z, x) &&
              memcmp(z->stride, x->stride, z->ndim * sizeof *z->stride) == 0;
  if (same || !tensor_overlaps(z, x)) return (Tensor *)x;
  Tensor *y = tensor_like(x);
  kernel(y, copy)(y, x);
  return y;
}

/* }====================================================== */
