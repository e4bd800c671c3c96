/* rotary.c - rotary positions (Su et al. 2021, arXiv:2104.09864).
**
** Pair i of a vector at place p turns by p times the i-th frequency, whose
** cosines and sines stand in tables; so a product of two vectors depends on
** how far apart they are.  The derivative turns back. */

#include <inttypes.h>

#include "ops.h"

static const char op_name[] = "rotary";

/* Arguments of a node, and what it saves. */
enum { FIRST, INTERLEAVED };
enum { COS, SIN, PLACES, SAVED };

/* Plain, of 4 dims, the elements of the last side by side. */
static Tensor *as4 (const Tensor *x) {
  Tensor *v = tensor_alias(x);
  while (v->ndim < 4) v = view_insert(v, 0);
  return v->stride[3] == 1 ? v : tensor_dense(v);
}

/* x (b, h, s, d) turned, in memory (b, s, h, d): the order in which products
** give heads and take their gradients. */
static Tensor *turned (const Tensor *x, const Tensor *cos, const Tensor *sin,
                       const Tensor *places, int64_t first, bool interleaved,
                       bool back) {
  const int64_t *s = x->shape;
  Tensor *y = tensor_new(4, (int64_t[]){ s[0], s[2], s[1], s[3] },
                         (fnn_Dtype)x->dtype, x->storage->device);
  y = view_swap(y, 1, 2);
  if (y->numel > 0)
    kernel(y, rotary)(y, x, cos, sin, places, first, interleaved, back);
  return y;
}

static void back (Node *n, Tensor *gy) {
  const int64_t *shape;
  int ndim = graph_shape(n, 0, &shape);
  Tensor *gx = turned(as4(gy), graph_saved(n, COS), graph_saved(n, SIN),
                      graph_saved(n, PLACES), n->i[FIRST],
                      n->i[INTERLEAVED] != 0, true);
  while (gx->ndim > ndim) gx = view_drop(gx, 0);
  graph_give(n, 0, gx);
}

static void check_tables (const Tensor *x, const Tensor *cos,
                          const Tensor *sin) {
  tensor_check_device(op_name, x, cos);
  tensor_check_device(op_name, x, sin);
  if (cos->ndim != 2 || !tensor_same_shape(cos, sin) ||
      2 * cos->shape[1] > x->shape[x->ndim - 1])
    fnn_throw(FNN_ESHAPE,
              "%s: expected tables (places, r / 2), r at most the last size "
              "of %s, got %s and %s",
              op_name, shape_text(x), shape_text(cos), shape_text(sin));
  if (!tensor_is_float(cos) || !tensor_is_float(sin))
    fnn_throw(FNN_EDTYPE, "%s: expected tables of floats, got %s and %s",
              op_name, fnn_dtype_name((fnn_Dtype)cos->dtype),
              fnn_dtype_name((fnn_Dtype)sin->dtype));
}

/* places as (b, s), of stride 0 where a batch has the same; x: (b, h, s, d) */
static Tensor *places_for (const Tensor *x, Tensor *places, int64_t n) {
  int64_t b = x->shape[0], s = x->shape[2];
  bool good =
      (places->ndim == 1 || places->ndim == 2) &&
      places->shape[places->ndim - 1] == s &&
      (places->ndim == 1 || places->shape[0] == b || places->shape[0] == 1);
  if (!good)
    fnn_throw(FNN_ESHAPE,
              "%s: expected positions (%" PRId64 ") or (%" PRId64 ", %" PRId64
              "), got %s",
              op_name, s, b, s, shape_text(places));
  places = ids_checked(op_name, x, places, n, "positions");
  return view_broadcast(places, 2, (int64_t[]){ b, s });
}

fnn_Tensor *fnn_rotary (fnn_Tensor *x, fnn_Tensor *cos, fnn_Tensor *sin,
                        fnn_Tensor *positions, int64_t first,
                        bool interleaved) {
  static const Rule rule = { op_name, back };
  tensor_check_float(op_name, x);
  check_computes(op_name, x);
  if (x->ndim < 2 || x->ndim > 4)
    fnn_throw(FNN_ESHAPE,
              "%s: expected (batch, heads, length, size) or less of it, got "
              "%s",
              op_name, shape_text(x));
  check_tables(x, cos, sin);
  fnn_Dtype t = dtype_wide((fnn_Dtype)x->dtype);
  cos = tensor_dense(tensor_convert(cos, t));
  sin = tensor_dense(tensor_convert(sin, t));
  Tensor *v = as4(x);
  int64_t n = cos->shape[0], s = v->shape[2];
  if (positions != NULL) positions = places_for(v, positions, n);
  else if (first < 0 || first > n - s)
    fnn_throw(FNN_EARG,
              "%s: positions %" PRId64 " to %" PRId64
              " are out of range for %" PRId64 " (they count from 0)",
              op_name, first, min64(first, INT64_MAX - s) + s - 1, n);
  Tensor *y = turned(v, cos, sin, positions, first, interleaved, false);
  while (y->ndim > x->ndim) y = view_drop(y, 0);
  Node *node = graph_record1(y, &rule, x, SAVED);
  if (node == NULL) return y;
  node->i[FIRST] = first;
  node->i[INTERLEAVED] = interleaved;
  graph_save(node, COS, cos);
  graph_save(node, SIN, sin);
  graph_save(node, PLACES, positions);
  return y;
}
