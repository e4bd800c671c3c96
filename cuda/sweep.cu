/* sweep.cu - the geometry of elementwise kernels (sweep.h). */

#include "sweep.h"

/* What 32-bit places reach, with room for a grid's stride. */
#ifndef SWEEP_REACH
#define SWEEP_REACH ((int64_t)1 << 30)
#endif

static int64_t size_of (int64_t v) { return v < 0 ? -v : v; }

static void exchange (int64_t *a, int64_t *b) {
  int64_t v = *a;
  *a = *b;
  *b = v;
}

/* Dims go from small strides of the result to large ones. */
static void sort_dims (Geometry *g) {
  for (int i = 1; i < g->ndim; i++)
    for (int d = i; d > 0; d--) {
      if (size_of(g->stride[0][d - 1]) <= size_of(g->stride[0][d])) break;
      exchange(&g->shape[d - 1], &g->shape[d]);
      for (int k = 0; k < g->count; k++)
        exchange(&g->stride[k][d - 1], &g->stride[k][d]);
    }
}

/* Merges dims that one stride walks in every operand. */
static void merge_dims (Geometry *g) {
  int last = 0;
  for (int d = 1; d < g->ndim; d++) {
    bool one = true;
    for (int k = 0; k < g->count; k++)
      one = one && g->stride[k][d] == g->stride[k][last] * g->shape[last];
    if (one) {
      g->shape[last] *= g->shape[d];
      continue;
    }
    g->shape[++last] = g->shape[d];
    for (int k = 0; k < g->count; k++) g->stride[k][last] = g->stride[k][d];
  }
  g->ndim = last + 1;
}

void geometry_open (Geometry *g, int count, const Tensor *const *t) {
  memset(g, 0, sizeof *g);
  g->count = count;
  g->numel = t[0]->numel;
  for (int k = 0; k < count; k++) {
    if (t[k] == NULL) continue;
    g->data[k] = (char *)tensor_data(t[k]);
    g->size[k] = (int)fnn_dtype_size((fnn_Dtype)t[k]->dtype);
  }
  for (int i = t[0]->ndim - 1; i >= 0; i--) {
    if (t[0]->shape[i] == 1) continue;
    g->shape[g->ndim] = t[0]->shape[i];
    for (int k = 0; k < count; k++)
      g->stride[k][g->ndim] = t[k] != NULL ? t[k]->stride[i] : 0;
    g->ndim++;
  }
  if (g->ndim == 0) {
    g->shape[g->ndim++] = 1;
    for (int k = 0; k < count; k++) g->stride[k][0] = t[k] != NULL;
  }
  sort_dims(g);
  merge_dims(g);
}

/* The dim along which x runs, one of several places; -1: none. */
static int innermost (const Tensor *x) {
  int found = -1;
  for (int d = 0; d < x->ndim; d++)
    if (x->shape[d] > 1 && x->stride[d] == 1) found = d;
  return found;
}

const Tensor *sweep_operand (const Tensor *x, const Tensor *y) {
  enum { LEAST = 4096 }; /* below it a launch costs more */
  if (x == NULL || x->numel < LEAST) return x;
  int along = innermost(x), d = innermost(y);
  if (along < 0 || d < 0 || x->stride[d] == 1 || x->stride[d] == 0) return x;
  Tensor *z = like_in_order(y, (fnn_Dtype)x->dtype);
  kernel(z, copy)(z, x);
  return z;
}

bool geometry_halve (Geometry *g, Geometry *rest) {
  int which = -1;
  int64_t most = 0;
  bool far = g->numel > SWEEP_REACH;
  for (int k = 0; k < g->count; k++) {
    int64_t reach = 0;
    for (int d = 0; d < g->ndim; d++) {
      int64_t span = (g->shape[d] - 1) * size_of(g->stride[k][d]);
      if (span > most) most = span, which = d;
      reach += span;
    }
    far = far || reach > SWEEP_REACH;
  }
  if (!far || which < 0 || g->numel == 0) return false;
  int64_t n = g->shape[which], first = n / 2;
  if (which == 0 && first >= 64) first = first / 64 * 64; /* still aligned */
  *rest = *g;
  g->shape[which] = first;
  rest->shape[which] = n - first;
  g->numel = g->numel / n * first;
  rest->numel -= g->numel;
  for (int k = 0; k < g->count; k++)
    if (g->data[k] != NULL)
      rest->data[k] += first * g->stride[k][which] * g->size[k];
  return true;
}

bool geometry_runs (const Geometry *g, int n) {
  if (g->ndim > 1 && g->shape[0] < n) return false;
  for (int k = 0; k < g->count; k++) {
    if (g->data[k] == NULL) continue;
    if (k > 0 && g->stride[k][0] == 0) continue;
    if (g->stride[k][0] != 1) return false;
    int64_t bytes = min64(n * g->size[k], 16);
    if ((uintptr_t)g->data[k] % (uintptr_t)bytes != 0) return false;
    for (int d = 1; d < g->ndim; d++)
      if (g->stride[k][d] * g->size[k] % bytes != 0) return false;
  }
  return true;
}

/* factor = floor(2^32 (2^shift - by) / by) + 1, 2^shift >= by */
Divisor divisor_of (uint32_t by) {
  Divisor d = { by, 1, 0 };
  if (by == 0) return d;
  while (((uint64_t)1 << d.shift) < by) d.shift++;
  uint64_t power = (uint64_t)1 << d.shift;
  d.factor = (uint32_t)(((power - by) << 32) / by + 1);
  return d;
}
