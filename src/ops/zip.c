/* zip.c - binary functions: the rows of zip.def, of two tensors or of one and
** a number. */

#include <math.h>
#include <string.h>

#include "ops.h"

/*
** {======================================================
** Derivatives
** =======================================================
*/

static void zip_back (Node *n, Tensor *gz);
static void number_back (Node *n, Tensor *gz);

#define ZIP(name, ...) { #name, zip_back },
static const Rule rules[ZIP_COUNT] = {
#include "../core/zip.def"
};
#undef ZIP

#define ZIP(name, ...) { #name, number_back },
static const Rule number_rules[ZIP_COUNT] = {
#include "../core/zip.def"
};
#undef ZIP

/* What the gradient of the first (0) or second operand reads. */
static int reads (int op, int which) {
  return which == 0 ? zip_rows[op].first : zip_rows[op].second;
}

static Tensor *gradient (int op, int which, Tensor *gz, const Tensor *x,
                         const Tensor *y) {
  int r = reads(op, which);
  if (r == READ_SELF) return gz;
  Tensor *gx = like_in_order(gz, (fnn_Dtype)gz->dtype);
  kernel(gz, zip_back)(op, which, gx, gz, r & READ_X ? x : NULL,
                       r & READ_Y ? y : NULL);
  return gx;
}

static void zip_back (Node *n, Tensor *gz) {
  int op = (int)(n->rule - rules);
  Tensor *x = graph_saved(n, 0), *y = graph_saved(n, 1);
  for (int i = 0; i < 2; i++)
    if (graph_wants(n, i)) graph_give(n, i, gradient(op, i, gz, x, y));
}

/* The other operand is the number, in a[0]. */
static void number_back (Node *n, Tensor *gz) {
  int op = (int)(n->rule - number_rules), which = (int)n->i[0];
  Tensor *x = graph_saved(n, 0), *v = NULL;
  if (reads(op, which) & (which == 0 ? READ_Y : READ_X))
    v = view_broadcast(
        tensor_scalar(n->a[0], (fnn_Dtype)gz->dtype, gz->storage->device),
        gz->ndim, gz->shape);
  graph_give(n, 0,
             which == 0 ? gradient(op, 0, gz, x, v)
                        : gradient(op, 1, gz, v, x));
}

/* }====================================================== */

/*
** {======================================================
** Dtypes
** =======================================================
*/

static void check_row (int op) {
  if (op < 0 || op >= ZIP_COUNT)
    fnn_throw(FNN_EARG, "zip: there is no row %d", op);
}

/* The dtype that a row computes in for operands that promote to t. */
static fnn_Dtype compute_dtype (int op, fnn_Dtype t) {
  const ZipRow *row = &zip_rows[op];
  if (row->kind == KIND_REAL && !dtype_is_float(t)) return FNN_F32;
  if (row->kind == KIND_INT && dtype_is_float(t))
    fnn_throw(FNN_EDTYPE, "%s: expected integers or bools, got %s", row->name,
              fnn_dtype_name(t));
  if (op == ZIP_sub && t == FNN_BOOL)
    fnn_throw(FNN_EDTYPE, "sub: two bool tensors have no difference (use "
                          "logical_xor)");
  return t;
}

static fnn_Dtype result_dtype (int op, fnn_Dtype t) {
  return zip_rows[op].kind == KIND_TEST ? FNN_BOOL : t;
}

static bool divides (int op) {
  return op == ZIP_floordiv || op == ZIP_remainder || op == ZIP_fmod;
}

/* Integers have no value for a division by zero. */
static void check_divisor (int op, const Tensor *y) {
  if (!divides(op) || tensor_is_float(y) || y->numel == 0) return;
  size_t m = fnn_mark();
  y = tensor_dense(y);
  Tensor *all = tensor_scalar(0, FNN_BOOL, y->storage->device);
  kernel(y, reduce)(REDUCE_all, all, y, 1, y->numel, 1, 0);
  bool zero = fnn_item(all) == 0;
  fnn_escape(m, NULL);
  if (zero)
    fnn_throw(FNN_EARG, "%s: integer division by zero", zip_rows[op].name);
}

/* }====================================================== */

/*
** {======================================================
** Two tensors
** =======================================================
*/

/* An operand as the kernel reads it: in dtype t, and in memory order along
** its last dim, since a run across rows would read a cache line a number. */
static Tensor *operand (const Tensor *x, fnn_Dtype t) {
  if (x->dtype != t) return tensor_convert(x, t);
  int last = x->ndim - 1;
  bool runs = last < 0 || x->shape[last] == 1 || x->stride[last] == 1 ||
              x->stride[last] == 0 || x->order == CHANNELSLAST;
  return runs || x->numel < 4096 ? (Tensor *)x : tensor_dense(x);
}

