/* loss.cu - the rows of loss.def: losses of a prediction and a target, their
** sum in the same pass, and their slopes.
**
** A kernel holds all rows of the table: which it is, is the same for all its
** threads.  Sums are made of what each thread has in double: by blocks, then
** of the blocks by one, in an order that depends on the size alone. */

#include "rows.h"

#include "../src/core/ops.h"
#include "sweep.h"
#include "words.h"

/*
** {======================================================
** The table
** =======================================================
*/

/* What a formula reads beside the operands. */
template <class real> struct Row {
  int op;
  real a, b;
  bool third, weighed; /* there are u and weights: else 1 */
};

#define WORDS \
  const real a = k.a, b = k.b, d = x - t; \
  (void)a, (void)b, (void)d, (void)u

template <class real>
static __device__ inline real loss_of (const Row<real> &k, real x, real t,
                                       real u) {
  WORDS;
  switch (k.op) {
#define LOSS(name, y, gx, gt, gu) \
  case LOSS_##name: \
    return (y);
#include "../src/core/loss.def"
#undef LOSS
  }
  return 0;
}

/* The slope by x (which 0), t or u. */
template <class real>
static __device__ inline real slope_of (const Row<real> &k, int which, real x,
                                        real t, real u) {
  WORDS;
  switch (k.op * 3 + which) {
#define LOSS(name, y, gx, gt, gu) \
  case LOSS_##name * 3: return (gx); \
  case LOSS_##name * 3 + 1: return (gt); \
  case LOSS_##name * 3 + 2: \
    return (gu);
#include "../src/core/loss.def"
#undef LOSS
  }
  return 0;
}

/* }====================================================== */

/*
** {======================================================
** Elements
** =======================================================
*/

enum { INPUTS = 4 };

/* Of x, t, u and the weights. */
template <class real> struct Losses {
  typedef real Lane;
  Row<real> row;
  template <int V>
  __device__ inline real operator()(const real (&v)[INPUTS][V], int j) const {
    real u = row.third ? v[2][j] : (real)1;
    real w = row.weighed ? v[3][j] : (real)1;
    return w * loss_of(row, v[0][j], v[1][j], u);
  }
};

/* Of gy, times scale, and these. */
template <class real> struct Slopes {
  typedef real Lane;
  Row<real> row;
  int which;
  real scale;
  template <int V>
  __device__ inline real operator()(const real (&v)[1 + INPUTS][V],
                                    int j) const {
    real u = row.third ? v[3][j] : (real)1;
    real w = row.weighed ? v[4][j] : (real)1;
    return v[0][j] * scale * w * slope_of(row, which, v[1][j], v[2][j], u);
  }
};

template <class real>
static Row<real> row_of (int op, const Tensor *const *in, double a, double b) {
  return { op, (real)a, (real)b, in[2] != NULL, in[3] != NULL };
}

/* The operands of a group, 0 where there is none. */
template <class T, int V, int N>
static __device__ inline void load_inputs (Real<T> (&x)[N][V],
                                           char *const *data,
                                           const int32_t (*stride)[FNN_MAXDIM],
                                           const int32_t *at, uint32_t left) {
  for (int k = 0; k < N; k++) {
    for (int j = 0; j < V; j++) x[k][j] = 0;
    if (data[k] != NULL)
      group_load<V>(x[k], (const T *)data[k] + at[k], stride[k][0], left);
  }
}

template <class F, class T, int N, int V>
static __global__ void loss_elements (F f, Sweep<N + 1> s) {
  EACH_GROUP(i, s) {
    int32_t at[N + 1];
    uint32_t left = sweep_find(s, i, V, at);
    Real<T> x[N][V], z[V];
    load_inputs<T>(x, s.data + 1, s.stride + 1, at + 1, left);
    UNROLL
    for (int j = 0; j < V; j++) z[j] = f(x, j);
    group_store<V>((T *)s.data[0] + at[0], z, left);
  }
}

/* g: the result and the N operands of f. */
template <class F, class T, int N>
static void each (const Tensor *on, F f, Geometry g) {
  Geometry rest;
  Sweep<N + 1> s;
  while (geometry_halve(&g, &rest)) each<F, T, N>(on, f, rest);
  bool four = geometry_runs(&g, 4);
  sweep_of(&s, &g, four ? 4 : 1);
  if (s.groups == 0) return;
  unsigned blocks = blocks_for(s.groups, SWEEP_THREADS);
  if (four)
    RUN(on, (loss_elements<F, T, N, 4>), blocks, SWEEP_THREADS, 0, f, s);
  else RUN(on, (loss_elements<F, T, N, 1>), blocks, SWEEP_THREADS, 0, f, s);
}

