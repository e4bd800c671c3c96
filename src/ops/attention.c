/* attention.c - scaled dot-product attention, which never stores its scores.
**
** Forward keeps the logarithm of each row's sum of exponentials, from which
** the derivative makes the weights again a block at a time (Rabe and Staats
** 2021, Dao et al. 2022).  A mask that wants a gradient has the size of the
** scores: then the op is composed of others. */

#include <inttypes.h>
#include <math.h>

#include "ops.h"

static const char op_name[] = "scaled_dot_product_attention";

/* Arguments of a node, and what it saves. */
enum { CAUSAL = 3 }; /* behind the draw */
enum { Q, K, V, Y, LSE, MASK, SLOPES, SAVED };

/*
** {======================================================
** Operands
** =======================================================
*/

static void check_operands (const Tensor *q, const Tensor *k,
                            const Tensor *v) {
  tensor_check_device(op_name, q, k);
  tensor_check_device(op_name, q, v);
  tensor_check_float(op_name, q);
  if (!dtype_is_float((fnn_Dtype)k->dtype) || k->dtype != v->dtype ||
      (k->dtype == FNN_F64) != (q->dtype == FNN_F64))
    fnn_throw(FNN_EDTYPE, "%s: the query is %s, key %s and value %s", op_name,
              fnn_dtype_name((fnn_Dtype)q->dtype),
              fnn_dtype_name((fnn_Dtype)k->dtype),
              fnn_dtype_name((fnn_Dtype)v->dtype));
  bool good = q->ndim >= 2 && k->ndim == q->ndim && v->ndim == q->ndim;
  int heads = q->ndim - 3; /* which dim they are */
  for (int d = 0; good && d < q->ndim - 2; d++) {
    bool shared = d == heads && k->shape[d] > 0
                      ? q->shape[d] % k->shape[d] == 0
                      : q->shape[d] == k->shape[d];
    good = shared && v->shape[d] == k->shape[d];
  }
  int m = q->ndim - 2, d = q->ndim - 1;
  good = good && v->shape[m] == k->shape[m] && k->shape[d] == q->shape[d];
  if (!good)
    fnn_throw(FNN_ESHAPE,
              "%s: expected query (..., heads, m, d), key (..., groups, n, d) "
              "and value (..., groups, n, e), where groups divide heads, got "
              "%s, %s and %s",
              op_name, shape_text(q), shape_text(k), shape_text(v));
  if (q->shape[d] == 0)
    fnn_throw(FNN_ESHAPE, "%s: nothing to compare in a query of shape %s",
              op_name, shape_text(q));
}

/* x of 2 dims or more as (batch, heads, length, size). */
static Tensor *as4 (Tensor *x) {
  int64_t shape[4] = { 1, 1, 1, 1 };
  if (x->ndim == 4) return x;
  for (int d = 0; d < x->ndim; d++) {
    int to = d + 4 - x->ndim;
    shape[to < 0 ? 0 : to] *= x->shape[d];
  }
  return fnn_reshape(x, 4, shape);
}

/* As kernels take it: the elements of the last dim side by side. */
static Tensor *in_rows (const Tensor *x) {
  return x->stride[x->ndim - 1] == 1 ? tensor_alias(x) : tensor_dense(x);
}

/* A tensor of x's shape, in memory (batch, length, heads, size): the order in
** which products give queries and take results. */
static Tensor *by_length (const int64_t *shape, fnn_Dtype t,
                          const fnn_Device *d) {
  Tensor *y = tensor_new(
      4, (int64_t[]){ shape[0], shape[2], shape[1], shape[3] }, t, d);
  return view_swap(y, 1, 2);
}

/* The mask as (b, h, m, n), of strides 0 where it is broadcast. */
static Tensor *mask_for (const Tensor *q, const Tensor *k, Tensor *mask) {
  int64_t shape[4] = { q->shape[0], q->shape[1], q->shape[2], k->shape[2] };
  tensor_check_device(op_name, q, mask);
  fnn_Dtype t = (fnn_Dtype)mask->dtype;
  if (t != FNN_BOOL && !dtype_is_float(t))
    fnn_throw(FNN_EDTYPE,
              "%s: expected a mask of bool, true where something may be "
              "attended, or of floats to add, got %s",
              op_name, fnn_dtype_name(t));
  if (mask->ndim > 4)
    fnn_throw(FNN_ESHAPE, "%s: expected a mask of at most 4 dims, got %s",
              op_name, shape_text(mask));
  for (int d = 1; d <= mask->ndim; d++) {
    int64_t size = mask->shape[mask->ndim - d];
    if (size != 1 && size != shape[4 - d])
      fnn_throw(FNN_ESHAPE,
                "%s: expected a mask that broadcasts to %s (batch, heads, "
                "queries, keys), got %s",
                op_name, shape_print(&(ShapeText){ "" }, 4, shape),
                shape_text(mask));
  }
  if (t != FNN_BOOL)
    mask = tensor_convert(mask, dtype_wide((fnn_Dtype)q->dtype));
  return view_broadcast(mask, 4, shape);
}

