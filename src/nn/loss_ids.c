/* loss_ids.c - losses of class ids: cross_entropy and nll. */

#include <string.h>

#include "../ops/ops.h"
#include "nn.h"

static const fnn_LossOptions fallback = FNN_LOSS_INIT;

static void check_options (const char *op, const Tensor *x,
                           const fnn_LossOptions *o) {
  double s = o->label_smoothing;
  const Tensor *w = o->weight;
  loss_check_reduction(op, o->reduction);
  if (x->ndim == 0)
    fnn_throw(FNN_ESHAPE,
              "%s: the prediction needs a dim of classes (got "
              "shape ())",
              op);
  int64_t classes = x->shape[x->ndim > 1 ? 1 : 0];
  if (!(s >= 0 && s <= 1))
    fnn_throw(FNN_EARG, "%s: label_smoothing must be between 0 and 1 (got %g)",
              op, s);
  if (w == NULL) return;
  tensor_check_device(op, x, w);
  if (w->ndim != 1 || w->shape[0] != classes ||
      (w->dtype != x->dtype && w->dtype != dtype_wide((fnn_Dtype)x->dtype)))
    fnn_throw(FNN_ESHAPE,
              "%s: the weight must be %s of shape (%lld), got %s of shape %s",
              op, fnn_dtype_name((fnn_Dtype)x->dtype), (long long)classes,
              fnn_dtype_name((fnn_Dtype)w->dtype), shape_text(w));
}

/*
** {======================================================
** Cross entropy of ids
** =======================================================
*/

/* A view of x with dim 1, the classes, last; and the way back. */
static Tensor *classes_last (const Tensor *x) {
  int64_t shape[FNN_MAXDIM], stride[FNN_MAXDIM];
  int k = 0;
  for (int i = 0; i < x->ndim; i++) {
    if (i == 1) continue;
    shape[k] = x->shape[i];
    stride[k++] = x->stride[i];
  }
  shape[k] = x->shape[1];
  stride[k] = x->stride[1];
  return tensor_view(x, x->ndim, shape, stride, x->offset);
}

static Tensor *classes_second (const Tensor *x) {
  int64_t shape[FNN_MAXDIM], stride[FNN_MAXDIM];
  int k = 0, last = x->ndim - 1;
  for (int i = 0; i < last; i++, k++) {
    if (k == 1) k++;
    shape[k] = x->shape[i];
    stride[k] = x->stride[i];
  }
  shape[1] = x->shape[last];
  stride[1] = x->stride[last];
  return tensor_view(x, x->ndim, shape, stride, x->offset);
}

static void cross_entropy_back (Node *n, Tensor *gy) {
  Tensor *x = graph_saved(n, 0), *lse = graph_saved(n, 1);
  Tensor *ids = graph_saved(n, 2), *w = graph_saved(n, 3);
  Tensor *gx = tensor_like(x), *on = graph_saved(n, 4);
  int64_t classes = x->shape[x->ndim - 1];
  if (on != NULL) gy = fnn_mul(tensor_convert(gy, (fnn_Dtype)on->dtype), on);
  kernel(x, cross_entropy_back)(gx, tensor_dense(gy), lse, x, ids, w,
                                ids->numel, classes, n->i[0], n->a[0],
                                n->a[1]);
  graph_give(n, 0, x->ndim > 2 ? classes_second(gx) : gx);
}

/* ids as dense i64 in 0 .. classes-1, or ignore. */
static Tensor *checked_ids (const char *op, const Tensor *x, Tensor *ids,
                            int64_t classes, int64_t ignore) {
  tensor_check_ids(op, ids);
  bool fits = ids->ndim == x->ndim - 1;
  for (int i = 0; fits && i < ids->ndim; i++)
    fits = ids->shape[i] == x->shape[i > 0 ? i + 1 : 0];
  if (x->ndim == 1) fits = ids->ndim == 0;
  bool nll = strcmp(op, "nll") == 0;
  if (!fits)
    fnn_throw(FNN_ESHAPE,
              "%s: %s of shape %s and ids of shape %s (expected the shape "
              "without the classes%s)",
              op, nll ? "log-probabilities" : "logits", shape_text(x),
              shape_text(ids), nll ? "" : ", or probabilities for all");
  ids = tensor_dense(tensor_convert(ids, FNN_I64));
  int64_t bad = -1;
  kernel(ids, check_ids)(ids, classes, ignore, op, "classes", &bad);
  if (bad >= 0) {
    int64_t one = 1, id;
    fnn_read(tensor_view(ids, 1, &one, &one, ids->offset + bad), &id);
    fnn_throw(FNN_EARG, "%s: id %lld is out of range for %lld classes", op,
              (long long)id, (long long)classes);
  }
  return ids;
}

