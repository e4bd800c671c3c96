/* shape.c - the geometry of tensors: counts, strides, broadcasting, text. */

#include <stdio.h>
#include <string.h>

#include "core.h"

const char *shape_print (ShapeText *to, int ndim, const int64_t *shape) {
  int n = snprintf(to->s, sizeof to->s, "(");
  for (int i = 0; i < ndim && n < (int)sizeof to->s - 2; i++)
    n += snprintf(to->s + n, sizeof to->s - (size_t)n, "%s%lld",
                  i > 0 ? ", " : "", (long long)shape[i]);
  if (n > (int)sizeof to->s - 2) n = (int)sizeof to->s - 2;
  memcpy(to->s + n, ")", 2);
  return to->s;
}

int64_t shape_numel (int ndim, const int64_t *shape) {
  int64_t n = 1, most = 1;
  if (ndim < 0 || ndim > FNN_MAXDIM)
    fnn_throw(FNN_ESHAPE, "a tensor has at most %d dimensions (got %d)",
              FNN_MAXDIM, ndim);
  for (int i = 0; i < ndim; i++) {
    if (shape[i] < 0)
      fnn_throw(FNN_ESHAPE, "a size must not be negative (got %lld)",
                (long long)shape[i]);
    /* The product without zeros must fit too: strides are made of it. */
    if (__builtin_mul_overflow(most, max64(shape[i], 1), &most) ||
        most > INT64_MAX / 8)
      fnn_throw(FNN_ESHAPE, "shape %s has too many elements",
                shape_print(&(ShapeText){ "" }, ndim, shape));
    n *= shape[i];
  }
  return n;
}

void shape_strides (int ndim, const int64_t *shape, int64_t *stride) {
  int64_t n = 1;
  for (int i = ndim - 1; i >= 0; i--) {
    stride[i] = n;
    n *= max64(shape[i], 1);
  }
}

int shape_broadcast (const char *op, const Tensor *a, const Tensor *b,
                     int64_t *shape) {
  int n = a->ndim > b->ndim ? a->ndim : b->ndim;
  for (int i = 0; i < n; i++) {
    int ia = i - (n - a->ndim), ib = i - (n - b->ndim);
    int64_t sa = ia >= 0 ? a->shape[ia] : 1, sb = ib >= 0 ? b->shape[ib] : 1;
    if (sa != sb && sa != 1 && sb != 1)
      fnn_throw(FNN_ESHAPE, "%s: shapes %s and %s do not broadcast", op,
                shape_text(a), shape_text(b));
    shape[i] = sa == 1 ? sb : sa;
  }
  return n;
}

bool tensor_same_shape (const Tensor *a, const Tensor *b) {
  return a->ndim == b->ndim &&
         memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0;
}

int tensor_dim (const Tensor *x, int dim, const char *op) {
  int n = x->ndim, d = dim < 0 ? dim + n : dim;
  /* Hosts of the Lua side count from 1: the message names no number that
  ** depends on it. */
  if (d < 0 || d >= n)
    fnn_throw(FNN_EARG,
              "%s: dimension out of range for a rank-%d tensor of "
              "shape %s",
              op, n, shape_text(x));
  return d;
}

unsigned tensor_dims (const Tensor *x, int n, const int *dims,
                      const char *op) {
  if (n == 0) return (1u << x->ndim) - 1u;
  unsigned set = 0;
  for (int i = 0; i < n; i++) {
    unsigned bit = 1u << tensor_dim(x, dims[i], op);
    if (set & bit) fnn_throw(FNN_EARG, "%s: a dimension is named twice", op);
    set |= bit;
  }
  return set;
}
