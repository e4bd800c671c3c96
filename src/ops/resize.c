/* resize.c - images and signals in another size, in the order in memory that x
** has; pixels moved to channels and back. */

#include <inttypes.h>
#include <math.h>

#include "ops.h"

static bool is_last (const Tensor *x) { return tensor_is_channels_last(x); }

static void set_planes (Resize *r, const Tensor *x) {
  r->channels = is_last(x) ? x->shape[1] : 1;
  r->planes = is_last(x) ? x->shape[0] : x->shape[0] * x->shape[1];
}

/* Of x's dims behind the channels. */
static ResizeAxis *axis_at (Resize *r, const Tensor *x, int d) {
  return d == x->ndim - 1 ? &r->w : &r->h;
}

static void interpolate_back (Node *n, Tensor *gy) {
  const int64_t *shape;
  int ndim = graph_shape(n, 0, &shape);
  bool last = is_last(gy);
  gy = last ? gy : tensor_dense(gy);
  Tensor *gx = (last ? tensor_new_channels_last : tensor_new)(
      ndim, shape, (fnn_Dtype)gy->dtype, gy->storage->device);
  Resize r = { .h = { 1, 1, 1 },
               .mode = (fnn_Interpolation)n->i[0],
               .align_corners = n->i[1],
               .antialias = n->i[2],
               .back = true };
  set_planes(&r, gy);
  for (int d = 2; d < ndim; d++)
    *axis_at(&r, gy, d) = (ResizeAxis){ shape[d], gy->shape[d], n->a[d - 2] };
  if (gx->numel > 0) kernel(gy, resize)(gx, gy, &r);
  graph_give(n, 0, gx);
}

/* The new size of dim d, and what of the old one an output covers. */
static ResizeAxis axis_of (const Tensor *x, int d, const int64_t *size,
                           const double *scale) {
  ResizeAxis a = { x->shape[d], 0, 0 };
  double out =
      size != NULL ? (double)size[d - 2] : floor((double)a.in * scale[d - 2]);
  if (!(out >= 1 && out <= INT32_MAX) || a.in < 1)
    fnn_throw(FNN_ESHAPE,
              "interpolate: a dim of %" PRId64 " cannot become %g (shape %s)",
              a.in, out, shape_text(x));
  a.out = (int64_t)out;
  a.scale = size != NULL ? (double)a.in / out : 1 / scale[d - 2];
  return a;
}

Tensor *fnn_interpolate (Tensor *x, const int64_t *size, const double *scale,
                         fnn_Interpolation mode, bool align_corners,
                         bool antialias) {
  static const Rule rule = { "interpolate", interpolate_back };
  x = autocast_wide(x);
  tensor_check_float("interpolate", x);
  if (x->ndim < 3 || x->ndim > 4 || (mode == FNN_CUBIC && x->ndim != 4))
    fnn_throw(FNN_ESHAPE,
              "interpolate: expected shape %s(n, channels, h, w), "
              "got %s",
              mode == FNN_CUBIC ? "" : "(n, channels, l) or ", shape_text(x));
  if ((size == NULL) == (scale == NULL))
    fnn_throw(FNN_EARG, "interpolate: expected a size or a scale factor");
  if (align_corners && mode == FNN_NEAREST)
    fnn_throw(FNN_EARG, "interpolate: nearest has no corners to align");
  if (antialias && (mode == FNN_NEAREST || x->ndim != 4 || align_corners))
    fnn_throw(FNN_EARG, "interpolate: antialias is for bilinear and bicubic, "
                        "without align_corners");
  int64_t shape[FNN_MAXDIM] = { x->shape[0], x->shape[1] };
  Resize r = { .h = { 1, 1, 1 },
               .mode = mode,
               .align_corners = align_corners,
               .antialias = antialias };
  for (int d = 2; d < x->ndim; d++) {
    ResizeAxis a = axis_of(x, d, size, scale);
    *axis_at(&r, x, d) = a;
    shape[d] = a.out;
  }
  Tensor *from = is_last(x) ? x : tensor_dense(x);
  set_planes(&r, from);
  Tensor *y = (is_last(x) ? tensor_new_channels_last : tensor_new)(
      x->ndim, shape, (fnn_Dtype)x->dtype, x->storage->device);
  if (y->numel > 0) kernel(x, resize)(y, from, &r);
  Node *n = graph_record1(y, &rule, x, 0);
  if (n == NULL) return y;
  n->i[0] = mode;
  n->i[1] = align_corners;
  n->i[2] = antialias;
  for (int d = 2; d < x->ndim; d++) n->a[d - 2] = axis_at(&r, x, d)->scale;
  return y;
}

/*
** {======================================================
** Pixels and channels
** =======================================================
*/

/* Whether x has the dims that a factor r is for. */
static bool has_pixels (const Tensor *x, int64_t r) {
  return x->ndim >= 3 && x->ndim < FNN_MAXDIM - 1 && r >= 1 && r < 1 << 15;
}

static void check_pixels (const char *op, const Tensor *x, int64_t r,
                          bool fits) {
  if (fits) return;
  fnn_throw(FNN_ESHAPE, "%s: shape %s does not fit a factor of %" PRId64, op,
            shape_text(x), r);
}

/* x's leading dims, then the n given. */
static Tensor *reshape_tail (Tensor *x, int lead, int n, const int64_t *tail) {
  int64_t shape[FNN_MAXDIM];
  for (int i = 0; i < lead; i++) shape[i] = x->shape[i];
  for (int i = 0; i < n; i++) shape[lead + i] = tail[i];
  return fnn_reshape(x, lead + n, shape);
}

static Tensor *permute_tail (Tensor *x, int lead, const int *tail) {
  int dims[FNN_MAXDIM];
  for (int i = 0; i < x->ndim; i++)
    dims[i] = i < lead ? i : lead + tail[i - lead];
  return fnn_permute(x, x->ndim, dims);
}

Tensor *fnn_pixel_shuffle (Tensor *x, int64_t r) {
  int lead = x->ndim >= 3 ? x->ndim - 3 : 0;
  const int64_t *s = x->shape + lead;
  check_pixels("pixel_shuffle", x, r, has_pixels(x, r) && s[0] % (r * r) == 0);
  int64_t c = s[0] / (r * r), h = s[1], w = s[2];
  Tensor *y = reshape_tail(x, lead, 5, (int64_t[]){ c, r, r, h, w });
  y = permute_tail(y, lead, (int[]){ 0, 3, 1, 4, 2 });
  return reshape_tail(y, lead, 3, (int64_t[]){ c, h * r, w * r });
}

Tensor *fnn_pixel_unshuffle (Tensor *x, int64_t r) {
  int lead = x->ndim >= 3 ? x->ndim - 3 : 0;
  const int64_t *s = x->shape + lead;
  check_pixels("pixel_unshuffle", x, r,
               has_pixels(x, r) && s[1] % r == 0 && s[2] % r == 0);
  int64_t c = s[0], h = s[1] / r, w = s[2] / r;
  Tensor *y = reshape_tail(x, lead, 5, (int64_t[]){ c, h, r, w, r });
  y = permute_tail(y, lead, (int[]){ 0, 2, 4, 1, 3 });
  return reshape_tail(y, lead, 3, (int64_t[]){ c * r * r, h, w });
}

/* }====================================================== */