/* The number of ids that count, or the sum of their weights: (). */
static Tensor *total_weight (Tensor *ids, const Tensor *w, int64_t ignore) {
  Tensor *counts = fnn_zip_number(ZIP_ne, ids, (double)ignore, false);
  if (w == NULL) return fnn_sum(counts, 0, NULL, false);
  Tensor *safe = fnn_zip(ZIP_mul, ids, fnn_cast(counts, FNN_I64));
  Tensor *each =
      fnn_index_select(tensor_alias(w), 0, fnn_reshape(safe, 1, &safe->numel));
  Tensor *used =
      fnn_reshape(fnn_cast(counts, (fnn_Dtype)w->dtype), 1, &safe->numel);
  return fnn_sum(fnn_mul(each, used), 0, NULL, false);
}

/* What makes a mean of a sum over ids: 1 over their weight, 0 where nothing
** counts, not NaN.  On the host a number; a device that would have to be
** waited for keeps it, as *on, and 1 is the number. */
static double mean_scale (Tensor *ids, const Tensor *w, const Tensor *x,
                          int64_t ignore, Tensor **on) {
  size_t m = fnn_mark();
  Tensor *s = total_weight(ids, w, ignore);
  *on = NULL;
  if (x->storage->device->host) {
    double total = fnn_item(s);
    fnn_escape(m, NULL);
    return total > 0 ? 1 / total : 0;
  }
  s = fnn_cast(s, dtype_wide((fnn_Dtype)x->dtype));
  Tensor *some = fnn_zip_number(ZIP_gt, s, 0, false);
  Tensor *none = tensor_scalar(0, (fnn_Dtype)s->dtype, s->storage->device);
  s = fnn_where(some, fnn_zip_number(ZIP_div, s, 1, true), none);
  *on = fnn_escape(m, s);
  return 1;
}

/* The sum of the rows, or their mean: times *scale, or *on where that is. */
static Tensor *reduced (Tensor *each, const Tensor *x, Tensor *ids,
                        const Tensor *w, const fnn_LossOptions *o,
                        double *scale, Tensor **on) {
  const fnn_Device *d = x->storage->device;
  Tensor *y = tensor_new(0, NULL, (fnn_Dtype)each->dtype, d);
  kernel(x, reduce)(REDUCE_sum, y, each, 1, each->numel, 1, 0);
  if (o->reduction != FNN_MEAN) return y;
  *scale = mean_scale(ids, w, x, o->ignore_index, on);
  if (*on != NULL) kernel(x, zip)(ZIP_mul, y, y, *on);
  else kernel(x, zip_number)(ZIP_mul, y, y, *scale, false);
  return y;
}

static Tensor *of_ids (Tensor *x, Tensor *ids, const fnn_LossOptions *o) {
  static const Rule rule = { "cross_entropy", cross_entropy_back };
  int64_t classes = x->shape[x->ndim > 1 ? 1 : 0];
  ids = checked_ids("cross_entropy", x, ids, classes, o->ignore_index);
  Tensor *rows = tensor_dense(x->ndim > 2 ? classes_last(x) : x);
  fnn_Dtype t = (fnn_Dtype)x->dtype, wide = dtype_wide(t);
  Tensor *w =
      o->weight != NULL ? tensor_dense(tensor_convert(o->weight, wide)) : NULL;
  bool all = o->reduction == FNN_NONE;
  Tensor *each = tensor_like_as(ids, all ? t : wide), *on = NULL;
  Tensor *lse =
      tensor_new(2, (int64_t[]){ each->numel, 2 }, wide, x->storage->device);
  double scale = 1;
  kernel(x, cross_entropy)(each, lse, rows, ids, w, each->numel, classes,
                           o->ignore_index, o->label_smoothing);
  Tensor *y =
      all ? each : tensor_convert(reduced(each, x, ids, w, o, &scale, &on), t);
  Node *n = graph_record1(y, &rule, x, 5);
  if (n == NULL) return y;
  n->i[0] = o->ignore_index;
  n->a[0] = o->label_smoothing;
  n->a[1] = scale;
  graph_save(n, 0, rows);
  graph_save(n, 1, lse);
  graph_save(n, 2, ids);
  graph_save(n, 3, w);
  graph_save(n, 4, on);
  return y;
}