static Tensor *slopes_for (const Tensor *q, const Tensor *slopes) {
  tensor_check_device(op_name, q, slopes);
  if (slopes->ndim != 1 || slopes->shape[0] != q->shape[1])
    fnn_throw(FNN_ESHAPE,
              "%s: expected %" PRId64 " slopes, one a head, got shape %s",
              op_name, q->shape[1], shape_text(slopes));
  return tensor_dense(tensor_convert(slopes, dtype_wide((fnn_Dtype)q->dtype)));
}

/* }====================================================== */

/*
** {======================================================
** Composed of other ops, where the mask wants a gradient
** =======================================================
*/

/* x (b, g, n, d) with each group as often as there are heads to it. */
static Tensor *repeated (Tensor *x, int64_t heads) {
  const int64_t *s = x->shape;
  if (s[1] == heads) return x;
  int64_t each = s[1] > 0 ? heads / s[1] : 1;
  Tensor *y = fnn_reshape(x, 5, (int64_t[]){ s[0], s[1], 1, s[2], s[3] });
  y = fnn_expand(y, 5, (int64_t[]){ s[0], s[1], each, s[2], s[3] });
  return fnn_reshape(y, 4, (int64_t[]){ s[0], heads, s[2], s[3] });
}

/* -slope |i + n - m - j|, (h, m, n) */
static Tensor *slope_bias (const Tensor *slopes, int64_t m, int64_t n) {
  const fnn_Device *d = slopes->storage->device;
  fnn_Dtype t = (fnn_Dtype)slopes->dtype;
  Tensor *i = fnn_arange((double)(n - m), (double)n, 1, t, d);
  Tensor *j = fnn_arange(0, (double)n, 1, t, d);
  Tensor *far = fnn_sub(fnn_unsqueeze(j, 0), fnn_unsqueeze(i, 1));
  Tensor *falls = fnn_reshape(tensor_alias(slopes), 3,
                              (int64_t[]){ slopes->shape[0], 1, 1 });
  return fnn_mul(fnn_map(MAP_neg, falls, 0, 0), fnn_map(MAP_abs, far, 0, 0));
}

static Tensor *composed (Tensor *q, Tensor *k, Tensor *v, Tensor *slopes,
                         const fnn_Attention *o, double scale) {
  int64_t m = q->shape[2], n = k->shape[2];
  const fnn_Device *d = q->storage->device;
  fnn_Dtype t = (fnn_Dtype)q->dtype;
  Tensor *least = tensor_scalar(-INFINITY, t, d);
  Tensor *none = tensor_scalar(0, t, d);
  k = repeated(k, q->shape[1]);
  v = repeated(v, q->shape[1]);
  /* the queries are scaled, as their products may be too large for f16 */
  q = fnn_zip_number(ZIP_mul, q, scale, false);
  Tensor *s = fnn_matmul(q, fnn_transpose(k, -1, -2));
  s = fnn_add(s, fnn_cast(o->mask, t));
  if (slopes != NULL) s = fnn_add(s, fnn_cast(slope_bias(slopes, m, n), t));
  if (o->causal) {
    Tensor *seen = fnn_full(2, (int64_t[]){ m, n }, 1, FNN_BOOL, d);
    s = fnn_where(fnn_tril(seen, n - m), s, least);
  }
  Tensor *some = fnn_reduce(REDUCE_any, fnn_zip(ZIP_ne, s, least), 1,
                            (int[]){ -1 }, true, 0);
  Tensor *p = fnn_softmax(fnn_where(some, s, none), -1);
  p = fnn_dropout(fnn_where(some, p, none), o->dropout, o->generator);
  return fnn_matmul(p, v);
}

/* }====================================================== */

