/* loss_ids.cu - cross entropy of rows of logits against ids.
**
** With K classes, smoothing s and weights w the loss of a row whose id is t is
**   (1 - s) w[t] (lse - x[t]) + s / K sum_c w[c] (lse - x[c]),
** lse the logarithm of the sum of e^x, which one read of the row gives.  It is
** kept for the way back as the maximum and the rest; probabilities are made
** where they are needed and never stored.  lse and w are of Real<T>; y and gy
** are of that or of x's dtype.  Ids out of range count as ignored. */

#include "reduce.h"

#include "../src/core/ops.h"

enum { BLOCK = 512 };

template <class T> struct Job {
  typedef Real<T> real;
  const T *x;
  const int64_t *ids;
  const real *w;       /* NULL: 1 */
  const double *total; /* of w; NULL: n */
  void *y;             /* or gy */
  bool wide;           /* y is of Real<T> */
  bool one;            /* gy is one number */
  real *lse;
  T *gx;
  int64_t rows, n, ignore;
  double smooth, scale;
};

static int team_for (int64_t n) {
  return n <= 1024 ? (int)min64(power_from((n + 3) / 4), WARP) : BLOCK;
}

template <class T>
static __device__ inline int64_t id_of (const Job<T> &k, int64_t row) {
  int64_t id = row < k.rows ? k.ids[row] : -1;
  return id >= 0 && id < k.n && id != k.ignore ? id : -1;
}

template <class T>
static __device__ inline double all_weights (const Job<T> &k) {
  return k.total != NULL ? *k.total : (double)k.n;
}

/*
** {======================================================
** Forward
** =======================================================
*/

template <class T>
static __device__ void finish_row (const Job<T> &k, int64_t row, int64_t id,
                                   Soft<Real<T>> s, double weighed) {
  typedef Real<T> real;
  double loss = 0;
  real over = 0;
  if (id >= 0) {
    over = log(s.s);
    double m = (double)s.m, w = k.w != NULL ? (double)k.w[id] : 1;
    double x = (double)(real)k.x[row * k.n + id];
    loss = (1 - k.smooth) * w * ((double)over - (x - m));
    if (k.smooth != 0)
      loss += k.smooth / (double)k.n *
              (all_weights(k) * ((double)over + m) - weighed);
  }
  k.lse[2 * row] = id >= 0 ? s.m : 0;
  k.lse[2 * row + 1] = over;
  if (k.wide) ((real *)k.y)[row] = (real)loss;
  else ((T *)k.y)[row] = number<T>(loss);
}

template <class T> static __global__ void entropy_rows (Job<T> k, int team) {
  typedef Real<T> real;
  int t = threadIdx.x % team;
  EACH_ROW(row, k.rows, team) {
    int64_t id = id_of(k, row), n = id >= 0 ? k.n : 0;
    const T *x = k.x + row * k.n;
    Soft<real> s = soft_none<real>();
    double weighed = 0;
    int64_t head = packed_from(x, n);
    if (k.w != NULL && k.smooth != 0 && !is_packed(k.w + head)) head = n;
    row_walk(n, head, t, team, [&] (int64_t i, auto count) {
      enum { N = decltype(count)::n };
      real v[N], w[N], few = 0;
      load<N>(v, x + i);
      soft_take<N>(&s, v);
      if (k.smooth == 0) return;
      if (k.w != NULL) load<N>(w, k.w + i);
      for (int j = 0; j < N; j++) few += k.w != NULL ? w[j] * v[j] : v[j];
      weighed += (double)few;
    });
    s = team_fold<SoftFold>(s, team);
    if (k.smooth != 0) weighed = team_fold<Sum>(weighed, team);
    if (t == 0 && row < k.rows) finish_row(k, row, id, s, weighed);
  }
}

/* }====================================================== */

/*
** {======================================================
** Backward: gx[c] = g (p[c] ((1 - s) w[t] + s/K sum w) - s/K w[c]
** - (1 - s) w[t] (c = t))
** =======================================================
*/

template <class T>
static __device__ inline double gradient_of (const Job<T> &k, int64_t row) {
  int64_t i = k.one ? 0 : row;
  return (k.wide ? (double)((const Real<T> *)k.y)[i]
                 : (double)(Real<T>)((const T *)k.y)[i]) *
         k.scale;
}

