/* loss_ctc.c - ctc: labels without their places in time. */

#include <string.h>

#include "../ops/ops.h"
#include "nn.h"

static void ctc_back (Node *n, Tensor *gy) {
  Tensor *x = graph_saved(n, 0), *gx = tensor_like(x);
  kernel(x, ctc_back)(gx, tensor_dense(gy), graph_saved(n, 1),
                      graph_saved(n, 2), x, graph_saved(n, 3),
                      graph_saved(n, 4), n->i[0], n->i[1] != 0);
  graph_give(n, 0, gx);
}

/* The n integers of x, on the host. */
static int64_t *integers (const char *what, const Tensor *x, int64_t n) {
  tensor_check_ids("ctc", x);
  if (x->numel != n || x->ndim > 1)
    fnn_throw(FNN_ESHAPE,
              "ctc: %s of shape %s (expected one for each of %lld sequences)",
              what, shape_text(x), (long long)n);
  int64_t *v = mem_scratch((size_t)(n + 1) * sizeof *v);
  fnn_read(tensor_convert(x, FNN_I64), v);
  return v;
}

static void check_count (const char *what, int64_t i, int64_t v,
                         int64_t most) {
  if (v < 0 || v > most)
    fnn_throw(FNN_EARG,
              "ctc: the %s of sequence %lld must be 0 .. %lld (got "
              "%lld)",
              what, (long long)i, (long long)most, (long long)v);
}

/* Where the labels of each sequence start, their count, its steps: rows (n, 3)
** on the host; *most is the largest count. */
static Tensor *spans (const Tensor *x, const Tensor *ids, const int64_t *steps,
                      const int64_t *counts, int64_t *most) {
  int64_t n = x->shape[1], next = 0;
  bool padded = ids->ndim == 2;
  int64_t *to = mem_scratch((size_t)(3 * n + 1) * sizeof *to);
  *most = 0;
  for (int64_t i = 0; i < n; i++, to += 3) {
    check_count("steps", i, steps[i], x->shape[0]);
    check_count("labels", i, counts[i], padded ? ids->shape[1] : ids->numel);
    to[0] = padded ? i * ids->shape[1] : next;
    to[1] = counts[i];
    to[2] = steps[i];
    next += counts[i];
    *most = max64(*most, counts[i]);
  }
  if (!padded && next != ids->numel)
    fnn_throw(FNN_ESHAPE,
              "ctc: %lld ids, but the counts of labels add up to %lld",
              (long long)ids->numel, (long long)next);
  return fnn_tensor(FNN_I64, 2, (int64_t[]){ n, 3 }, to - 3 * n);
}

/* The same on a device that is not waited for: 0 is put in the place of
** padding, what is no class in that of blanks. */
static void check_labels_later (Tensor *ids, const Tensor *span,
                                int64_t classes, int64_t blank) {
  size_t m = fnn_mark();
  const int64_t *row = tensor_data(span);
  uint8_t *count = mem_scratch((size_t)ids->numel + 1);
  memset(count, 0, (size_t)ids->numel);
  for (int64_t i = 0; i < span->shape[0]; i++, row += 3)
    if (row[1] > 0) memset(count + row[0], 1, (size_t)row[1]);
  Tensor *pad = fnn_tensor(FNN_BOOL, 1, &ids->numel, count);
  pad = fnn_map(MAP_logical_not, tensor_move(pad, ids->storage->device), 0, 0);
  ids = fnn_reshape(ids, 1, &ids->numel);
  Tensor *blanks = fnn_zip_number(ZIP_eq, ids, (double)blank, false);
  ids = fnn_masked_fill(ids, blanks, (double)classes);
  ids = fnn_masked_fill(ids, pad, 0);
  int64_t bad;
  kernel(ids, check_ids)(ids, classes, 0, "ctc", "classes", &bad);
  fnn_escape(m, NULL);
}