static void back (Node *n, Tensor *gy) {
  Tensor *q = graph_saved(n, Q), *k = graph_saved(n, K);
  Tensor *v = graph_saved(n, V), *y = graph_saved(n, Y);
  Attention a = { .mask = graph_saved(n, MASK),
                  .slopes = graph_saved(n, SLOPES),
                  .causal = n->i[CAUSAL] != 0,
                  .scale = n->a[0],
                  .dropout = n->a[1],
                  .draw = node_draw(n) };
  fnn_Dtype t = (fnn_Dtype)q->dtype;
  const fnn_Device *d = q->storage->device;
  Tensor *in[] = { q, k, v }, *gx[3] = { NULL }; /* Q, K, V */
  for (int i = Q; i <= V; i++)
    if (graph_wants(n, i) || !d->host) gx[i] = by_length(in[i]->shape, t, d);
  if (y->numel > 0)
    kernel(q, attention_back)(gx[Q], gx[K], gx[V], in_rows(gy), y,
                              graph_saved(n, LSE), q, k, v, &a);
  for (int i = Q; i <= V; i++) {
    if (gx[i] == NULL) continue;
    if (y->numel == 0) fnn_fill_(gx[i], 0);
    graph_give(n, i, gx[i]);
  }
}

static void record (Tensor *y, Tensor *const *in, Tensor *const *read,
                    Tensor *lse, const Attention *a) {
  static const Rule rule = { op_name, back };
  Node *n = graph_record(y, &rule, 3, in, SAVED);
  if (n == NULL) return;
  node_keep_draw(n, a->draw);
  n->i[CAUSAL] = a->causal;
  n->a[0] = a->scale;
  n->a[1] = a->dropout;
  for (int i = Q; i <= V; i++) graph_save(n, i, read[i]);
  graph_save(n, Y, y);
  graph_save(n, LSE, lse);
  graph_save(n, MASK, a->mask);
  graph_save(n, SLOPES, a->slopes);
}

/* in: q, k and v of 4 dims */
static Tensor *attend (Tensor **in, Attention *a, bool recorded) {
  Tensor *read[3];
  bool rounds =
      autocast_is_on((fnn_Dtype)in[Q]->dtype) && !in[Q]->storage->device->host;
  for (int i = Q; i <= V; i++)
    read[i] = in_rows(rounds ? autocast_data(in[i]) : in[i]);
  const int64_t *q = in[Q]->shape;
  int64_t shape[4] = { q[0], q[1], q[2], in[V]->shape[3] };
  fnn_Dtype t = (fnn_Dtype)read[Q]->dtype;
  const fnn_Device *d = in[Q]->storage->device;
  Tensor *y = by_length(shape, t, d);
  Tensor *lse = recorded ? tensor_new(3, q, dtype_wide(t), d) : NULL;
  if (y->numel > 0) kernel(y, attention)(y, lse, read[Q], read[K], read[V], a);
  record(y, in, read, lse, a);
  return y;
}

fnn_Tensor *fnn_scaled_dot_product_attention (fnn_Tensor *q, fnn_Tensor *k,
                                              fnn_Tensor *v,
                                              const fnn_Attention *o) {
  check_operands(q, k, v);
  if (!(o->dropout >= 0 && o->dropout <= 1))
    fnn_throw(FNN_EARG, "%s: dropout out of range (expected 0 to 1, got %g)",
              op_name, o->dropout);
  int ndim = q->ndim;
  int64_t shape[FNN_MAXDIM];
  for (int i = 0; i < ndim; i++) shape[i] = q->shape[i];
  shape[ndim - 1] = v->shape[ndim - 1];
  bool recorded = graph_is_on(q) || graph_is_on(k) || graph_is_on(v);
  bool stored = k->dtype != q->dtype && q->storage->device->host && !recorded;
  fnn_Dtype t = (fnn_Dtype)q->dtype;
  Tensor *in[3] = { as4(q), as4(stored ? k : fnn_cast(k, t)),
                    as4(stored ? v : fnn_cast(v, t)) };
  Tensor *slopes = o->alibi != NULL ? slopes_for(in[Q], o->alibi) : NULL;
  Tensor *mask = o->mask != NULL ? mask_for(in[Q], in[K], o->mask) : NULL;
  double scale =
      o->scale != 0 ? o->scale : 1 / sqrt((double)q->shape[ndim - 1]);
  if (o->mask != NULL && graph_is_on(o->mask))
    return fnn_reshape(composed(in[Q], in[K], in[V], slopes, o, scale), ndim,
                       shape);
  Attention a = { mask, slopes, o->causal, scale, o->dropout, { 0 } };
  if (o->dropout > 0) {
    double blocks = (double)in[Q]->shape[0] * (double)in[Q]->shape[1] *
                    (double)in[Q]->shape[2] * (double)in[K]->shape[2] / 4;
    a.draw = generator_take(generator_or_default(o->generator),
                            (uint64_t)blocks + 1);
  }
  Tensor *y = attend(in, &a, recorded);
  return ndim == 4 ? y : fnn_reshape(y, ndim, shape);
}