static Tensor *result (const Tensor *x, const Tensor *y, int ndim,
                       const int64_t *shape, fnn_Dtype t) {
  if (x->order == CHANNELSLAST && x->ndim == ndim) {
    if (memcmp(x->shape, shape, (size_t)ndim * sizeof *shape) == 0)
      return like_in_order(x, t);
  } else if (y->order == CHANNELSLAST && y->ndim == ndim)
    if (memcmp(y->shape, shape, (size_t)ndim * sizeof *shape) == 0)
      return like_in_order(y, t);
  return tensor_new(ndim, shape, t, x->storage->device);
}

Tensor *fnn_zip (int op, Tensor *x, Tensor *y) {
  int64_t shape[FNN_MAXDIM];
  check_row(op);
  if (op == ZIP_pow) {
    x = autocast_wide(x);
    y = autocast_wide(y);
  }
  const ZipRow *row = &zip_rows[op];
  tensor_check_device(row->name, x, y);
  check_computes(row->name, x);
  check_computes(row->name, y);
  fnn_Dtype t =
      compute_dtype(op, fnn_promote((fnn_Dtype)x->dtype, (fnn_Dtype)y->dtype));
  int ndim = shape_broadcast(row->name, x, y, shape);
  Tensor *a = view_broadcast(operand(x, t), ndim, shape);
  Tensor *b = view_broadcast(operand(y, t), ndim, shape);
  check_divisor(op, b);
  Tensor *z = result(x, y, ndim, shape, result_dtype(op, t));
  kernel(a, zip)(op, z, a, b);
  if (!tensor_is_float(z)) return z;
  Node *n = graph_record2(z, &rules[op], x, y, 2);
  if (n == NULL) return z;
  int r = (graph_wants(n, 0) ? row->first : 0) |
          (graph_wants(n, 1) ? row->second : 0);
  if (r & READ_X) graph_save(n, 0, a);
  if (r & READ_Y) graph_save(n, 1, b);
  return z;
}

void fnn_zip_ (int op, Tensor *x, Tensor *y) {
  check_row(op);
  const char *name = zip_rows[op].name;
  tensor_check_device(name, x, y);
  check_computes(name, x);
  check_computes(name, y);
  fnn_Dtype t =
      compute_dtype(op, fnn_promote((fnn_Dtype)x->dtype, (fnn_Dtype)y->dtype));
  int64_t shape[FNN_MAXDIM];
  int ndim = shape_broadcast(name, x, y, shape);
  if (ndim != x->ndim ||
      memcmp(shape, x->shape, (size_t)ndim * sizeof *shape) != 0)
    fnn_throw(FNN_ESHAPE,
              "%s_: an operand of shape %s does not fit into the "
              "tensor of shape %s",
              name, shape_text(y), shape_text(x));
  check_holds(name, x, result_dtype(op, t));
  tensor_check_write(name, x);
  check_operand(name, y);
  Tensor *b = view_broadcast(operand(y, t), ndim, shape);
  check_divisor(op, b);
  if (t == x->dtype && t == result_dtype(op, t)) {
    b = apart_from(x, b);
    tensor_written(x);
    kernel(x, zip)(op, x, x, b);
  } else {
    Tensor *z = tensor_like_as(x, result_dtype(op, t));
    kernel(b, zip)(op, z, tensor_convert(x, t), b);
    tensor_written(x);
    kernel(x, copy)(x, z);
  }
}

/* }====================================================== */

/*
** {======================================================
** A tensor and a number
** =======================================================
*/

/* The dtype that x op v is computed in: x's own where it can hold v. */
static fnn_Dtype number_dtype (int op, const Tensor *x, double v) {
  const ZipRow *row = &zip_rows[op];
  fnn_Dtype t = (fnn_Dtype)x->dtype;
  bool whole = v == trunc(v) && fabs(v) < 0x1p63;
  if (!dtype_is_float(t)) {
    if (row->kind == KIND_INT && !whole)
      fnn_throw(FNN_EDTYPE, "%s: expected an integer, got %g", row->name, v);
    if (row->kind == KIND_TEST) {
      if (!whole) t = FNN_F64;
    } else if (!whole) t = FNN_F32;
    else if (t == FNN_BOOL && (v < 0 || v > 1 || row->kind == KIND_SAME))
      t = FNN_I64;
  }
  return compute_dtype(op, t);
}