/* The labels that count must be classes, and not the blank: padding may be
** anything. */
static void check_labels (Tensor *ids, const Tensor *span, int64_t classes,
                          int64_t blank) {
  if (!ids->storage->device->host) {
    check_labels_later(ids, span, classes, blank);
    return;
  }
  size_t m = fnn_mark();
  int64_t n = span->shape[0];
  int64_t *id = mem_scratch((size_t)(ids->numel + 1) * sizeof *id);
  int64_t *row = mem_scratch((size_t)(3 * n + 1) * sizeof *row);
  fnn_read(ids, id);
  fnn_read(span, row);
  for (int64_t i = 0; i < n; i++, row += 3)
    for (int64_t k = row[0]; k < row[0] + row[1]; k++)
      if (id[k] < 0 || id[k] >= classes || id[k] == blank)
        fnn_throw(FNN_EARG,
                  "ctc: label %lld of sequence %lld is %s for %lld classes",
                  (long long)id[k], (long long)i,
                  id[k] == blank ? "the blank" : "out of range",
                  (long long)classes);
  fnn_escape(m, NULL);
}

/* The losses of x (steps, n, classes). */
static Tensor *each_ctc (Tensor *x, Tensor *ids, Tensor *span, int64_t most,
                         int64_t blank, bool zero_infinity) {
  static const Rule rule = { "ctc", ctc_back };
  const fnn_Device *d = x->storage->device;
  int64_t n = x->shape[1];
  Tensor *from = tensor_dense(x);
  Tensor *y = tensor_new(1, &n, (fnn_Dtype)x->dtype, d);
  Tensor *loss = tensor_new(1, &n, FNN_F64, d);
  Tensor *alpha =
      tensor_new(3, (int64_t[]){ n, x->shape[0], 2 * most + 1 }, FNN_F64, d);
  kernel(x, ctc)(y, alpha, loss, from, ids, span, blank, zero_infinity);
  Node *k = graph_record1(y, &rule, x, 5);
  if (k == NULL) return y;
  k->i[0] = blank;
  k->i[1] = zero_infinity;
  graph_save(k, 0, from);
  graph_save(k, 1, alpha);
  graph_save(k, 2, loss);
  graph_save(k, 3, ids);
  graph_save(k, 4, span);
  return y;
}

Tensor *fnn_ctc (Tensor *x, Tensor *ids, Tensor *steps, Tensor *counts,
                 int64_t blank, bool zero_infinity, fnn_Reduction r) {
  loss_check_reduction("ctc", r);
  x = autocast_wide(x);
  tensor_check_float("ctc", x);
  tensor_check_ids("ctc", ids);
  tensor_check_device("ctc", x, ids);
  bool one = x->ndim == 2;
  if (one) x = fnn_unsqueeze(x, 1);
  if (x->ndim != 3)
    fnn_throw(FNN_ESHAPE,
              "ctc: expected log-probabilities (steps, n, classes), got shape "
              "%s",
              shape_text(x));
  int64_t n = x->shape[1], classes = x->shape[2], most;
  if (ids->ndim != 1 && !(ids->ndim == 2 && ids->shape[0] == n))
    fnn_throw(FNN_ESHAPE,
              "ctc: log-probabilities of shape %s and ids of shape %s "
              "(expected (n, most), or all ids in a row)",
              shape_text(x), shape_text(ids));
  if (blank < 0 || blank >= classes)
    fnn_throw(FNN_EARG, "ctc: the blank must be 0 .. %lld (got %lld)",
              (long long)classes - 1, (long long)blank);
  ids = tensor_dense(tensor_convert(ids, FNN_I64));
  int64_t *count = integers("counts of labels", counts, n);
  Tensor *span = spans(x, ids, integers("steps", steps, n), count, &most);
  check_labels(ids, span, classes, blank);
  span = tensor_move(span, x->storage->device);
  Tensor *y = each_ctc(x, ids, span, most, blank, zero_infinity);
  if (r == FNN_MEAN) {
    for (int64_t i = 0; i < n; i++) count[i] = max64(count[i], 1);
    Tensor *by = fnn_tensor(FNN_I64, 1, &n, count);
    y = fnn_div(y, tensor_move(by, y->storage->device));
  }
  if (r == FNN_NONE && one) return fnn_squeeze(y, 0);
  return loss_reduce(y, r);
}
