/* clip.c - the gradients of a list of parameters, taken together. */

#include "optim.h"

#include <math.h>

static double square_sum (const Tensor *x) {
  double sum = 0;
  x = tensor_dense(x);
  if (x->dtype == FNN_F16 || x->dtype == FNN_BF16)
    x = tensor_convert(x, FNN_F32);
  kernel(x, square_sum)(x, &sum);
  return sum;
}

double fnn_grad_norm (int n, fnn_Param *const *p) {
  size_t m = fnn_mark();
  double sum = 0;
  for (int i = 0; i < n; i++)
    if (p[i]->grad != NULL) sum += square_sum(p[i]->grad);
  fnn_escape(m, NULL);
  return sqrt(sum);
}

/* All before the first is written. */
static void check_write (const char *op, int n, fnn_Param *const *p) {
  for (int i = 0; i < n; i++)
    if (p[i]->grad != NULL) tensor_check_write(op, p[i]->grad);
}

double fnn_clip_grad_norm (int n, fnn_Param *const *p, double most) {
  if (!(most >= 0))
    fnn_throw(FNN_EARG,
              "clip_grad_norm: the norm must not be negative (got "
              "%g)",
              most);
  check_write("clip_grad_norm", n, p);
  double norm = fnn_grad_norm(n, p);
  if (!(norm > most)) return norm;
  double scale = most / (norm + 1e-6);
  for (int i = 0; i < n; i++)
    if (p[i]->grad != NULL) fnn_zip_number_(ZIP_mul, p[i]->grad, scale);
  return norm;
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