template <class T> static __global__ void slope_rows (Job<T> k, int team) {
  typedef Real<T> real;
  int t = threadIdx.x % team;
  EACH_ROW(row, k.rows, team) {
    if (row >= k.rows) continue;
    int64_t id = id_of(k, row);
    const T *x = k.x + row * k.n;
    T *gx = k.gx + row * k.n;
    double g = id >= 0 ? gradient_of(k, row) : 0;
    double hit =
        (1 - k.smooth) * (id >= 0 && k.w != NULL ? (double)k.w[id] : 1);
    double each = k.smooth / (double)k.n;
    double whole = k.smooth != 0 ? each * all_weights(k) : 0;
    const real p = (real)(g * (hit + whole)), q = (real)(g * each);
    const real m = k.lse[2 * row], over = k.lse[2 * row + 1];
    const real taken = (real)(g * hit);
    bool weigh = k.w != NULL && k.smooth != 0;
    int64_t head = packed_from(x, k.n);
    if (!is_packed(gx + head) || (weigh && !is_packed(k.w + head))) head = k.n;
    row_walk(k.n, head, t, team, [&] (int64_t i, auto count) {
      enum { N = decltype(count)::n };
      real v[N], w[N];
      if (weigh) load<N>(w, k.w + i);
      load<N>(v, x + i);
      for (int j = 0; j < N; j++) {
        v[j] = p * exp((v[j] - m) - over) - (weigh ? q * w[j] : q);
        if (i + j == id) v[j] -= taken;
        if (id < 0) v[j] = 0;
      }
      store<N>(gx + i, v);
    });
  }
}

/* }====================================================== */

/* The sum of w on its card, where it will be read. */
static const double *weigh (const Tensor *w, double smooth) {
  if (w == NULL || smooth == 0) return NULL;
  double *total = (double *)scratch_for(w, sizeof *total);
  Reduction r = {};
  r.x = tensor_data(w);
  r.y = total;
  r.to = FNN_F64;
  r.outer = r.inner = 1;
  r.n = w->numel;
  reduce_run(w, REDUCE_sum, &r);
  return total;
}

template <class T>
static Job<T> job (const Tensor *y, const Tensor *lse, const Tensor *x,
                   const Tensor *ids, const Tensor *w, int64_t n,
                   int64_t ignore, double smooth) {
  Job<T> k = {};
  k.x = data_of<T>(x);
  k.ids = data_of<int64_t>(ids);
  k.w = data_of<Real<T>>(w);
  k.total = weigh(w, smooth);
  k.y = tensor_data(y);
  k.wide = y->dtype == lse->dtype;
  k.lse = data_of<Real<T>>(lse);
  k.rows = ids->numel;
  k.n = n;
  k.ignore = ignore;
  k.smooth = smooth;
  k.scale = 1;
  return k;
}

extern "C" void cuda_cross_entropy (Tensor *y, Tensor *lse, const Tensor *x,
                                    const Tensor *ids, const Tensor *w,
                                    int64_t rows, int64_t n, int64_t ignore,
                                    double smooth) {
  if (rows == 0) return;
  int team = team_for(n);
  size_t mark = fnn_mark();
  WITH_FLOAT(x->dtype, Job<T> k = job<T>(y, lse, x, ids, w, n, ignore, smooth);
             RUN(x, (entropy_rows<T>), blocks_for(rows, BLOCK / team), BLOCK,
                 0, k, team));
  fnn_escape(mark, NULL);
}

extern "C" void cuda_cross_entropy_back (Tensor *gx, const Tensor *gy,
                                         const Tensor *lse, const Tensor *x,
                                         const Tensor *ids, const Tensor *w,
                                         int64_t rows, int64_t n,
                                         int64_t ignore, double smooth,
                                         double scale) {
  if (rows == 0 || n == 0) return;
  int team = team_for(n);
  size_t mark = fnn_mark();
  WITH_FLOAT(x->dtype,
             Job<T> k = job<T>(gy, lse, x, ids, w, n, ignore, smooth);
             k.gx = data_of<T>(gx); k.one = gy->numel == 1; k.scale = scale;
             RUN(x, (slope_rows<T>), blocks_for(rows, BLOCK / team), BLOCK, 0,
                 k, team));
  fnn_escape(mark, NULL);
}
