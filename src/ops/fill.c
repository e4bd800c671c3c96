/* fill.c - tensors made of a number or two, and values written in place. */

#include <math.h>

#include "ops.h"

static const fnn_Device *device_or_cpu (const fnn_Device *d) {
  return d != NULL ? d : device_cpu();
}

/* Throws for a number that an integer dtype has no place for at all. */
static void check_value (const char *op, double v, fnn_Dtype t) {
  if (dtype_is_float(t) || t == FNN_BOOL) return;
  if (!(v >= -0x1p63 && v < 0x1p63))
    fnn_throw(FNN_EARG, "%s: %g does not fit %s", op, v, fnn_dtype_name(t));
}

Tensor *fnn_full (int ndim, const int64_t *shape, double value, fnn_Dtype t,
                  const fnn_Device *d) {
  check_value("full", value, t);
  Tensor *y = tensor_new(ndim, shape, t, device_or_cpu(d));
  kernel(y, fill)(y, value);
  return y;
}

Tensor *fnn_zeros (int ndim, const int64_t *shape, fnn_Dtype t,
                   const fnn_Device *d) {
  return fnn_full(ndim, shape, 0, t, d);
}

/* From start to before stop. */
Tensor *fnn_arange (double start, double stop, double step, fnn_Dtype t,
                    const fnn_Device *d) {
  double n = ceil((stop - start) / step);
  if (!isfinite(start) || !isfinite(stop) || !isfinite(step) || step == 0)
    fnn_throw(FNN_EARG,
              "arange: start, stop and step must be finite and step "
              "not 0 (got %g, %g, %g)",
              start, stop, step);
  if (!dtype_is_float(t) && (start != trunc(start) || step != trunc(step)))
    fnn_throw(FNN_EARG,
              "arange: start and step must be integers for %s (got "
              "%g and %g)",
              fnn_dtype_name(t), start, step);
  if (n > 0x1p53) fnn_throw(FNN_ESHAPE, "arange: too many elements (%g)", n);
  int64_t count = n > 0 ? (int64_t)n : 0;
  Tensor *y = tensor_new(1, &count, t, device_or_cpu(d));
  if (count > 0) kernel(y, arange)(y, start, step);
  return y;
}

/* n numbers from start to stop, both met exactly. */
Tensor *fnn_linspace (double start, double stop, int64_t n, fnn_Dtype t,
                      const fnn_Device *d) {
  if (n < 0)
    fnn_throw(FNN_EARG, "linspace: the count must not be negative (got %lld)",
              (long long)n);
  fnn_Dtype made = dtype_is_float(t) ? t : FNN_F64;
  Tensor *y = tensor_new(1, &n, made, device_or_cpu(d));
  double step = n > 1 ? (stop - start) / (double)(n - 1) : 0;
  if (n > 0) kernel(y, arange)(y, start, step);
  if (n > 1) {
    Tensor *end = view_part(y, 0, n - 1, 1, 1);
    kernel(end, fill)(end, stop);
  }
  return tensor_convert(y, t);
}

Tensor *fnn_eye (int64_t n, int64_t m, fnn_Dtype t, const fnn_Device *d) {
  Tensor *y = fnn_zeros(2, (int64_t[]){ n, m }, t, d);
  int64_t k = min64(n, m), step = m + 1;
  Tensor *diagonal = tensor_view(y, 1, &k, &step, 0);
  if (k > 0) kernel(y, fill)(diagonal, 1);
  return y;
}

void fnn_fill_ (Tensor *x, double value) {
  tensor_check_write("fill_", x);
  check_value("fill_", value, (fnn_Dtype)x->dtype);
  tensor_written(x);
  kernel(x, fill)(x, value);
}

void fnn_lerp_ (Tensor *x, Tensor *y, double share) {
  tensor_check_device("lerp_", x, y);
  tensor_check_float("lerp_", x);
  if (!tensor_same_shape(x, y))
    fnn_throw(FNN_ESHAPE, "lerp_: expected shape %s, got %s", shape_text(x),
              shape_text(y));
  tensor_check_write("lerp_", x);
  check_operand("lerp", y);
  Tensor *to = tensor_dense(x);
  y = tensor_convert(tensor_dense(apart_from(x, y)), (fnn_Dtype)x->dtype);
  tensor_written(x);
  Pass pass = { .p = to, .g = y, .u = { .scale = 1, .step = share } };
  kernel(to, optimize)(FORMULA_lerp, &pass, 1);
  if (to->storage != x->storage) kernel(x, copy)(x, to);
}

Tensor *integer_scalar (int64_t v, const fnn_Device *d) {
  return tensor_move(fnn_tensor(FNN_I64, 0, NULL, &v), d);
}

void fnn_fill_integer_ (Tensor *x, int64_t value) {
  fnn_Dtype t = (fnn_Dtype)x->dtype;
  if (!is_rounded(value) || dtype_is_float(t) || t == FNN_BOOL) {
    fnn_fill_(x, (double)value);
    return;
  }
  tensor_check_write("fill_", x);
  if (t != FNN_I64)
    fnn_throw(FNN_EARG, "fill_: %lld does not fit %s", (long long)value,
              fnn_dtype_name(t));
  Tensor *y = integer_scalar(value, x->storage->device);
  tensor_written(x);
  kernel(x, copy)(x, view_broadcast(y, x->ndim, x->shape));
}

void fnn_copy_ (Tensor *x, Tensor *y) {
  int64_t shape[FNN_MAXDIM];
  tensor_check_device("copy_", x, y);
  int ndim = shape_broadcast("copy_", x, y, shape);
  bool fits = ndim == x->ndim;
  for (int i = 0; fits && i < ndim; i++) fits = shape[i] == x->shape[i];
  if (!fits)
    fnn_throw(FNN_ESHAPE,
              "copy_: a tensor of shape %s does not fit into one "
              "of shape %s",
              shape_text(y), shape_text(x));
  tensor_check_write("copy_", x);
  check_operand("copy", y);
  y = view_broadcast(apart_from(x, y), ndim, shape);
  tensor_written(x);
  kernel(x, copy)(x, y);
}
