/* map.c - unary functions: the rows of map.def. */

#include <math.h>

#include "ops.h"

static void map_back (Node *n, Tensor *gy);

#define MAP(name, ...) { #name, map_back },
static const Rule rules[MAP_COUNT] = {
#include "../core/map.def"
};
#undef MAP

static void map_back (Node *n, Tensor *gy) {
  int op = (int)(n->rule - rules);
  Tensor *s = n->nsave > 0 ? graph_saved(n, 0) : NULL;
  Tensor *gx = like_in_order(gy, (fnn_Dtype)gy->dtype);
  kernel(gy, map_back)(op, gx, gy, s, n->a[0], n->a[1]);
  graph_give(n, 0, gx);
}

/* Whether clamp's bounds are no integers. */
static bool fraction (double a, double b) {
  return (isfinite(a) && a != trunc(a)) || (isfinite(b) && b != trunc(b));
}

/* x as the row computes it, and the row itself (bitnot of bools is
** logical_not). */
static Tensor *operand (int *op, Tensor *x, double a, double b) {
  const MapRow *row = &map_rows[*op];
  bool real = tensor_is_float(x);
  check_computes(row->name, x);
  switch (row->kind) {
    case KIND_INT:
      if (real)
        fnn_throw(FNN_EDTYPE, "%s: expected integers or bools, got %s",
                  row->name, fnn_dtype_name((fnn_Dtype)x->dtype));
      if (x->dtype == FNN_BOOL) *op = MAP_logical_not;
      return x;
    case KIND_SAME:
      if (x->dtype == FNN_BOOL)
        fnn_throw(FNN_EDTYPE,
                  "%s: expected numbers, got a bool tensor of "
                  "shape %s",
                  row->name, shape_text(x));
      if (*op == MAP_clamp && fraction(a, b)) break;
      return x;
    case KIND_TEST: return x;
    default: break;
  }
  return real ? x : tensor_convert(x, FNN_F32);
}

/* An int64 that a bound of clamp surely is within. */
static double bound (const Tensor *x, double v) {
  if (tensor_is_float(x)) return v;
  return v < -0x1p62 ? -0x1p62 : v > 0x1p62 ? 0x1p62 : v;
}

static fnn_Dtype result_dtype (int op, const Tensor *x) {
  return map_rows[op].kind == KIND_TEST ? FNN_BOOL : (fnn_Dtype)x->dtype;
}

static void check_row (int op) {
  if (op < 0 || op >= MAP_COUNT)
    fnn_throw(FNN_EARG, "map: there is no row %d", op);
}

/* Rows that autocast gives f32. */
static bool is_wide (int op) {
  switch (op) {
    case MAP_rsqrt:
    case MAP_reciprocal:
    case MAP_exp:
    case MAP_expm1:
    case MAP_log:
    case MAP_log1p:
    case MAP_log2:
    case MAP_log10:
    case MAP_tan:
    case MAP_asin:
    case MAP_acos:
    case MAP_sinh:
    case MAP_cosh:
    case MAP_softplus: return true;
    default: return false;
  }
}

Tensor *fnn_map (int op, Tensor *x, double a, double b) {
  check_row(op);
  if (is_wide(op)) x = autocast_wide(x);
  x = operand(&op, x, a, b);
  if (op == MAP_clamp) a = bound(x, a), b = bound(x, b);
  Tensor *y = like_in_order(x, result_dtype(op, x));
  kernel(x, map)(op, y, x, a, b);
  if (!tensor_is_float(y)) return y;
  int saves = map_rows[op].saves;
  Node *n = graph_record1(y, &rules[op], x, saves != READ_NONE);
  if (n == NULL) return y;
  n->a[0] = a;
  n->a[1] = b;
  if (saves != READ_NONE) graph_save(n, 0, saves == READ_X ? x : y);
  return y;
}

void fnn_map_ (int op, Tensor *x, double a, double b) {
  check_row(op);
  const char *name = map_rows[op].name;
  Tensor *from = operand(&op, x, a, b);
  if (op == MAP_clamp) a = bound(from, a), b = bound(from, b);
  fnn_Dtype t = result_dtype(op, from);
  check_holds(name, x, t);
  tensor_check_write(name, x);
  if (t == x->dtype) {
    tensor_written(x);
    kernel(x, map)(op, x, from, a, b);
  } else {
    Tensor *y = tensor_like_as(x, t);
    kernel(x, map)(op, y, from, a, b);
    tensor_written(x);
    kernel(x, copy)(x, y);
  }
}

#define NAMED(name) \
  Tensor *fnn_##name(Tensor *x) { return fnn_map(MAP_##name, x, 0, 0); }

NAMED(relu)
NAMED(exp)
NAMED(log)
NAMED(sqrt)
NAMED(tanh)
NAMED(sigmoid)