/* }====================================================== */

/*
** {======================================================
** Cross entropy of probabilities: - sum w[c] t[c] log softmax(x)[c]
** =======================================================
*/

static Tensor *of_probabilities (Tensor *x, Tensor *t,
                                 const fnn_LossOptions *o) {
  int dim = x->ndim > 1 ? 1 : 0;
  int64_t classes = x->shape[dim];
  double s = o->label_smoothing;
  if (s != 0)
    t = fnn_zip_number(ZIP_add, fnn_scale(t, 1 - s), s / (double)classes,
                       false);
  if (o->weight != NULL) {
    int64_t shape[FNN_MAXDIM];
    for (int i = 0; i < x->ndim; i++) shape[i] = i == dim ? classes : 1;
    t = fnn_mul(t, fnn_reshape(tensor_alias(o->weight), x->ndim, shape));
  }
  Tensor *each = fnn_mul(fnn_log_softmax(x, dim), t);
  if (o->reduction == FNN_NONE)
    return fnn_map(MAP_neg, fnn_sum(each, 1, &dim, false), 0, 0);
  double rows = (double)x->numel / (double)max64(classes, 1);
  double scale = o->reduction == FNN_MEAN && rows > 0 ? -1 / rows : -1;
  return fnn_scale(fnn_sum(each, 0, NULL, false), scale);
}

/* }====================================================== */

Tensor *fnn_cross_entropy (Tensor *logits, Tensor *targets,
                           const fnn_LossOptions *o) {
  if (o == NULL) o = &fallback;
  logits = autocast_wide(logits);
  tensor_check_float("cross_entropy", logits);
  tensor_check_device("cross_entropy", logits, targets);
  check_options("cross_entropy", logits, o);
  if (tensor_is_float(targets) && tensor_same_shape(logits, targets))
    return of_probabilities(logits, targets, o);
  return of_ids(logits, targets, o);
}

/*
** {======================================================
** nll: the log-probabilities are the input
** =======================================================
*/

/* -w[id] x[id] for each id, 0 for those to be ignored. */
static Tensor *each_nll (Tensor *x, Tensor *ids, const fnn_LossOptions *o) {
  int dim = x->ndim > 1 ? 1 : 0;
  Tensor *skip = fnn_zip_number(ZIP_eq, ids, (double)o->ignore_index, false);
  Tensor *safe = fnn_masked_fill(ids, skip, 0);
  Tensor *y = fnn_gather(x, dim, fnn_unsqueeze(safe, dim));
  y = fnn_map(MAP_neg, fnn_squeeze(y, dim), 0, 0);
  if (o->weight != NULL) {
    Tensor *w = fnn_index_select(tensor_alias(o->weight), 0,
                                 fnn_reshape(safe, 1, &safe->numel));
    y = fnn_mul(y, fnn_reshape(w, y->ndim, y->shape));
  }
  return fnn_masked_fill(y, skip, 0);
}

Tensor *fnn_nll (Tensor *x, Tensor *ids, const fnn_LossOptions *o) {
  if (o == NULL) o = &fallback;
  x = autocast_wide(x);
  tensor_check_float("nll", x);
  tensor_check_device("nll", x, ids);
  check_options("nll", x, o);
  int64_t classes = x->shape[x->ndim > 1 ? 1 : 0];
  ids = checked_ids("nll", x, ids, classes, o->ignore_index);
  Tensor *each = each_nll(x, ids, o);
  if (o->reduction == FNN_NONE) return each;
  fnn_Dtype t = (fnn_Dtype)x->dtype;
  Tensor *y = fnn_sum(fnn_cast(each, dtype_wide(t)), 0, NULL, false), *on;
  if (o->reduction == FNN_SUM) return fnn_cast(y, t);
  double scale = mean_scale(ids, o->weight, x, o->ignore_index, &on);
  y = on != NULL ? fnn_mul(y, on) : fnn_scale(y, scale);
  return fnn_cast(y, t);
}

/* }====================================================== */
