/* matmul.c - products of matrices, and the linear layer made of one.
**
** c = a b, its gradients ga = gc b' and gb = a' gc: b' and a' are views, so
** no transposed copy is ever made.  A matrix shared by a batch meets the
** batch folded into rows: one product forward, and one for its gradient. */

#include <string.h>

#include "ops.h"

static const Epilogue plain = { NULL, -1, false, 1 };

/*
** {======================================================
** Products of plain operands of 2 or more dims
** =======================================================
*/

static int64_t rows_of (const Tensor *x) { return x->shape[x->ndim - 2]; }
static int64_t cols_of (const Tensor *x) { return x->shape[x->ndim - 1]; }
static int64_t batch_of (const Tensor *x) {
  int64_t n = 1;
  for (int d = 0; d < x->ndim - 2; d++) n *= x->shape[d];
  return n;
}

static Tensor *transposed (const Tensor *x) {
  return view_swap(x, x->ndim - 2, x->ndim - 1);
}

/* The broadcast of the leading dims of a and b; how many, or -1. */
static int leading (const Tensor *a, const Tensor *b, int64_t *shape) {
  int n = (a->ndim > b->ndim ? a->ndim : b->ndim) - 2;
  for (int d = 0; d < n; d++) {
    int da = d - n + a->ndim - 2, db = d - n + b->ndim - 2;
    int64_t na = da < 0 ? 1 : a->shape[da], nb = db < 0 ? 1 : b->shape[db];
    if (na != nb && na != 1 && nb != 1) return -1;
    shape[d] = na == 1 ? nb : na;
  }
  return n;
}

/* x with its leading dims stretched to n ones of these sizes. */
static Tensor *spread (const Tensor *x, int n, const int64_t *lead) {
  int64_t shape[FNN_MAXDIM], stride[FNN_MAXDIM];
  int have = x->ndim - 2;
  for (int d = 0; d < n; d++) {
    int from = d - n + have;
    shape[d] = lead[d];
    stride[d] = from >= 0 && x->shape[from] == lead[d] ? x->stride[from] : 0;
  }
  for (int d = 0; d < 2; d++) {
    shape[n + d] = x->shape[have + d];
    stride[n + d] = x->stride[have + d];
  }
  return tensor_view(x, n + 2, shape, stride, x->offset);
}

/* x (..., m, k) as (rows, k), or NULL if only a copy could be that. */
static Tensor *folded (const Tensor *x) {
  return view_fold(x, 2, (int64_t[]){ batch_of(x) * rows_of(x), cols_of(x) });
}

/* c (..., m, n) = a (..., m, k) b (..., k, n), leading dims broadcast. */
static Tensor *product (const Tensor *a, const Tensor *b, fnn_Dtype t,
                        const Epilogue *e) {
  int64_t shape[FNN_MAXDIM];
  int n = leading(a, b, shape);
  shape[n] = rows_of(a);
  shape[n + 1] = cols_of(b);
  Tensor *c = tensor_new(n + 2, shape, t, a->storage->device);
  Tensor *rows = n > 0 && batch_of(b) == 1 ? folded(a) : NULL;
  if (c->numel == 0) return c;
  if (!dtype_is_float(t))
    kernel(c, matmul_int)(c, spread(a, n, shape), spread(b, n, shape));
  else if (rows != NULL)
    kernel(c, matmul)(folded(c), rows, spread(b, 0, NULL), e);
  else kernel(c, matmul)(c, spread(a, n, shape), spread(b, n, shape), e);
  return c;
}

/* The i-th matrix of a batch, counted in row-major order. */
static Tensor *matrix (const Tensor *x, int64_t i) {
  int64_t offset = x->offset;
  for (int d = x->ndim - 3; d >= 0; d--) {
    offset += i % x->shape[d] * x->stride[d];
    i /= x->shape[d];
  }
  return tensor_view(x, 2, &x->shape[x->ndim - 2], &x->stride[x->ndim - 2],
                     offset);
}

/* c (m, n) = the sum over the batch of a (..., m, k) b (..., k, n).  Where a
** batch can be folded into k this is one product; else each adds to c. */
static Tensor *product_sum (const Tensor *a, const Tensor *b, fnn_Dtype t) {
  int64_t lead[FNN_MAXDIM], shape[2] = { rows_of(a), cols_of(b) };
  int n = leading(a, b, lead);
  Tensor *sa = spread(a, n, lead), *sb = spread(b, n, lead);
  Tensor *left = folded(transposed(sa)), *right = folded(sb);
  Epilogue add = { NULL, -1, true, 1 };
  int64_t batch = batch_of(sa);
  if (left != NULL && right != NULL)
    return product(transposed(left), right, t, &plain);
  Tensor *c = fnn_zeros(2, shape, t, a->storage->device);
  size_t mark = fnn_mark();
  for (int64_t i = 0; i < batch && c->numel > 0; i++) {
    kernel(c, matmul)(c, matrix(sa, i), matrix(sb, i), &add);
    fnn_escape(mark, NULL);
  }
  return c;
}

