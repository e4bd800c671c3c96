/* clip.c - the gradients of a list of parameters, taken together. */

#include "optim.h"

#include <math.h>

/* Whether one call of a kernel can take both. */
static bool together (const Tensor *x, const Tensor *y) {
  return x->storage->device == y->storage->device &&
         kernel_of(x, square_sum) == kernel_of(y, square_sum);
}

/* The gradients there are, dense in some order, in a dtype that their device
** computes in; *n becomes how many. */
static const Tensor **gradients (int *n, fnn_Param *const *p) {
  const Tensor **x = mem_scratch((size_t)(*n + 1) * sizeof *x);
  int count = 0;
  for (int i = 0; i < *n; i++) {
    const Tensor *g = p[i]->grad;
    if (g == NULL) continue;
    if (!tensor_is_channels_last(g)) g = tensor_dense(g);
    if (g->storage->device->host && !dtype_is_compute((fnn_Dtype)g->dtype))
      g = tensor_convert(g, FNN_F32);
    x[count++] = g;
  }
  *n = count;
  return x;
}

Tensor *gradient_squares (int n, fnn_Param *const *p, Tensor *sum) {
  size_t m = fnn_mark();
  const Tensor **x = gradients(&n, p);
  if (sum == NULL)
    sum = fnn_zeros(0, NULL, FNN_F64,
                    n > 0 ? x[0]->storage->device : device_cpu());
  for (int i = 0, k; i < n; i = k) {
    for (k = i + 1; k < n && together(x[i], x[k]);) k++;
    sum = tensor_move(sum, x[i]->storage->device);
    kernel(x[i], square_sum)(sum, x + i, k - i);
  }
  return fnn_escape(m, sum);
}

/* The norm of what has these squares; and the factor that clips it. */
static Tensor *norm_of (const Tensor *squares, double most, Tensor **factor) {
  Tensor *norm = tensor_like(squares), *f = tensor_like(squares);
  kernel(norm, norm_factor)(f, norm, squares, 1, most);
  if (factor != NULL) *factor = f;
  return norm;
}

fnn_Tensor *fnn_grad_norm_later (int n, fnn_Param *const *p) {
  size_t m = fnn_mark();
  return fnn_escape(m, norm_of(gradient_squares(n, p, NULL), HUGE_VAL, NULL));
}

static double item (const Tensor *x, size_t mark) {
  double v = fnn_item(x);
  fnn_escape(mark, NULL);
  return v;
}

double fnn_grad_norm (int n, fnn_Param *const *p) {
  size_t m = fnn_mark();
  return item(fnn_grad_norm_later(n, p), m);
}

/* All before the first is written. */
static void check_write (const char *op, int n, fnn_Param *const *p) {
  for (int i = 0; i < n; i++)
    if (p[i]->grad != NULL) {
      tensor_check_write(op, p[i]->grad);
      tensor_check_float(op, p[i]->grad);
    }
}

/* The gradients there are; those that have strides become dense. */
static Tensor **scalable (int *n, fnn_Param *const *p) {
  Tensor **x = mem_scratch((size_t)(*n + 1) * sizeof *x);
  int count = 0;
  for (int i = 0; i < *n; i++) {
    if (p[i]->grad == NULL) continue;
    if (!tensor_is_channels_last(p[i]->grad) && !tensor_is_dense(p[i]->grad))
      fnn_set_gradient(p[i], p[i]->grad);
    x[count++] = p[i]->grad;
  }
  *n = count;
  return x;
}

/* All gradients times the factor. */
static void scale_by (int n, fnn_Param *const *p, const Tensor *factor) {
  Tensor **x = scalable(&n, p);
  for (int i = 0, k; i < n; i = k) {
    for (k = i + 1; k < n && together(x[i], x[k]);) k++;
    for (int j = i; j < k; j++) tensor_written(x[j]);
    kernel(x[i], scale_all)(x + i, k - i,
                            tensor_move(factor, x[i]->storage->device));
  }
}

void fnn_scale_grad (int n, fnn_Param *const *p, double factor) {
  check_write("scale_grad", n, p);
  size_t m = fnn_mark();
  const fnn_Device *d = n > 0 ? p[0]->value->storage->device : device_cpu();
  scale_by(n, p, tensor_scalar(factor, FNN_F64, d));
  fnn_escape(m, NULL);
}

fnn_Tensor *fnn_clip_grad_norm_later (int n, fnn_Param *const *p,
                                      double most) {
  if (!(most >= 0))
    fnn_throw(FNN_EARG,
              "clip_grad_norm: the norm must not be negative (got "
              "%g)",
              most);
  check_write("clip_grad_norm", n, p);
  size_t m = fnn_mark();
  Tensor *factor;
  Tensor *norm = norm_of(gradient_squares(n, p, NULL), most, &factor);
  scale_by(n, p, factor);
  return fnn_escape(m, norm);
}

double fnn_clip_grad_norm (int n, fnn_Param *const *p, double most) {
  size_t m = fnn_mark();
  return item(fnn_clip_grad_norm_later(n, p, most), m);
}

void fnn_clip_grad_value (int n, fnn_Param *const *p, double most) {
  if (!(most >= 0))
    fnn_throw(FNN_EARG,
              "clip_grad_value: the bound must not be negative "
              "(got %g)",
              most);
  check_write("clip_grad_value", n, p);
  for (int i = 0; i < n; i++)
    if (p[i]->grad != NULL) fnn_map_(MAP_clamp, p[i]->grad, -most, most);
}

/* A NaN or an infinity makes the sum of squares one of them; so may an
** overflow in f64, which gradients of f32 cannot reach. */
bool fnn_gradients_are_finite (int n, fnn_Param *const *p) {
  return isfinite(fnn_grad_norm(n, p));
}