static void check_number (int op, const Tensor *x, double v, bool left) {
  if (tensor_is_float(x)) return;
  if (left) check_divisor(op, x);
  else if (divides(op) && v == 0)
    fnn_throw(FNN_EARG, "%s: integer division by zero", zip_rows[op].name);
  else if (op == ZIP_pow && v < 0)
    fnn_throw(FNN_EARG, "pow: integers have no negative powers (convert with "
                        ":to(\"f32\"))");
}

/* The row of map.def that is x^v, or -1. */
static int power (double v) {
  return v == 2      ? MAP_square
         : v == 0.5  ? MAP_sqrt
         : v == -1   ? MAP_reciprocal
         : v == -0.5 ? MAP_rsqrt
                     : -1;
}

Tensor *fnn_zip_number (int op, Tensor *x, double v, bool left) {
  check_row(op);
  const ZipRow *row = &zip_rows[op];
  if (op == ZIP_pow || (op == ZIP_div && left)) x = autocast_wide(x);
  check_computes(row->name, x);
  if (op == ZIP_pow && !left && tensor_is_float(x) && power(v) >= 0)
    return fnn_map(power(v), x, 0, 0);
  fnn_Dtype t = number_dtype(op, x, v);
  Tensor *from = tensor_convert(x, t);
  check_number(op, from, v, left);
  Tensor *z = like_in_order(from, result_dtype(op, t));
  kernel(from, zip_number)(op, z, from, v, left);
  if (!tensor_is_float(z)) return z;
  Node *n = graph_record1(z, &number_rules[op], x, 1);
  if (n == NULL) return z;
  n->i[0] = left;
  n->a[0] = v;
  if (reads(op, left) & (left ? READ_Y : READ_X)) graph_save(n, 0, from);
  return z;
}

void fnn_zip_number_ (int op, Tensor *x, double v) {
  check_row(op);
  const char *name = zip_rows[op].name;
  check_computes(name, x);
  fnn_Dtype t = number_dtype(op, x, v);
  check_holds(name, x, result_dtype(op, t));
  tensor_check_write(name, x);
  check_number(op, x, v, false);
  if (t == x->dtype && t == result_dtype(op, t)) {
    tensor_written(x);
    kernel(x, zip_number)(op, x, x, v, false);
  } else {
    Tensor *z = tensor_like_as(x, result_dtype(op, t));
    Tensor *from = tensor_convert(x, t);
    kernel(from, zip_number)(op, z, from, v, false);
    tensor_written(x);
    kernel(x, copy)(x, z);
  }
}

/* v as an operand beside x, or NULL where a double does as well.  It takes
** x's dtype, as numbers do, but for tests, which compare what it is. */
static Tensor *large_integer (int op, const Tensor *x, int64_t v) {
  if (!is_rounded(v) || tensor_is_float(x)) return NULL;
  check_computes(zip_rows[op].name, x);
  Tensor *y = integer_scalar(v, x->storage->device);
  if (zip_rows[op].kind == KIND_TEST || x->dtype == FNN_BOOL) return y;
  return tensor_convert(y, (fnn_Dtype)x->dtype);
}

Tensor *fnn_zip_integer (int op, Tensor *x, int64_t v, bool left) {
  check_row(op);
  Tensor *y = op != ZIP_pow || left ? large_integer(op, x, v) : NULL;
  if (y == NULL) return fnn_zip_number(op, x, (double)v, left);
  return left ? fnn_zip(op, y, x) : fnn_zip(op, x, y);
}

void fnn_zip_integer_ (int op, Tensor *x, int64_t v) {
  check_row(op);
  Tensor *y = op != ZIP_pow ? large_integer(op, x, v) : NULL;
  if (y == NULL) fnn_zip_number_(op, x, (double)v);
  else fnn_zip_(op, x, y);
}

/* }====================================================== */

Tensor *fnn_add (Tensor *x, Tensor *y) { return fnn_zip(ZIP_add, x, y); }
Tensor *fnn_sub (Tensor *x, Tensor *y) { return fnn_zip(ZIP_sub, x, y); }
Tensor *fnn_mul (Tensor *x, Tensor *y) { return fnn_zip(ZIP_mul, x, y); }
Tensor *fnn_div (Tensor *x, Tensor *y) { return fnn_zip(ZIP_div, x, y); }

Tensor *fnn_scale (Tensor *x, double a) {
  return fnn_zip_number(ZIP_mul, x, a, false);
}
