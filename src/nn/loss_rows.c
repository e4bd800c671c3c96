/* loss_rows.c - losses of rows, made of other ops: triplet, contrastive,
** cosine_embedding, info_nce; and dice, of items.
**
** Distances are norms, whose gradient at 0 is 0. */

#include <math.h>

#include "../ops/ops.h"
#include "nn.h"

static Tensor *sum_rows (Tensor *x) {
  int last = x->ndim - 1;
  return fnn_sum(x, 1, &last, false);
}

static Tensor *norm_rows (Tensor *x, double p, bool keepdim) {
  int last = x->ndim - 1;
  return fnn_reduce(REDUCE_norm, x, 1, &last, keepdim, p);
}

static Tensor *plus (Tensor *x, double v) {
  return v == 0 ? x : fnn_zip_number(ZIP_add, x, v, false);
}

/* v - x */
static Tensor *less (double v, Tensor *x) {
  return fnn_zip_number(ZIP_sub, x, v, true);
}

/* Checks rows a and b, and makes them of one dtype, *a that of y too. */
static void check_rows (const char *op, const char *what_a, Tensor **a,
                        const char *what_b, Tensor **b) {
  *a = autocast_wide(*a);
  *b = autocast_wide(*b);
  tensor_check_float(op, *a);
  tensor_check_float(op, *b);
  loss_check_shapes(op, what_a, *a, what_b, *b);
  if ((*a)->ndim == 0)
    fnn_throw(FNN_ESHAPE, "%s: expected rows of vectors, got shape ()", op);
  *a = loss_promote(op, *a, *b);
  *b = fnn_cast(*b, (fnn_Dtype)(*a)->dtype);
}

/* A label for each row of x, in its dtype. */
static Tensor *labels (const char *op, const Tensor *x, Tensor *y) {
  tensor_check_device(op, x, y);
  bool fits = y->ndim == x->ndim - 1;
  for (int i = 0; fits && i < y->ndim; i++) fits = y->shape[i] == x->shape[i];
  if (!fits)
    fnn_throw(FNN_ESHAPE,
              "%s: rows of shape %s and labels of shape %s (expected one for "
              "each row)",
              op, shape_text(x), shape_text(y));
  return fnn_cast(y, (fnn_Dtype)x->dtype);
}

/*
** {======================================================
** By distance
** =======================================================
*/

Tensor *fnn_triplet (Tensor *anchor, Tensor *positive, Tensor *negative,
                     double margin, double p, double eps, bool swap,
                     fnn_Reduction r) {
  loss_check_reduction("triplet", r);
  loss_check_number("triplet", "margin", margin, 0, false);
  loss_check_number("triplet", "p", p, 0, false);
  loss_check_number("triplet", "eps", eps, 0, true);
  check_rows("triplet", "anchor", &anchor, "positive", &positive);
  check_rows("triplet", "anchor", &anchor, "negative", &negative);
  positive = fnn_cast(positive, (fnn_Dtype)anchor->dtype);
  Tensor *near = norm_rows(plus(fnn_sub(anchor, positive), eps), p, false);
  Tensor *far = norm_rows(plus(fnn_sub(anchor, negative), eps), p, false);
  if (swap) {
    Tensor *d = norm_rows(plus(fnn_sub(positive, negative), eps), p, false);
    far = fnn_zip(ZIP_minimum, far, d);
  }
  return loss_reduce(fnn_relu(plus(fnn_sub(near, far), margin)), r);
}

Tensor *fnn_contrastive (Tensor *a, Tensor *b, Tensor *y, double margin,
                         fnn_Reduction r) {
  loss_check_reduction("contrastive", r);
  loss_check_number("contrastive", "margin", margin, 0, true);
  check_rows("contrastive", "first", &a, "second", &b);
  y = labels("contrastive", a, y);
  Tensor *d = norm_rows(fnn_sub(a, b), 2, false);
  Tensor *near = fnn_map(MAP_square, d, 0, 0);
  Tensor *far = fnn_map(MAP_square, fnn_relu(less(margin, d)), 0, 0);
  return loss_reduce(fnn_add(fnn_mul(y, near), fnn_mul(less(1, y), far)), r);
}

/* }====================================================== */

/*
** {======================================================
** By angle
** =======================================================
*/

/* The length of rows, never 0. */
static Tensor *length (Tensor *x) {
  return fnn_sqrt(plus(sum_rows(fnn_map(MAP_square, x, 0, 0)), 1e-12));
}

Tensor *fnn_cosine_embedding (Tensor *a, Tensor *b, Tensor *y, double margin,
                              fnn_Reduction r) {
  loss_check_reduction("cosine_embedding", r);
  loss_check_number("cosine_embedding", "margin", margin, -INFINITY, false);
  check_rows("cosine_embedding", "first", &a, "second", &b);
  y = labels("cosine_embedding", a, y);
  Tensor *angle =
      fnn_div(fnn_div(sum_rows(fnn_mul(a, b)), length(a)), length(b));
  Tensor *none = tensor_scalar(0, (fnn_Dtype)a->dtype, a->storage->device);
  Tensor *far = fnn_where(fnn_zip_number(ZIP_eq, y, -1, false),
                          fnn_relu(plus(angle, -margin)), none);
  Tensor *each =
      fnn_where(fnn_zip_number(ZIP_eq, y, 1, false), less(1, angle), far);
  return loss_reduce(each, r);
}

/* Rows over their length, or over 1e-12 where that is more. */
static Tensor *directions (Tensor *x) {
  return fnn_div(x,
                 fnn_map(MAP_clamp, norm_rows(x, 2, true), 1e-12, INFINITY));
}

Tensor *fnn_info_nce (Tensor *a, Tensor *b, double temperature,
                      fnn_Reduction r) {
  loss_check_reduction("info_nce", r);
  loss_check_number("info_nce", "temperature", temperature, 0, false);
  check_rows("info_nce", "first", &a, "second", &b);
  if (a->ndim != 2)
    fnn_throw(FNN_ESHAPE, "info_nce: expected rows (n, d), got shape %s",
              shape_text(a));
  Tensor *angles =
      fnn_matmul(directions(a), fnn_transpose(directions(b), 0, 1));
  Tensor *own =
      fnn_arange(0, (double)a->shape[0], 1, FNN_I64, a->storage->device);
  fnn_LossOptions o = FNN_LOSS_INIT;
  o.reduction = r;
  return fnn_cross_entropy(fnn_scale(angles, 1 / temperature), own, &o);
}

/* }====================================================== */

/*
** {======================================================
** By overlap
** =======================================================
*/

Tensor *fnn_dice (Tensor *x, Tensor *t, double smooth, bool batch,
                  fnn_Reduction r) {
  loss_check_reduction("dice", r);
  loss_check_number("dice", "smooth", smooth, 0, true);
  x = autocast_wide(x);
  t = autocast_wide(t);
  tensor_check_float("dice", x);
  loss_check_shapes("dice", "prediction", x, "target", t);
  x = loss_promote("dice", x, t);
  t = fnn_cast(t, (fnn_Dtype)x->dtype);
  int dims[FNN_MAXDIM], n = 0;
  if (!batch)
    for (int i = 1; i < x->ndim; i++) dims[n++] = i;
  Tensor *both = fnn_sum(fnn_mul(x, t), n, dims, false);
  Tensor *all =
      fnn_add(fnn_sum(x, n, dims, false), fnn_sum(t, n, dims, false));
  Tensor *share = fnn_div(plus(fnn_scale(both, 2), smooth), plus(all, smooth));
  return loss_reduce(less(1, share), r);
}

/* }====================================================== */