/* }====================================================== */

/*
** {======================================================
** Dtypes
** =======================================================
*/

/* The dtype of a product: that of promotion, f32 where it could only store
** the result.  Half operands are widened as they are read. */
static fnn_Dtype result_dtype (const char *op, const Tensor *x,
                               const Tensor *y) {
  if (!tensor_is_float(x)) tensor_check_float(op, x);
  if (!tensor_is_float(y)) tensor_check_float(op, y);
  tensor_check_device(op, x, y);
  fnn_Dtype t = fnn_promote((fnn_Dtype)x->dtype, (fnn_Dtype)y->dtype);
  return dtype_is_compute(t) || !x->storage->device->host ? t : FNN_F32;
}

/* The same for a product of integers, which is one. */
static fnn_Dtype integer_dtype (const Tensor *x, const Tensor *y) {
  fnn_Dtype t = fnn_promote((fnn_Dtype)x->dtype, (fnn_Dtype)y->dtype);
  tensor_check_device("matmul", x, y);
  if (t == FNN_BOOL)
    fnn_throw(FNN_EDTYPE,
              "matmul: %s by %s: bools have no product (convert "
              "them with :to(\"i64\"))",
              shape_text(x), shape_text(y));
  return t;
}

/* An operand as the kernel for t takes it. */
static Tensor *operand (Tensor *x, fnn_Dtype t) {
  if (!dtype_is_float(t)) return tensor_dense(tensor_convert(x, t));
  return t == FNN_F64 ? fnn_cast(x, t) : x;
}

/* }====================================================== */

/*
** {======================================================
** Matmul
** =======================================================
*/

/* A vector on the left is a row, on the right a column. */
static Tensor *as_row (const Tensor *x) {
  return x->ndim == 1 ? view_insert(x, 0) : tensor_alias(x);
}

static Tensor *as_column (const Tensor *x) {
  return x->ndim == 1 ? view_insert(x, 1) : tensor_alias(x);
}

/* ga = gc b', gb = a' gc; summed over the batch that a or b was shared by. */
static void matmul_back (Node *n, Tensor *gy) {
  int64_t na = n->i[0], nb = n->i[1]; /* dims of a and of b */
  Tensor *gc = gy;
  if (nb == 1) gc = view_insert(gc, gc->ndim);
  if (na == 1) gc = view_insert(gc, gc->ndim - 1);
  if (graph_wants(n, 0)) {
    Tensor *b = transposed(as_column(graph_saved(n, 1)));
    fnn_Dtype t = autocast_gradient(n, 0, gy);
    Tensor *ga = na <= 2 ? product_sum(gc, b, t) : product(gc, b, t, &plain);
    graph_give(n, 0, na == 1 ? view_drop(ga, 0) : ga);
  }
  if (graph_wants(n, 1)) {
    Tensor *a = transposed(as_row(graph_saved(n, 0)));
    fnn_Dtype t = autocast_gradient(n, 1, gy);
    Tensor *gb = nb <= 2 ? product_sum(a, gc, t) : product(a, gc, t, &plain);
    graph_give(n, 1, nb == 1 ? view_drop(gb, 1) : gb);
  }
}

static void check_matmul (const Tensor *x, const Tensor *y) {
  int64_t shape[FNN_MAXDIM];
  if (x->ndim == 0 || y->ndim == 0)
    fnn_throw(FNN_ESHAPE,
              "matmul: %s by %s: a tensor without dims is no "
              "matrix (multiply with mul)",
              shape_text(x), shape_text(y));
  Tensor *a = as_row(x), *b = as_column(y);
  if (cols_of(a) != rows_of(b))
    fnn_throw(FNN_ESHAPE,
              "matmul: the inner dimensions of %s and %s differ "
              "(%lld and %lld)",
              shape_text(x), shape_text(y), (long long)cols_of(a),
              (long long)rows_of(b));
  if (leading(a, b, shape) < 0)
    fnn_throw(FNN_ESHAPE,
              "matmul: the leading dimensions of %s and %s do not "
              "broadcast",
              shape_text(x), shape_text(y));
}

Tensor *fnn_matmul (Tensor *x, Tensor *y) {
  static const Rule rule = { "matmul", matmul_back };
  bool integers = !tensor_is_float(x) && !tensor_is_float(y);
  fnn_Dtype t = integers ? integer_dtype(x, y) : result_dtype("matmul", x, y);
  check_matmul(x, y);
  Tensor *a, *b; /* what is read of x and y */
  if (autocast_is_on(t)) {
    a = autocast_data(x);
    b = autocast_data(y);
    t = result_dtype("matmul", a, b);
  } else {
    a = x = operand(x, t);
    b = y = operand(y, t);
  }
  Tensor *c = product(as_row(a), as_column(b), t, &plain);
  if (y->ndim == 1) c = view_drop(c, c->ndim - 1);
  if (x->ndim == 1) c = view_drop(c, c->ndim - (y->ndim == 1 ? 1 : 2));
  Node *n = graph_record2(c, &rule, x, y, 2);
  if (n != NULL) {
    graph_save(n, 0, graph_wants(n, 1) ? a : NULL);
    graph_save(n, 1, graph_wants(n, 0) ? b : NULL);
    n->i[0] = x->ndim;
    n->i[1] = y->ndim;
  }
  return c;
}