/* }====================================================== */

/*
** {======================================================
** Sums
** =======================================================
*/

enum { BLOCKS = 1024 };

template <class T, int V>
static __global__ void loss_parts (double *part, Losses<Real<T>> f,
                                   Sweep<INPUTS> s) {
  typedef Real<T> real;
  double sum = 0;
  EACH_GROUP(i, s) {
    int32_t at[INPUTS];
    uint32_t left = sweep_find(s, i, V, at);
    real x[INPUTS][V], few = 0;
    load_inputs<T>(x, s.data, s.stride, at, left);
    UNROLL
    for (int j = 0; j < V; j++)
      if ((uint32_t)j < left) few += f(x, j);
    sum += (double)few;
  }
  sum = team_fold<Sum>(sum, SWEEP_THREADS);
  if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

/* *total, or 0 for the first, and the parts: times scale to y. */
template <class T>
static __global__ void loss_total (T *y, double *total, const double *part,
                                   int parts, bool first, double scale) {
  double sum = 0;
  for (int i = threadIdx.x; i < parts; i += SWEEP_THREADS) sum += part[i];
  sum = team_fold<Sum>(sum, SWEEP_THREADS);
  if (threadIdx.x != 0) return;
  if (!first) sum += *total;
  *total = sum;
  *y = number<T>(sum * scale);
}

/* One sum that is made of several sweeps where the tensors are vast. */
template <class T> struct Totals {
  T *y;
  double *total, *part;
  double scale;
  bool first;
};

template <class T>
static void sum_sweep (const Tensor *on, Totals<T> *k, Losses<Real<T>> f,
                       Geometry g) {
  Geometry rest;
  Sweep<INPUTS> s;
  while (geometry_halve(&g, &rest)) sum_sweep(on, k, f, rest);
  bool four = geometry_runs(&g, 4);
  sweep_of(&s, &g, four ? 4 : 1);
  unsigned blocks = min64(blocks_for(s.groups, SWEEP_THREADS), BLOCKS);
  if (four)
    RUN(on, (loss_parts<T, 4>), blocks, SWEEP_THREADS, 0, k->part, f, s);
  else RUN(on, (loss_parts<T, 1>), blocks, SWEEP_THREADS, 0, k->part, f, s);
  RUN(on, (loss_total<T>), 1, SWEEP_THREADS, 0, k->y, k->total, k->part,
      (int)blocks, k->first, k->scale);
  k->first = false;
}

template <class T>
static void sum (Tensor *y, Losses<Real<T>> f, Geometry g, double scale) {
  size_t mark = fnn_mark();
  double *room =
      (double *)scratch_for(y, (BLOCKS + 1) * (int64_t)sizeof *room);
  Totals<T> k = { data_of<T>(y), room, room + 1, scale, true };
  sum_sweep(y, &k, f, g);
  fnn_escape(mark, NULL);
}

/* }====================================================== */

extern "C" void cuda_loss (int op, Tensor *y, const Tensor *const *in,
                           double a, double b, double scale) {
  const Tensor *t[] = { y, in[0], in[1], in[2], in[3] };
  Geometry g;
  if (y->numel != 1) geometry_open(&g, 1 + INPUTS, t);
  else geometry_open(&g, INPUTS, in); /* laid out by x */
  WITH_FLOAT(y->dtype, Losses<Real<T>> f = { row_of<Real<T>>(op, in, a, b) };
             if (y->numel != 1) each<Losses<Real<T>>, T, INPUTS>(y, f, g);
             else sum<T>(y, f, g, scale));
}

extern "C" void cuda_loss_back (int op, int which, Tensor *gx,
                                const Tensor *gy, const Tensor *const *in,
                                double a, double b, double scale) {
  bool single = gy->numel == 1;
  const int64_t none[FNN_MAXDIM] = { 0 };
  if (gx->numel == 0) return;
  size_t mark = fnn_mark();
  Geometry g;
  if (single) gy = tensor_view(gy, gx->ndim, gx->shape, none, gy->offset);
  const Tensor *t[] = { gx, gy, in[0], in[1], in[2], in[3] };
  geometry_open(&g, 2 + INPUTS, t);
  WITH_FLOAT(gx->dtype,
             Slopes<Real<T>> f = { row_of<Real<T>>(op, in, a, b), which,
                                   single ? (Real<T>)scale : (Real<T>)1 };
             each<Slopes<Real<T>>, T, 1 + INPUTS>(gx, f, g));
  fnn_escape(mark, NULL);
}