/* }====================================================== */

/*
** {======================================================
** Linear
** =======================================================
*/

/* x (..., n) as a matrix of rows; a copy only where no view is one. */
static Tensor *as_rows (const Tensor *x) {
  Tensor *y = folded(as_row(x));
  return y != NULL ? y : folded(as_row(tensor_dense(x)));
}

/* With gz the gradient before act: gx = gz w, gw = gz' x, gb its sum over the
** rows. */
static void linear_back (Node *n, Tensor *gy) {
  const int64_t *shape;
  int act = (int)n->i[0];
  Tensor *gz = gy;
  if (act >= 0) {
    gz = tensor_like(gy);
    kernel(gy, map_back)(act, gz, tensor_dense(gy), graph_saved(n, 2), 0, 0);
  }
  gz = as_rows(gz);
  if (graph_wants(n, 0)) {
    Tensor *gx =
        product(gz, graph_saved(n, 1), autocast_gradient(n, 0, gy), &plain);
    int ndim = graph_shape(n, 0, &shape);
    graph_give(n, 0, view_fold(gx, ndim, shape));
  }
  if (graph_wants(n, 1))
    graph_give(n, 1,
               product(transposed(gz), as_rows(graph_saved(n, 0)),
                       autocast_gradient(n, 1, gy), &plain));
  if (n->nin > 2 && graph_wants(n, 2))
    graph_give(n, 2, fnn_sum(gz, 1, (int[]){ 0 }, false));
}

static void check_linear (const Tensor *x, const Tensor *w, const Tensor *b) {
  if (w->ndim != 2 || x->ndim == 0)
    fnn_throw(FNN_ESHAPE,
              "linear: x %s and weight %s (expected x (..., in), "
              "weight (out, in))",
              shape_text(x), shape_text(w));
  if (cols_of(as_row(x)) != cols_of(w))
    fnn_throw(FNN_ESHAPE,
              "linear: the inner dimensions of x %s and weight %s "
              "differ (%lld and %lld)",
              shape_text(x), shape_text(w), (long long)x->shape[x->ndim - 1],
              (long long)cols_of(w));
  if (b == NULL) return;
  tensor_check_device("linear", x, b);
  if (b->ndim != 1 || b->shape[0] != rows_of(w))
    fnn_throw(FNN_ESHAPE, "linear: bias %s for weight %s (expected (%lld))",
              shape_text(b), shape_text(w), (long long)rows_of(w));
}

/* What a linear layer is made of, or reads of that. */
typedef struct Layer {
  Tensor *x, *w, *b;
} Layer;

/* y = act(x w' + b) in one pass over what is read of the layer. */
static Tensor *linear (Layer l, Layer read, int act, fnn_Dtype t) {
  static const Rule rule = { "linear", linear_back };
  int64_t shape[FNN_MAXDIM];
  Tensor *x = read.x, *w = read.w, *b = read.b;
  Epilogue e = { b != NULL ? tensor_dense(b) : NULL, act, false, 1 };
  Tensor *y = product(as_rows(x), transposed(w), t, &e);
  memcpy(shape, x->shape, sizeof shape);
  shape[x->ndim - 1] = rows_of(w);
  y = view_fold(y, x->ndim, shape);
  Node *n = graph_record(y, &rule, b != NULL ? 3 : 2,
                         (Tensor *[]){ l.x, l.w, l.b }, 3);
  if (n != NULL) {
    graph_save(n, 0, graph_wants(n, 1) ? x : NULL);
    graph_save(n, 1, graph_wants(n, 0) ? w : NULL);
    graph_save(n, 2, act >= 0 ? y : NULL);
    n->i[0] = act;
  }
  return y;
}

Tensor *fnn_linear (Tensor *x, Tensor *w, Tensor *b, int act) {
  fnn_Dtype t = result_dtype("linear", x, w);
  check_linear(x, w, b);
  Layer l, read;
  if (autocast_is_on(t)) {
    l = (Layer){ x, w, b };
    read = (Layer){ autocast_data(x), autocast_data(w), b };
    t = result_dtype("linear", read.x, read.w);
    if (b != NULL)
      read.b = dtype_is_compute(t) ? tensor_convert(b, t) : autocast_data(b);
  } else {
    l = (Layer){ operand(x, t), operand(w, t), b };
    if (b != NULL) l.b = fnn_cast(b, t);
    read = l;
  }
  const MapRow *row = act >= 0 ? &map_rows[act] : NULL;
  if (row == NULL || (row->saves == READ_Y && row->nargs == 0))
    return linear(l, read, act, t);
  return fnn_map(act, linear(l, read, -1, t), row->fallback[0],
                 row->fallback[1]);
}

/* }====================================================== */
